"""What groups add to the mean of their areas."""

from __future__ import annotations

import math
import operator

import numpy as np
import pytest
from pytest import approx

from streammetrics.kernels.area import Pairs
from streammetrics.kernels.group_areas import area_influences
from streammetrics.kernels.groups import spread_variance
from streammetrics.kernels.segments import GroupPairs
from streammetrics.kernels.sums_variance import ratio_variance

NOT_LOST, TIES = np.array([3, 0, 1, 1]), np.array([1, 0, 1, 0])
P, N = np.array([2, 3, 1, 2]), np.array([2, 0, 1, 1])
AREAS = [2.5 / 4, 0.5, 0.5]


@pytest.mark.parametrize("weight", ["impressions", "positives", "uniform"])
def test_the_spread_is_the_variance_of_a_ratio_of_groups(weight: str) -> None:
    w = {"impressions": [4, 2, 3], "positives": [2, 1, 2], "uniform": [1, 1, 1]}[weight]
    wa = [one * area for one, area in zip(w, AREAS, strict=True)]
    mean = sum(wa) / sum(w)
    found = area_influences(GroupPairs(NOT_LOST, TIES, P, N, {}), weight, mean)
    assert len(found) == 3 and math.fsum(found) == approx(0, abs=1e-16)
    pairs = (wa, wa), (wa, w), (w, w)
    squares = [sum(map(operator.mul, a, b)) for a, b in pairs]
    assert spread_variance(found).variance == approx(
        ratio_variance(3, sum(wa), sum(w), (squares[0], squares[1], squares[2]))
    )


def test_groups_with_more_pairs_than_an_int64_has_count_like_others() -> None:
    p, n = np.array([1 << 31, 1]), np.array([1 << 32, 1])
    large = {0: Pairs(1 << 62, 0, 1 << 31, 1 << 32)}
    groups = GroupPairs(np.array([0, 1]), np.array([0, 0]), p, n, large)
    assert area_influences(groups, "uniform", 0.75) == [-0.125, 0.125]


def test_no_groups_have_no_influence() -> None:
    none = np.zeros(0, np.int64)
    assert area_influences(GroupPairs(none, none, none, none, {}), "uniform", math.nan) == []
