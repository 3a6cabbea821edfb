"""The views of a result: which of its attributes they are, their texts, and their directions.

One rule holds for all results, so that a table, a file or a page needs no list of metrics: a
float or `Bounded` is a view, a whole number is a count, and everything else (curves, tables,
texts) is neither. The same holds for each value of a mapping with integer keys, named by its Python
expression: `top_k_accuracies[3]`. A result with parts has the views of each part, after its text:
`ctr.ratio` in a panel, `['bts'].ratio` of a key, `total.ratio` of all windows.

What a result class declares of a view stands where the view is defined, as a `View`, and has its
name without arguments: `precision` for `precision(micro)`. A result that wraps another one (its
`value`) has the declarations of that one too. Its headline views are every measure of a mapping,
those that the class declares as such, or the first one.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeGuard, cast

import numpy as np

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import flag
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.estimators.request import Argument
from streammetrics.present.view import (
    ENTRIES,
    NONE,
    Direction,
    Range,
    declaration,
    declared_headlines,
    declared_settings,
    declared_views,
)


class Part(NamedTuple):
    """The place of a result within another one. text: what stands before its views, a Python
    expression such as `ctr`, `['bts']` or `total`. name: of a metric, or "". keys: () or the key.
    window: [start_ms, end_ms) or None."""

    text: str
    name: str = ""
    keys: tuple[object, ...] = ()
    window: tuple[int, int] | None = None

    def view_text(self, view: str) -> str:
        """The text of a view of the part, "" for the part itself."""
        return f"{self.text}.{view}" if view[:1] not in ("", "[") else f"{self.text}{view}"


class HasParts(Protocol):
    """A result of several results: one for each metric, key or window."""

    def _parts(self) -> Iterator[tuple[Part, object]]:
        """Each result within this one, and its place."""
        ...


def has_parts(result: object) -> TypeGuard[HasParts]:
    """Whether a result is one of several results.

    >>> from streammetrics import Panel, Ratio
    >>> has_parts(Panel({"ctr": Ratio()}).compute()), has_parts(Ratio().compute())
    (True, False)
    """
    return hasattr(type(result), "_parts")  # ten times as fast as a check of the protocol


def views_of(result: object, *, headlines: bool = False) -> dict[str, float | Bounded]:
    """The values of a result by name, the headline first; `headlines`: only the headline views, and
    no other is computed.

    The entries of a mapping (the measures of ranked lists) come first, by `str` of their keys.
    Then come the properties and then the fields of the class, each in the order of definition:
    derived values before stored ones.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> next(iter(views_of(ctr.compute()).items()))
    ('ratio', 0.5)
    """
    return dict(_views(result, flag(headlines, "views_of(headlines)")))


def _views(result: object, headlines: bool) -> Iterator[tuple[str, float | Bounded]]:
    _require_result(result)  # a metric has `_parts` too
    if has_parts(result):
        for part, inner in result._parts():
            if _is_number(inner):
                yield part.text, inner if isinstance(inner, Bounded) else float(inner)
            else:
                yield from (
                    (part.view_text(name), value) for name, value in _views(inner, headlines)
                )
        return
    kind = cast("Hashable", type(result))
    attributes, most, declared = (
        _attributes(result, other_names(kind)),
        None,
        declared_headlines(kind),
    )
    if headlines and isinstance(result, Mapping):
        attributes = islice(attributes, len(result))
    elif headlines and declared:
        attributes = ((name, getattr(result, name)) for name in declared)
    elif headlines:
        most = 1
    views = (
        (name, value if isinstance(value, Bounded) else float(value))
        for name, value in attributes
        if is_view(value)
    )
    yield from islice(views, most)


def counts_of(result: object) -> dict[str, int]:
    """The counts of a result by name: its denominators.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> counts_of(ctr.compute())["rows"]
    4
    """
    settings = declared_settings(type(result))  # type: ignore[arg-type]
    return {
        name: int(value)
        for name, value in _attributes(result, but=float_names(type(result)) | settings)  # type: ignore[arg-type]
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    }


def headlines_of(result: object) -> tuple[str, ...]:
    """The headline views of a result: every measure of a mapping, else those that its class
    declares, else its first view.

    >>> from streammetrics import HistogramAUC
    >>> headlines_of(HistogramAUC().compute())
    ('auc',)
    """
    return tuple(views_of(result, headlines=True))


def headline_of(result: object) -> str:
    """The first view of a result, or "" if it has none; no other is computed.

    >>> from streammetrics import HistogramAUC
    >>> headline_of(HistogramAUC().compute())
    'auc'
    """
    return next((name for name, _ in _views(result, True)), "")


def texts_of(result: object) -> dict[str, str]:
    """The texts of a result by name: why it is undefined, how exact it is.

    >>> from streammetrics import GroupedAUC
    >>> texts_of(GroupedAUC().compute())["compared_as"]
    'float64'
    """
    attributes = _attributes(result, but=float_names(type(result)))  # type: ignore[arg-type]
    return {name: value for name, value in attributes if isinstance(value, str) and value}


def _is_number(value: object) -> TypeGuard[float | Bounded]:
    """Whether a metric's result is the value itself."""
    return is_view(value) or (isinstance(value, (int, np.integer)) and not isinstance(value, bool))


