"""Which way a view is better: higher, lower, nearer to a target, or neither by itself.

A result class declares it beside its views, in `directions = directed(...)`: by the name of a view
before its arguments, `precision` for `precision(micro)`. A subclass adds to what its bases declare,
and a result of another one (its `value`) has what that one declares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from streammetrics.present.views import view_of

Better = Literal["higher", "lower", "target", "none"]


@dataclass(frozen=True, slots=True)
class Direction:
    """better: "higher", "lower", "target" (the nearer the better) or "none"; target: its value.

    >>> print(Direction("lower"), Direction("target", 1.0))
    lower target 1
    """

    better: Better = "none"
    target: float | None = None

    def __str__(self) -> str:
        return self.better if self.target is None else f"target {self.target:g}"


Directions: TypeAlias = Mapping[str, Direction]

HIGHER: Final = Direction("higher")
LOWER: Final = Direction("lower")
NONE: Final = Direction()
ENTRIES: Final = "[]"  # what a mapping declares of all its entries


def directed(*, higher: str = "", lower: str = "", near_1: str = "", none: str = "") -> Directions:
    """What a class declares: names of views, with spaces between, by their direction.

    >>> found = directed(higher="precision recall", near_1="ratio")
    >>> [f"{name}: {direction}" for name, direction in found.items()]
    ['precision: higher', 'recall: higher', 'ratio: target 1']
    """
    said = (higher, HIGHER), (lower, LOWER), (near_1, Direction("target", 1.0)), (none, NONE)
    return {name: direction for names, direction in said for name in names.split()}


def direction_of(result: object, view: object = None) -> Direction:
    """The direction of a view of a result as its class declares it; None: of its first view.

    `NONE` for what declares nothing. InputError for what is no view.

    >>> from streammetrics.results.rates import Rates
    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> print(direction_of(rates, "f_beta(2)"), direction_of(rates, "fpr"))
    higher lower
    """
    return declared_of(result, view) or NONE


def declared_of(result: object, view: object = None) -> Direction | None:
    """The same; None where nobody declared it, be it as `NONE`."""
    asked = view_of(result, view)
    if asked.rest:
        part = asked.figure(result)
        return None if part is None else declared_of(part, asked.rest)
    entry = isinstance(result, Mapping) and asked.text in result
    name = ENTRIES if entry else asked.name
    for base in type(result).__mro__:
        declared = cast("Directions", vars(base).get("directions", {}))
        if name in declared:
            return declared[name]
    value = getattr(result, "value", None)
    return None if value is None or entry else declared_of(value, asked.text)
