"""Weights of rows, held as whole numbers of a unit that the settings name.

Sums of integers do not depend on order or sharding, which sums of floats do. A row of weight zero
is ignored. A metric with an input `Weights()` may have the settings `weight_unit` and
`round_weights`, and holds how many rows there are beside how many quanta, and which weights were
rounded. Here weights become a column of quanta; what `_accumulate` gets is always of one form.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.batch import QUANTA, ROUNDED, Batch
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.parts.part import Slots
from streammetrics.core.weight_units import Units, rounded_units, units_of

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Unit: TypeAlias = Fraction | int | str

ONE: Final = Fraction(1)  # the unit without weights; `is` tells it, since settings hold this one
_MOST: Final = 10**18  # of a unit's numerator and denominator
_MOST_TOTAL_COUNT: Final = (1 << 63) - 1
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
        hint = 'pass weight_unit=Fraction(1, 10), or "1/10", to take tenths'
        if isinstance(value, float):
            hint = f"a float is not what it looks like: {hint}"
        raise SettingsError(
            expected="a positive Fraction, an integer, or a string such as '1/10'",
            got=f"{shown(value)} ({type(value).__name__})",
            where=where,
            hint=hint,
        )
    return ONE if unit == 1 else unit


def check_weight_settings(metric: Declared) -> None:
    """The settings of weights, where there are any, in one form; SettingsError for others."""
    name, settings = type(metric).__name__, metric.settings()
    if "weight_unit" in settings:
        metric._set("weight_unit", unit_of(settings["weight_unit"], f"{name}.weight_unit"))
    rounding = settings.get("round_weights", False)
    if not isinstance(rounding, bool):
        raise SettingsError(
            expected="True or False",
            got=shown(rounding),
            where=f"{name}.round_weights",
            hint="pass True to round weights that are no multiples of weight_unit",
        )


def weigh(batch: Batch, weights: ArrayLike | None, unit: Fraction, *, rounding: bool) -> None:
    """Add to checked rows the column of their weight quanta, unless all have one; InputError.

    rounding: weights that are no multiples of the unit are rounded, and one more column tells
    which; otherwise they are refused.
    """
    if rounding:
        quanta, off = rounded_units(weights, batch.n, unit)
        batch.columns.update({QUANTA: quanta, ROUNDED: off})
        batch.total = max(batch.n, _sum(quanta))
        return
    exact = units_of(weights, batch.n, unit)
    if exact is not None:
        batch.columns[QUANTA] = exact
        batch.total = _sum(exact)


def rounded_rows(batch: Batch, slots: Slots | None) -> tuple[Batch, Slots | None]:
    """The rows whose weight was rounded, even to no quantum, without their weights."""
    off = batch.optional(ROUNDED)
    columns = {k: c for k, c in batch.columns.items() if k not in (QUANTA, ROUNDED)}
    return Batch(batch.n, columns).where(np.zeros(batch.n, np.bool_) if off is None else off, slots)


def weighed_rows(batch: Batch, slots: Slots | None) -> tuple[Batch, Slots | None]:
    """The rows that have a quantum."""
    quanta = batch.quanta
    columns = {k: c for k, c in batch.columns.items() if k != ROUNDED}
    batch = Batch(batch.n, columns, batch.total)
    if quanta is None or np.count_nonzero(quanta) == batch.n:
        return batch, slots
    return batch.where(quanta != 0, slots)


def add_surplus(surplus: NDArray[np.int64], slots: Slots | None, units: Units) -> None:
    """Add to each state by how much the units of its rows, at least 1 each, exceed the rows."""
    if slots is None:
        surplus[0] += np.add.reduce(units) - len(units)
    else:
        np.add.at(surplus, slots, units - 1)


def _sum(units: Units) -> int:
    if not len(units) or units.item(units.argmax()) <= _MOST_TOTAL_COUNT // len(units):
        return int(np.add.reduce(units))
    # The parts of 32 bits cannot overflow where the whole could.
    return (int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum())