def is_view(value: object) -> TypeGuard[float | Bounded]:
    """Whether a value of a result is a view.

    >>> is_view(0.5), is_view(5)
    (True, False)
    """
    return isinstance(value, (float, np.floating, Bounded))


def _require_result(result: object) -> None:
    if hasattr(result, "compute"):
        raise InputError(
            expected="the result of a metric",
            got=f"the metric itself ({type(result).__name__})",
            where="the views of a result",
            hint="pass metric.compute()",
        )


def _attributes(result: object, but: frozenset[str] = frozenset()) -> Iterator[tuple[str, object]]:
    _require_result(result)
    if isinstance(result, Mapping):
        for key in result:
            yield str(key), result[key]
    for name in attribute_names(type(result)):  # type: ignore[arg-type]
        if name in but:
            continue
        value = getattr(result, name)
        if isinstance(value, Mapping):
            yield from ((f"{name}[{key}]", v) for key, v in value.items() if isinstance(key, int))
        else:
            yield name, value


@cache
def attribute_names(kind: Hashable) -> tuple[str, ...]:
    """Public properties, then public fields, each in order of definition, bases first."""
    bases = [base for base in reversed(cast("type", kind).__mro__) if base is not object]
    fields = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    properties = [
        name
        for base in bases
        for name, value in vars(base).items()
        if isinstance(value, property)
        or (isinstance(value, cached_property) and name not in fields)  # else a late field
    ]
    public = [name for name in (*properties, *fields) if not name.startswith("_")]
    return tuple(dict.fromkeys(public))


# The annotations of views and weights in the results of this library.
_NO_COUNTS: Final = frozenset(
    (
        *("float", "Bounded", "float | Bounded", "Bounded | None", "Value", "V_co", "Area"),
        *("Fraction", "Fraction | None"),
    )
)


@cache
def float_names(kind: Hashable) -> frozenset[str]:
    """Properties annotated as float, `Bounded` or `Fraction`, and the fields that are made when
    they are first read: no counts, and some are slow."""
    names = set()
    fields = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else []
    for base in reversed(cast("type", kind).__mro__):
        for name, value in vars(base).items():
            getter = value.fget if isinstance(value, property) else getattr(value, "func", None)
            annotation = getattr(getter, "__annotations__", {}).get("return")
            names.discard(name)
            if annotation in _NO_COUNTS or (isinstance(value, cached_property) and name in fields):
                names.add(name)
    return frozenset(names)


_NO_VIEWS: Final = frozenset(("NDArray", "tuple", "int", "bool", "str", "Fraction", "None"))


