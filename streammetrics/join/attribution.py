"""Attribution: which impression an outcome belongs to, and which impressions count at all.

Events are ordered by (id, time). An outcome at T belongs to impressions of its id at t with
t <= T < t + W, W the label window: to the last of them, or to every one.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Times: TypeAlias = NDArray[np.int64]
Positions: TypeAlias = NDArray[np.intp]


def first_at_least(times: Times, low: Positions, high: Positions, wanted: Times) -> Positions:
    """For each i the first place in [low[i], high[i]) with a time >= wanted[i], else high[i].

    times: ascending within each of these spans. Bisection of all spans at once.
    """
    low, high = low.copy(), high.copy()
    open_ = np.flatnonzero(low < high)
    while len(open_):
        middle = (low[open_] + high[open_]) >> 1
        below = times[middle] < wanted[open_]
        low[open_[below]] = middle[below] + 1
        high[open_[~below]] = middle[~below]
        open_ = open_[low[open_] < high[open_]]
    return low


def by_id_and_time(ids: Words, times: Times) -> Positions:
    """The stable order of events by id, and of one id by time; quick where ids are sorted runs."""
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    members = np.zeros(len(ids), np.bool_)
    np.equal(ids[1:], ids[:-1], out=members[1:])
    members[:-1] |= members[1:]
    at = np.flatnonzero(members)
    some = order[at]
    order[at] = some[np.lexsort((times[some], ids[at]))]
    return order


def standing(ids: Words, times: Times, horizon: int) -> NDArray[np.bool_]:
    """Which impressions count, bool [n], where an id has one within `horizon`.

    In order of time the first of an id stands, and then each that comes `horizon` or more after
    the last one that stands. ids, times: [n], ascending by (id, time).
    """
    first = np.ones(len(ids), np.bool_)
    np.not_equal(ids[1:], ids[:-1], out=first[1:])
    stands = first.copy()
    starts = np.flatnonzero(first)
    ends = np.append(starts[1:], len(ids))
    here = np.flatnonzero(ends - starts > 1)
    at, end = starts[here], ends[here]
    while len(at):  # as often as one id stands
        at = first_at_least(times, at + 1, end, times[at] + horizon)
        inside = at < end
        at, end = at[inside], end[inside]
        stands[at] = True
    return stands


def spans(ids: Words, wanted: Words) -> tuple[Positions, Positions]:
    """The span of places [start, end) that each wanted id has among ascending ids."""
    return np.searchsorted(ids, wanted, "left"), np.searchsorted(ids, wanted, "right")


def pairs(
    times: Times, low: Positions, last: Positions, at: Times, window: int, every: bool
) -> tuple[Positions, Positions]:
    """(impression, outcome) of all that belong together, each [pairs].

    times: of the impressions. low, last: [m], for each outcome the first impression of its id, and
    the last one at or before it (below `low` where there is none); at: its time, [m].
    """
    known = np.flatnonzero(last >= low)
    if every:
        first = first_at_least(times, low[known], last[known] + 1, at[known] - window + 1)
        sizes = last[known] + 1 - first
        ends = np.cumsum(sizes)
        inside = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        return np.repeat(first, sizes) + inside, np.repeat(known, sizes)
    owned = known[at[known] - times[last[known]] < window]
    return last[owned], owned


def sums(values: NDArray[np.float64], cells: Positions, n: int) -> NDArray[np.float64]:
    """The exact sum of the finite values of each cell, rounded once; [n]."""
    out = np.zeros(n)
    out[cells] = values + 0.0
    several = np.bincount(cells, minlength=n) > 1
    if several.any():
        some = np.flatnonzero(several[cells])
        some = some[np.argsort(cells[some], kind="stable")]
        of = cells[some]
        cuts = np.flatnonzero(of[1:] != of[:-1]) + 1
        for group in np.split(some, cuts):
            out[cells[group[0]]] = _sum(values[group].tolist())
    return out


def _sum(values: list[float]) -> float:
    try:
        return math.fsum(values) + 0.0
    except OverflowError:  # on the way, or at the end
        exact = sum(map(Fraction, values), Fraction())
        try:
            return float(exact)
        except OverflowError:
            return math.inf if exact > 0 else -math.inf
