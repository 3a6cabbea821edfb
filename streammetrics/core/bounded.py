"""An approximate value, with certain bounds of the exact one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Number
from typing import TYPE_CHECKING, NoReturn


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
        return (self.value, self.low, self.high) == (other.value, other.low, other.high)

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
    what = "another Bounded" if isinstance(other, Bounded) else f"a {type(other).__name__}"
    raise TypeError(f"a Bounded is an interval, so {sign} {what} is undefined: {_ADVICE}")
