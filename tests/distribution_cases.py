"""Cases of the metrics of numbers: quantiles on a grid and exactly, with and without weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from hypothesis import strategies as st

from streammetrics import Accumulator, ExactQuantiles, HistogramAUC, Moments, Quantiles
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
    weighted_rows = [(row[0], row[1] if len(row) > 1 else 1) for row in rows]
    values = sorted(Fraction(x) for x, weight in weighted_rows for _ in range(weight))
    n = len(values)

    def quantile(p: Fraction) -> Fraction | None:
        return values[max(1, math.ceil(n * p)) - 1] if values else None

    def between(p: Fraction, q: Fraction) -> Fraction | None:
        low, high = quantile(p), quantile(q)
        return None if low is None or high is None else high - low

    def mean(numbers: Sequence[Fraction]) -> Fraction | None:
        return sum(numbers, Fraction(0)) / len(numbers) if numbers else None

    drop = math.floor(n * Fraction(1, 10))
    middle = values[drop : n - drop]
    shares = {
        f"share_{name}({x!r})": Fraction(sum(map(below, values)), n) if values else None
        for x in (0.0, 0.25, 1.5)
        for name, below in (("below", Fraction(x).__gt__), ("up_to", Fraction(x).__ge__))
    }
    return {
        **shares,
        "quantile(0.07)": quantile(Fraction(7, 100)),
        "inter_quantile_range(0.1, 0.9)": between(Fraction(1, 10), Fraction(9, 10)),
        "trimmed_mean(0.1)": mean(middle),
        "winsorised_mean(0.1)": mean([middle[0]] * drop + middle + [middle[-1]] * drop)
        if middle
        else None,
        "median": quantile(Fraction(1, 2)),
        "p90": quantile(Fraction(9, 10)),
        "p95": quantile(Fraction(19, 20)),
        "p99": quantile(Fraction(99, 100)),
        "minimum": values[0] if values else None,
        "maximum": values[-1] if values else None,
        "iqr": between(Fraction(1, 4), Fraction(3, 4)),
        "mean": mean(values),
        "rows": sum(weight > 0 for _, weight in weighted_rows),
    }


_DIGITS = Context(prec=100, Emin=-100_000, Emax=100_000)  # far more than a float holds


def _root(x: Fraction) -> Fraction:
    return Fraction(_DIGITS.sqrt(_DIGITS.divide(Decimal(x.numerator), Decimal(x.denominator))))


def moments(rows: Rows) -> dict[str, Any]:
    """Moments by the definition: a row of weight w as w equal rows."""
    weighted_rows = [(Fraction(row[0]), row[1] if len(row) > 1 else 1) for row in rows]
    positive_rows = [(x, weight) for x, weight in weighted_rows if weight]
    n = sum(weight for _, weight in positive_rows)
    result: dict[str, Any] = dict.fromkeys(
        ("mean", "variance", "std", "skewness", "minimum", "maximum", "above_zero")
    )
    result["rows"] = len(positive_rows)
    if not n:
        return result
    mean = sum(x * weight for x, weight in positive_rows) / n
    second, third = (sum((x - mean) ** k * weight for x, weight in positive_rows) for k in (2, 3))
    result |= {"mean": mean, "minimum": min(positive_rows)[0], "maximum": max(positive_rows)[0]}
    result["above_zero"] = Fraction(sum(weight for x, weight in positive_rows if x > 0), n)
    if n > 1:
        result |= {"variance": second / (n - 1), "std": _root(second / (n - 1))}
    if second:
        size = _root(Fraction(third * third * n) / second**3)
        result["skewness"] = size if third > 0 else -size
    return result


def _case(metric: Accumulator, mismatches: Sequence[Accumulator], **more: Any) -> Case[Any]:
    row, columns = (
        (_weighted, ("values", "weights")) if more.pop("weighted", False) else (_value, ("values",))
    )
    oracle: Callable[[Rows], dict[str, Any]] = more.pop("oracle", figures)
    refused = _REFUSED if more.pop("infinite", True) else (*_REFUSED, {"values": [math.inf]})
    return Case(
        metric,
        row,
        strategies.columns(*columns),
        refused=refused,
        others=(*mismatches, HistogramAUC()),
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
    _case(Moments(), (ExactQuantiles(),), infinite=False, oracle=moments),
    _case(
        Moments(),
        (),
        weighted=True,
        infinite=False,
        oracle=moments,
        name="Moments() of weighted rows",
    ),
]
