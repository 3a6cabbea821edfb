"""Cases of the metrics of numbers: quantiles on a grid and exactly, with and without weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import Accumulator, ExactQuantiles, HistogramAUC, Quantiles
from streammetrics.testing import Case, strategies

Rows: TypeAlias = Sequence[Any]
NAN = float("nan")

_value = st.tuples(strategies.amounts())
_weighted = st.tuples(strategies.amounts(), st.sampled_from((0, 1, 1, 2, 7, 300)))
_REFUSED: tuple[dict[str, object], ...] = (
    {"values": [0.5, NAN]},
    {"values": [0.5, None]},
    {"values": ["1"]},
    {"values": [[0.5]]},
    {"values": 0.5},
)


def figures(rows: Rows) -> dict[str, Any]:
    """By the definition, from every row as often as its weight says."""
    given = [(row[0], row[1] if len(row) > 1 else 1) for row in rows]
    values = sorted(Fraction(x) for x, weight in given for _ in range(weight))
    n = len(values)

    def at(p: Fraction) -> Fraction | None:
        return values[max(1, math.ceil(n * p)) - 1] if values else None

    quarters = at(Fraction(1, 4)), at(Fraction(3, 4))
    return {
        "median": at(Fraction(1, 2)),
        "p90": at(Fraction(9, 10)),
        "p95": at(Fraction(19, 20)),
        "p99": at(Fraction(99, 100)),
        "minimum": values[0] if values else None,
        "maximum": values[-1] if values else None,
        "iqr": None if quarters[0] is None or quarters[1] is None else quarters[1] - quarters[0],
        "mean": sum(values, Fraction(0)) / n if values else None,
        "rows": sum(weight > 0 for _, weight in given),
    }


def _case(metric: Accumulator, others: Sequence[Accumulator], **more: Any) -> Case[Any]:
    row, columns = (
        (_weighted, ("values", "weights")) if more.pop("weighted", False) else (_value, ("values",))
    )
    oracle: Callable[[Rows], dict[str, Any]] = more.pop("oracle", figures)
    return Case(
        metric,
        row,
        strategies.columns(*columns),
        refused=_REFUSED,
        others=(*others, HistogramAUC()),
        oracle=oracle,
        **more,
    )


def _past(limit: int) -> Callable[[Rows], dict[str, Any]]:
    def oracle(rows: Rows) -> dict[str, Any]:
        return figures(rows) if len(rows) <= limit else {"median": None, "rows": len(rows)}

    return oracle


DISTRIBUTIONS = [
    _case(Quantiles(), (Quantiles(resolution=3), ExactQuantiles())),
    _case(Quantiles(resolution=0, floor=1.0, ceiling=4.0), (Quantiles(),)),
    _case(Quantiles(grid="edges", edges=(-1.0, 0.25, 3.0)), (Quantiles(),)),
    _case(Quantiles(), (), weighted=True, name="Quantiles() of weighted rows"),
    _case(ExactQuantiles(), (ExactQuantiles(max_rows=3), Quantiles())),
    _case(ExactQuantiles(max_rows=8), (ExactQuantiles(),), oracle=_past(8)),
    _case(ExactQuantiles(), (), weighted=True, name="ExactQuantiles() of weighted rows"),
]
