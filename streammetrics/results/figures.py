"""The figures of a result: which of its attributes are views, and which are counts.

The rule is one for all results, so that a table, a file or a page needs no list of metrics:
a float or `Bounded` is a view, a whole number is a count, and everything else (curves, tables,
texts) is neither. Of a mapping by whole numbers each value is one, named as Python would read it:
`top_k_accuracies[3]`. A new metric says nothing more than its result's attributes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from functools import cache, cached_property
from itertools import islice
from typing import TypeGuard

import numpy as np

from streammetrics.results.bounded import Bounded


def views_of(result: object, *, headlines: bool = False) -> dict[str, float | Bounded]:
    """The values of a result by name, the one that it is known by first; `headlines`: those alone
    that it is known by, and no other is computed.

    Of a mapping (the measures of ranked lists) its entries come first, under `str` of their key.
    Then the properties and then the fields of the class, each in the order of its definition:
    what a result concludes goes before what it holds.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> next(iter(views_of(ctr.compute()).items()))
    ('ratio', 0.5)
    """
    attributes, most = _attributes(result), None
    if headlines and isinstance(result, Mapping):
        attributes = islice(attributes, len(result))
    elif headlines:
        most = 1
    found = (
        (name, value if isinstance(value, Bounded) else float(value))
        for name, value in attributes
        if _is_view(value)
    )
    return dict(islice(found, most))


def counts_of(result: object) -> dict[str, int]:
    """What a result counted, by name: its denominators.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> counts_of(ctr.compute())["rows"]
    4
    """
    return {
        name: int(value)
        for name, value in _attributes(result, but=_floats(type(result)))  # type: ignore[arg-type]
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    }


def headlines_of(result: object) -> tuple[str, ...]:
    """The views that a result is known by: every measure of a mapping, else its first view.

    >>> from streammetrics import HistogramAUC
    >>> headlines_of(HistogramAUC().compute())
    ('auc',)
    """
    return tuple(views_of(result, headlines=True))


def headline_of(result: object) -> str:
    """The first view that a result is known by, or "" where it has none; no other is computed.

    >>> from streammetrics import HistogramAUC
    >>> headline_of(HistogramAUC().compute())
    'auc'
    """
    views = (name for name, value in _attributes(result) if _is_view(value))
    return next(views, "")


def texts_of(result: object) -> dict[str, str]:
    """What a result says in words, by name: why it is undefined, how exact it is.

    >>> from streammetrics import GroupedAUC
    >>> texts_of(GroupedAUC().compute())["compared_as"]
    'float32'
    """
    return {name: value for name, value in _attributes(result) if isinstance(value, str) and value}


def _is_view(value: object) -> TypeGuard[float | Bounded]:
    return isinstance(value, (float, np.floating, Bounded))


def _attributes(result: object, but: frozenset[str] = frozenset()) -> Iterator[tuple[str, object]]:
    if isinstance(result, Mapping):
        for key in result:
            yield str(key), result[key]
    for name in _names(type(result)):  # type: ignore[arg-type]
        if name in but:
            continue
        value = getattr(result, name)
        if isinstance(value, Mapping):
            yield from ((f"{name}[{key}]", v) for key, v in value.items() if isinstance(key, int))
        else:
            yield name, value


@cache
def _names(kind: Hashable) -> tuple[str, ...]:
    """Public properties, then public fields, each in order of definition, bases first."""
    assert isinstance(kind, type)
    bases = [base for base in reversed(kind.__mro__) if base is not object]
    properties = [
        name
        for base in bases
        for name, value in vars(base).items()
        if isinstance(value, (property, cached_property))
    ]
    fields = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    public = [name for name in (*properties, *fields) if not name.startswith("_")]
    return tuple(dict.fromkeys(public))


@cache
def _floats(kind: Hashable) -> frozenset[str]:
    """Properties that say that they give a float or a `Bounded`: no counts, and some take long."""
    assert isinstance(kind, type)
    found = set()
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            getter = value.fget if isinstance(value, property) else getattr(value, "func", None)
            said = getattr(getter, "__annotations__", {}).get("return")
            found.discard(name)
            if said in ("float", "Bounded", "float | Bounded", "Value"):
                found.add(name)
    return frozenset(found)
