"""View: what a result class declares of one of its values, said once, where the value is defined.

The declaration stands over the function of a property, of a cached property or of a method with
arguments, and in the metadata of a field:

    @dataclass(frozen=True, repr=False)
    class Share(Result):
        rows: int
        hits: int
        hours: float = field(metadata=View(better=LOWER, range=POSITIVE))

        @property
        @View(better=HIGHER, range=SHARE, undefined="no rows", headline=1)
        def share(self) -> float:
            \"\"\"Hits / rows.\"\"\"
            return ratio(self.hits, self.rows)

The attribute stays what it is for Python, for type checkers and in its costs. Tables, charts,
intervals, comparisons and the page read the declaration. A float without one is a view too, of
which nothing is known. A declaration over `__getitem__` is that of all entries of a mapping.

A subclass has the declarations of its bases, and what it says of the same name itself comes first:
it may define the attribute anew without a word.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from types import FunctionType
from typing import Final, Literal, NamedTuple, Never, TypeAlias, TypeVar, cast

from streammetrics.core.errors import InputError, shown
from streammetrics.estimators.estimator import FUNCTION, Estimator

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


HIGHER: Final = Direction("higher")
LOWER: Final = Direction("lower")
NONE: Final = Direction()

Range: TypeAlias = tuple[float, float]  # the least and the greatest value that a view can have

SHARE: Final[Range] = (0.0, 1.0)
POSITIVE: Final[Range] = (0.0, math.inf)
SIGNED: Final[Range] = (-1.0, 1.0)

ENTRIES: Final = "[]"  # the name of the view that is each entry of a mapping
_KEY: Final = "__view__"  # of a function and in the metadata of a field
# The metadata of a field that is a whole number but no count, such as the k of lists.
SETTING: Final[Mapping[str, object]] = {"__setting__": True}

Function = TypeVar("Function", bound=Callable[..., object])


class Signature(NamedTuple):
    """How a view is written, and what it is: its name, the names of its arguments, () without any,
    and its definition, which is the first paragraph of the docstring where it stands."""

    name: str = ""
    parameters: tuple[str, ...] = ()
    definition: str = ""

    @property
    def call(self) -> str:
        """The name with the arguments: `f_beta(b)`."""
        return f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name


_NOWHERE: Final = Signature()


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Mapping[str, "View"]):
    """The declaration of a view.

    better: the direction in which it is better; None: nothing is said. range: the least and the
    greatest value that it can have, where charts and intervals end, or a function that gives these,
    of the result and, for the entries of a mapping, of the name of one; None: not known. undefined:
    why it can be undefined for some rows, in words, or a function of the result that gives these;
    `{unit}` stands for what is independent, such as "list". headline: its place among those that
    tables and the page show, 0 for none; without any the first view is the headline.

    effect: it is itself the effect of a treatment on the control, both in the same rows, so that 0
    is no effect: an experiment compares it with 0. grows_unlike: it grows with the rows, and this
    other view does not: the effect of a treatment on the rows of another state, and a value at all
    looks, is that of the other one. rate_beside: it is a mean, and this view is the rate of the
    values above 0, a guardrail by default. origin: what a lift of it is relative to, such as 1/2 of
    an area.

    estimator: what kind of quantity it is: its interval, and what a verdict on it rests on; without
    one it has an interval over users alone. doubts: of a result, reasons to doubt the view although
    it is defined. reason: of a result, why it is undefined for these rows, or ""; by default the
    result's own `reason`. signature: follows from where it stands.

    It is also a mapping, with itself as its one value, as the metadata of a field has to be one.
    """

    better: Direction | None = None
    range: Range | Callable[..., Range | None] | None = None
    undefined: str | Callable[..., str] = ""
    headline: int = 0
    effect: bool = False
    grows_unlike: str = ""
    rate_beside: str = ""
    origin: float = 0.0
    estimator: Estimator[Never] = FUNCTION
    doubts: Callable[..., tuple[str, ...]] | None = None
    reason: Callable[..., str] | None = None
    signature: Signature = _NOWHERE

    def __call__(self, function: Function) -> Function:
        """Declare it of a function, which is returned as it is. InputError for a property, or
        anything else: `@property` stands above.

        >>> @View(better=HIGHER)
        ... def share_up_to(result: object, x: float) -> float:
        ...     \"\"\"The share of rows up to x.\"\"\"
        ...     return x
        >>> share_up_to.__view__.signature.definition, share_up_to.__view__.signature.call
        ('The share of rows up to x.', 'share_up_to(x)')
        """
        if not isinstance(function, FunctionType):
            raise InputError(
                expected="a function",
                got=shown(function),
                where="@View(...)",
                hint="write @property, @cached_property or the like above it",
            )
        code = function.__code__
        summary = (inspect.getdoc(function) or "").partition("\n\n")[0]
        name = ENTRIES if code.co_name == "__getitem__" else code.co_name
        parameters = code.co_varnames[1 : code.co_argcount]
        signature = Signature(name, parameters, " ".join(summary.split()))
        function.__dict__[_KEY] = replace(self, signature=signature)
        return function

    def limits(self, result: object, entry: str = "") -> Range | None:
        """The least and the greatest value that it can have in a result, None if not known; entry:
        the name of one, of a declaration of all entries of a mapping."""
        if callable(self.range):
            return self.range(result, entry) if entry else self.range(result)
        return self.range

    def merged_onto(self, base: View) -> View:
        """What this one says, and what `base` says beyond it.

        >>> base = View(better=LOWER, undefined="no rows")
        >>> merged = View(undefined="no groups").merged_onto(base)
        >>> str(merged.better), merged.undefined
        ('lower', 'no groups')
        """
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        overrides = {
            name: value for name, value in values.items() if value != getattr(_NOTHING, name)
        }
        return replace(base, **overrides)

    def __getitem__(self, key: str) -> View:
        if key != _KEY:
            raise KeyError(key)
        return self

    def __iter__(self) -> Iterator[str]:
        yield _KEY

    def __len__(self) -> int:
        return 1


_NOTHING: Final = View()


def declared_views(kind: type) -> Mapping[str, View]:
    """The views that a class of results and its bases declare, by name: attributes with a function
    first, then fields, each in the order of definition, bases first.

    >>> from streammetrics.results.rates import Rates
    >>> declared_views(Rates)["f_beta"].signature.call, declared_views(Rates)["mcc"].range
    ('f_beta(b)', (-1.0, 1.0))
    """
    return _declared(kind)


@cache
def _declared(kind: Hashable) -> Mapping[str, View]:
    views: dict[str, View] = {}
    bases = [*reversed(cast("type", kind).__mro__)]
    stated = [view for base in bases for view in _function_views(base)]
    for view in (*stated, *(view for base in bases for view in _field_views(base))):
        name = view.signature.name
        views[name] = view.merged_onto(views.get(name, _NOTHING))
    return views


def _function_views(base: type) -> Iterator[View]:
    for value in vars(base).values():
        function = value.fget if isinstance(value, property) else value
        function = function.func if isinstance(function, cached_property) else function
        if isinstance(function, FunctionType) and _KEY in function.__dict__:
            yield function.__dict__[_KEY]


def _field_views(base: type) -> Iterator[View]:
    fields: Mapping[str, dataclasses.Field[object]] = vars(base).get("__dataclass_fields__", {})
    for name, field in fields.items():
        if _KEY in field.metadata:
            yield replace(field.metadata[_KEY], signature=Signature(name))


def declaration(result: object, name: str) -> View:
    """What the class of a result declares of a view, by its name without arguments; a `View` that
    says nothing for others.

    >>> from streammetrics.results.rates import Rates
    >>> declaration(Rates(1, 1, 0, 1), "recall").undefined
    'no positives'
    """
    return _declared(type(result)).get(name, _NOTHING)  # type: ignore[arg-type] # of a class


@cache
def declared_headlines(kind: Hashable) -> tuple[str, ...]:
    """The headline views that a class declares, in their order.

    >>> from streammetrics.results.rates import Rates
    >>> declared_headlines(Rates)
    ('accuracy', 'precision', 'recall')
    """
    places = {name: view.headline for name, view in _declared(kind).items() if view.headline}
    return tuple(sorted(places, key=places.__getitem__))


@cache
def declared_settings(kind: Hashable) -> frozenset[str]:
    """The whole numbers of a class that are no counts."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return frozenset(field.name for field in fields if field.metadata == SETTING)
