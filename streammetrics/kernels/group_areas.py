"""What each group adds to a weighted mean of the areas of groups, for its variance.

The groups are users, and these are independent, so the variance of G = Σ w A / Σ w is that of a
ratio: U / (U - 1) Σ Z² with Z = w (A - G) / Σ w over the U groups that have both labels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.rounding import ratio
from streammetrics.kernels.segments import GroupPairs, exact_sum

Ints = NDArray[np.int64]


def area_influences(groups: GroupPairs, weight: str, mean: float) -> list[float]:
    """Z of each group that has both labels, in the order of the groups; for `spread_variance`.

    weight: "impressions", "positives" or "uniform", as in `exact_mean.mean_area`. mean: G. An area
    is rounded once, and so is each product; nothing is summed here.

    >>> none, one, two = np.array([[0, 0], [1, 1], [2, 1]])
    >>> area_influences(GroupPairs(one, none, two, one, {}), "uniform", 0.75)  # 1/2 and 1
    [-0.125, 0.125]
    """
    p, n = groups.positives, groups.negatives
    live = np.flatnonzero((p > 0) & (n > 0))
    p, n = p[live], n[live]
    weights = {"impressions": p + n, "positives": p, "uniform": np.ones_like(p)}[weight]
    twice_u = 2 * groups.not_lost[live] - groups.ties[live]
    # Below 2**62, both are rounded to doubles first where they are above 2**53.
    with np.errstate(all="ignore"):  # the pairs of large groups are not here
        areas = twice_u / (2 * p * n)
    if groups.large:
        for place, group in enumerate(live.tolist()):
            if group in groups.large:
                pairs = groups.large[group]
                areas[place] = ratio(2 * pairs.wins + pairs.ties, 2 * pairs.all)
    total = exact_sum(weights)
    found: list[float] = (weights * (areas - mean) / float(total)).tolist()
    return found
