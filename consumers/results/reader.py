"""From the deltas of a ledger to states: one metric and one grouping at a time, under a limit.

A reader never touches a worker. It takes one snapshot of heads and deltas, and merges: sums are
exact, so the order of the deltas, and how many there are, change nothing. An answer that is over
the limits comes one range of keys at a time (stream.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consumers.ledger.ledger import Ledger, TooLarge
from consumers.model.commit import Snapshot
from consumers.model.generation import DeltaRow, Pane
from consumers.results.experiment_rows import ExperimentRows
from consumers.results.join_reader import JoinReader
from consumers.results.query import Query, require_generation
from consumers.results.read_plan import Wanted, plan
from consumers.results.results import Results
from consumers.results.states import SliceState, chosen, results_of, states_of
from consumers.results.stream import Tell, silent, streamed, streamed_results
from streammetrics import PerKey

MAX_DELTA_BYTES: Final = 512 << 20  # of the deltas of one answer, which one snapshot holds
MAX_STATE_BYTES: Final = 2 << 30  # of the merged states of one metric and grouping


@dataclass(frozen=True, slots=True)
class Selection:
    """A snapshot with the deltas that a query needs."""

    query: Query
    snapshot: Snapshot
    wanted: Mapping[str, Wanted]
    tell: Tell = silent

    def states(self) -> Iterator[SliceState]:
        """Every state that the query asks for. Those of a metric and grouping are merged together
        and let go of before the next."""
        by_state: dict[tuple[str, int], dict[Pane, list[DeltaRow]]] = defaultdict(dict)
        total = done = 0
        for row in self.snapshot.deltas:
            pane = row.piece.pane
            by_state[pane.metric, pane.grouping].setdefault(pane, []).append(row)
            total += len(row.piece.state)
        for name, grouping in sorted(by_state):
            self.tell(done, total)
            rows = by_state[name, grouping]
            panes = _merged(rows)
            done += sum(len(row.piece.state) for some in rows.values() for row in some)
            yield from states_of(self.query, self.snapshot, self.wanted, (name, grouping), panes)

    def results(self) -> Results:
        """The rows of every state, with how far the log was read when they were taken."""
        return results_of(self.snapshot, self.states(), headlines=self.query.headlines)


def select(ledger: Ledger, query: Query, tell: Tell = silent) -> Selection:
    """The deltas that a query needs, in one read transaction.

    Raises QueryError where the store has no such window, grouping, name or metric, and
    LedgerError where it cannot be read or the answer is over the memory limit.
    """
    planned: dict[str, Wanted] = {}

    def choose(seen: Snapshot) -> list[Pane]:
        planned.update(plan(seen, query))
        return chosen(seen, planned)

    if query.generation is not None:
        require_generation(query.generation, [one.id for one in ledger.generations()])
    snapshot = ledger.snapshot(choose, generation=query.generation, max_bytes=MAX_DELTA_BYTES)
    return Selection(query, snapshot, planned, tell)


def select_states(
    ledger: Ledger, query: Query, tell: Tell = silent
) -> tuple[Selection, list[SliceState]]:
    """Every state of an answer of few, such as that of one slice; see `select` for what it raises.
    What it is cut out of may be too large to be in memory: see `read_results`."""
    try:
        selection = select(ledger, query, tell)
        return selection, list(selection.states())
    except TooLarge:
        return streamed(ledger, query, lambda seen, wanted, states: (
            Selection(query, seen, wanted), list(states)), tell)  # fmt: skip


def read_results(ledger: Ledger, query: Query, tell: Tell = silent) -> Results:
    """The answer to a query; see `select` for what it raises. `tell` hears how many bytes of states
    are read, and of how many.

    An experiment of the store is read beside it, and how its join stands. Where the states are too
    large to be in memory together they are read one range of keys at a time, and QueryError says so
    where that does not help.
    """

    def read() -> Results:
        try:
            return select(ledger, query, tell).results()
        except TooLarge:
            return streamed_results(ledger, query, tell)

    experiment = ExperimentRows(ledger, query)
    return JoinReader(ledger).beside(lambda: experiment.beside(read))


def _merged(rows: Mapping[Pane, Sequence[DeltaRow]]) -> dict[int | None, PerKey]:
    """The state of each pane by its start, None for the total."""
    panes: dict[int | None, PerKey] = {}
    nbytes = 0
    for pane, deltas in rows.items():
        state = PerKey.from_bytes(deltas[0].piece.state)
        for row in deltas[1:]:
            state.merge(PerKey.from_bytes(row.piece.state))
            if nbytes + state.nbytes > MAX_STATE_BYTES:
                raise TooLarge(
                    f"the merged states of {pane.metric}: expected at most {MAX_STATE_BYTES >> 20} "
                    "MiB, came more; ask for fewer windows with --window, or lower [slices] "
                    "max_keys"
                )
        nbytes += state.nbytes
        panes[pane.start_ms] = state
    return panes
