"""How many relevant items the first ranks hold: what P, R, R-precision and pooled HR are made of.

Also cumulative gain, which counts each with its gain. Under ties it is the mean over all orders: a
group of m items, of which a cut leaves j ranks, shows each item with probability j/m. At most one
group of a list is cut, so the mean is a fraction of whole numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.discounts import GAINS, MAX_GRADE, Floats
from streammetrics.kernels.double_double import Pair, quotient
from streammetrics.kernels.lists import Cut, Ranked


def relevant_shown(lists: Ranked, rel: int, cut: Cut, divisors: Floats | None = None) -> Pair:
    """Items of grade `rel` or more among the first `cut` ranks, over `divisors`; [n]."""
    weights = (np.arange(MAX_GRADE + 1) >= rel).astype(np.int64)
    return _shown(lists, weights, rel, cut, divisors)


def cumulative_gain(lists: Ranked, gain: str, cut: Cut) -> Pair:
    """The sum of the gains of the first `cut` ranks; [n]."""
    return _shown(lists, GAINS[gain], 1, cut, None)


def _shown(
    lists: Ranked, weights: NDArray[np.int64], rel: int, cut: Cut, divisors: Floats | None
) -> Pair:
    """The sum of weights[grade] over the first `cut` ranks, over `divisors`; [n]."""
    hits = lists.within(cut, rel)
    if weights.max() > 1:
        counted = np.bincount(hits.lists, weights=weights[hits.grades], minlength=lists.n)
        whole = counted.astype(np.float64, copy=False)
    else:
        whole = np.bincount(hits.lists, minlength=lists.n).astype(np.float64)
    below = np.ones(lists.n) if divisors is None else divisors
    ties = lists.ties
    if len(ties):
        held = ties.sums(weights)
        room = ties.sizes
        if cut is not None:
            ranks = cut if isinstance(cut, int) else cut[ties.lists]
            room = np.clip(ranks - ties.begins, 0, ties.sizes)
        inside = room == ties.sizes
        whole += np.bincount(ties.lists, weights=np.where(inside, held, 0), minlength=lists.n)
        some = np.flatnonzero(~inside & (room > 0))
        at, sizes = ties.lists[some], ties.sizes[some]
        whole[at] = whole[at] * sizes + held[some] * room[some]
        below = below.copy()
        below[at] *= sizes
    return quotient(whole, below)
