"""What is counted: generations, their metrics, states by pane, and what a config changes there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

SHOWN: Final = "shown"  # of a metric's description: what is for display, and may change


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a generation.

    `description`, as JSON reads it, is the readable form of what the fingerprint hashes, and under
    `shown` what the last config says for display: its variants in their order.
    `start_offsets` has an entry (head id to offset) where the metric was added after the head had
    moved; elsewhere it counts from the head's own start. A metric with `ended` was taken out of
    the config. One that came back has `holes`: by head, the offsets [from, to) that it did not
    count meanwhile.
    """

    name: str
    fingerprint: str
    description: Mapping[str, object]
    ended: bool
    start_offsets: Mapping[int, int]
    holes: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    def counts(self, head: int, offset: int) -> bool:
        """Whether it counts the events at this offset of a head's log."""
        is_missing = any(start <= offset < end for start, end in self.holes.get(head, ()))
        return offset >= self.start_offsets.get(head, offset) and not is_missing

    @property
    def metric_set(self) -> str:
        """What it is counted for: "" for a metric of the config, by its slices; before the last
        "/" of its name for others, which belong together and are no results by themselves."""
        return self.name.rpartition("/")[0]

    @property
    def variants(self) -> tuple[str, ...]:
        """The declared variants in the order of the config."""
        shown = self.description.get(SHOWN)
        found = shown.get("variants") if isinstance(shown, dict) else None
        return tuple(map(str, found)) if isinstance(found, list) else ()


@dataclass(frozen=True, slots=True)
class Generation:
    """Results that belong together; settings cannot change within one.

    `revision` grows when a metric is added or ended, or a variant or an epoch added: a worker that
    knows an older one is refused, because the new metric would have a hole in its rows. Only the
    current generation is written. Windows that start before `floor_ms` are gone; the floor only
    rises. `lateness_ms` is that of the last config: readers say by it when a window is closed, and
    nothing else rests on it. `token` is random and another one for each revision: it tells a
    generation from one that was made under the same number in another store, or after the store
    went back.
    """

    id: int
    revision: int
    current: bool
    floor_ms: int | None
    metrics: tuple[Metric, ...]
    lateness_ms: int = 0
    token: str = ""


class Pane(NamedTuple):
    """What a state counts: one metric, one grouping (its place in `[slices] by`) and the event
    times [start_ms, end_ms), or all events since the start where these are None."""

    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None

    @property
    def is_total(self) -> bool:
        """Whether it counts all events since the start."""
        return self.start_ms is None

    def of_grouping(self, grouping: int) -> Pane:
        """The same of another grouping."""
        return self._replace(grouping=grouping)


@dataclass(frozen=True, slots=True)
class StateShard:
    """A part of a pane's state: the keys whose hash lies in the `key_range`-th of `key_ranges`
    equal ranges. `state` is `to_bytes()` of a PerKey of the plain metric. `key_ranges` is a power
    of two, so ranges of different pieces nest. Where `for_coarser`, it is whole, keeps all keys
    apart, and the coarser groupings have no pieces of their own: see ledger/delta_metadata.py."""

    pane: Pane
    key_range: int
    key_ranges: int
    state: bytes
    for_coarser: bool = False


@dataclass(frozen=True, slots=True)
class PaneSize:
    """A pane that has delta rows, how many, and how many bytes they hold together; and how many
    of them are its own: others are of a finer grouping, and stand for it too."""

    pane: Pane
    rows: int
    nbytes: int
    own_rows: int
    own_nbytes: int


@dataclass(frozen=True, slots=True)
class Requested:
    """Metrics by their names, or by those of their families (`experiment`): to end, which left the
    config, and to resume, which are back in it."""

    drop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()


NOTHING_REQUESTED: Final = Requested()


class Changes(NamedTuple):
    """What a config changes in a generation: metrics that it counts from now on, those that it
    counts no more, variants that it counts from now on, starts of an experiment's epochs, and
    metrics that it counts again."""

    added: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any(self[:])


NO_CHANGES: Final = Changes()


@dataclass(frozen=True, slots=True)
class Begun:
    """The generation to write, whether it was made for this, and what the config changes in it."""

    generation: Generation
    created: bool
    changes: Changes = NO_CHANGES
