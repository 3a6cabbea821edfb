"""Cases of Calibration and Regression, against brute force in fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import Calibration, Ratio, Regression
from streammetrics.testing import Case, strategies
from tests.oracles import calibration
from tests.weighted_cases import rounded

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")

_scores = st.sampled_from((0.0, -0.0, 1.0, 0.5, 0.2, 1 - 2**-53, 1e-140, 1e-170, 5e-324))
_scores |= st.floats(0, 1)
_LARGEST = 1.7976931348623157e308
_numbers = st.sampled_from((0.0, -0.0, 1.0, 0.1, -0.1, 1e16, -1e16, 1e-140))
_numbers |= st.sampled_from((1e-170, -1e-170, 5e-324, 3e200, _LARGEST, -_LARGEST))
_numbers |= st.floats(allow_nan=False, allow_infinity=False)
_weights = st.sampled_from((0, 1, 2, 7))
_uneven = st.sampled_from((0.0, 0.25, 0.5, 1.0, 1.5, 3.7))  # to be rounded to whole ones
_tenths = st.sampled_from((0.0, 0.1, 0.3, 1.0, 12.7))
_large = st.sampled_from((1, 2**33, 2**53 + 1))  # the last is no float: it counts in two halves

_UNEVEN: Mapping[str, object] = {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1, 0.55]}
_BAD_ROWS: tuple[Mapping[str, object], ...] = (
    {"labels": [0, 2], "scores": [0.5, 0.5]},
    {"labels": [0.73, 0.2], "scores": [1, 0]},
    {"labels": [0, 1], "scores": [0.5, NAN]},
    {"labels": [0, 1], "scores": [0.5, 1.5]},
    {"labels": [0, 1, 1], "scores": [0.5, 0.5]},
    {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1, -1]},
    _UNEVEN,
    {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1]},
)


def _weighed(rows: Rows, weights: bool) -> list[tuple[Any, float, Fraction]]:
    """Rows with the weight that their text stands for, which is 1 where there are no weights."""
    return [(y, s, Fraction(str(*w)) if weights else Fraction(1)) for y, s, *w in rows]


def _calibration(metric: Calibration, weights: st.SearchStrategy[Any] | None = None) -> Case[Any]:
    names = ("labels", "scores") if weights is None else ("labels", "scores", "weights")
    columns = (strategies.labels(), _scores) + (() if weights is None else (weights,))

    def oracle(rows: Rows) -> dict[str, Any]:
        weighed = _weighed(rows, weights is not None)
        figures = calibration.figures(weighed, metric.bins, Fraction(metric.weight_unit))
        return figures | (calibration.by_mass(weighed, metric.bins) if metric.grid else {})

    return Case(
        metric,
        st.tuples(*columns),
        strategies.columns(*names),
        refused=[row for row in _BAD_ROWS if not metric.round_weights or row != _UNEVEN],
        others=(Calibration(bins=7), Calibration(grid="relative"), Calibration(clip=0.25), Ratio()),
        oracle=rounded(oracle, Fraction(1)) if metric.round_weights else oracle,
    )


def _regression(metric: Regression, weights: st.SearchStrategy[Any] | None = None) -> Case[Any]:
    names = ("labels", "scores") if weights is None else ("labels", "scores", "weights")
    columns = (_numbers, _numbers) + (() if weights is None else (weights,))

    def oracle(rows: Rows) -> dict[str, Any]:
        return calibration.errors(_weighed(rows, weights is not None))

    return Case(
        metric,
        st.tuples(*columns),
        strategies.columns(*names),
        refused=(
            {"labels": [0, NAN], "scores": [0.5, 0.5]},
            {"labels": [0, float("inf")], "scores": [0.5, 0.5]},
            {"labels": [0, 1], "scores": [0.5, NAN]},
            {"labels": [0, 1], "scores": ["a", "b"]},
            *(row for row in _BAD_ROWS[4:] if not metric.round_weights or row != _UNEVEN),
        ),
        others=(Regression(weight_unit=3), Calibration(), Ratio()),
        oracle=rounded(oracle, Fraction(1)) if metric.round_weights else oracle,
    )


CALIBRATION: list[Case[Any]] = [
    _calibration(Calibration()),
    _calibration(Calibration(bins=3, clip=1e-6), _weights),
    _calibration(Calibration(weight_unit=Fraction(1, 10)), _tenths),
    _calibration(Calibration(bins=2), _large),
    _calibration(Calibration(bins=4, round_weights=True), _uneven),
    _calibration(Calibration(bins=3, grid="relative", resolution=1)),
    _calibration(Calibration(bins=5, grid="relative", resolution=0), _weights),
    _regression(Regression()),
    _regression(Regression(weight_unit="1/10"), _tenths),
    _regression(Regression(round_weights=True), _uneven),
]

# The last number is a weight, where a case has weights.
SMALL_SCORED: Mapping[str, Sequence[Any]] = {
    "Calibration": [(y, s, w) for y in (0, 1) for s in (1 / 3, 1.0) for w in (1, 2)],
    "Regression": [(y, s, w) for y in (0.1, -3.0) for s in (0.3, 1e9) for w in (1, 2)],
}
