"""Cases of weighted rows: whole weights, tenths, weights of zero, and rows that say none."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import BinaryConfusion, ExactAUC, GroupedAUC, HistogramAUC
from streammetrics.testing import Case, strategies
from tests.depth import DEEP
from tests.oracles import weighted

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")

_columns = strategies.columns("labels", "scores", "weights")
_whole = st.sampled_from((0, 1, 1, 2, 7, 300))
_tenths = st.sampled_from((0.0, 0.1, 0.3, 1.0, 1.2, 34.5))
_halves = st.sampled_from((0.0, 0.5, 1.0))
_fifths = st.sampled_from((0.0, 0.2, 0.4, 1.0, 1.2, 34.5))  # in quarters none is rounded to nothing
_good = {"labels": [0, 1], "scores": [0.5, 0.5]}
_REFUSED: tuple[dict[str, object], ...] = (
    *({**_good, "weights": w} for w in ([1, -1], [1, NAN], [1, 0.25], [1, 2, 3], [1, "1"], [[1]])),
    {**_good, "weights": [1, float("inf")]},
    {"labels": [0, 2], "scores": [0.5, 0.5], "weights": [1, 1]},
)
_ALWAYS_REFUSED = tuple(columns for columns in _REFUSED if columns["weights"] != [1, 0.25])


def _area(unit: Fraction) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        unit_rows = weighted.in_units(rows, unit)
        return {
            "auc": weighted.area(unit_rows),
            "rows": len(unit_rows),
            "positives": sum(w for *_, y, _, w in unit_rows if y),
        }

    return oracle


def _rates(unit: Fraction) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        unit_rows = weighted.in_units(rows, unit)
        cells = [0, 0, 0, 0]
        for y, s, w in unit_rows:
            cells[2 * y + (s >= 0.5)] += w
        tn, fp, fn, tp = cells
        return {
            **dict(zip(("tn", "fp", "fn", "tp"), cells, strict=True)),
            "rows": len(unit_rows),
            "positives": tp + fn,
            "accuracy": Fraction(tp + tn, sum(cells)) if unit_rows else None,
            "precision": Fraction(tp, tp + fp) if tp + fp else None,
        }

    return oracle


def _gauc(weight: str, unit: Fraction) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        unit_rows = weighted.in_units(rows, unit)
        groups = {g for g, *_ in unit_rows}
        return {
            "gauc": weighted.gauc(unit_rows, weight),
            "groups": len(groups),
            "rows": len(unit_rows),
            "positives": sum(w for *_, y, _, w in unit_rows if y),
        }

    return oracle


def rounded(oracle: Callable[[Rows], dict[str, Any]], unit: Fraction) -> Any:
    """What the oracle says of weights that are rounded to units, and how many of them were."""

    def of_rounded(rows: Rows) -> dict[str, Any]:
        exact = [Fraction(str(weight)) for *_, weight in rows]
        near = [round(weight / unit) * unit for weight in exact]
        result = oracle([(*row[:-1], w) for row, w in zip(rows, near, strict=True)])
        return {**result, "rows_rounded": sum(map(operator.ne, exact, near))}

    return of_rounded


def _case(
    metric: Any,
    weights: st.SearchStrategy[Any],
    oracle: Any,
    real: bool = False,
    refused: Sequence[dict[str, object]] = _REFUSED,
) -> Any:
    scores = strategies.scores() if real else strategies.probabilities()
    return Case(
        metric,
        st.tuples(strategies.labels(), scores, weights),
        _columns,
        refused=refused,
        others=(type(metric)(weight_unit=Fraction(1, 20)), type(metric)(weight_unit=7)),
        oracle=oracle,
        name=f"weighted {metric}",
    )


def _groups(
    metric: GroupedAUC,
    weights: st.SearchStrategy[Any],
    oracle: Any,
    refused: Sequence[dict[str, object]] = _REFUSED,
) -> Any:
    return Case(
        metric,
        st.tuples(st.integers(0, 2), strategies.labels(), _halves, weights),
        strategies.columns("groups", "labels", "scores", "weights"),
        refused=[{**columns, "groups": [1, 2]} for columns in refused],
        others=(GroupedAUC(weight_unit="1/20"), ExactAUC()),
        oracle=oracle,
        name=f"weighted {metric}",
    )


_ONE, _TENTH, _QUARTER = Fraction(1), Fraction(1, 10), Fraction(1, 4)
# In units of 1 many fifths are rounded to nothing, and whole groups; some states have too many.
TO_NOTHING = _groups(
    GroupedAUC(weight="positives", round_weights=True, max_rows=9),
    _fifths,
    None,
    refused=_ALWAYS_REFUSED,
)
WEIGHTED = [
    _case(HistogramAUC(), _whole, _area(_ONE)),
    _case(HistogramAUC(grid="equal", resolution=1, weight_unit="1/10"), _tenths, _area(_TENTH)),
    _case(ExactAUC(), _whole, _area(_ONE), real=True),
    _case(ExactAUC(weight_unit=_TENTH), _tenths, _area(_TENTH), real=True),
    _case(BinaryConfusion(weight_unit="0.1"), _tenths, _rates(_TENTH), real=True),
    _case(
        HistogramAUC(resolution=3, weight_unit="1/4", round_weights=True),
        _fifths,
        rounded(_area(_QUARTER), _QUARTER),
        refused=_ALWAYS_REFUSED,
    ),
    _case(
        ExactAUC(weight_unit="1/4", round_weights=True),
        _fifths,
        rounded(_area(_QUARTER), _QUARTER),
        real=True,
        refused=_ALWAYS_REFUSED,
    ),
    _case(
        BinaryConfusion(weight_unit="1/4", round_weights=True),
        _fifths,
        rounded(_rates(_QUARTER), _QUARTER),
        real=True,
        refused=_ALWAYS_REFUSED,
    ),
    _groups(GroupedAUC(), _whole, _gauc("impressions", _ONE)),
    _groups(
        GroupedAUC(weight="positives", weight_unit="1/10"), _tenths, _gauc("positives", _TENTH)
    ),
    _groups(
        GroupedAUC(weight="uniform", grid="equal", resolution=0), _whole, _gauc("uniform", _ONE)
    ),
    _groups(
        GroupedAUC(weight_unit="1/4", round_weights=True),
        _fifths,
        rounded(_gauc("impressions", _QUARTER), _QUARTER),
        refused=_ALWAYS_REFUSED,
    ),
    _groups(
        GroupedAUC(
            weight="uniform", grid="equal", resolution=0, weight_unit="1/4", round_weights=True
        ),
        _fifths,
        rounded(_gauc("uniform", _QUARTER), _QUARTER),
        refused=_ALWAYS_REFUSED,
    ),
    TO_NOTHING,
]


def weighted_rows(case: Case[Any]) -> list[Any]:
    """Few different rows of a case here, to make every small multiset of."""
    unit = case.empty.settings()["weight_unit"]
    weights = {1: (0, 1, 2), Fraction(1, 4): (0.0, 0.2, 1.0)}.get(unit, (0.0, 0.5, 1.2))
    if isinstance(case.empty, GroupedAUC):
        # Three rows never make two groups of both classes: of the second group one weight will do.
        of_one = list(product((3,), (0, 1), (0.25, 0.5), weights[1:]))
        return of_one + list(product((-3,), (0, 1), (0.25, 0.5), weights[1 if DEEP else 2 :]))
    return list(product((0, 1), (0.25, 0.5), weights))
