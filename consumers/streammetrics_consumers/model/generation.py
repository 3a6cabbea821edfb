"""Generations, their metrics, their states by pane, and the changes that a config makes to them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from streammetrics import Accumulator, Measure
    from streammetrics_consumers.model.partition import Partition

JOIN_PREFIX: Final = "join/"  # not valid in the name of a metric of a config
ROWS: Final = JOIN_PREFIX + "rows"  # the metric that holds the events of open label windows
DELAYS: Final = JOIN_PREFIX + "delays"
EXPOSURES_PREFIX: Final = "exposures/"  # nor is this
EXPOSED_ROWS: Final = EXPOSURES_PREFIX + "rows"  # events and exposures that are not closed
EXPOSED_UNITS: Final = (
    EXPOSURES_PREFIX + "units"
)  # closed exposures, the first of each unit and arm
PENDING: Final = ROWS, EXPOSED_ROWS  # the metrics that hold pending events
KINDS: Final = "kinds"  # a key of a description: the kinds of rows that an experiment counts
UNITS: Final = "units"  # the name of the set of units among the metrics of an experiment
ACTIVE: Final = "active"  # that of the exposed units with an event
DRIFT: Final = "drift"  # under SHOWN: the comparisons of a metric's windows
EXPERIMENT: Final = "experiment"  # a key of a description: the plan; and its metric set
WATCH_RATES: Final = "watch_rates"  # under SHOWN: False where a config switched them off
SHOWN: Final = "shown"  # a key of a metric's description: values for display, which may change
BETTER: Final = "better"  # the key of the directions among these values
UNIT_SUMS: Final = "units:"  # before a metric in the name of its sums by unit; in no other name
VIEWS: Final = "views"  # the key of the views to show beside the headline views
USERS: Final = "users"  # the key of the users that [event] names and the metric does not use
FIRST_EPOCH: Final = "start"  # the epoch of events before the first declared start


def is_unit_sums(metric: str) -> bool:
    """Whether a state is that of the sums by unit of another metric, by its name in the store.

    >>> is_unit_sums("experiment/ranker/units:ctr"), is_unit_sums("experiment/ranker/units")
    (True, False)
    """
    return UNIT_SUMS in metric


def experiment_set(name: str) -> str:
    """The metric set of an experiment; that of [experiment] has the name "".

    >>> experiment_set(""), experiment_set("ranker")
    ('experiment', 'experiment/ranker')
    """
    return f"{EXPERIMENT}/{name}" if name else EXPERIMENT


def experiment_name(metric_set: str) -> str | None:
    """The experiment of a metric set; None for another metric set."""
    first, _, name = metric_set.partition("/")
    return name if first == EXPERIMENT else None


def fingerprint(description: Mapping[str, object]) -> str:
    """sha256 (hex) of a description's canonical JSON, without the values for display."""
    meant = {name: value for name, value in description.items() if name != SHOWN}
    text = json.dumps(meant, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def type_of(empty: Accumulator) -> str:
    """The schema of a state, and of a metric in it that is in another form than is usual."""
    from streammetrics import Accumulator  # numpy is not loaded by programs that read no states

    inner = [state for state in empty.settings().values() if isinstance(state, Accumulator)]
    unusual = [state.schema for state in inner if state.schema != type(state).schema]
    return " of ".join([empty.schema, *unusual])


def settings_of(empty: Accumulator) -> dict[str, str]:
    """The settings of a state as texts, by name."""
    from streammetrics.registry import setting_texts

    return setting_texts(empty)


def measures_of_lists(empty: Accumulator) -> tuple[list[Measure], bool]:
    """The measures of a metric of lists, and whether its lists are declared to be complete."""
    from streammetrics import Paired, UserGroups, parse_measure

    while isinstance(empty, Paired | UserGroups):
        empty = empty.metric
    settings = empty.settings()
    measures = [*map(parse_measure, cast("Sequence[str]", settings.get("measures", ())))]
    return measures, settings.get("complete_lists", True) is True


@dataclass(frozen=True, slots=True)
class DeclaredDrift:
    """A comparison of the windows of a metric with a reference: a result with a name of its own.

    reference: "previous", the window before; [start_ms, end_ms); or the path of a state file.
    label: of scores, only those of this class. bins: of PSI.
    """

    name: str
    metric: str
    reference: str | tuple[int, int]
    label: int | None
    bins: int

    @property
    def plain(self) -> dict[str, object]:
        """As the description of its metric has it."""
        reference = self.reference
        return {
            "name": self.name,
            "reference": reference if isinstance(reference, str) else list(reference),
            "label": self.label,
            "bins": self.bins,
        }

    @staticmethod
    def from_plain(metric: str, plain: Mapping[str, object]) -> DeclaredDrift:
        """The inverse of `plain`."""
        stored, label, bins = plain["reference"], plain["label"], plain["bins"]
        reference = (
            str(stored) if not isinstance(stored, list) else (int(stored[0]), int(stored[1]))
        )
        assert isinstance(label, int | None) and isinstance(bins, int)
        return DeclaredDrift(str(plain["name"]), metric, reference, label, bins)


class Missed(NamedTuple):
    """Refused events of a log that retries counted while a metric was ended: their number, and the
    first and the last of their offsets. It counts the other events at these offsets."""

    events: int
    first: int
    last: int

    def text(self, log: Partition) -> str:
        """As a note says it.

        >>> from streammetrics_consumers.model.partition import Partition
        >>> Missed(3, 5, 7).text(Partition("kafka", "clicks", "id", 0))
        '3 refused events at offsets 5 to 7 of clicks/0 that retries counted meanwhile'
        """
        is_one = self.events == 1
        place = f"offset {self.first}" if is_one else f"offsets {self.first} to {self.last}"
        return (
            f"{self.events} refused event{'' if is_one else 's'} at {place} of {log} that retries "
            "counted meanwhile"
        )


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of a generation.

    `description`, as parsed JSON, is the readable form of the fingerprint's input; under `shown`
    it has the display values of the last config, such as the variants in their order.
    `start_offsets` has an entry (head id to offset) where the metric was added after the head had
    moved; elsewhere it counts from the head's own start. A metric with `ended` was removed from
    the config. A resumed metric has `holes`: by head, the offsets [from, to) that it did not count
    in between. It also lacks the `missed` events, by head, at offsets that it counts. `ends` has
    the offset of JOIN at which a metric ended: its last row may end before, since a closing may add
    nothing to it. A store of an earlier version may not have it.
    """

    name: str
    fingerprint: str
    description: Mapping[str, object]
    ended: bool
    start_offsets: Mapping[int, int]
    holes: Mapping[int, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    missed: Mapping[int, Missed] = field(default_factory=dict)
    ends: Mapping[int, int] = field(default_factory=dict)

    def counts(self, head: int, offset: int) -> bool:
        """Whether it counts the events at this offset of a head's log."""
        is_missing = any(start <= offset < end for start, end in self.holes.get(head, ()))
        return offset >= self.start_offsets.get(head, offset) and not is_missing

    @property
    def metric_set(self) -> str:
        """Its metric set: "" for a metric of the config, which is counted by its slices; else its
        name up to the last "/". These belong together and are no results by themselves."""
        return self.name.rpartition("/")[0]

    @property
    def variants(self) -> tuple[str, ...]:
        """The declared variants in the order of the config."""
        shown = self.description.get(SHOWN)
        variants = shown.get("variants") if isinstance(shown, dict) else None
        return tuple(map(str, variants)) if isinstance(variants, list) else ()

    @property
    def position(self) -> int:
        """Its index among the metrics of the config; 0 in a store that is older than that value."""
        shown = self.description.get(SHOWN)
        position = shown.get("position") if isinstance(shown, dict) else None
        return position if isinstance(position, int) else 0

    @property
    def views(self) -> tuple[str, ...]:
        """The views that the last config shows beside its headline views."""
        shown = self.description.get(SHOWN)
        views = shown.get(VIEWS) if isinstance(shown, dict) else None
        return tuple(map(str, views)) if isinstance(views, list) else ()

    @property
    def users(self) -> str:
        """The field of the users that the last config names, if the metric does not use it; ""."""
        shown = self.description.get(SHOWN)
        return str(shown.get(USERS, "")) if isinstance(shown, dict) else ""

    @property
    def drifts(self) -> tuple[DeclaredDrift, ...]:
        """The comparisons of its windows in the last config."""
        shown = self.description.get(SHOWN)
        drifts = shown.get(DRIFT) if isinstance(shown, dict) else None
        return tuple(DeclaredDrift.from_plain(self.name, plain) for plain in drifts or ())


@dataclass(frozen=True, slots=True)
class Generation:
    """Results that may be added up; settings cannot change within a generation.

    `revision` grows when a metric is added or ended, or a variant or an epoch is added. A worker
    that knows an older revision is refused, because the new metric would have a hole in its rows.
    Only the current generation is written. Windows that start before `floor_ms` are dropped; the
    floor only rises. `lateness_ms` is from the last config; readers use it to show when a window
    is closed, and nothing else depends on it. `token` is random and changes with each revision: it
    distinguishes a generation from one with the same number in another store, or one made after
    the store went back.
    """

    id: int
    revision: int
    current: bool
    floor_ms: int | None
    metrics: tuple[Metric, ...]
    lateness_ms: int = 0
    token: str = ""


class Pane(NamedTuple):
    """The scope of a state: one metric, one grouping (its index in `[slices] by`) and the event
    times [start_ms, end_ms), or all events since the start where these are None."""

    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None

    @property
    def is_total(self) -> bool:
        """Whether it counts all events since the start."""
        return self.start_ms is None

    def regrouped(self, grouping: int) -> Pane:
        """The same pane of another grouping."""
        return self._replace(grouping=grouping)


@dataclass(frozen=True, slots=True)
class StateShard:
    """A part of a pane's state: the keys whose hash lies in the `key_range`-th of `key_ranges`
    equal ranges. `state` is `to_bytes()` of a PerKey of the plain metric, and `packed` the same as
    it is stored, b"" if that is as it is: see ledger/packing.py. `key_ranges` is a power of two, so
    the ranges of different shards nest. With `for_coarser`, it is whole, keeps all keys apart, and
    coarser groupings have no shards of their own: see ledger/delta_metadata.py."""

    pane: Pane
    key_range: int
    key_ranges: int
    state: bytes
    for_coarser: bool = False
    packed: bytes = field(default=b"", compare=False)

    @property
    def stored(self) -> bytes:
        """The bytes of the row."""
        return self.packed or self.state


@dataclass(frozen=True, slots=True)
class PaneSize:
    """The number of a pane's delta rows and their size in bytes. `own_rows` and `own_nbytes` leave
    out the rows of a finer grouping, which also stand for it."""

    pane: Pane
    rows: int
    nbytes: int
    own_rows: int
    own_nbytes: int


@dataclass(frozen=True, slots=True)
class Requested:
    """Metrics to end (`drop`), which left the config, and to resume, which are in it again: by
    their names or by those of their metric sets (`experiment`); and metrics to count anew
    (`restart`), without their stored states. drop_windows: whether windows may be dropped that a
    shorter retention of the config no longer keeps."""

    drop: tuple[str, ...] = ()
    resume: tuple[str, ...] = ()
    restart: tuple[str, ...] = ()
    drop_windows: bool = False


NOTHING_REQUESTED: Final = Requested()


class ExperimentChange(NamedTuple):
    """What a config changes of one experiment.

    kind: "added", "ended", "resumed", or "goes on". added, ended: metrics of one that goes on, by
    their names in the config. epochs: the starts added. end: where it is declared or moved, the
    ends before and after in milliseconds. shown: the names of the values for display that change.
    """

    name: str
    kind: str
    added: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    end: tuple[int | None, int | None] | None = None
    shown: tuple[str, ...] = ()


class Changes(NamedTuple):
    """The changes that a config makes to a generation: metrics added, metrics ended, variants
    added, starts of an experiment's epochs added, metrics resumed, metrics that are counted anew,
    without their stored states, and experiments whose end is declared or moved. experiments: the
    same by experiment, of each in the config or the store."""

    added: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    epochs: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    restarted: tuple[str, ...] = ()
    moved_ends: tuple[str, ...] = ()
    experiments: tuple[ExperimentChange, ...] = ()

    @property
    def ended_experiments(self) -> tuple[str, ...]:
        """The names of the experiments that end, "" for that of [experiment]."""
        return tuple(change.name for change in self.experiments if change.kind == "ended")

    def __bool__(self) -> bool:
        return any(self[:-1])


NO_CHANGES: Final = Changes()


@dataclass(frozen=True, slots=True)
class Begun:
    """The generation to write, whether it was created for this, and the changes of the config."""

    generation: Generation
    created: bool
    changes: Changes = NO_CHANGES
