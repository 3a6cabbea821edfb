"""What a reader sees of a ledger: one version of it, in one read transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from streammetrics import experiments
from streammetrics_consumers.ledger import looks, outbox
from streammetrics_consumers.ledger.delta_metadata import (
    DeltaMetadata,
    StoredStates,
    read_metadata,
    read_states,
)
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import Point
from streammetrics_consumers.ledger.outbox import HookMessage, HookRow
from streammetrics_consumers.ledger.read import (
    generation_ids,
    generation_of,
    has_retry,
    last_retry,
    read_heads,
    read_panes,
    read_size,
)
from streammetrics_consumers.ledger.schema import head
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.generation import Generation, Pane
from streammetrics_consumers.model.hook_events import HookEvent, HookState

T = TypeVar("T")


class StoreVersion(NamedTuple):
    """The version of a store: the offsets up to which each log was counted, the retention floor,
    and the number and the note of the last retry. With the logs and the settings of a generation it
    determines every result. Between two equal versions nothing was counted, whatever was merged.

    A retry moves no head, and a store that went back may give its number to another one: only the
    note distinguishes them."""

    generation: Generation
    heads: tuple[Head, ...]
    retry: int
    retry_note: str


class StoreView:
    """The ledger as one read transaction sees it; a reader chooses the states that it needs."""

    def __init__(self, connection: Connection, version: StoreVersion) -> None:
        self._connection = connection
        self.version = version
        self._looks = connection, version.generation.id

    @cached_property
    def snapshot(self) -> Snapshot:
        """The heads, and the panes that have rows. Cost: a scan of the whole index."""
        generation, heads, last, _ = self.version
        return Snapshot(generation, heads, read_panes(self._connection, generation), retry=last)

    @property
    def bare(self) -> Snapshot:
        """The snapshot without the list of its panes, which costs nothing."""
        generation, heads, last, _ = self.version
        return Snapshot(generation, heads, (), retry=last)

    @property
    def generation_ids(self) -> tuple[int, ...]:
        """The numbers of all generations, oldest first."""
        return generation_ids(self._connection)

    def has_retry_of(self, version: StoreVersion) -> bool:
        """Whether the last retry of an earlier version, and so each before it, is in this one."""
        return not version.retry or has_retry(self._connection, version.retry, version.retry_note)

    def stored_size(self) -> tuple[int, int]:
        """The number and the bytes of all delta rows. Cost: a scan of the whole index."""
        return read_size(self._connection, self.version.generation)

    def delta_metadata(self, panes: Collection[Pane]) -> list[DeltaMetadata]:
        """The delta rows of these panes, without their states."""
        return list(read_metadata(self._connection, self.version.generation, panes))

    def states(self, rows: Sequence[DeltaMetadata]) -> StoredStates:
        """Each of these rows with its stored bytes, in no particular order, a few in memory at a
        time; `state_of` decodes them."""
        return read_states(self._connection, rows)

    @property
    def newest_looks(self) -> tuple[int, ...]:
        """See `looks.newest_ids`."""
        return looks.newest_ids(self._connection)

    def looks(self, experiment: str | None = None) -> int:
        """The number of looks at this experiment; None: at all of the generation."""
        return looks.count_looks(*self._looks, experiment)

    def is_taken(self, look: experiments.Look) -> bool:
        """See `looks.is_taken`."""
        return looks.is_taken(self._connection, look)

    def last_look(self, experiment: str) -> dict[str, experiments.Anytime]:
        """See `looks.read_last`."""
        return looks.read_last(*self._looks, experiment)

    def first_look_ms(self, experiment: str) -> int | None:
        """See `looks.read_start`."""
        return looks.read_start(*self._looks, experiment)

    def watched(
        self, experiment: str, alphas: Mapping[str, float], until: int
    ) -> dict[str, experiments.Watched]:
        """See `looks.read_watched`."""
        return looks.read_watched(*self._looks, experiment, alphas, until)

    def hooks(self, experiment: str | None = None) -> list[HookRow]:
        """See `outbox.read_rows`; of the generation."""
        return outbox.read_rows(*self._looks, experiment)

    def hooks_by_state(self) -> Mapping[tuple[str, HookState], int]:
        """See `outbox.count_by_state`; of all generations."""
        return outbox.count_by_state(self._connection)

    def hooks_waiting_ms(self) -> Mapping[str, int]:
        """See `outbox.waiting_since_ms`; of all generations."""
        return outbox.waiting_since_ms(self._connection)

    def last_hook(
        self, experiment: str, hook: str, event: HookEvent
    ) -> tuple[int, HookMessage | None]:
        """See `outbox.last_message`."""
        return outbox.last_message(*self._looks, experiment, hook, event)

    def has_hook(self, message: HookMessage) -> bool:
        """See `outbox.has_message`."""
        return outbox.has_message(self._connection, message)

    def points(self, experiment: str, comparison: str) -> list[Point]:
        """See `looks.read_points`."""
        return looks.read_points(*self._looks, experiment, comparison)


def view(ledger: Ledger, look: Callable[[StoreView], T], *, generation: int | None = None) -> T:
    """The result of `look` in one read transaction, which ends before this returns.

    If the connection fails, `look` runs again on a new view.
    """

    def work(connection: Connection) -> T:
        stored = generation_of(connection, ledger.store.name, generation)
        heads = read_heads(connection, head.c.generation == stored.id)
        return look(
            StoreView(connection, StoreVersion(stored, heads, *last_retry(connection, stored.id)))
        )

    return ledger.store.read(work)
