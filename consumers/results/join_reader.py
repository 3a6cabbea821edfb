"""Reads how a join stands. It costs a look at what waits: pane by pane, each again only where rows
of it were added or merged, and one of them in memory at a time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from threading import Lock
from typing import Final

from consumers.config.states import DELAYS, ROWS
from consumers.ledger.ledger import Ledger
from consumers.ledger.outline import Outline
from consumers.ledger.view import Moment, View, view
from consumers.model.commit import Counters, Snapshot
from consumers.model.generation import SHOWN, Generation, Metric, Pane
from consumers.results.joined import JoinedOutcome, JoinFound, could_be_joined
from consumers.results.results import Results
from streammetrics import JoinRows, LabelDelays, load
from streammetrics.results import OutcomeDelays, PendingRows

TRIES: Final = 5  # to read rows and join of one moment, while others count
_TOTAL: Final = Pane(DELAYS, 0, None, None)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """What waits in one pane, and the rows that say so."""

    made_of: frozenset[Outline]
    found: PendingRows


class JoinReader:
    """For any number of threads; it remembers what the last look found."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = Lock()
        self._panes: dict[Pane, _Waiting] = {}
        self._last: tuple[Moment, JoinFound | None] | None = None
        self.panes_read = 0

    def beside(self, read: Callable[[], Results]) -> Results:
        """What `read` answers, with the join of the same moment. (If others commit faster than we
        read, it may be of a later one.)"""
        results = read()
        for _ in range(TRIES):
            found, offsets = self.found(results.generation)
            if found is None or offsets == results.offsets:
                break
            results = read()
        return results if found is None else replace(results, join=found)

    def found(self, generation: int | None = None) -> tuple[JoinFound | None, Mapping[str, int]]:
        """How the join stands, None where events are not joined; and the offsets of that moment."""
        with self._lock:
            return view(self._ledger, self._look, generation=generation)

    def _look(self, now: View) -> tuple[JoinFound | None, Mapping[str, int]]:
        if _metric(now.moment.generation) is None:
            return None, {}
        offsets = Snapshot(now.moment.generation, now.moment.heads, ()).offsets
        if self._last is None or self._last[0] != now.moment:
            self._last = now.moment, self._read(now)
        return self._last[1], offsets

    def _read(self, now: View) -> JoinFound:
        seen = now.snapshot
        of = _metric(now.moment.generation)
        assert of is not None
        waiting = list(self._waiting(now))
        left = _delays(now)
        logs = sum((head.counters for head in seen.logs), Counters())
        mine = sum((head.counters for head in seen.heads if head.is_join), Counters())
        pending = sum(one.impressions for one in waiting)
        outcomes: Counter[str] = Counter()
        for one in waiting:
            outcomes.update(one.outcomes)
        events = could_be_joined(logs)
        apart = mine.closed + mine.conflicts + pending + sum(outcomes.values())
        apart += sum(one.outcomes for one in left.values())
        return JoinFound(
            closed_ms=seen.closed_ms,
            label_window_s=_setting(of, "join", "label_window_s", 0),
            warn_cut=_setting(of, SHOWN, "warn_cut", 1),
            events=events,
            closed=mine.closed,
            pending=pending,
            conflicts=mine.conflicts,
            late_impressions=logs.late - logs.late_outcomes,
            late_outcomes=logs.late_outcomes,
            repeated=max(events - logs.late - apart, 0),
            outcomes={name: JoinedOutcome(outcomes[name], left[name]) for name in sorted(left)},
        )

    def _waiting(self, now: View) -> Iterator[PendingRows]:
        """What waits in each pane that is not closed."""
        closed_ms = now.snapshot.closed_ms
        panes = {
            size.pane
            for size in now.snapshot.panes
            if size.pane.metric == ROWS
            and (closed_ms is None or size.pane.start_ms is None or size.pane.start_ms >= closed_ms)
        }
        rows: dict[Pane, set[Outline]] = defaultdict(set)
        for row in now.outlines(panes):
            rows[row.pane].add(row)
        self._panes = {pane: kept for pane, kept in self._panes.items() if pane in panes}
        for pane, made_of in rows.items():
            known = self._panes.get(pane)
            if known is None or known.made_of != made_of:
                known = _Waiting(frozenset(made_of), _pending(now, made_of))
                self._panes[pane] = known
                self.panes_read += 1
            yield known.found


def _pending(now: View, rows: set[Outline]) -> PendingRows:
    whole: JoinRows | None = None
    for _, stored in now.states(list(rows)):
        state = load(stored)
        assert isinstance(state, JoinRows)
        if whole is None:
            whole = state
        else:
            whole.merge(state)
    assert whole is not None
    return whole.compute()


def _delays(now: View) -> Mapping[str, OutcomeDelays]:
    whole: LabelDelays | None = None
    for _, stored in now.states(now.outlines([_TOTAL])):
        state = load(stored)
        assert isinstance(state, LabelDelays)
        whole = state if whole is None else whole + state
    if whole is None:  # no label window has closed
        of = _metric(now.moment.generation, DELAYS)
        whole = LabelDelays(_names(of), label_window_ms=1)
    return whole.compute()


def _metric(of: Generation, name: str = ROWS) -> Metric | None:
    return next((one for one in of.metrics if one.name == name and not one.ended), None)


def _names(of: Metric | None) -> tuple[str, ...]:
    """The outcomes, as the plan of a join lists them."""
    plan = of.description.get("join") if of is not None else None
    found = plan.get("outcomes") if isinstance(plan, dict) else None
    assert isinstance(found, list)
    return tuple(str(one[0]) for one in found)


def _setting(of: Metric, table: str, name: str, other: float) -> float:
    given = of.description.get(table)
    found = given.get(name) if isinstance(given, dict) else None
    return float(found) if isinstance(found, int | float) else other
