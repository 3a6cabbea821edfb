"""One moment of a ledger, for a reader that decides as it reads which states it needs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from sqlalchemy import Connection

from streammetrics.experiments import Watched
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, read_metadata, read_states
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import Point, count_looks, read_points, read_watched
from streammetrics_consumers.ledger.read import generation_of, last_retry, read_heads, read_panes
from streammetrics_consumers.ledger.schema import head
from streammetrics_consumers.model.commit import Head, Snapshot
from streammetrics_consumers.model.generation import Generation, Pane

T = TypeVar("T")


class StoreVersion(NamedTuple):
    """What every result is a function of, beside the log and the settings of a generation: how far
    each log was counted, what is kept, and which refused events were tried again (the number of
    the last retry). Between two equal moments nothing was counted, whatever was merged."""

    generation: Generation
    heads: tuple[Head, ...]
    retry: int


class View:
    """What one read transaction sees. `snapshot` is without deltas."""

    def __init__(self, connection: Connection, version: StoreVersion) -> None:
        self._connection = connection
        self.version = version

    @cached_property
    def snapshot(self) -> Snapshot:
        """The heads, and which panes there are: it costs a look at every row of the index."""
        of, heads, last = self.version
        return Snapshot(of, heads, read_panes(self._connection, of), retry=last)

    def delta_metadata(self, panes: Collection[Pane]) -> list[DeltaMetadata]:
        """The delta rows of these panes, without their states."""
        return list(read_metadata(self._connection, self.version.generation, panes))

    def states(self, rows: Sequence[DeltaMetadata]) -> Iterator[tuple[DeltaMetadata, bytes]]:
        """Each of these rows with what is stored of it, in no certain order, a few in memory at a
        time; `outline.state_of` makes its state of it."""
        return read_states(self._connection, rows)

    def looks(self, experiment: str) -> int:
        """How many looks at this experiment there are."""
        return count_looks(self._connection, self.version.generation.id, experiment)

    def watched(
        self, experiment: str, alphas: Mapping[str, float], until: int
    ) -> dict[str, Watched]:
        """See `looks.read_watched`."""
        return read_watched(self._connection, self.version.generation.id, experiment, alphas, until)

    def points(self, experiment: str, comparison: str) -> list[Point]:
        """See `looks.read_points`."""
        return read_points(self._connection, self.version.generation.id, experiment, comparison)


def view(ledger: Ledger, look: Callable[[View], T], *, generation: int | None = None) -> T:
    """What `look` answers, in one read transaction; over before this returns.

    Where the connection fails, `look` runs again on a new view.
    """

    def work(connection: Connection) -> T:
        found = generation_of(connection, ledger.store.name, generation)
        heads = read_heads(connection, head.c.generation == found.id)
        return look(View(connection, StoreVersion(found, heads, last_retry(connection, found.id))))

    return ledger.store.read(work)
