"""Weights of rows, held as whole multiples of a unit, which is a setting.

Sums of integers do not depend on order or sharding, while sums of floats do. A row of weight zero
is ignored. A metric with an input `Weights()` may have the settings `weight_unit` and
`round_weights`; it counts rows beside quanta, and notes rows whose weight was rounded. This module
converts weights to a column of quanta, the one form that `_accumulate` gets.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from math import isfinite, lcm
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.batch import QUANTA, ROUNDED, Batch, Indices
from streammetrics.core.checks import is_number, numbers, same_length
from streammetrics.core.conversion import vector
from streammetrics.core.errors import InputError, SettingsError, bad_rows, shown
from streammetrics.core.rows import exact_total

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Units: TypeAlias = NDArray[np.int64]
Off: TypeAlias = NDArray[np.bool_]  # for each row, whether its weight was rounded
Unit: TypeAlias = Fraction | int | str

ONE: Final = Fraction(1)  # the default unit; `is` recognizes it, since settings hold this object
_MOST: Final = 10**18  # of a unit's numerator and denominator
_MOST_TOTAL_COUNT: Final = (1 << 63) - 1
_TEXT: Final = re.compile(r"[0-9]{1,18}(/[0-9]{1,18}|\.[0-9]{1,18})?")
_SURE: Final = 2.0**44  # units up to which a quotient of floats is within 1/100
_EXACT: Final = 2.0**53  # all integers up to this one are floats
_FEW: Final = 2.0**27  # a float32 times an integer up to this one is exact in float64
_MULTIPLES: Final = "multiples"
# Digits of a weight that is taken as a decimal, by the type of weights; 12 of others. One of more
# digits is likely the result of a calculation.
_DIGITS: Final = {np.dtype(np.float16): 3, np.dtype(np.float32): 6}
_PLACES: Final = 18  # after the point
_MOST_BELOW: Final = 10**6  # the largest denominator of one that is not decimal
_SOME: Final = 1000  # weights from which it is guessed, before it is tried with all
_FINE: Final = 10**6  # units of a mean weight that is rounded
_CHUNK: Final = 1 << 15  # rows at a time: temporaries stay in the second-level cache


def unit_of(value: object, where: str) -> Fraction:
    """The setting `weight_unit` as a Fraction; SettingsError if it is a float or not positive.

    >>> unit_of("1/10", "BinaryConfusion.weight_unit")
    Fraction(1, 10)
    """
    unit = None
    if (isinstance(value, int | Fraction) and not isinstance(value, bool)) or (
        isinstance(value, str) and _TEXT.fullmatch(value) and not re.search("/0+$", value)
    ):
        unit = Fraction(value)
    if unit is None or not 0 < unit.numerator <= _MOST or unit.denominator > _MOST:
        hint = 'pass weight_unit="1/10" for tenths'
        if isinstance(value, float) and isfinite(value):
            near = Fraction(str(value)).limit_denominator(1_000_000)
            hint = f'floats are inexact: pass weight_unit="{near}"' if near > 0 else hint
        raise SettingsError(
            expected="a positive Fraction, an integer, or a string such as '1/10'",
            got=f"{shown(value)} ({type(value).__name__})",
            where=where,
            hint=hint,
        )
    return ONE if unit == 1 else unit


def check_weight_settings(metric: Declared) -> None:
    """Bring the settings of weights, if any, into one form; SettingsError for invalid ones."""
    name, settings = type(metric).__name__, metric.settings()
    if "weight_unit" in settings:
        metric._set("weight_unit", unit_of(settings["weight_unit"], f"{name}.weight_unit"))
    rounding = settings.get("round_weights", False)
    if not isinstance(rounding, bool):
        raise SettingsError(
            expected="True or False",
            got=shown(rounding),
            where=f"{name}.round_weights",
            hint="pass True to round weights that are not multiples of weight_unit",
        )


def weigh(batch: Batch, weights: ArrayLike | None, unit: Fraction, *, rounding: bool) -> None:
    """Add the column of weight quanta to checked rows, unless all have one; InputError.

    rounding: weights that are not multiples of the unit are rounded, and another column marks
    them; otherwise they are refused.
    """
    if rounding:
        quanta, off = rounded_units(weights, batch.n, unit)
        batch.columns.update({QUANTA: quanta, ROUNDED: off})
        batch.total = max(batch.n, exact_total(quanta))
        return
    exact = units_of(weights, batch.n, unit)
    if exact is not None:
        batch.columns[QUANTA] = exact
        batch.total = exact_total(exact)


def rounded_rows(batch: Batch, slots: Indices | None) -> tuple[Batch, Indices | None]:
    """The rows whose weight was rounded, even to zero, without their weights."""
    off = batch.optional(ROUNDED)
    columns = {k: c for k, c in batch.columns.items() if k not in (QUANTA, ROUNDED)}
    return Batch(batch.n, columns).where(np.zeros(batch.n, np.bool_) if off is None else off, slots)


def weighed_rows(batch: Batch, slots: Indices | None) -> tuple[Batch, Indices | None]:
    """The rows that have at least one quantum."""
    quanta = batch.quanta
    columns = {k: c for k, c in batch.columns.items() if k != ROUNDED}
    batch = Batch(batch.n, columns, batch.total)
    if quanta is None or np.count_nonzero(quanta) == batch.n:
        return batch, slots
    return batch.where(quanta != 0, slots)


def add_surplus(surplus: NDArray[np.int64], slots: Indices | None, units: Units) -> None:
    """Add to each state the units of its rows, at least 1 each, less the number of rows."""
    if slots is None:
        surplus[0] += np.add.reduce(units) - len(units)
    else:
        np.add.at(surplus, slots, units - 1)


def units_counted(units: int, rows: int, unit: Fraction) -> int | None:
    """The units; None if every row weighs 1, so that they are the rows."""
    return None if units == rows and unit == 1 else units


# -- weights as multiples of the unit ------------------------------------------------------------
# A float weight is taken as the decimal that it represents: 0.1 is one unit of 1/10, because no
# float is nearer to 1/10. A weight that is not a multiple is refused, or rounded to the nearest
# one, ties to even.


def units_of(weights: ArrayLike | None, n: int, unit: Fraction) -> Units | None:
    """The number of units of each row: int64 [n]; None if all rows have one.

    weights: [n], at least 0, each a multiple of the unit to within half an ulp of its float type;
    None: 1 each. InputError for anything else.

    >>> units_of([0.1, 1.2, 0], 3, Fraction(1, 10)).tolist()
    [1, 12, 0]
    """
    if weights is None:
        return None if unit == 1 else np.full(n, _units_of_one(unit), np.int64)
    return _units(weights, n, unit, rounding=False)[0]


def rounded_units(weights: ArrayLike | None, n: int, unit: Fraction) -> tuple[Units, Off]:
    """The nearest number of units of each row [n], and which rows were rounded.

    These are off by half a unit at most. weights: [n], at least 0; None: 1 each.

    >>> units, off = rounded_units([0.1, 0.24, 0], 3, Fraction(1, 10))
    >>> units.tolist(), off.tolist()
    ([1, 2, 0], [False, True, False])
    """
    if weights is None:
        n_units = round(1 / unit)
        return np.full(n, n_units, np.int64), np.full(n, n_units * unit != 1)
    units, off = _units(weights, n, unit, rounding=True)
    return units, np.zeros(n, np.bool_) if off is None else off


def _units(
    weights: ArrayLike, n: int, unit: Fraction, *, rounding: bool
) -> tuple[Units, Off | None]:
    array: NDArray[Any] = vector(weights, "weights")
    same_length(n, array, "weights", other="the other columns")
    try:
        return _units_in(array, unit, rounding=rounding)
    except InputError as error:
        if rounding or not error.expected.startswith(_MULTIPLES):
            raise
        raise error.but(hint=_advice(array, unit)) from None


def _units_in(array: NDArray[Any], unit: Fraction, *, rounding: bool) -> tuple[Units, Off | None]:
    """The units of each row, and which were rounded; InputError."""
    if array.dtype.kind == "O":
        return _object_units(array, unit, rounding)
    if array.dtype.kind in "iu":
        return _integer_units(array, unit, rounding)
    half = array.dtype == np.float16  # whose ulp would be lost in float32
    floats = array if half else numbers(array, "weights")
    clean = None if half else whole_units(floats, unit)
    if clean is not None:
        return clean, None
    _refuse(floats, ~((floats >= 0) & (floats < np.inf)), unit)
    return _float_units(floats, unit, rounding)


def _object_units(array: NDArray[Any], unit: Fraction, rounding: bool) -> tuple[Units, Off]:
    """Of objects: floats as a column of floats, and each other weight as it is given."""
    is_fraction = np.array([isinstance(weight, Fraction) for weight in array], np.bool_)
    floats = numbers(np.where(is_fraction, 0.0, array), "weights", rounding=True)
    rows = np.flatnonzero([not isinstance(weight, float) for weight in array])
    floats[rows] = 0.0
    _refuse(floats, ~((floats >= 0) & (floats < np.inf)), unit)
    units, off = _float_units(floats, unit, rounding)
    units[rows], off[rows] = _exactly(array[rows], rows, unit, rounding)
    return units, off


def _units_of_one(unit: Fraction) -> int:
    if unit.numerator != 1:
        raise InputError(
            expected=f"weights, because the default weight 1 is not a multiple of {unit}",
            got="none",
            where="weights",
            hint="pass weights, or a weight_unit that divides 1",
        )
    return unit.denominator


def _integer_units(array: NDArray[Any], unit: Fraction, rounding: bool) -> tuple[Units, Off | None]:
    top, bottom = unit.numerator, unit.denominator
    if not len(array):
        return np.empty(0, np.int64), None
    # `argmax` takes a quarter of the time of `max` for a hundred rows.
    if array.item(array.argmin()) < 0:
        _refuse(array, array < 0, unit)
    if array.item(array.argmax()) > _MOST_TOTAL_COUNT // bottom:
        return _exactly(array, np.arange(len(array)), unit, rounding)
    scaled = array.astype(np.int64, copy=False)
    if bottom != 1:
        scaled = scaled * bottom
    if top == 1:
        return scaled, None
    units, remainders = np.divmod(scaled, top)
    off: Off = remainders != 0
    if not rounding:
        _refuse(array, off, unit)
    above = remainders > top - remainders
    tied = remainders == top - remainders
    return units + (above | (tied & (units % 2 == 1))), off


def whole_units(weights: NDArray[np.floating], unit: Fraction) -> Units | None:
    """The units if each weight is the float nearest to a multiple of the unit; else None.

    A float32 times the denominator is exact in float64, so its nearest multiple is known. The
    float64 of that multiple is on the same side of the midpoint of two float32 as the multiple
    itself, which would be off that midpoint by more than 2**-53 of its size.
    """
    top, bottom = float(unit.numerator), float(unit.denominator)
    single = weights.dtype == np.float32
    if single and (top != 1 or bottom > _FEW):
        return None
    units = np.empty(len(weights), np.int64)
    if not len(weights):
        return units
    # `argmax` takes a quarter of the time of `max` for a hundred rows, and finds NaN.
    least, most = weights.item(weights.argmin()), weights.item(weights.argmax())
    if not (least >= 0 and most * bottom + top <= min(_SURE * top, _EXACT) and bottom <= _EXACT):
        return None
    for i in range(0, len(weights), _CHUNK):
        chunk = weights[i : i + _CHUNK]
        near = chunk.astype(np.float64)
        near *= bottom
        if top != 1:
            with np.errstate(under="ignore"):
                near /= top
        np.rint(near, out=near)
        units[i : i + _CHUNK] = near
        if top != 1:
            near *= top
        near /= bottom
        restored = near.astype(np.float32) if single else near
        if np.count_nonzero(restored == chunk) != len(chunk):
            return None
    return units


def _float_units(
    weights: NDArray[np.floating], unit: Fraction, rounding: bool
) -> tuple[Units, Off]:
    """Divide in float64, and decide the doubtful rows in fractions."""
    top, bottom = unit.numerator, unit.denominator
    values = weights.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        quotient = values * float(bottom) / float(top)
        near = np.rint(quotient)
        sure = (near <= _SURE) & (near * float(top) <= _EXACT)
        sure &= float(bottom) <= _EXACT
        # A quotient of integers exact in float64: `restored` is within half an ulp of the multiple.
        restored = near * float(top) / float(bottom)
        twice_off = 2.0 * np.abs(values - restored)
        ulp, slack = np.spacing(weights).astype(np.float64), 16.0 * np.spacing(values)
        nearest = np.abs(quotient - near) < 0.49
        good = (restored == values) | (twice_off + slack <= ulp) & nearest
        good &= sure
        bad = sure & (twice_off - slack > ulp)
        # A float that represents n + 1/2 units is a tie, and goes to the even neighbour.
        half = bad & ((np.floor(quotient) + 0.5) * float(top) / float(bottom) == values)
        near = np.where(half, 2.0 * np.rint(quotient / 2.0), near)
    if not rounding:
        _refuse(weights, bad, unit)
    is_certain = good | half | (bad & nearest)
    units: Units = np.where(is_certain, near, 0.0).astype(np.int64)
    doubtful = np.flatnonzero(~is_certain)
    if len(doubtful):
        units[doubtful], bad[doubtful] = _exactly(weights[doubtful], doubtful, unit, rounding)
    return units, bad


def _exactly(
    values: NDArray[Any], rows: NDArray[np.intp], unit: Fraction, rounding: bool
) -> tuple[Units, Off]:
    """The same in fractions, one by one. rows: the indices of these values among all."""
    units, off, bad = np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_), []
    for i, value in enumerate(values):
        exact, room = _fraction(value)
        if exact is None or exact < 0:
            bad.append(i)
            continue
        n = round(exact / unit)
        off[i] = 2 * abs(exact - n * unit) > room
        if off[i] and not rounding:
            bad.append(i)
        elif n > _MOST_TOTAL_COUNT:
            raise _refused(value, rows[[i]], f"weights below 2**63 units of {unit}", "scale them")
        else:
            units[i] = n
    if bad:
        raise _not_a_multiple(values[bad[0]], rows[bad], unit)
    return units, off


def _fraction(value: Any) -> tuple[Fraction | None, Fraction]:
    """The exact value of a weight, None if it has none, and its ulp."""
    if isinstance(value, Fraction):
        return value, Fraction(0)
    if not is_number(value) or not isfinite(value):
        return None, Fraction(0)
    if isinstance(value, float | np.floating):
        return Fraction(float(value)), Fraction(float(np.spacing(value)))
    return Fraction(value if isinstance(value, Decimal) else int(value)), Fraction(0)


def _refuse(weights: NDArray[Any], bad: NDArray[np.bool_], unit: Fraction) -> None:
    if bad.any():
        rows = np.flatnonzero(bad)
        raise _not_a_multiple(weights[rows[0]], rows, unit)


def _not_a_multiple(first: Any, rows: NDArray[np.intp], unit: Fraction) -> InputError:
    exact, _ = _fraction(first)
    if exact is None or exact < 0:
        return _refused(first, rows, "weights of at least 0", f"fix or drop {len(rows)} row(s)")
    return _refused(first, rows, f"{_MULTIPLES} of weight_unit={unit}", "pass a smaller unit")


# -- advice: a unit that fits all weights of a batch ---------------------------------------------
def _advice(weights: NDArray[Any], unit: Fraction) -> str:
    """The hint for weights [n] that are not multiples of the unit: a unit that they fit, of
    decimals or else of small fractions; otherwise how to round them."""
    fractions = [exact for exact, _ in map(_fraction, dict.fromkeys(weights[:_SOME])) if exact]
    for step in (_decimal_step(weights), _small_step(fractions)):
        finer = step and _gcd(unit, step)  # multiples of the unit remain multiples
        if finer and _fits(weights, finer, rounding=False):
            return f'pass weight_unit="{finer}"'
    mean = sum(fractions, Fraction(0)) / max(1, len(fractions))
    for digits in range(19):
        finer = _gcd(unit, Fraction(1, 10**digits))
        if mean >= _FINE * finer and _fits(weights, finer, rounding=True):
            text = "" if finer == unit else f' and weight_unit="{finer}"'
            most = f"a part in {2 * _FINE:,}"
            return f"pass round_weights=True{text}: the mean changes by at most {most}"
    return "scale them, and pass round_weights=True"


def _decimal_step(weights: NDArray[Any]) -> Fraction | None:
    """The last decimal place of weights as they print, such as 1/10; None for more than a few."""
    most = _DIGITS.get(weights.dtype, 12)
    places = 0
    for weight in dict.fromkeys(weights):
        if not isinstance(weight, float | int | np.floating | Decimal):
            return None
        _, digits, exponent = Decimal(str(weight)).normalize().as_tuple()
        if not isinstance(exponent, int) or len(digits) > most or exponent < -_PLACES:
            return None
        places = max(places, -exponent)
    return Fraction(1, 10**places)


def _small_step(weights: Sequence[Fraction]) -> Fraction | None:
    """The largest fraction of which weights near multiples of small fractions are multiples."""
    below = 1
    for weight in weights:
        near = weight if weight.denominator <= _MOST_BELOW else weight.limit_denominator(1000)
        below = lcm(below, near.denominator)
        if below > _MOST_BELOW:
            return None
    return Fraction(1, below)


def _fits(weights: NDArray[Any], unit: Fraction, *, rounding: bool) -> bool:
    """Whether these weights, and a thousand times as many, are counted in this unit."""
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # by a unit that is far too small
            units, _ = _units_in(weights, unit, rounding=rounding)
    except InputError:
        return False
    return 1000 * exact_total(units) <= _MOST_TOTAL_COUNT


def _gcd(a: Fraction, b: Fraction) -> Fraction:
    while b:
        a, b = b, a % b
    return a  # the greatest number of which both are multiples


def _refused(first: Any, rows: NDArray[np.intp], expected: str, hint: str) -> InputError:
    return bad_rows([first], rows, "weights", expected, hint, shown(first))
