"""Thousands of results at once: instances from columns, without the fields that few readers need.

A result of one key must cost little more than its instance where it is one of many: what takes time
and is seldom read, such as a sum as a Fraction or the buckets of a curve, is a cached property of a
base of the dataclass. Its field is left out, and is made from values that the result holds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import repeat
from typing import Final, TypeVar

T = TypeVar("T")
_blank: Final = object.__new__
_put: Final = object.__setattr__


def side_by_side(
    kind: type[T], n: int, *first: Iterable[object], **columns: Iterable[object]
) -> list[T]:
    """`n` instances of a frozen dataclass, from the columns of its fields, by position or by name.

    The same as a call for each, in a third of the time. Fields without a column are left out. The
    garbage collector visits each instance again and again, and the lists, dicts and dataclasses in
    its fields; it soon leaves out numbers, arrays, and tuples of these.

    >>> from streammetrics.results.rates import Rates
    >>> made = side_by_side(Rates, 2, [1, 3], fp=[1, 1])
    >>> [one.tp + one.fp for one in made]
    [2, 4]
    """
    if first:
        names: tuple[str, ...] = kind.__match_args__  # type: ignore[attr-defined] # of a dataclass
        columns = {**dict(zip(names, first, strict=False)), **columns}
    if n == 1:
        instance = _blank(kind)
        for name, column in columns.items():
            _put(instance, name, next(iter(column)))
        return [instance]
    instances = [*map(_blank, repeat(kind, n))]
    for name, column in columns.items():
        deque(map(_put, instances, repeat(name), column), maxlen=0)
    return instances
