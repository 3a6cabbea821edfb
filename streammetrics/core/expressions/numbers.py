"""Numbers of the rows of an expression, and the operations on them that round correctly.

A number is a whole one of 64 bits, which stays exact, or a float. The result of + - * of two whole
numbers is a whole number too, and it has none if 64 bits do not hold it; every other result is the
exact one rounded once to the nearest float, as IEEE 754 says, after a whole number that meets a
float became the nearest float. Comparisons compare the numbers themselves, never rounded ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import LARGE

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Flags: TypeAlias = "NDArray[np.bool_]"
_INT64: Final = 1 << 63
_SAFE: Final = 2.0**62  # products that seem smaller fit 64 bits


class Numbers(NamedTuple):
    """Numbers [n], or one that stands for all rows [1].

    ints: whole numbers, or None if none is one; floats: all numbers as the nearest floats, or None
    if all are whole. whole: which are whole, if some are.
    """

    floats: Floats | None
    ints: Integers | None
    whole: Flags | None = None

    def __len__(self) -> int:
        return len(self.ints if self.floats is None else self.floats)  # type: ignore[arg-type]

    def rounded(self) -> Floats:
        """All numbers as the nearest floats."""
        if self.floats is not None:
            return self.floats
        assert self.ints is not None
        return self.ints.astype(np.float64)

    def take(self, positions: NDArray[np.intp]) -> Numbers:
        """The numbers at these positions."""
        return Numbers(
            None if self.floats is None else self.floats[positions],
            None if self.ints is None else self.ints[positions],
            None if self.whole is None else self.whole[positions],
        )

    def array(self) -> NDArray[np.generic]:
        """int64 or float64 [n]; objects if some are whole. Every nan has the same bits."""
        if self.floats is None:
            assert self.ints is not None
            return self.ints
        nan = np.isnan(self.floats)
        floats = np.where(nan, np.nan, self.floats) if nan.any() else self.floats
        if self.ints is None or self.whole is None:
            return floats
        objects = floats.astype(object)
        objects[self.whole] = self.ints[self.whole].tolist()
        return objects


def float_numbers(floats: Floats) -> Numbers:
    """These floats."""
    return Numbers(floats, None)


def whole_numbers(ints: Integers) -> Numbers:
    """These whole numbers."""
    return Numbers(None, ints)


def mixed(floats: Floats, ints: Integers, whole: Flags) -> Numbers:
    """Whole numbers in these rows, and floats in the others."""
    if whole.all():
        return whole_numbers(ints)
    if not whole.any():
        return float_numbers(floats)
    zeros = np.where(whole, ints, 0)
    return Numbers(np.where(whole, zeros.astype(np.float64), floats), zeros, whole)


def combined(sign: str, a: Numbers, b: Numbers) -> tuple[Numbers, Flags | None]:
    """The results of an operation [n], and which of them 64 bits do not hold; None: none."""
    with np.errstate(all="ignore"):
        is_whole = _both_whole(a, b)
        if sign == "/":
            return float_numbers(_quotients(a, b, is_whole)), None
        floats: Floats | None = None
        if not isinstance(is_whole, bool) or not is_whole:
            floats = _FLOATS[sign](a.rounded(), b.rounded())
        if isinstance(is_whole, bool) and not is_whole:
            assert floats is not None
            return float_numbers(floats), None
        assert a.ints is not None and b.ints is not None
        ints, beyond = _INTEGERS[sign](a.ints, b.ints)
    lost: Flags | None = None
    if beyond.any():
        lost = beyond & is_whole
        ints = np.where(lost, 0, ints)
        lost = lost if lost.any() else None
    if floats is None or isinstance(is_whole, bool):
        return whole_numbers(ints), lost
    return mixed(floats, ints, np.broadcast_to(is_whole, ints.shape)), lost


def negated(a: Numbers) -> tuple[Numbers, Flags | None]:
    """The numbers with the other sign, and which of them 64 bits do not hold."""
    return _changed(a, np.negative, np.ones(1, np.bool_))


def absolute(a: Numbers) -> tuple[Numbers, Flags | None]:
    """The absolute values, and which of them 64 bits do not hold."""
    negative = np.ones(1, np.bool_) if a.ints is None else a.ints < 0
    return _changed(a, np.abs, negative)


def _changed(
    a: Numbers, change: Callable[..., NDArray[np.generic]], rows: Flags
) -> tuple[Numbers, Flags | None]:
    """The numbers changed by a function of one number, in `rows` if they are whole."""
    floats = None if a.floats is None else np.asarray(change(a.floats), np.float64)
    if a.ints is None:
        assert floats is not None
        return float_numbers(floats), None
    beyond = (a.ints == -_INT64) & rows
    ints = np.asarray(change(np.where(beyond, 0, a.ints)), np.int64)
    return Numbers(floats, ints, a.whole), beyond if beyond.any() else None


def least(a: Numbers, b: Numbers) -> Numbers:
    """The lesser of each two: nan if either is nan, and -0.0 is less than 0.0."""
    return _chosen(a, b, np.minimum, np.logical_or)


def greatest(a: Numbers, b: Numbers) -> Numbers:
    """The greater of each two: nan if either is nan, and 0.0 is greater than -0.0."""
    return _chosen(a, b, np.maximum, np.logical_and)


def _chosen(
    a: Numbers,
    b: Numbers,
    choose: Callable[..., NDArray[np.generic]],
    negative: Callable[[Flags, Flags], Flags],
) -> Numbers:
    """negative: whether of two zeros the chosen one is -0.0, by whether each is."""
    is_whole = _both_whole(a, b)
    if isinstance(is_whole, bool) and is_whole:
        return whole_numbers(np.asarray(choose(a.ints, b.ints), np.int64))
    x, y = a.rounded(), b.rounded()
    with np.errstate(all="ignore"):
        floats = np.asarray(choose(x, y), np.float64)
        zeros = (x == 0) & (y == 0)  # of which numpy may choose either
    if zeros.any():
        signs = np.where(negative(np.signbit(x), np.signbit(y)), -0.0, 0.0)
        floats = np.where(zeros, signs, floats)
    if isinstance(is_whole, bool):
        return float_numbers(floats)
    ints = np.asarray(choose(a.ints, b.ints), np.int64)
    return mixed(floats, ints, np.broadcast_to(is_whole, ints.shape))


def compared(sign: str, a: Numbers, b: Numbers) -> Flags:
    """Whether a comparison holds [n]; of a nan only != does."""
    function = _COMPARISONS[sign]
    is_whole = _both_whole(a, b)
    if isinstance(is_whole, bool) and is_whole:
        return np.asarray(function(a.ints, b.ints), np.bool_)
    x, y = a.rounded(), b.rounded()
    flags = np.asarray(function(x, y), np.bool_)
    if _is_exact(a) and _is_exact(b):
        return flags
    # A float is the nearest to two whole numbers, or equal to one that it is not: only where the
    # floats are equal may the numbers differ.
    rows = np.flatnonzero(np.broadcast_to((x == y) & (np.abs(x) >= LARGE), flags.shape))
    if len(rows):
        flags = flags.copy()
        flags[rows] = [function(_exact(a, row), _exact(b, row)) for row in rows.tolist()]
    return flags


def _is_exact(a: Numbers) -> bool:
    """Whether each number is the float that it is rounded to."""
    if a.ints is None or not len(a.ints):
        return True
    return a.ints.item(a.ints.argmax()) <= LARGE and a.ints.item(a.ints.argmin()) >= -LARGE


def _exact(a: Numbers, row: int) -> int | float:
    """The number of one row, which Python compares exactly."""
    index = 0 if len(a) == 1 else row
    if a.ints is not None and (a.whole is None or a.whole[index]):
        return int(a.ints[index])
    assert a.floats is not None
    return float(a.floats[index])


def _both_whole(a: Numbers, b: Numbers) -> bool | Flags:
    """Whether both numbers are whole, in each row if it is not the same in all."""
    if a.ints is None or b.ints is None:
        return False
    if a.whole is None and b.whole is None:
        return True
    if a.whole is None or b.whole is None:
        whole = b.whole if a.whole is None else a.whole
        assert whole is not None
        return whole
    return a.whole & b.whole


def _quotients(a: Numbers, b: Numbers, is_whole: bool | Flags) -> Floats:
    """The exact quotients, each rounded once."""
    x, y = a.rounded(), b.rounded()
    quotients = np.asarray(x / y, np.float64)
    if (isinstance(is_whole, bool) and not is_whole) or (_is_exact(a) and _is_exact(b)):
        return quotients
    # A whole number beyond 2**53 may be rounded: its quotient would be rounded twice.
    large = ((np.abs(x) >= LARGE) | (np.abs(y) >= LARGE)) & is_whole & (y != 0)
    for row in np.flatnonzero(np.broadcast_to(large, quotients.shape)).tolist():
        quotients[row] = _exact(a, row) / _exact(b, row)
    return quotients


def _largest(a: Integers) -> int:
    """The largest absolute value."""
    return max(a.item(a.argmax()), -a.item(a.argmin())) if len(a) else 0


_NONE: Final = np.zeros(1, np.bool_)


def _sums(a: Integers, b: Integers) -> tuple[Integers, Flags]:
    sums = a + b
    if _largest(a) + _largest(b) < _INT64:
        return sums, _NONE
    return sums, ((a ^ sums) & (b ^ sums)) < 0


def _differences(a: Integers, b: Integers) -> tuple[Integers, Flags]:
    differences = a - b
    if _largest(a) + _largest(b) < _INT64:
        return differences, _NONE
    return differences, ((a ^ b) & (a ^ differences)) < 0


def _products(a: Integers, b: Integers) -> tuple[Integers, Flags]:
    products = a * b
    if _largest(a) * _largest(b) < _INT64:
        return products, _NONE
    beyond = np.abs(a.astype(np.float64) * b.astype(np.float64)) >= _SAFE
    if beyond.any():
        shape = beyond.shape
        left, right = np.broadcast_to(a, shape), np.broadcast_to(b, shape)
        for row in np.flatnonzero(beyond).tolist():
            beyond[row] = not -_INT64 <= int(left[row]) * int(right[row]) < _INT64
    return products, beyond


_FLOATS: Final[dict[str, Callable[[Floats, Floats], Floats]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
}
_INTEGERS: Final[dict[str, Callable[[Integers, Integers], tuple[Integers, Flags]]]] = {
    "+": _sums,
    "-": _differences,
    "*": _products,
}
_COMPARISONS: Final[dict[str, Callable[..., object]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
