"""Expected reciprocal rank: ERR (Chapelle, Metzler, Zhang and Grinspan 2009, CIKM).

A user who comes to an item of grade g stops with probability R = (2^g - 1) / 2^max_grade; ERR is
the mean of 1/rank of where that is. In a group of m tied items, let s_t be the mean over all
orders that the user is still there after the first t of them: the mean of the products of 1 - R
over all t of the m items. Then the user stops at place t + 1 with s_t - s_(t+1), and an item that
joins a group of j items, in one place of j + 1 with equal chance, changes s_t to
((j+1-t) s_t + t (1-R) s_(t-1)) / (j+1). So items are added one by one, the best grade first, after
the irrelevant ones, for which all s_t are 1.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.exact.double_double import Pair, add, minus, over, scaled, times, totals
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.list_sort import of_like_length
from streammetrics.kernels.ranking.rank_tables import GAINS, Floats, reciprocals
from streammetrics.kernels.ranking.ties import IRRELEVANT, Indices, TieGroups, run_starts

_GONE: Final = 2.0**-200  # chances below it change no digit


def expected_reciprocal_rank(lists: Ranked, max_grade: int, cut: int | None) -> Pair:
    """Σ 1/rank · R · Π (1 - R of those above) over the first `cut` ranks; [n].

    max_grade: no item has a higher grade.
    """
    hits = lists.within(cut)
    stops = GAINS["exponential"].astype(np.float64) / float(1 << max_grade)
    table = reciprocals(int(hits.ranks.max(initial=0)) + 1)
    inside = scaled(table.take(hits.ranks), stops[hits.grades])
    after = Pair(1.0 - stops[hits.grades], np.zeros(len(hits.lists)))
    value = _chained(hits.lists, inside, after, lists.n)
    ties = lists.ties
    if cut is not None:
        ties = ties.take(np.flatnonzero(ties.begins < cut))
    if len(ties):
        value = add(value, _chained(ties.lists, *_groups(ties, stops, cut), lists.n))
    return value


def _chained(owners: Indices, inside: Pair, after: Pair, n: int) -> Pair:
    """Σ inside · Π after of those that come before, over each owner's entries in turn; [n]."""
    firsts = run_starts(owners)
    sizes = np.diff(firsts, append=len(owners))
    alive = np.argsort(-sizes, kind="stable")  # so that those with entries left are in front
    firsts, sizes = firsts[alive], sizes[alive]
    terms = Pair(np.zeros(len(owners)), np.zeros(len(owners)))
    still = Pair(np.ones(len(firsts)), np.zeros(len(firsts)))
    for i in range(int(sizes[0]) if len(sizes) else 0):
        left = int(np.searchsorted(-sizes, -i, "left"))
        at = firsts[:left] + i
        here = Pair(still.high[:left], still.low[:left])
        terms.high[at], terms.low[at] = times(here, inside.take(at))
        still = times(here, after.take(at))
        if not (still.high > _GONE).any():
            break
    return totals(terms, owners, n)


def _groups(ties: TieGroups, stops: Floats, cut: int | None) -> tuple[Pair, Pair]:
    """Of each tie group: the mean of 1/rank of where a user stops in it (0 where he does not),
    and the mean that he is still there after it, if the cut leaves all of it; [g] each."""
    inside, after = (Pair(np.zeros(len(ties)), np.zeros(len(ties))) for _ in range(2))
    room = ties.sizes if cut is None else np.minimum(ties.sizes, cut - ties.begins)
    relevant = ties.relevant(1)
    for some in of_like_length(room):
        steps = int(room[some].max())
        still = _still_there(ties, some, relevant[some], stops, steps)
        t = np.arange(steps)
        ranks = ties.begins[some, None] + t
        found = minus(*(Pair(*(p[:, a : a + steps] for p in still)) for a in (0, 1)))
        terms = times(found, reciprocals(int(ranks.max()) + 1).take(ranks))
        here = t < room[some, None]
        rows = np.repeat(np.arange(len(some)), steps)[here.ravel()]
        terms = Pair(*(part[here] for part in terms))
        inside.high[some], inside.low[some] = totals(terms, rows, len(some))
        last = np.arange(len(some)), room[some]
        after.high[some], after.low[some] = (part[last] for part in still)
    return inside, after


def _still_there(
    ties: TieGroups, some: Indices, relevant: NDArray[np.int64], stops: Floats, steps: int
) -> Pair:
    """s_t of these groups for t = 0 ... steps; [s, steps + 1]."""
    t = np.arange(steps + 1)
    high = np.ones((len(some), steps + 1))
    low = np.zeros_like(high)
    dull = ties.sizes[some] - relevant
    for i in range(int(relevant.max(initial=0))):
        rows = np.flatnonzero(relevant > i)
        grades = IRRELEVANT - ties.codes[ties.ends[some[rows]] + i]
        stays = 1.0 - stops[grades]
        n = (dull[rows] + i + 1)[:, None].astype(np.float64)  # items with this one
        before = Pair(np.ones((len(rows), steps + 1)), np.zeros((len(rows), steps + 1)))
        before.high[:, 1:], before.low[:, 1:] = high[rows, :-1], low[rows, :-1]
        joins = scaled(before, np.minimum(t, n) * stays[:, None])
        kept = scaled(Pair(high[rows], low[rows]), np.maximum(n - t, 0))
        high[rows], low[rows] = over(add(kept, joins), n)
    return Pair(high, low)
