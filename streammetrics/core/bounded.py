"""An approximate value, with certain bounds of the exact one; and equality of results."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np


class ByValue:
    """A dataclass that is equal to another one where every compared field is equal: undefined
    equals undefined (nan), and arrays are compared by their values.

    The equality that `dataclass` generates depends on Python's version for nan, and fails for
    arrays, so a subclass keeps this one, with and without `eq=False`.
    """

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "__eq__" not in vars(cls):  # `dataclass` replaces no method of the class body
            for name in ("__eq__", "__hash__"):
                setattr(cls, name, getattr(cls, name))

    def _compared(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in _compared(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByValue):
            return NotImplemented
        if self is other:
            return True
        # A subclass that is no dataclass of its own has the fields of its base.
        fields, other_fields = (getattr(x, "__dataclass_fields__", None) for x in (self, other))
        if fields is None or fields is not other_fields:
            return False
        # Backwards, since the first fields of a curve are large arrays.
        return equal(self._compared()[::-1], other._compared()[::-1])

    def __hash__(self) -> int:
        return hash(_hashable(self._compared()))


def _compared(instance: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(instance) if field.compare]


def equal(value: object, other: object) -> bool:
    """Whether two values are equal, with nan equal to nan, also within arrays, tuples, mappings and
    dataclasses.

    >>> equal((1, float("nan")), (1, float("nan"))), equal(np.array([0.5]), np.array([0.25]))
    (True, False)
    """
    if value is other:
        return True
    if isinstance(value, float) and isinstance(other, float):
        return value == other or (value != value and other != other)
    if isinstance(value, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(value, other, equal_nan=value.dtype.kind == other.dtype.kind == "f")
    if isinstance(value, (tuple, list)) and isinstance(other, (tuple, list)):
        same = type(value) is type(other) and len(value) == len(other)
        return same and all(map(equal, value, other))
    if isinstance(value, ByValue) or isinstance(other, ByValue):
        return bool(value == other)
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return value.keys() == other.keys() and all(
            equal(value[name], other[name]) for name in value
        )
    if dataclasses.is_dataclass(value) and type(value) is type(other):
        return all(equal(getattr(value, name), getattr(other, name)) for name in _compared(value))
    return bool(value == other)


def _hashable(value: object) -> object:
    """The same for every nan; Python's own hash of nan is that of the object."""
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return "nan" if isinstance(value, float) and value != value else value


@dataclass(frozen=True, slots=True)
class Bounded:
    """low <= exact <= high for every input, including the rounding of the arithmetic.

    `format` and `round` apply to the value. Comparing it with a number is a TypeError: the number
    may lie between the bounds, so compare `float(x)`, `x.low` or `x.high`.

    >>> area = Bounded(0.5, low=0.25, high=0.75)
    >>> float(area), area.width
    (0.5, 0.5)
    >>> print(area)
    0.5 (exact within [0.25, 0.75])
    >>> f"{area:.3f} in [{area.low:.3f}, {area.high:.3f}]"
    '0.500 in [0.250, 0.750]'
    """

    value: float
    low: float
    high: float

    def __float__(self) -> float:
        return float(self.value)

    @property
    def width(self) -> float:
        """The uncertainty: high - low."""
        return self.high - self.low

    def __str__(self) -> str:
        if self.low == self.value == self.high:
            return f"{self.value} (exact)"
        return f"{self.value} (exact within [{self.low}, {self.high}])"

    def __format__(self, spec: str) -> str:
        return format(self.value, spec) if spec else str(self)

    def __round__(self, ndigits: int | None = None) -> float:
        # Rounded bounds are no longer certain, so the result is a float.
        return round(self.value, ndigits)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Number):
            _refuse("==", other)
        if not isinstance(other, Bounded):
            return NotImplemented
        return equal((self.value, self.low, self.high), (other.value, other.low, other.high))

    def __hash__(self) -> int:
        return hash(_hashable((self.value, self.low, self.high)))

    if not TYPE_CHECKING:  # a type checker reports these as errors already

        def __lt__(self, other: object) -> bool:
            _refuse("<", other)

        def __le__(self, other: object) -> bool:
            _refuse("<=", other)

        def __gt__(self, other: object) -> bool:
            _refuse(">", other)

        def __ge__(self, other: object) -> bool:
            _refuse(">=", other)

    def __array_ufunc__(
        self, ufunc: object, method: str, *inputs: object, **options: object
    ) -> NoReturn:
        name = getattr(ufunc, "__name__", "this")
        raise TypeError(f"numpy's {name} takes numbers, not a Bounded: {_ADVICE}")


_ADVICE = "pass float(x) for the value, or x.low or x.high for a certain bound"


def _refuse(sign: str, other: object) -> NoReturn:
    operand = "another Bounded" if isinstance(other, Bounded) else f"a {type(other).__name__}"
    raise TypeError(f"a Bounded is an interval, so {sign} {operand} is undefined: {_ADVICE}")
