"""Weights of rows, held as whole numbers of a unit that the settings name.

Sums of integers do not depend on order or sharding, which sums of floats do. A weight is taken as
a decimal that its float stands for: 0.1 is one unit of 1/10, because no float is nearer to 1/10.
A row of weight zero is as if absent. A metric with weights has the setting `weight_unit`, and holds
how many rows there are beside how many units.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.arrays import vector
from streammetrics.core.checks import numbers, same_length
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Column, Rows

Unit: TypeAlias = Fraction | int | str
Units: TypeAlias = NDArray[np.int64]

ONE: Final = Fraction(1)  # the unit without weights; `is` tells it, since settings hold this one
_MOST: Final = 10**18  # of a unit's numerator and denominator
_TEXT: Final = re.compile(r"[0-9]{1,18}(/[0-9]{1,18}|\.[0-9]{1,18})?")
_INT64: Final = (1 << 63) - 1
_SURE: Final = 2.0**44  # units up to which a quotient of floats is right to within 1/100
_EXACT: Final = 2.0**53  # integers up to which every one is a float
_CHUNK: Final = 1 << 15  # rows at a time: temporaries stay in the second-level cache


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


def units_of(weights: ArrayLike | None, n: int, unit: Fraction) -> Units | None:
    """How many units each row weighs: int64 [n]; None where all rows weigh one.

    weights: [n], at least 0, each a multiple of the unit to within half an ulp of its float type;
    None: 1 each. InputError for anything else.

    >>> units_of([0.1, 1.2, 0], 3, Fraction(1, 10)).tolist()
    [1, 12, 0]
    """
    if weights is None:
        return None if unit == 1 else np.full(n, _units_of_one(unit), np.int64)
    array: NDArray[Any] = vector(weights, "weights")
    same_length(n, array, "weights", of="labels")
    if array.dtype.kind == "O" and any(isinstance(v, Fraction | Decimal) for v in array):
        return _exactly(array, np.arange(n), unit)
    if array.dtype.kind in "iu":
        return _of_integers(array, unit)
    kept = array if array.dtype.kind == "O" else None
    floats = numbers(weights, "weights")
    clean = _clean(floats, unit) if kept is None else None
    if clean is not None:
        return clean
    _refuse(floats, ~((floats >= 0) & (floats < np.inf)), unit)
    if kept is not None:  # as they were: an integer past 2**53 is not its float
        whole = np.flatnonzero([isinstance(v, int) for v in kept])
        units = _of_floats(floats, unit)
        units[whole] = _exactly(kept[whole], whole, unit)
        return units
    return _of_floats(floats, unit)


def weighted_rows(
    n: int, columns: tuple[Column, ...], weights: ArrayLike | None, unit: Unit
) -> Rows:
    """Checked columns [n] as rows; the units of their weights come last, unless all weigh one."""
    units = units_of(weights, n, Fraction(unit))
    if units is None:
        return Rows(n, columns)
    # The parts of 32 bits cannot overflow where the whole could.
    mass = (int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum())
    return Rows(n, (*columns, units), mass)


def weighed(
    rows: Rows, slots: Slots | None, columns: int = 2
) -> tuple[Rows, Units | None, Slots | None]:
    """What `weighted_rows` made of so many columns, taken apart, less the rows of weight zero."""
    if len(rows.columns) == columns:
        return rows, None, slots
    units = rows.columns[columns]
    assert isinstance(units, np.ndarray)
    if not units.all():
        here = np.flatnonzero(units)
        rows, slots = rows.take(here), None if slots is None else slots[here]
        units = units[here]
    return Rows(rows.n, rows.columns[:columns], rows.mass), units, slots


def add_excess(excess: NDArray[np.int64], slots: Slots | None, units: Units) -> None:
    """Add to each state by how much the units of its rows, at least 1 each, exceed the rows."""
    if slots is None:
        excess[0] += units.sum() - len(units)
    else:
        np.add.at(excess, slots, units - 1)


def _units_of_one(unit: Fraction) -> int:
    if unit.numerator != 1:
        raise InputError(
            expected=f"weights, since a row without one weighs 1, no multiple of {unit}",
            came="none",
            where="weights",
            todo="pass weights, or a weight_unit that divides 1",
        )
    return unit.denominator


def _of_integers(array: NDArray[Any], unit: Fraction) -> Units:
    top, bottom = unit.numerator, unit.denominator
    if not len(array):
        return np.empty(0, np.int64)
    _refuse(array, array < 0, unit)
    if int(array.max()) > _INT64 // bottom:
        return _exactly(array, np.arange(len(array)), unit)
    scaled = array.astype(np.int64) * bottom
    if top == 1:
        return scaled
    _refuse(array, scaled % top != 0, unit)
    return scaled // top


def _clean(weights: NDArray[np.floating], unit: Fraction) -> Units | None:
    """The units where each float64 is the very one that is nearest to its multiple."""
    top, bottom = float(unit.numerator), float(unit.denominator)
    if weights.dtype != np.float64 or bottom > _EXACT:
        return None
    units = np.empty(len(weights), np.int64)
    for i in range(0, len(weights), _CHUNK):
        some = weights[i : i + _CHUNK]
        with np.errstate(all="ignore"):
            near = np.rint(some * bottom / top)
            clean = (near * top / bottom == some) & (near >= 0) & (near <= _SURE)
        if not clean.all() or float(near.max()) * top > _EXACT:
            return None
        units[i : i + _CHUNK] = near
    return units


def _of_floats(weights: NDArray[np.floating], unit: Fraction) -> Units:
    """Divide in float64, and decide in integers where that is too near to call."""
    top, bottom = unit.numerator, unit.denominator
    values = weights.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        quotient = values * float(bottom) / float(top)
        near = np.rint(quotient)
        sure = (near <= _SURE) & (near * float(top) <= _EXACT)
        sure &= float(bottom) <= _EXACT
        # A quotient of integers that are floats: `again` is within half an ulp of the multiple.
        again = near * float(top) / float(bottom)
        twice_off = 2.0 * np.abs(values - again)
        ulp, slack = np.spacing(weights).astype(np.float64), 16.0 * np.spacing(values)
        good = (again == values) | (twice_off + slack <= ulp) & (np.abs(quotient - near) < 0.49)
        good &= sure
        bad = sure & (twice_off - slack > ulp)
    _refuse(weights, bad, unit)
    units: Units = np.where(good, near, 0.0).astype(np.int64)
    doubtful = np.flatnonzero(~good)
    if len(doubtful):
        units[doubtful] = _exactly(weights[doubtful], doubtful, unit)
    return units


def _exactly(values: NDArray[Any], rows: NDArray[np.intp], unit: Fraction) -> Units:
    """The same in fractions, one by one. rows: where these values stand among all."""
    found, bad = np.zeros(len(values), np.int64), []
    for i, value in enumerate(values):
        exact, room = _fraction(value)
        if exact is None or exact < 0:
            bad.append(i)
            continue
        n = round(exact / unit)
        if 2 * abs(exact - n * unit) > room:
            bad.append(i)
        elif n > _INT64:
            raise _refused(value, rows[[i]], f"weights below 2**63 units of {unit}", "scale them")
        else:
            found[i] = n
    if bad:
        raise _not_a_multiple(values[bad[0]], rows[bad], unit)
    return found


def _fraction(value: Any) -> tuple[Fraction | None, Fraction]:
    """What a weight is, and the ulp of its type."""
    if isinstance(value, Decimal | float | np.floating) and not np.isfinite(float(value)):
        return None, Fraction(0)
    if isinstance(value, np.floating):
        return Fraction(float(value)), Fraction(float(np.spacing(value)))
    if isinstance(value, float):
        return Fraction(value), Fraction(float(np.spacing(value)))
    if isinstance(value, np.integer | np.bool_):
        return Fraction(int(value)), Fraction(0)
    if isinstance(value, int | Fraction | Decimal):
        return Fraction(value), Fraction(0)
    return None, Fraction(0)


def _refuse(weights: NDArray[Any], bad: NDArray[np.bool_], unit: Fraction) -> None:
    if bad.any():
        rows = np.flatnonzero(bad)
        raise _not_a_multiple(weights[rows[0]], rows, unit)


def _not_a_multiple(first: Any, rows: NDArray[np.intp], unit: Fraction) -> InputError:
    exact, _ = _fraction(first)
    if exact is None or exact < 0:
        return _refused(first, rows, "weights of at least 0", f"mend {len(rows)} row(s)")
    todo = "round the weights, or pass the weight_unit of which they are multiples"
    text = str(first)
    if re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", text):
        digits = len(text.partition(".")[2])
        finer = _gcd(unit, Fraction(1, 10**digits))  # and what was a multiple stays one
        todo = f"pass weight_unit=Fraction({finer.numerator}, {finer.denominator})"
    return _refused(first, rows, f"multiples of weight_unit={unit}", todo)


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    while b:
        a, b = b, a % b
    return a  # the greatest number of which both are multiples


def _refused(first: Any, rows: NDArray[np.intp], expected: str, todo: str) -> InputError:
    came = shown(first)
    return InputError(
        expected=expected, came=came, where=f"weights[{rows[0]}]", todo=todo, rows=rows
    )
