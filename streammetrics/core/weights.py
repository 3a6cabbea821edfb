"""Weights of rows, held as whole numbers of a unit that the settings name.

Sums of integers do not depend on order or sharding, which sums of floats do. A row of weight zero
is as if absent. A metric with weights has the settings `weight_unit` and `round_weights`, and holds
how many rows there are beside how many units, and which weights were rounded.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Column, Rows
from streammetrics.core.settings import Setting
from streammetrics.core.weight_units import Units, rounded_units, units_of

Unit: TypeAlias = Fraction | int | str

ONE: Final = Fraction(1)  # the unit without weights; `is` tells it, since settings hold this one
_MOST: Final = 10**18  # of a unit's numerator and denominator
_MOST_MASS: Final = (1 << 63) - 1
_TEXT: Final = re.compile(r"[0-9]{1,18}(/[0-9]{1,18}|\.[0-9]{1,18})?")


def unit_of(value: object, where: str) -> Fraction:
    """The setting `weight_unit` as a Fraction; SettingsError for a float or what is not positive.

    >>> unit_of("1/10", "BinaryConfusion.weight_unit")
    Fraction(1, 10)
    """
    unit = None
    if (isinstance(value, int | Fraction) and not isinstance(value, bool)) or (
        isinstance(value, str) and _TEXT.fullmatch(value) and not re.search("/0+$", value)
    ):
        unit = Fraction(value)
    if unit is None or not 0 < unit.numerator <= _MOST or unit.denominator > _MOST:
        todo = 'pass weight_unit=Fraction(1, 10), or "1/10", to take tenths'
        if isinstance(value, float):
            todo = f"a float is not what it looks like: {todo}"
        raise SettingsError(
            expected="a positive Fraction, an integer, or a string such as '1/10'",
            came=f"{shown(value)} ({type(value).__name__})",
            where=where,
            todo=todo,
        )
    return ONE if unit == 1 else unit


class Weighted(Protocol):
    """A metric with weights."""

    @property
    def weight_unit(self) -> Unit: ...

    @property
    def round_weights(self) -> bool: ...

    def _set(self, name: str, value: Setting) -> None: ...


def check_weight_settings(metric: Weighted) -> None:
    """The settings of weights as a Fraction and a bool; SettingsError for anything else."""
    name = type(metric).__name__
    metric._set("weight_unit", unit_of(metric.weight_unit, f"{name}.weight_unit"))
    if not isinstance(metric.round_weights, bool):
        raise SettingsError(
            expected="True or False",
            came=shown(metric.round_weights),
            where=f"{name}.round_weights",
            todo="pass True to round weights that are no multiples of weight_unit",
        )


def weighted_rows(
    n: int,
    columns: tuple[Column, ...],
    weights: ArrayLike | None,
    unit: Unit,
    rounding: bool = False,
) -> Rows:
    """Checked columns [n] as rows; the units of their weights come last, unless all weigh one.

    rounding: weights that are no multiples of the unit are rounded, and a column after that of
    the units tells which; otherwise they are refused.
    """
    if weights is None and unit is ONE and not rounding:  # so that small batches cost no more
        return Rows(n, columns)
    if rounding:
        units, off = rounded_units(weights, n, Fraction(unit))
        return Rows(n, (*columns, units, off), max(n, _sum(units)))
    exact = units_of(weights, n, unit if isinstance(unit, Fraction) else Fraction(unit))
    return Rows(n, columns) if exact is None else Rows(n, (*columns, exact), _sum(exact))


def weighed(
    rows: Rows, slots: Slots | None, columns: int = 2
) -> tuple[Rows, Units | None, Slots | None]:
    """What `weighted_rows` made of so many columns, taken apart, less the rows of no unit."""
    if len(rows.columns) == columns:
        return rows, None, slots
    units = rows.columns[columns]
    assert isinstance(units, np.ndarray)
    if np.count_nonzero(units) != len(units):
        rows, slots = _where(units != 0, rows, slots)
        units = units[units != 0]
    return Rows(rows.n, rows.columns[:columns], rows.mass), units, slots


def rounded(rows: Rows, slots: Slots | None, columns: int = 2) -> tuple[Rows, Slots | None]:
    """Those of the rows whose weight was rounded, even to no unit; without their units."""
    plain = Rows(rows.n, rows.columns[:columns])
    if len(rows.columns) <= columns + 1:  # without weights every row weighs 1
        return _where(np.zeros(rows.n, np.bool_), plain, slots)
    off = rows.columns[columns + 1]
    assert isinstance(off, np.ndarray)
    return _where(off, plain, slots)


def rounded_labels(rows: Rows, slots: Slots | None) -> tuple[NDArray[np.intp], Slots | None]:
    """The first of two columns, of the rows whose weight was rounded."""
    some, slots = rounded(rows, slots)
    labels = some.columns[0]
    assert isinstance(labels, np.ndarray)
    return labels.astype(np.intp), slots


def add_excess(excess: NDArray[np.int64], slots: Slots | None, units: Units) -> None:
    """Add to each state by how much the units of its rows, at least 1 each, exceed the rows."""
    if slots is None:
        excess[0] += np.add.reduce(units) - len(units)
    else:
        np.add.at(excess, slots, units - 1)


def _sum(units: Units) -> int:
    if not len(units) or units.item(units.argmax()) <= _MOST_MASS // len(units):
        return int(np.add.reduce(units))
    # The parts of 32 bits cannot overflow where the whole could.
    return (int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum())


def _where(some: NDArray[np.bool_], rows: Rows, slots: Slots | None) -> tuple[Rows, Slots | None]:
    here = np.flatnonzero(some)
    return rows.take(here), None if slots is None else slots[here]
