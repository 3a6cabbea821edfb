"""The status of a join: pending impressions, repeated and late events, delays of outcomes, and
whether the label window is long enough.

It costs a read of the pending rows, with one pane in memory at a time. A pane is read again only
if rows of it were added or compacted.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

import streammetrics as sm
from streammetrics import results
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata, state_bytes
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import StoreVersion, StoreView, view
from streammetrics_consumers.model.commit import Counters, Snapshot
from streammetrics_consumers.model.formatting import count, percent, plain
from streammetrics_consumers.model.generation import DELAYS, ROWS, SHOWN, Generation, Metric, Pane
from streammetrics_consumers.query.answers import Join, JoinOutcome

TOO_LATE: Final = 0.01  # warn if more than this share of the events is too late


def could_be_joined(logs: Counters) -> int:
    """The number of valid impressions and outcomes, those that were too late included."""
    return logs.rows - logs.quarantined - logs.skipped + logs.late


def late_warning(late: int, events: int) -> str | None:
    """A warning if many of the events were too late to be joined, else None."""
    if late <= TOO_LATE * events:
        return None
    return (
        f"{count(late)} of {count(events)} events "
        f"({percent(late / events)}) were too late to be joined. They are in quarantine, "
        "where a retry counts those whose label windows are still open; to join all of them, raise "
        "[windows] lateness_s or [join] reopen_s in a new generation. An event far ahead of the "
        "others makes those after it late"
    )


def outcome_answer(waiting: int, delays: results.OutcomeDelays) -> JoinOutcome:
    """One outcome. waiting: outcomes whose impression is not certain yet; delays: those of
    impressions whose label windows have closed."""
    # Outcomes that came after the label window of their impression for certain. The impressions of
    # the other unattributed outcomes are not known.
    after_window = delays.unattributed - delays.unknown
    return JoinOutcome(
        waiting=waiting,
        attributed=delays.attributed,
        unattributed=delays.unattributed,
        unknown=delays.unknown,
        share_unattributed=delays.share_unattributed,
        share_after_window=_share(after_window, delays.attributed + after_window),
        share_last_tenth=delays.share_cut,
        delays_s=_bins(delays.delays),
        unattributed_delays_s=_bins(delays.unattributed_delays),
    )


def join_warnings(join: Join, warn_cut: float) -> Iterator[str]:
    """A warning if more than TOO_LATE of the events were too late, and one for each outcome of
    which the label window cuts off more than `warn_cut`."""
    late = late_warning(join.late_impressions + join.late_outcomes, join.events)
    if late is not None:
        yield late
    window = f"{plain(join.label_window_s)} s"
    hint = "raise [join] label_window_s, or warn_cut"
    limit = f"more than warn_cut = {percent(warn_cut)}; {hint} if this is intended"
    for name, outcome in join.outcomes.items():
        if outcome.share_after_window > warn_cut:
            yield (
                f"the label window cuts off {name}: at least {percent(outcome.share_after_window)} "
                f"come after its {window}, {limit}"
            )
        elif outcome.share_last_tenth > warn_cut:
            yield (
                f"the label window may cut off {name}: {percent(outcome.share_last_tenth)} come in "
                f"the last tenth of its {window}, {limit}"
            )


def _bins(counts: Mapping[tuple[int, int], int]) -> tuple[tuple[int, int, int], ...]:
    """Each bin as (from, to, outcomes)."""
    return tuple((start, end, n) for (start, end), n in sorted(counts.items()))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan


_TOTAL: Final = Pane(DELAYS, 0, None, None)


@dataclass(frozen=True, slots=True)
class _PanePending:
    """The pending rows of one pane, and the delta rows that hold them."""

    made_of: frozenset[DeltaMetadata]
    found: results.PendingRows


class JoinReader:
    """Reads the status of a join, and caches the last one. One thread may use it."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._panes: dict[Pane, _PanePending] = {}
        self._last: tuple[StoreVersion, Join | None] | None = None
        self.panes_read = 0

    def found(self, generation: int | None = None) -> tuple[Join | None, Mapping[str, int] | None]:
        """The status of the join, and the offsets at that moment; None if events are not joined."""
        return view(self._ledger, self.at, generation=generation)

    def at(self, now: StoreView) -> tuple[Join | None, Mapping[str, int] | None]:
        """The same of this view."""
        if stored_metric(now.version.generation) is None:
            return None, None
        offsets = Snapshot(now.version.generation, now.version.heads, ()).offsets
        if self._last is None or self._last[0] != now.version:
            if self._last is not None and not now.has_retry_of(self._last[0]):
                self._panes = {}  # another retry may have rows of the same numbers
            self._last = now.version, self._read(now)
        return self._last[1], offsets

    def _read(self, now: StoreView) -> Join:
        snapshot = now.snapshot
        metric = stored_metric(now.version.generation)
        assert metric is not None
        panes = list(self._pending_panes(now))
        left = _delays(now)
        logs = sum((head.counters for head in snapshot.logs), Counters())
        join_counters = sum((head.counters for head in snapshot.heads if head.is_join), Counters())
        pending = sum(pane.impressions for pane in panes)
        outcomes: Counter[str] = Counter()
        for pane in panes:
            outcomes.update(pane.outcomes)
        events = could_be_joined(logs)
        apart = join_counters.closed + join_counters.conflicts + pending + sum(outcomes.values())
        apart += sum(delays.outcomes for delays in left.values())
        repeated = max(events - logs.late - apart, 0)
        join = Join(
            closed_ms=snapshot.closed_ms,
            label_window_s=_setting(metric, "join", "label_window_s", 0),
            events=events,
            closed=join_counters.closed,
            pending=pending,
            share_pending=_share(pending, join_counters.closed + pending),
            conflicts=join_counters.conflicts,
            late_impressions=logs.late - logs.late_outcomes,
            late_outcomes=logs.late_outcomes,
            repeated=repeated,
            share_repeated=_share(repeated, events),
            outcomes={name: outcome_answer(outcomes[name], left[name]) for name in sorted(left)},
            warnings=(),
        )
        warnings = join_warnings(join, _setting(metric, SHOWN, "warn_cut", 1))
        return replace(join, warnings=tuple(warnings))

    def _pending_panes(self, now: StoreView) -> Iterator[results.PendingRows]:
        """The pending rows of each pane that is not closed."""
        closed_ms = now.snapshot.closed_ms
        panes = {
            size.pane
            for size in now.snapshot.panes
            if size.pane.metric == ROWS
            and (closed_ms is None or size.pane.start_ms is None or size.pane.start_ms >= closed_ms)
        }
        rows: dict[Pane, set[DeltaMetadata]] = defaultdict(set)
        for row in now.delta_metadata(panes):
            rows[row.pane].add(row)
        self._panes = {pane: pending for pane, pending in self._panes.items() if pane in panes}
        for pane, made_of in rows.items():
            pending = self._panes.get(pane)
            if pending is None or pending.made_of != made_of:
                pending = _PanePending(frozenset(made_of), _pending(now, made_of))
                self._panes[pane] = pending
                self.panes_read += 1
            yield pending.found