@cache
def other_names(kind: Hashable) -> frozenset[str]:
    """The properties, and the fields that are made when they are first read, that by their
    annotation are no views, such as arrays and fractions: some are slow."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    of_fields, names = {field.name: field.type for field in fields}, set()
    for base in reversed(cast("type", kind).__mro__):
        for name, value in vars(base).items():
            names.discard(name)
            if not isinstance(value, (property, cached_property)):
                continue
            getter = value.fget if isinstance(value, property) else value.func
            returned = getattr(getter, "__annotations__", {}).get("return", "")
            text = re.sub(r"NDArray\[[^]]*\]", "NDArray", str(of_fields.get(name, returned)))
            if text and {*re.findall(r"\w+", text)} <= _NO_VIEWS:
                names.add(name)
    return frozenset(names)


# Views by their text: `auc`, `f_beta(2)`, `recall(micro)`, `rates(1).precision`.

# A name, its arguments or key in brackets, and the rest after a dot. Arguments may have quotes.
_FORM: Final = re.compile(r"([a-z]\w*)(?:\(([^()]*)\)|\[([^\[\]]*)\])?(?:\.(.+))?", re.IGNORECASE)
_MOST: Final = 1000  # characters of a view


class ViewText(NamedTuple):
    """The text of a view, parsed. text: without spaces. arguments: in brackets, None without
    brackets. rest: after the first dot, a view of the value before it, or "".

    >>> parsed_view("rates(1).f_beta(0.5)")
    ViewText(text='rates(1).f_beta(0.5)', name='rates', arguments=(1,), rest='f_beta(0.5)')
    """

    text: str
    name: str = ""
    arguments: tuple[Argument, ...] | None = None
    rest: str = ""

    def figure(self, result: object) -> object:
        """The value before the dot in a result, or None; InputError if its arguments do not fit.

        If a method of the result refuses an argument, its InputError is raised.
        """
        attribute = getattr(result, self.name, None) if self.name[:1].isalpha() else None
        if not self.name and isinstance(result, Mapping):
            return result.get(self.text)
        if self.arguments is None:
            return attribute
        try:
            if isinstance(attribute, (tuple, Mapping)) and len(self.arguments) == 1:
                return attribute[self.arguments[0]]  # type: ignore[index]
            return attribute(*self.arguments) if callable(attribute) else None
        except (TypeError, LookupError):
            raise self.unknown(result) from None

    def value(self, result: object) -> float | Bounded:
        """The value of the view in a result; InputError if it is no number."""
        figure = self.figure(result)
        if self.rest and figure is not None:
            return value_of(figure, self.rest)
        if isinstance(figure, Bounded):
            return figure
        if isinstance(figure, (float, np.floating)):
            return float(figure)
        raise self.unknown(result)

    def unknown(self, result: object) -> InputError:
        """The error for a view that a result does not have."""
        declared = declared_views(type(result)).items()
        with_arguments = ((name, v) for name, v in declared if v.signature.parameters)
        calls = {name: view.signature.call for name, view in with_arguments if view.better}
        names = [*views_of(result)]
        suggestion = f"name one of these{', or ' * bool(calls)}{_first([*calls.values()])}"
        return InputError(
            expected=f"a view of {type(result).__name__}: {_first(names) or 'none'}",
            got=shown(self.text),
            where="view",
            hint=f"pass {calls[self.name]}"
            if self.name in calls
            else nearest(self.text, names, suggestion),
        )


@lru_cache(maxsize=1024)
def parsed_view(view: str) -> ViewText:
    """The text of a view, parsed; the name is "" if it has another form."""
    text = "".join(view.split())
    form = _FORM.fullmatch(text)
    if form is None:
        return ViewText(text)
    name, called, looked_up, nested_view = form.groups()
    inside = called if called is not None else looked_up
    arguments = None if inside is None else tuple(map(_argument, inside.split(","))) * bool(inside)
    return ViewText(text, name, arguments, nested_view or "")


_NAMED: Final = 40  # views in a message


def _first(names: Sequence[str]) -> str:
    suffix = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + suffix


def part_of_view(result: object, view: object) -> tuple[object, str] | None:
    """The part that a view is of, and the rest of its text; None if it is no view of a part."""
    if not has_parts(result):
        return None
    text = (headline_of(result) if view is None else str(view)).strip()
    place, most = None, -1
    for part, part_result in result._parts():
        n = len(part.text)
        if n > most and text.startswith(part.text) and text[n : n + 1] in ("", ".", "["):
            place, most = (part_result, text[n:].removeprefix(".")), n
    return place


def view_of(result: object, view: object = None) -> ViewText:
    """A view of a result, parsed; None: its first view.

    A key of a mapping, such as the measures of lists, is a name whatever its form.
    """
    source = headline_of(result) if view is None else view
    view_text = parsed_view(str(source)[:_MOST])
    is_entry = isinstance(result, Mapping) and view_text.text in result
    return ViewText(view_text.text) if is_entry else view_text


def value_of(result: object, view: object = None) -> float | Bounded:
    """The value of a view of a result, also with arguments; None: of its first view.

    InputError for anything that is not a view.

    >>> from streammetrics.results.rates import Rates
    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> value_of(rates, "f_beta(2)"), value_of(rates)
    (0.8333333333333334, 0.6666666666666666)
    """
    inside = part_of_view(result, view)
    if inside is not None:
        part, nested_view = inside
        if not nested_view and _is_number(part):
            return part if isinstance(part, Bounded) else float(part)
        return value_of(part, nested_view or None)
    return view_of(result, view).value(result)


def _argument(text: str) -> Argument:
    bare = text.strip("\"'")
    for kind in (int, float):
        try:
            return kind(bare) if bare == text else bare
        except ValueError:
            continue
    return bare


def direction_of(result: object, view: object = None) -> Direction:
    """The direction of a view of a result as its class declares it; None: of its first view.

    `NONE` without a declaration. InputError for anything that is not a view.

    >>> from streammetrics.results.rates import Rates
    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> print(direction_of(rates, "f_beta(2)"), direction_of(rates, "fpr"))
    higher lower
    """
    return declared_of(result, view) or NONE


def declared_of(result: object, view: object = None) -> Direction | None:
    """The declared direction, which may be `NONE`; None if there is no declaration."""
    inside = part_of_view(result, view)
    if inside is not None:
        return declared_of(inside[0], inside[1] or None)
    view_text = view_of(result, view)
    if view_text.rest:
        part = view_text.figure(result)
        return None if part is None else declared_of(part, view_text.rest)
    entry = isinstance(result, Mapping) and view_text.text in result
    direction = declaration(result, ENTRIES if entry else view_text.name).better
    if direction is not None:
        return direction
    value = getattr(result, "value", None)
    return None if value is None or entry else declared_of(value, view_text.text)


_ALL: Final[Range] = (-math.inf, math.inf)


def range_of(result: object, view: object = None) -> Range:
    """The least and the greatest value that a view of a result can have, as its class declares
    them; None: of its first view. Infinite without a declaration.

    >>> from streammetrics.results.rates import Rates
    >>> rates = Rates(tp=1, fp=1, fn=0, tn=1)
    >>> range_of(rates, "precision"), range_of(rates, "mcc")
    ((0.0, 1.0), (-1.0, 1.0))
    """
    inside = part_of_view(result, view)
    if inside is not None:
        return range_of(inside[0], inside[1] or None)
    view_text = view_of(result, view)
    if view_text.rest and (part := view_text.figure(result)) is not None:
        return range_of(part, view_text.rest)
    entry = isinstance(result, Mapping) and view_text.text in result
    limits = declaration(result, ENTRIES if entry else view_text.name).limits
    if not view_text.rest and (stated := limits(result, view_text.text if entry else "")):
        return stated
    value = getattr(result, "value", None)
    return _ALL if value is None or isinstance(value, float) else range_of(value, view_text.text)
