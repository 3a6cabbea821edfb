"""Joined: a metric of impressions, each with the outcomes in its label window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.combine.panel import require_empty
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import SettingsError
from streammetrics.core.parts.record_table import MAX_TIME
from streammetrics.core.rows import DictionaryColumn, Key
from streammetrics.join.closing_metric import Bound, ClosingMetric, bound_inputs, events_at
from streammetrics.join.event_sets import EventSets
from streammetrics.join.join_events import Given
from streammetrics.join.join_rows import JoinRows
from streammetrics.join.label_delays import LabelDelays
from streammetrics.results.join_results import JoinedResult, LabelDelaysResult

_LABELS: Final = ("labels", "numerators")


def joined_inputs(
    metric: Accumulator, columns: Mapping[str, str], outcomes: Mapping[str, str], inputs: object
) -> Mapping[str, str]:
    """Argument of the metric → column, outcome or "times_ms"; SettingsError if one has none."""
    shared = sorted(set(columns) & set(outcomes))
    if shared:
        raise _bad("columns and outcomes of different names", f"{shared[0]} twice")

    def default(argument: str) -> str | None:
        is_single = argument in _LABELS and len(outcomes) == 1
        return next(iter(outcomes)) if is_single else None

    return bound_inputs(metric, (*columns, *outcomes, "times_ms"), inputs, default, _bad)


def without_outcomes(
    batch: Batch, columns: Mapping[str, str], outcomes: Mapping[str, str]
) -> Bound:
    """The impressions of checked events, as if no outcome followed them."""
    bound = events_at(batch, columns, np.flatnonzero(batch.kinds == 0))
    no_outcomes = np.zeros(len(bound["times_ms"]), np.uint8)
    return {**bound, **dict.fromkeys(outcomes, no_outcomes)}


def _bad(expected: str, got: str) -> SettingsError:
    return SettingsError(
        expected=expected,
        got=got,
        where="Joined.inputs",
        hint='name them, such as {"labels": "click", "scores": "score"}',
    )


class Joined(ClosingMetric, schema="joined/1"):
    """A metric of impressions whose outcomes are separate events, minutes later.

    An impression counts once its label window has closed, with the outcomes of its id in that time,
    or as a negative. Until then it is pending. The result depends on the set of events, not on
    their order, sharding and repetition.

    Settings
        metric: an empty metric. columns, outcomes, label_window_ms, attribution, remember_ms: as in
        `JoinRows`. inputs: argument of the metric → column or outcome, where names differ. By
        default labels or numerators are the outcome if there is only one; times_ms are those of the
        impressions.
    Rows
        Events of both kinds, as in `JoinRows`. Events before the closed time are counted as late,
        and not joined.
    State
        The sets of `JoinRows`, the metric's state of closed impressions, and counts.
    Result
        JoinedResult: the metric's `result` over all impressions at t with t + label_window_ms below
        the greatest time of all events, or already closed; and the number of pending ones.
    Undefined
        As the metric.
    Exactness
        As the metric, over exactly joined rows. Without `close`, repeated events change nothing.
    Cost
        The cost of `JoinRows`, and of the metric when windows close. `compute` closes a copy: its
        cost grows with the pending events.
    Source
        Lindon & Kallus 2026, for early looks, which are biased while labels are missing.

    >>> from streammetrics import Joined, Ratio
    >>> ctr = Joined(Ratio(), columns={}, outcomes={"click": "once"}, label_window_ms=60_000)
    >>> ctr.update(["impression", "impression", "click"], [1, 2, 1], [0, 5_000, 30_000])
    >>> ctr.update(["impression", "click"], [3, 1], [70_000, 30_000])
    >>> found = ctr.compute()
    >>> found.result.ratio, found.closed, found.pending
    (0.5, 2, 1)
    """

    metric: Accumulator
    columns: Mapping[str, str]
    outcomes: Mapping[str, str]
    label_window_ms: int
    attribution: str = "one"
    remember_ms: int | None = None
    inputs: Mapping[str, str] | None = None

    def check_settings(self) -> None:
        self._set("metric", require_empty(self.metric, "Joined.metric"))
        rows = self._rows_of()
        for name in ("columns", "outcomes", "remember_ms"):
            self._set(name, rows.settings()[name])
        inputs = joined_inputs(self.metric, self.columns, self.outcomes, self.inputs)
        self._set("inputs", inputs)

    @property
    def _parts_of(self) -> Mapping[str, Accumulator]:
        """Its nested states: the sets, the metric of closed rows, and the delays."""
        delays = LabelDelays(tuple(self.outcomes), self.label_window_ms)
        return {"rows": self._rows_of(), "metric": self.metric, "delays": delays}

    def arguments(self) -> Mapping[str, bool]:
        return self._rows_of().arguments()

    def update(
        self,
        kinds: ArrayLike | DictionaryColumn | Sequence[Key],
        ids: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        values: ArrayLike | None = None,
        event_ids: Given = None,
        **columns: Given,
    ) -> None:
        """Add events, as `JoinRows.update` does.

        kinds: [n] of "impression" or the name of an outcome. ids: [n] integers, strings or hashes,
        by which outcomes find their impression. times_ms: [n] integers since the epoch. values: [n]
        of summed outcomes; event_ids: [n], to tell outcomes of one time apart; both may be left
        out. columns: [n] each, those that the metrics read by name, read for impressions.
        """
        self._update(
            self.check(kinds, ids, times_ms, values=values, event_ids=event_ids, **columns)
        )

    def check(
        self,
        kinds: ArrayLike | DictionaryColumn | Sequence[Key],
        ids: ArrayLike | DictionaryColumn,
        times_ms: ArrayLike,
        *,
        values: ArrayLike | None = None,
        event_ids: Given = None,
        **columns: Given,
    ) -> Batch:
        """The events, or InputError, also for values that the metric refuses; changes nothing."""
        rows = self._rows().check(
            kinds, ids, times_ms, values=values, event_ids=event_ids, **columns
        )
        bound = without_outcomes(rows, self.columns, self.outcomes)
        if len(bound["times_ms"]):  # the metric must refuse values now, not at `close`
            self.metric.check(**self._keywords(bound))
        return Batch(rows.n, rows.columns, rows.n)

    def _has_columns(self, batch: Batch) -> NDArray[np.bool_]:
        is_impression: NDArray[np.bool_] = batch.kinds == 0
        return is_impression

    def close(self, before_ms: int) -> None:
        """Count impressions older than `before_ms` for good, and drop them.

        All events with time < before_ms + label_window_ms should have arrived: events older than
        `before_ms` that arrive later count as late.
        """
        self._close(before_ms)

    def _closed(self, rows: EventSets, before_ms: int) -> tuple[int, int]:
        out = cast("JoinRows", rows).close(before_ms)
        bound = {**out.labels, **out.columns, "times_ms": out.times_ms}
        if len(out):
            self.states.by_name["metric"].update(**self._keywords(bound))
        self.states.by_name["delays"].update(out.outcomes, out.delays_ms)
        return len(out), out.conflicts

    def compute(self) -> JoinedResult:
        """The metric's result over closed impressions, and the number of pending ones."""
        self._flush()
        before = self.closed_before.value()
        twin = self.copy()
        newest = self.newest.value()
        if newest is not None:
            ended = max(newest - self.label_window_ms, -MAX_TIME)
            before = ended if before is None else max(before, ended)
            twin.close(before)
        closed, conflicts, late_impressions, late_outcomes = twin.counts.dense().tolist()
        delays = cast("LabelDelaysResult", twin.states.by_name["delays"].compute())
        return JoinedResult(
            twin.state().compute(),
            closed,
            twin._rows().compute().impressions,
            conflicts,
            late_impressions,
            late_outcomes,
            delays,
            before,
        )

    def state(self) -> Accumulator:
        """The metric's state of the impressions that `close` has counted."""
        return self._copy_of("metric")

    def _rows(self) -> JoinRows:
        return cast("JoinRows", self._event_sets())

    def _rows_of(self) -> JoinRows:
        """An empty JoinRows with these settings."""
        return JoinRows(
            self.columns, self.outcomes, self.label_window_ms, self.attribution, self.remember_ms
        )
