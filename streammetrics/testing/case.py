"""Case: a metric, rows to feed it, and the expected behaviour."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, TypeAlias, TypeVar

from hypothesis import strategies as st

from streammetrics.core.accumulator import Accumulator
from streammetrics.present.views import value_of

Row = TypeVar("Row")
Exact: TypeAlias = "Fraction | int | Mapping[Any, Exact] | None"  # None: undefined


@dataclass(frozen=True, eq=False)
class Case(Generic[Row]):
    """The inputs of the laws for one metric.

    empty: the metric with its settings.
    row: a hypothesis strategy for one row.
    columns: the keywords of `update` for some rows; `strategies.columns` makes it for tuples.
    refused: keywords that `update` must refuse with InputError.
    others: metrics that must refuse to merge with this one.
    oracle: exact values of attributes (or keys, or views such as "quantile(0.3)") of the result by
    brute force from the rows; a mapping for nested results.
    small: a few different rows; `check_exhaustively` can try every small multiset of them.

    >>> from hypothesis import strategies as st
    >>> from streammetrics import Ratio
    >>> from streammetrics.testing import check_laws, strategies
    >>> clicks = Case(Ratio(), st.tuples(strategies.labels()), strategies.columns("numerators"))
    >>> check_laws(clicks, examples=5)
    """

    empty: Accumulator
    row: st.SearchStrategy[Row]
    columns: Callable[[Sequence[Row]], Mapping[str, object]]
    refused: Sequence[Mapping[str, object]] = ()
    others: Sequence[Accumulator] = ()
    oracle: Callable[[Sequence[Row]], Exact] | None = None
    name: str = field(default="")
    small: Sequence[Row] = ()

    def __str__(self) -> str:
        return self.name or repr(self.empty)

    def fed(self, rows: Sequence[Row]) -> Accumulator:
        """The state after one update with these rows."""
        state = self.empty.empty()
        if rows:
            state.update(**self.columns(rows))
        return state


def compare(where: str, result: object, exact: Exact) -> None:
    """Check that each value is the exact one, correctly rounded, or an interval that contains it.

    AssertionError names the value's path and both values.
    """
    if isinstance(exact, Mapping):
        for name, inner in exact.items():
            is_key = isinstance(result, Mapping) and name in result
            inner_result = result[name] if is_key else _view(result, str(name))  # type: ignore[index]
            compare(f"{where}[{name!r}]" if is_key else f"{where}.{name}", inner_result, inner)
        return
    low, high = (getattr(result, name, result) for name in ("low", "high"))
    if not (isinstance(low, int | float) and isinstance(high, int | float)):
        raise AssertionError(f"{where} is {result!r}, expected a number or bounds")
    if exact is None:
        assert math.isnan(low) and math.isnan(high), f"{where} is {result}, expected nan"
        return
    assert not math.isnan(low) and not math.isnan(high), f"{where} is nan, expected {exact}"
    if low is result:  # a number, no interval
        assert result == _rounded(exact), f"{where} is {result!r}, expected {_rounded(exact)!r}"
        return
    value: Any = getattr(result, "value", result)
    assert low <= value <= high, f"{where} is {value!r}, outside its bounds [{low!r}, {high!r}]"
    assert low <= exact <= high, f"{where} is in [{low!r}, {high!r}], expected {exact}"


def _view(result: object, name: str) -> object:
    """An attribute, or a view with arguments such as `quantile(0.3)`."""
    return value_of(result, name) if name.endswith(")") else getattr(result, name)


def _rounded(exact: Fraction | int) -> float | int:
    if isinstance(exact, int):
        return exact
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
