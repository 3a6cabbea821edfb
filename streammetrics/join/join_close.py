"""Closing: which impressions leave a join with which labels, and what stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import Table
from streammetrics.core.parts.score_bits import scores_of
from streammetrics.core.rows import DictionaryColumn
from streammetrics.join.attribution import (
    Positions,
    by_id_and_time,
    first_at_least,
    pairs,
    spans,
    standing,
    sums,
)
from streammetrics.results.join_results import ClosedRows, Labels

# Which pane of event time, and which range of hashes, each record lies in.


def places(
    table: Table, pane_ms: int | None, ranges: int
) -> dict[tuple[int, int], NDArray[np.intp]]:
    """The places of the records by (start of the pane, range), ascending; ranges: a power of two.

    pane_ms None: all are of the pane 0.
    """
    if not len(table):
        return {}
    shift = 64 - (ranges - 1).bit_length()
    of_range = np.zeros(len(table), np.int64)
    if shift < 64:
        of_range = (table.ids >> np.uint64(shift)).astype(np.int64)
    pane = np.zeros(len(table), np.int64) if pane_ms is None else table.times // pane_ms
    order = np.lexsort((of_range, pane))  # stable, so that places stay ascending
    pane, of_range = pane[order], of_range[order]
    new = (pane[1:] != pane[:-1]) | (of_range[1:] != of_range[:-1])
    starts = np.flatnonzero(np.concatenate([[True], new]))
    return {
        (int(pane[start]) * (pane_ms or 1), int(of_range[start])): at
        for start, at in zip(starts.tolist(), np.split(order, starts[1:]), strict=True)
    }


class Terms(NamedTuple):
    """The settings that closing depends on."""

    columns: Mapping[str, str]
    outcomes: Mapping[str, str]
    label_window_ms: int
    attribution: str
    remember_ms: int


def closed(
    terms: Terms, sets: Sequence[RecordSet], before: int
) -> tuple[ClosedRows, list[RecordSet]]:
    """What leaves of (impressions, outcomes, impressions remembered), and what stays of each."""
    shown, outcome, _ = sets
    table, later, past = (one.settled() for one in sets)
    remember = terms.remember_ms
    # All impressions that are known, the remembered first among equals, and where each is from.
    ids, times = (np.concatenate(pair) for pair in zip(_of(past), _of(table), strict=True))
    origin = by_id_and_time(ids, times) if len(past) else np.arange(len(ids))
    ids, times = ids[origin], times[origin]
    stands = np.ones(len(ids), np.bool_)
    if terms.attribution == "one":
        stands = standing(ids, times, remember)
    origin = origin - len(past)
    leaves = (origin >= 0) & (times < before)
    conflicts = int(np.count_nonzero(leaves & ~stands))
    kept = np.flatnonzero(stands)
    ids, times, origin, leaves = ids[kept], times[kept], origin[kept], leaves[kept]

    low, high = spans(ids, later.ids)
    last = first_at_least(times, low, high, later.times + 1) - 1
    every = terms.attribution == "every"
    owner, owned = pairs(times, low, last, later.times, terms.label_window_ms, every)
    of_leaving = leaves[owner]
    rank = np.cumsum(leaves) - 1
    labels = _labels(
        terms.outcomes, later, rank[owner[of_leaving]], owned[of_leaving], int(leaves.sum())
    )

    gone = np.flatnonzero(later.times < before)
    delays = np.full(len(gone), -1)
    there = np.flatnonzero(last[gone] >= low[gone])
    delay = later.times[gone[there]] - times[last[gone[there]]]
    delays[there] = np.where(delay < remember, delay, -1)
    places = origin[leaves]
    out = ClosedRows(
        table.ids[places],
        table.times[places],
        {name: shown.column(i, places) for i, name in enumerate(sorted(terms.columns))},
        labels,
        conflicts,
        DictionaryColumn(later.fields[0][gone].astype(np.intp), tuple(terms.outcomes)),
        delays,
    )
    stays = [
        shown.picked(np.flatnonzero(table.times >= before)),
        outcome.picked(np.flatnonzero(later.times >= before)),
        RecordSet((), _remembered(ids, times, before, remember)),
    ]
    return out, stays


def _of(table: Table) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    return table.ids, table.times


def _remembered(
    ids: NDArray[np.uint64], times: NDArray[np.int64], before: int, remember: int
) -> Table:
    """The last impression of each id that has left, where it is not too old; ascending."""
    some = np.flatnonzero(times < before)
    ids, times = ids[some], times[some]
    last = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=last[:-1])
    at = np.flatnonzero(last & (times > before - remember))
    return Table(ids[at], times[at])


def _labels(
    counts: Mapping[str, str], outcomes: Table, owner: Positions, owned: Positions, n: int
) -> dict[str, Labels]:
    """The labels [n] of each outcome. owner, owned: the impression and the outcome of each pair."""
    labels: dict[str, Labels] = {}
    for i, (name, how) in enumerate(counts.items()):
        here = np.flatnonzero(outcomes.fields[0][owned] == i)
        at = owner[here]
        if how == "once":
            once = np.zeros(n, np.uint8)
            once[at] = 1
            labels[name] = once
        elif how == "count":
            labels[name] = np.bincount(at, minlength=n).astype(np.int64)
        else:
            labels[name] = sums(_values(outcomes, owned[here]), at, n)
    return labels


def _values(outcomes: Table, at: Positions) -> NDArray[np.float64]:
    return scores_of(outcomes.fields[1][at]).astype(np.float64, copy=False)
