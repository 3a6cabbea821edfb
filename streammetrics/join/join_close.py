"""Closing a join: attribution of outcomes, closed impressions with labels, and remaining events.

Events are ordered by (id, time). An outcome at T belongs to impressions of its id at t with
t <= T < t + W, W the label window: to the last of them, or to every one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import Table
from streammetrics.core.parts.score_bits import scores_of
from streammetrics.core.rows import DictionaryColumn, first_at_least, spans
from streammetrics.results.join_results import ClosedRows, Labels

Words: TypeAlias = NDArray[np.uint64]
Times: TypeAlias = NDArray[np.int64]
Positions: TypeAlias = NDArray[np.intp]


def sorted_by_id_and_time(ids: Words, times: Times) -> Positions:
    """The stable order of events by id and then time; fast where ids are sorted runs."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    members = np.zeros(len(ids), np.bool_)
    np.equal(ids[1:], ids[:-1], out=members[1:])
    members[:-1] |= members[1:]
    positions = np.flatnonzero(members)
    events = order[positions]
    order[positions] = events[np.lexsort((times[events], ids[positions]))]
    return order


def counted_impressions(ids: Words, times: Times, horizon: int) -> NDArray[np.bool_]:
    """Which impressions count, bool [n], if an id has only one within `horizon`.

    In order of time the first of an id counts, and then each that is `horizon` or more after the
    last one that counts. ids, times: [n], ascending by (id, time).
    """
    first = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=first[1:])
    counts = first.copy()
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(ids))
    several = np.flatnonzero(ends - starts > 1)
    current, end = starts[several], ends[several]
    while len(current):  # one pass for each impression of an id that counts
        current = first_at_least(times, current + 1, end, times[current] + horizon)
        inside = current < end
        current, end = current[inside], end[inside]
        counts[current] = True
    return counts


def pairs(
    times: Times, low: Positions, last: Positions, outcome_times: Times, window: int, every: bool
) -> tuple[Positions, Positions]:
    """The pairs (impression, outcome) that belong together, each [pairs].

    times: of the impressions. low, last: [m], for each outcome the first impression of its id, and
    the last one at or before it (below `low` where there is none); outcome_times: [m].
    """
    matched = np.flatnonzero(last >= low)
    if every:
        first = first_at_least(
            times, low[matched], last[matched] + 1, outcome_times[matched] - window + 1
        )
        sizes = last[matched] + 1 - first
        ends = np.cumsum(sizes)
        inside = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return np.repeat(first, sizes) + inside, np.repeat(matched, sizes)
    owned = matched[outcome_times[matched] - times[last[matched]] < window]
    return last[owned], owned


def sums(values: NDArray[np.float64], cells: Positions, n: int) -> NDArray[np.float64]:
    """The exact sum of the finite values of each cell, rounded once; [n]."""
    out = np.zeros(n)
    out[cells] = values + 0.0
    several = np.bincount(cells, minlength=n) > 1
    if several.any():
        positions = np.flatnonzero(several[cells])
        positions = positions[np.argsort(cells[positions], kind="stable")]
        owners = cells[positions]
        cuts = np.flatnonzero(owners[1:] != owners[:-1]) + 1
        for group in np.split(positions, cuts):
            out[cells[group[0]]] = _sum(values[group].tolist())
    return out


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values) + 0.0
    except OverflowError:  # in a partial sum, or in the result
        exact = sum(map(Fraction, values), Fraction())
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf


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
    """The closed rows of (impressions, outcomes, remembered impressions), and the new sets."""
    shown, outcome, _ = sets
    table, later, past = (record_set.settled() for record_set in sets)
    remember = terms.remember_ms
    # All known impressions, the remembered first among equals, and the origin of each.
    ids, times = np.append(past.ids, table.ids), np.append(past.times, table.times)
    origin = sorted_by_id_and_time(ids, times) if len(past) else np.arange(len(ids))
    ids, times = ids[origin], times[origin]
    counts = np.ones(len(ids), np.bool_)
    if terms.attribution == "one":
        counts = counted_impressions(ids, times, remember)
    origin = origin - len(past)
    closing = (origin >= 0) & (times < before)
    conflicts = int(np.count_nonzero(closing & ~counts))
    counted = np.flatnonzero(counts)
    ids, times, origin, closing = ids[counted], times[counted], origin[counted], closing[counted]

    low, high = spans(ids, later.ids)
    last = first_at_least(times, low, high, later.times + 1) - 1
    every = terms.attribution == "every"
    owner, owned = pairs(times, low, last, later.times, terms.label_window_ms, every)
    of_closing = closing[owner]
    rank = np.cumsum(closing) - 1
    labels = _labels(
        terms.outcomes, later, rank[owner[of_closing]], owned[of_closing], int(closing.sum())
    )

    past_outcomes = np.flatnonzero(later.times < before)
    delays = np.full(len(past_outcomes), -1)
    matched = np.flatnonzero(last[past_outcomes] >= low[past_outcomes])
    delay = later.times[past_outcomes[matched]] - times[last[past_outcomes[matched]]]
    delays[matched] = np.where(delay < remember, delay, -1)
    places = origin[closing]
    out = ClosedRows(
        table.ids[places],
        table.times[places],
        {name: shown.column(i, places) for i, name in enumerate(sorted(terms.columns))},
        labels,
        conflicts,
        DictionaryColumn(later.fields[0][past_outcomes].astype(np.intp), tuple(terms.outcomes)),
        delays,
    )
    remaining = [
        shown.picked(np.flatnonzero(table.times >= before)),
        outcome.picked(np.flatnonzero(later.times >= before)),
        RecordSet((), _remembered(ids, times, before, remember)),
    ]
    return out, remaining


def _remembered(
    ids: NDArray[np.uint64], times: NDArray[np.int64], before: int, remember: int
) -> Table:
    """The last closed impression of each id, unless it is too old; ascending."""
    past = np.flatnonzero(times < before)
    ids, times = ids[past], times[past]
    last = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=last[:-1])
    last_rows = np.flatnonzero(last & (times > before - remember))
    return Table(ids[last_rows], times[last_rows])


def _labels(
    counts: Mapping[str, str], outcomes: Table, owner: Positions, owned: Positions, n: int
) -> dict[str, Labels]:
    """The labels [n] of each outcome. owner, owned: the impression and the outcome of each pair."""
    labels: dict[str, Labels] = {}
    for i, (name, how) in enumerate(counts.items()):
        positions = np.flatnonzero(outcomes.fields[0][owned] == i)
        impressions = owner[positions]
        if how == "once":
            once = np.zeros(n, np.uint8)
            once[impressions] = 1
            labels[name] = once
        elif how == "count":
            labels[name] = np.bincount(impressions, minlength=n).astype(np.int64)
        else:
            values = scores_of(outcomes.fields[1][owned[positions]]).astype(np.float64, copy=False)
            labels[name] = sums(values, impressions, n)
    return labels
