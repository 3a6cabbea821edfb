from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.classification import Ratio
from streammetrics.combine import PerKey


def test_without_denominators_each_row_counts_one() -> None:
    clicks, views = Ratio(), Ratio()
    clicks.update([True, False, False])
    views.update(np.array([1, 0, 0], np.uint8), denominators=[1, 1, 1])
    assert clicks == views
    assert clicks.compute().ratio == 1 / 3
    assert Ratio().nbytes == 2 * 8 + 16  # a limb a sum, and two counts


def test_infinities_divide_as_floats_do() -> None:
    metric = Ratio()
    metric.update([math.inf, 1.0])
    assert metric.compute().ratio == math.inf
    assert metric.nbytes == Ratio().nbytes + 16  # only a sum with infinities holds memory for them
    metric.update([-math.inf])
    result = metric.compute()
    assert math.isnan(result.numerator) and math.isnan(result.ratio)
    assert result.rows == 3


@pytest.mark.parametrize(
    ("n", "place", "top", "bottom"),
    [(4, -1, 0.5, 1.0), (40_000, -1, 1.0, 2.0), (40_000, 0, 0.0, 3.0), (4, 0, 2.0, 1.0)],
)
def test_rows_that_make_it_no_share_are_counted_apart(
    n: int, place: int, top: float, bottom: float
) -> None:
    tops, bottoms = np.arange(n) % 2.0, np.ones(n)
    tops[place], bottoms[place] = top, bottom
    ratio, keyed = Ratio(), PerKey(Ratio())
    ratio.update(tops, bottoms)
    keyed.update(["a"] * n, numerators=tops, denominators=bottoms)
    for state in (ratio, keyed.state("a")):
        state.compute()  # after which no row is buffered
        assert state.rows.dense().tolist() == [n - 1, 1]  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [np.bool_, np.int8, np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("extras", [[], [2], [0.5], [np.nextafter(1, 0)], [5e-324], [np.inf]])
@pytest.mark.parametrize("below", [None, 1, 3])
def test_rows_of_zeros_and_ones_are_counted_as_they_are_by_key(
    kind: type[np.generic], extras: list[float], below: int | None
) -> None:
    clicks = np.random.default_rng(0).random(70_000) < 0.3
    most = np.inf if issubclass(kind, np.floating) else 100
    numerators = np.concatenate([clicks, np.minimum(extras, most)]).astype(kind)
    columns = {"numerators": numerators}
    if below is not None:
        columns["denominators"] = np.full(len(numerators), below)
    whole, by_key = Ratio(), PerKey(Ratio())
    whole.update(**columns)
    by_key.update(keys=np.zeros(len(numerators), np.int64), **columns)
    assert whole.to_bytes() == by_key.state(0).to_bytes()
