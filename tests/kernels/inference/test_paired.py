"""The difference of two models: DeLong's covariance, differences of units, and groups left out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.kernels.inference.area_interval import Placements, paired_placements, placements
from streammetrics.kernels.inference.paired import PairedSums, mcnemar, paired_jackknife

Row = tuple[int, int, int]  # label, score of a, score of b

# The labels and scores of both models, in tenths, with the areas and errors that were computed in
# exact fractions, and by midranks with scipy.
THIRTEEN = (
    [0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1],
    [1, 2, 2, 3, 4, 4, 4, 5, 6, 7, 7, 8, 9],
    [2, 1, 3, 3, 5, 3, 4, 6, 4, 6, 8, 7, 9],
)
TWENTY_FOUR = (
    [0, 0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 1],
    [10, 1, -14, 7, 19, -8, 8, 8, 5, 6, 0, 22, 24, -2, 5, 1, -6, 11, -10, 6, -3, 7, 5, 16],
    [0, 5, -3, 4, 21, -9, 2, 7, -1, 12, 1, 24, 8, -7, 11, -6, 3, 2, -4, 11, -2, -3, 0, 16],
)
KNOWN = [
    (THIRTEEN, 0.023809523809523808, 0.07860749532961514),
    (TWENTY_FOUR, 0.12937062937062938, 0.09477825093369109),
]


def delong(rows: Sequence[Row]) -> tuple[Fraction, Fraction]:
    """The difference and its variance by the matrices of DeLong et al. 1988, equations 4 to 6."""
    of_class = [[row[1:] for row in rows if row[0] == y] for y in (0, 1)]
    negatives, positives = of_class
    m, n = len(positives), len(negatives)

    def psi(x: int, y: int) -> Fraction:
        return Fraction((x > y) * 2 + (x == y), 2)

    v10 = [[sum(psi(x[r], y[r]) for y in negatives) / n for x in positives] for r in (0, 1)]
    v01 = [[sum(psi(x[r], y[r]) for x in positives) / m for y in negatives] for r in (0, 1)]
    areas = [sum(v) / m for v in v10]

    def s(v: list[list[Fraction]], r: int, q: int) -> Fraction:
        pairs = zip(v[r], v[q], strict=True)
        return sum((x - areas[r]) * (y - areas[q]) for x, y in pairs) / Fraction(len(v[r]) - 1)

    contrast = (1, -1)
    variance = sum(
        contrast[r] * contrast[q] * (s(v10, r, q) / m + s(v01, r, q) / n)
        for r in (0, 1)
        for q in (0, 1)
    )
    return areas[0] - areas[1], Fraction(variance)


def placed(rows: Sequence[Row], times: int = 1) -> Placements:
    labels, a, b = np.array(rows, np.int64).reshape(-1, 3).T
    return paired_placements(labels, a, b, np.full(len(labels), times, np.int64))


SCORES = st.integers(-3, 3)


@given(st.lists(st.tuples(st.integers(0, 1), SCORES, SCORES), min_size=4, max_size=24))
def test_the_variance_of_two_areas_is_delongs_with_their_covariance(rows: list[Row]) -> None:
    result, labels = placed(rows), [label for label, _, _ in rows]
    if min(labels.count(0), labels.count(1)) < 2:
        assert math.isnan(result.estimate.variance)
        return
    difference, variance = delong(rows)
    assert (result.estimate.area, result.estimate.variance) == (float(difference), float(variance))


@pytest.mark.parametrize(("columns", "difference", "se"), KNOWN)
def test_the_areas_of_known_rows_have_their_known_error(
    columns: tuple[list[int], ...], difference: float, se: float
) -> None:
    result = placed(list(zip(*columns, strict=True)))
    assert result.estimate.area == difference
    assert math.sqrt(result.estimate.variance) == pytest.approx(se, rel=1e-15)


def test_a_model_beside_one_that_ties_all_rows_has_the_error_of_one_model() -> None:
    labels, a, _ = THIRTEEN
    by_score = np.zeros((2, 10), np.int64)
    np.add.at(by_score, (np.array(labels), np.array(a)), 1)
    estimate = placements(*by_score).estimate
    difference = placed([(y, s, 0) for y, s in zip(labels, a, strict=True)]).estimate
    assert (difference.variance, difference.df) == (estimate.variance, estimate.df)
    assert difference.area == pytest.approx(estimate.area - 0.5, abs=1e-16)


def test_counts_far_above_the_root_of_an_int64_lose_no_digit() -> None:
    rows: list[Row] = [(0, 1, 2), (0, 3, 1), (1, 2, 2), (1, 4, 1)]
    result, times = placed(rows, 1 << 40), 1 << 40
    assert result.half_wins == placed(rows).half_wins * times * times
    assert result.of_positives == placed(rows).of_positives * times**3
    assert result.of_negatives == placed(rows).of_negatives * times**3


def test_differences_of_rows_have_the_error_of_a_paired_t_test() -> None:
    a = np.array([1.0, 0.63, 0.5, 0.43, 1.0, 0.0, 0.92, 0.71])
    b = np.array([0.63, 0.63, 1.0, 0.39, 0.86, 0.0, 0.75, 0.5])
    sums = PairedSums.from_values(a, b)
    assert sums.difference == pytest.approx(0.05375, rel=1e-15)
    assert math.sqrt(sums.variance) == pytest.approx(0.09043422037196823, rel=1e-14)
    assert (sums.units, sums.df) == (8, 7.0)


@given(st.lists(st.tuples(*[st.integers(-9, 9)] * 2, st.integers(0, 3)), min_size=2, max_size=12))
def test_a_ratio_has_the_error_of_its_residuals(rows: list[tuple[int, int, int]]) -> None:
    a, b, w = np.array(rows, np.float64).T
    sums = PairedSums.from_values(a, b, w)
    used = [(x - y, z) for x, y, z in rows if x != y or z]
    total, n = sum(z for _, z in used), len(used)
    if n < 2 or not total:
        assert math.isnan(sums.variance)
        return
    ratio = Fraction(sum(d for d, _ in used), total)
    spread = sum((d - ratio * z) ** 2 for d, z in used)
    assert sums.difference == float(ratio)
    assert sums.variance == float(Fraction(n, n - 1) * spread / total**2)


@pytest.mark.parametrize("units", [2, 3, 30, 1_000])
def test_equal_differences_have_no_variance_whatever_the_rounding_of_their_squares(
    units: int,
) -> None:
    rng = np.random.default_rng(units)
    for d, w in rng.random((200, 2)) * 10.0 ** rng.integers(-100, 100, (200, 2)):
        weights = np.where(np.arange(units) % 2, w, 2 * w)  # d / w is the same for all
        sums = PairedSums.from_values(np.full(units, d), np.zeros(units))
        ratio = PairedSums.from_values(weights / 8, np.zeros(units), weights)
        assert sums.variance == ratio.variance == 0, (d, w)
    apart = np.array([1, 1 + 2.0**-20] * (units // 2))
    assert PairedSums.from_values(apart, np.zeros(len(apart))).variance > 0


def test_an_infinite_difference_has_no_variance_and_is_counted() -> None:
    inf = math.inf
    sums = PairedSums.from_values(
        np.array([0.5, inf, inf, 1e200]), np.array([0.25, 1.0, inf, -1e200])
    )
    assert (sums.unbounded, sums.units) == (3, 4)
    assert math.isnan(sums.variance) and math.isnan(sums.difference)
    assert sums.error("lists").reason == "3 lists with an infinite difference"


def test_groups_leave_both_models_together() -> None:
    without_each = [0.5, 0.75, 0.25], [0.25, 0.5, 0.0]
    assert paired_jackknife(*without_each).variance == 0.0
    assert paired_jackknife([0.5, 0.75], [0.5, 0.25]).variance == 0.0625


def test_mcnemar_is_the_binomial_test_and_chi_square_with_and_without_continuity() -> None:
    for a, b in ((6, 16), (0, 1), (3, 3), (0, 0), (900, 1000), (0, 40)):
        exact, chi2 = mcnemar(a, b), mcnemar(a, b, exact=False)
        plain = mcnemar(a, b, exact=False, correction=False)
        n = a + b
        p = 2 * sum(math.comb(n, i) for i in range(min(a, b) + 1)) / 2**n
        assert exact[1] == pytest.approx(min(p, 1.0), rel=1e-12)
        for result, apart in ((chi2, max(abs(a - b) - 1, 0)), (plain, abs(a - b))):
            statistic = apart**2 / n if n else 0.0
            assert result[0] == pytest.approx(statistic, rel=1e-15)
            of_normal = math.erfc(math.sqrt(statistic / 2))
            assert result[1] == pytest.approx(of_normal, rel=1e-12)
