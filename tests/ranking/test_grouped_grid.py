"""GroupedAUC on a grid: certain bounds, from a state that does not grow with rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import Bounded, GroupedAUC
from streammetrics.core.errors import InputError
from streammetrics.core.multiset import bag
from streammetrics.kernels.tables.grids import grid_of
from tests.oracles import grouped

WEIGHTS = ("impressions", "positives", "uniform")


def fed(rows: list[grouped.Row], metric: GroupedAUC) -> GroupedAUC:
    """The metric after these rows."""
    metric = metric.copy()
    if rows:
        groups, labels, scores = zip(*rows, strict=True)
        metric.update(labels, scores, groups=groups)
    return metric


def gauc(metric: GroupedAUC) -> Bounded:
    found = metric.compute().gauc
    assert isinstance(found, Bounded)
    return found


def bounds(
    rows: list[grouped.Row], weight: str, bucket: Callable[[float], int]
) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest GAUC of any scores in the same buckets."""
    ends = []
    for towards in (-1, 1):  # a positive moves down or up within its bucket, past all negatives
        moved = [(g, y, bucket(s) + 0.25 * y * towards) for g, y, s in rows]
        ends.append(grouped.gauc(moved, weight))
    low, high = ends
    return None if low is None or high is None else (low, high)


@pytest.mark.parametrize("weight", WEIGHTS)
@pytest.mark.parametrize("settings", [{"grid": "relative"}, {"grid": "equal", "resolution": 4}])
def test_many_users_lie_between_their_bounds_however_cut(
    weight: str, settings: dict[str, object]
) -> None:
    rng = np.random.default_rng(31)
    n = 4_000
    users, labels = rng.zipf(1.5, n) % 200, (rng.random(n) < 0.2).astype(int)
    scores = rng.random(n) ** 4
    empty = GroupedAUC(weight=weight, **settings)  # type: ignore[arg-type]
    whole = empty.empty()
    whole.update(labels, scores, groups=users)
    shards = [empty.empty() for _ in range(3)]
    for i in range(0, n, 130):
        here = slice(i, i + 130)
        shards[i % 3].update(labels[here], scores[here], groups=users[here])
    assert sum(shards, empty) == whole
    rows = list(zip(users.tolist(), labels.tolist(), scores.tolist(), strict=True))
    of_score = dict(zip(scores.tolist(), grid_of(empty).buckets(scores).tolist(), strict=True))
    ends = bounds(rows, weight, of_score.__getitem__)
    exact, found = grouped.gauc(rows, weight), gauc(whole)
    assert exact is not None and ends is not None
    assert found.low <= ends[0] <= exact <= ends[1] <= found.high
    assert found.width <= float(ends[1] - ends[0]) + 1e-15
    mean = sum(ends) / 2
    assert found.value == mean.numerator / mean.denominator  # a tied pair is worth one half


def test_scores_that_no_float32_tells_apart_keep_their_order_between_the_bounds() -> None:
    close = math.nextafter(0.5, 1)
    rows: list[grouped.Row] = [(1, 0, 0.5), (1, 1, close)]
    assert np.float32(close) == np.float32(0.5)
    assert fed(rows, GroupedAUC()).compute().gauc == 0.5
    found = gauc(fed(rows, GroupedAUC(grid="relative")))
    assert found.low <= 1.0 <= found.high


def test_the_state_does_not_grow_while_the_same_users_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bag, "_FEW", 1 << 14)
    rng = np.random.default_rng(33)
    metric = GroupedAUC(grid="relative", resolution=2)
    n = 10_000
    users, labels, scores = rng.integers(0, 2_000, n), rng.random(n) < 0.3, rng.random(n) ** 4
    sizes = []
    for _ in range(200):
        metric.update(labels, scores, groups=users)
        sizes.append(metric.nbytes)
    assert metric.compute().rows == 200 * n
    settled = metric.nbytes
    pending = (
        bag._WAIT * 40 + (1 << 18) * 8 * 2
    )  # rows before their ids are looked up, keys before a sort
    assert max(sizes) <= pending + 4 * settled
    assert settled < 400_000


def test_scores_outside_the_grid_are_refused() -> None:
    metric = GroupedAUC(grid="relative")
    for bad in (1.5, -0.1, math.nan, math.inf):
        with pytest.raises(InputError, match=r"scores\[1\]"):
            metric.update([0, 1], [0.5, bad], groups=[1, 1])
    real = GroupedAUC(grid="relative", range="real")
    real.update([0, 1], [-math.inf, 1e300], groups=[1, 1])
    assert gauc(real) == Bounded(1.0, 1.0, 1.0)


def test_settings_that_mean_the_same_are_the_same() -> None:
    for kwargs in ({}, {"grid": "relative", "range": "real"}):
        plain = GroupedAUC(**kwargs)  # type: ignore[arg-type]
        assert plain == GroupedAUC(ceiling=2**24, edges=(), **kwargs)  # type: ignore[arg-type]
    assert GroupedAUC(resolution=8.0) == GroupedAUC()  # type: ignore[arg-type]


def test_a_result_says_that_buckets_were_compared() -> None:
    rows: list[grouped.Row] = [(1, 0, 0.1), (1, 1, 0.2)]
    result = fed(rows, GroupedAUC(grid="relative")).compute()
    assert result.compared_as == "buckets"
    assert result.exactness == "within certain bounds; scores compared as buckets"
