"""Numbers that a metric multiplies, as inputs and as settings, and the probabilities of actions.

They are 0 or within 2**±200, so that `ExactSum.add_products` is exact for products of up to four.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.checks import finite, numbers
from streammetrics.core.conversion import as_float
from streammetrics.core.errors import InputError, SettingsError, bad_rows, shown
from streammetrics.core.inputs import Input, Reader
from streammetrics.core.intakes import Intake, range_intake

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Floats = NDArray[np.float64]

_LEAST: Final = 2.0**-200
_MOST: Final = 2.0**200
_PLUG_IN: Final = (
    "pass the probability that the policy gave to the action of this row when it chose; no later "
    "estimate can replace it, such as the action's share of a log"
)


class Factor(Input):
    """Finite numbers that are multiplied, as `factors` returns them.

    limit: a setting, as `check_limit` returns it; unless it is None, numbers outside [0, limit] are
    refused. beside: another input; one is not given without the other.
    """

    meaning = "[n], finite"

    def __init__(
        self, *, optional: bool = False, limit: str | None = None, beside: str | None = None
    ) -> None:
        super().__init__(optional=optional)
        self.limit, self.beside = limit, beside

    def reader(self, metric: Declared, name: str) -> Reader:
        limit = getattr(metric, self.limit) if self.limit else None

        def read(values: ArrayLike) -> Floats:
            array = numbers(values, name)
            low, high = _ends(array)
            if not -math.inf < low <= high < math.inf:
                finite(array, name)
            if limit is not None and not 0 <= low <= high <= limit:
                floats = array.astype(np.float64, copy=False)  # float32 would round the limit
                bad = np.flatnonzero((floats < 0) | (floats > limit))
                hint = f"fix the {len(bad)} row(s), or leave {self.limit} out"
                raise bad_rows(array, bad, name, f"{name} in [0, {limit:g}]", hint)
            return _factors(array, name, low, high)

        return read

    def intake(self, metric: Declared) -> Intake:
        limit = getattr(metric, self.limit) if self.limit else None
        return range_intake(-_MOST, _MOST) if limit is None else range_intake(0.0, limit)


class Propensity(Input):
    """Probabilities of actions, as float64. positive: those of actions that were taken."""

    def __init__(self, *, positive: bool = False) -> None:
        super().__init__()
        self.least = _LEAST if positive else 0.0
        self.meaning = "[n] in (0, 1]" if positive else "[n] in [0, 1]"

    def reader(self, metric: Declared, name: str) -> Reader:
        return lambda values: self._read(values, name)

    def intake(self, metric: Declared) -> Intake:
        return range_intake(self.least, 1.0)

    def _read(self, values: object, name: str) -> Floats:
        """InputError says why nothing can replace a missing probability."""
        expected = f"a probability {self.meaning.removeprefix('[n] ')}"
        try:
            array = numbers(cast("ArrayLike", values), name).astype(np.float64, copy=False)
        except InputError as error:
            if values is not None and not len(error.rows):  # not a column
                raise
            raise InputError(
                expected=f"{expected} in each row",
                got=error.got,
                where=error.where,
                hint=_PLUG_IN,
                rows=error.rows,
            ) from None
        low, high = _ends(array)
        if not (self.least <= low and high <= 1):  # or NaN
            bad = np.flatnonzero(~((array >= self.least) & (array <= 1)))
            if 0 < array[bad[0]] < self.least:
                expected += ", at least 2**-200"
            raise bad_rows(array, bad, name, expected, _PLUG_IN)
        return array


def factors(values: NDArray[np.floating], name: str) -> Floats:
    """Numbers as float64, those below 2**-200 in size as 0; InputError above 2**200."""
    return _factors(values, name, *_ends(values))


def _factors(values: NDArray[np.floating], name: str, low: float, high: float) -> Floats:
    """As `factors`, of values whose ends are known."""
    floats: Floats = values.astype(np.float64, copy=False)
    if max(-low, high) > _MOST:
        bad, hint = np.flatnonzero(np.abs(floats) > _MOST), "use a larger unit"
        raise bad_rows(floats, bad, name, "numbers of at most 2**200 in size", hint)
    if low >= _LEAST:
        return floats
    small = np.abs(floats) < _LEAST
    return np.where(small, 0.0, floats) if small.any() else floats  # not -0.0


def _ends(values: NDArray[np.floating]) -> tuple[float, float]:
    """The least and the greatest value; nan if one is, and 1 if there is none."""
    if not len(values):
        return 1.0, 1.0
    return values.item(values.argmin()), values.item(values.argmax())


def check_factor(value: object, where: str, hint: str) -> float:
    """A setting as a positive number that may be multiplied."""
    number = as_float(value)
    if number is None or not _LEAST <= number <= _MOST:
        expected = "a positive number, from 2**-200 to 2**200"
        raise SettingsError(expected=expected, got=shown(value), where=where, hint=hint)
    return number


def check_limit(value: object, where: str) -> float | None:
    """A setting as a limit of factors, or None for no limit."""
    return None if value is None else check_factor(value, where, "leave it out, or pass 1")
