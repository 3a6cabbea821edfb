"""Cases of Calibration and Regression, against brute force in fractions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import Calibration, Ratio, Regression
from streammetrics.testing import Case, strategies
from tests.oracles import calibration

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")

# No score has a square below 2**-960: such squares are rounded.
_scores = st.sampled_from((0.0, -0.0, 1.0, 0.5, 0.2, 1 - 2**-53, 1e-140)) | st.floats(1e-140, 1)
_numbers = st.sampled_from((0.0, -0.0, 1.0, 0.1, -0.1, 1e16, -1e16, 1e-140)) | st.floats(
    -1e140, 1e140
).filter(lambda x: abs(x) > 1e-140)
_weights = st.sampled_from((0, 1, 2, 7))
_tenths = st.sampled_from((0.0, 0.1, 0.3, 1.0, 12.7))

_BAD_ROWS: tuple[Mapping[str, object], ...] = (
    {"labels": [0, 2], "scores": [0.5, 0.5]},
    {"labels": [0.73, 0.2], "scores": [1, 0]},
    {"labels": [0, 1], "scores": [0.5, NAN]},
    {"labels": [0, 1], "scores": [0.5, 1.5]},
    {"labels": [0, 1, 1], "scores": [0.5, 0.5]},
    {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1, -1]},
    {"labels": [0, 1], "scores": [0.5, 0.5], "weights": [1, 0.55]},
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
        return calibration.figures(weighed, metric.bins, Fraction(metric.weight_unit))

    return Case(
        metric,
        st.tuples(*columns),
        strategies.columns(*names),
        refused=_BAD_ROWS,
        others=(Calibration(bins=7), Calibration(clip=0.25), Ratio()),
        oracle=oracle,
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
            *_BAD_ROWS[4:],
        ),
        others=(Regression(weight_unit=3), Calibration(), Ratio()),
        oracle=oracle,
    )


CALIBRATION: list[Case[Any]] = [
    _calibration(Calibration()),
    _calibration(Calibration(bins=3, clip=1e-6), _weights),
    _calibration(Calibration(weight_unit=Fraction(1, 10)), _tenths),
    _regression(Regression()),
    _regression(Regression(weight_unit="1/10"), _tenths),
]

# The last number is a weight, where a case has weights.
SMALL_SCORED: Mapping[str, Sequence[Any]] = {
    "Calibration": [(y, s, w) for y in (0, 1) for s in (1 / 3, 1.0) for w in (1, 2)],
    "Regression": [(y, s, w) for y in (0.1, -3.0) for s in (0.3, 1e9) for w in (1, 2)],
}