def _pending(now: StoreView, rows: set[DeltaMetadata]) -> results.PendingRows:
    whole: sm.JoinRows | None = None
    for row, stored in now.states(list(rows)):
        state = sm.load(state_bytes(row, stored))
        assert isinstance(state, sm.JoinRows)
        if whole is None:
            whole = state
        else:
            whole.merge(state)
    assert whole is not None
    return whole.compute()


def _delays(now: StoreView) -> Mapping[str, results.OutcomeDelays]:
    whole: sm.LabelDelays | None = None
    for row, stored in now.states(now.delta_metadata([_TOTAL])):
        state = sm.load(state_bytes(row, stored))
        assert isinstance(state, sm.LabelDelays)
        whole = state if whole is None else whole + state
    if whole is None:  # no label window has closed
        metric = stored_metric(now.version.generation, DELAYS)
        whole = sm.LabelDelays(_names(metric), label_window_ms=1)
    return whole.compute()


def stored_metric(generation: Generation, name: str = ROWS) -> Metric | None:
    """A metric that the config still has, by its name; None without it."""
    return next(
        (metric for metric in generation.metrics if metric.name == name and not metric.ended), None
    )


def _names(metric: Metric | None) -> tuple[str, ...]:
    """The outcomes, as the plan of a join lists them."""
    plan = metric.description.get("join") if metric is not None else None
    outcomes = plan.get("outcomes") if isinstance(plan, dict) else None
    assert isinstance(outcomes, list)
    return tuple(str(outcome[0]) for outcome in outcomes)


def _setting(metric: Metric, table: str, name: str, default: float) -> float:
    settings = metric.description.get(table)
    setting = settings.get(name) if isinstance(settings, dict) else None
    return float(setting) if isinstance(setting, int | float) else default
