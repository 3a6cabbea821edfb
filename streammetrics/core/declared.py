"""How a class body becomes a metric. `core/README.md` explains it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from inspect import Parameter, Signature, cleandoc, signature
from typing import ClassVar, Final, cast, dataclass_transform

from streammetrics.core.conversion import plain
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.forms import Forms
from streammetrics.core.inputs import Inputs
from streammetrics.core.layouts import Schemas, layout_of
from streammetrics.core.parts.part import Column, LaterPart, Part
from streammetrics.core.settings import (
    Setting,
    difference,
    encode_head,
    frozen,
    named_settings,
    register,
    rename_from_stored,
    rename_to_stored,
)
from streammetrics.core.slips import MISSING, loaded_instead, wrong_call
from streammetrics.core.weights import check_weight_settings


@dataclass_transform(eq_default=False, frozen_default=True)
class Declared(Forms):
    """In a subclass an annotated name is a setting, a `Part` is state, and `inputs` are its inputs.

    `class M(Accumulator, schema="m/1")` makes M final, gives it an `__init__` of its settings,
    fixes them for life, and registers it under its schema name.
    """

    schema: ClassVar[str] = ""
    _stored_as: ClassVar[Mapping[str, str]] = {}  # setting → its name in bytes, if it is another
    _later: ClassVar[frozenset[str]] = frozenset()  # settings that bytes lack while they are None
    _unwritten: ClassVar[frozenset[str]] = frozenset()  # settings of what `update` accepts alone
    # Former schemas: the parts that bytes lack (`layouts.py`). If settings choose it: advice.
    _schemas: ClassVar[Schemas] = {}
    _lacked: ClassVar[tuple[frozenset[str], ...]] = ()  # by former layouts of an abstract base
    _parts: ClassVar[dict[str, Part[Column]]] = {}
    _later_parts: ClassVar[dict[str, LaterPart[Column]]] = {}  # those that some of `_schemas` lack
    _settings: ClassVar[tuple[str, ...]] = ()
    _required: ClassVar[tuple[str, ...]] = ()  # those without a default
    _arguments: ClassVar[Mapping[str, bool]] = {}
    _inputs: ClassVar[Inputs] = Inputs()
    _own_check: ClassVar[bool] = True  # whether `check` is not the one made from the inputs

    def __init_subclass__(cls, *, schema: str = "") -> None:
        super().__init_subclass__()  # also of `Generic`
        declared = vars(cls).get("inputs")
        if isinstance(declared, Inputs):
            cls._inputs = declared
            _install(cls, declared)
        cls._own_check = not hasattr(getattr(cls, "check", None), "of_inputs")
        if any(getattr(base, "schema", "") for base in cls.__mro__[1:]):
            raise TypeError(f"{cls.__name__}: a metric is final; share kernels and results instead")
        if not schema:
            return
        dataclasses.dataclass(eq=False, repr=False)(cls)
        cls.schema, cls._schemas, cls._parts, cls._later_parts = layout_of(cls, schema)
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        cls._settings = tuple(f.name for f in fields)
        cls._required = tuple(f.name for f in fields if f.default is dataclasses.MISSING)
        decorator = named_settings(cls._settings, cls._required)
        cls.__init__ = decorator(cls.__init__)  # type: ignore[method-assign]
        update = next(vars(k)["update"] for k in cls.__mro__ if "update" in vars(k))
        takes = list(signature(update).parameters.values())[1:]
        cls._arguments = {p.name: p.default is p.empty for p in takes}
        register(cls)

    def __post_init__(self) -> None:
        for name in self._settings:  # a setting has one form, however given
            self.__dict__[name] = plain(self.__dict__[name])
        self.check_settings()
        if self._inputs.weights:
            check_weight_settings(self)
        self._head()  # settings that bytes cannot hold are refused here, not when first written
        self.__dict__.update({name: frozen(value) for name, value in self.settings().items()})
        self._begin(1)

    def check_settings(self) -> None:
        """Raise SettingsError for a setting out of range; `_set` may store its canonical form."""

    def _begin(self, width: int) -> None:
        """Make empty state for `width` slots; from here on settings are fixed."""
        self.__dict__["_width"] = width
        for name, part in self._parts.items():
            self.__dict__[name] = part.empty(self, width)

    def settings(self) -> Mapping[str, Setting]:
        """The settings by name."""
        return {name: self.__dict__[name] for name in self._settings}

    def _stored_settings(self) -> Mapping[str, Setting]:
        """The settings by their names in bytes."""
        return rename_to_stored(self._stored_as, self._written())

    def _written(self) -> Mapping[str, Setting]:
        settings = {n: v for n, v in self.settings().items() if n not in self._unwritten}
        return {n: v for n, v in settings.items() if v is not None or n not in self._later}

    @classmethod
    def _restored_settings(cls, stored: Mapping[str, Setting]) -> dict[str, Setting]:
        """The settings from their stored form, which may be hostile."""
        return rename_from_stored(cls._stored_as, stored)

    def arguments(self) -> Mapping[str, bool]:
        """The arguments of `update`, each with whether it is required."""
        return self._arguments

    def stored_names(self) -> Mapping[str, str]:
        """The arguments of `update` that have another name in stored settings, each with it."""
        return self._inputs.stored_as

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        """The widths that each argument accepts as a table [n, width]; None among them means that
        one plain value for each row is accepted too. Arguments without tables are left out."""
        return self._inputs.widths(self)

    def _roles(self) -> Mapping[str, str]:
        """Arguments that a `Panel` renamed, each with the name of the metric that reads it."""
        return {}

    def _set(self, name: str, value: Setting) -> None:
        self.__dict__[name] = value

    def __setattr__(self, name: str, value: object) -> None:
        if "_width" in self.__dict__:
            role = "a setting" if name in self._settings else "state" if name in self._parts else ""
            why = role and f": it is {role}"
            raise AttributeError(f"{type(self).__name__}.{name} cannot be set{why}")
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted")

    def __repr__(self) -> str:
        """The settings that differ from their defaults, and the rows."""
        values, default = self.settings(), self._default_settings()
        inner = (f"{name}={v!r}" for name, v in values.items() if v != default.get(name, MISSING))
        return f"{type(self).__name__}({', '.join(inner)}){self._rows_text()}"

    def _default_settings(self) -> Mapping[str, object]:
        """The settings that follow from those without a default, which are left out themselves."""
        settings = {name: self.settings()[name] for name in self._required}
        try:
            return {n: v for n, v in type(self)(**settings).settings().items() if n not in settings}
        except SettingsError:  # another setting is needed as well
            return {}

    def _rows_text(self) -> str:
        """The rows that are counted, as `repr` says them, or ""."""
        return ""

    def _head(self) -> bytes:
        """Schema and settings in their canonical form, made once."""
        state = self.__dict__
        if "_head_bytes" not in state:
            state["_head_bytes"] = encode_head(self.schema, self._stored_settings())
        return cast("bytes", state["_head_bytes"])

    def _require_same_settings(self, other: object) -> None:
        if type(self) is not type(other) or not isinstance(other, Declared):
            raise SettingsError(
                expected=f"one or more states of {type(self).__name__}",
                got=f"{shown(other)} ({type(other).__name__})",
                where=f"{type(self).__name__}.merge",
                hint=loaded_instead(other),
            )
        if self._head() == other._head():
            return
        where, value, other_value = difference(self, other)
        raise SettingsError(
            expected=f"{where}={value}",
            got=f"{where}={other_value}",
            where=f"{type(self).__name__}.merge",
            hint=f"make both states with {where}={value}, or both with {where}={other_value}",
        )


_UPDATE: Final = "Count these rows, or raise InputError and change nothing."
_CHECK: Final = "Return the rows that `update` would count, or raise InputError; change nothing."


def _install(metric: type[Declared], inputs: Inputs) -> None:
    """Give a class `update` and `check` with these arguments, unless its body has its own."""
    methods: dict[str, Callable[..., object]] = {}
    namespace: dict[str, object] = {"MISSING": MISSING, "wrong_call": wrong_call}
    exec(_source(inputs), namespace, methods)  # as dataclasses do: as fast as handwritten methods
    methods["check"].__dict__["of_inputs"] = True
    for name, text in (("update", _UPDATE), ("check", _CHECK)):
        if name not in vars(metric):
            method = methods[name]
            method.__dict__["__signature__"] = _signature(inputs)
            method.__module__, method.__doc__ = metric.__module__, inputs.documented(text)
            method.__qualname__ = f"{metric.__qualname__}.{name}"
            setattr(metric, name, method)
    doc = cleandoc(metric.__doc__ or "")  # as Python 3.13 has it from the start
    if "\nRows\n" not in doc:
        rows = "".join(f"    {name}: {column.meaning}.\n" for name, column in inputs)
        metric.__doc__ = doc.replace("\nState\n", f"\nRows\n{rows}State\n", 1)


def _signature(inputs: Inputs) -> Signature:
    """The arguments as users see them, without those that only lead to an error."""
    plain, keyword_only = Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY
    parameters = [Parameter("self", plain)]
    for name, column in inputs:
        kind = keyword_only if column.keyword or parameters[-1].kind == keyword_only else plain
        default = None if column.optional else Parameter.empty
        parameters.append(Parameter(name, kind, default=default))
    return Signature(parameters)


def _source(inputs: Inputs) -> str:
    parameters, names = ["self"], list(inputs.columns)
    for name, column in inputs:
        if column.keyword and "*more" not in parameters:
            parameters.append("*more")
        parameters.append(f"{name}=None" if column.optional else f"{name}=MISSING")
    more_parameters = [] if "*more" in parameters else ["*more"]
    head = ", ".join([*parameters, *more_parameters, "**unknown"])
    arguments = ", ".join(f"{name}={name}" if column.keyword else name for name, column in inputs)
    columns = ", ".join(f"{name!r}: {name}" for name in names)
    weights = ", weights" if inputs.weights else ""
    test = f"if more or unknown or {'weights is not None or ' if inputs.weights else ''}not"
    test += f" self._buffer.append({', '.join(names)}):"  # the fast path; it refuses MISSING
    required = [name for name, column in inputs if not column.optional]
    optional = [name for name, column in inputs if column.optional]
    wrong = " or ".join(["more or unknown", *(f"{name} is MISSING" for name in required)])
    needed = ", ".join(f"{name!r}: {name}" for name in required) + f"}}, {optional}"
    refuse = f"raise wrong_call(type(self).__name__, {{{needed}, unknown, more)\n"
    return (
        f"def update({head}):\n"
        f"    {test if inputs.fast else 'if True:'}\n"
        f"        if {wrong}:\n"
        f"            {refuse}"
        f"        if not ({inputs.waiting}):\n"
        f"            self._update(self.check({arguments}) if self._own_check else "
        f"self._check({{{columns}}}{weights}))\n"
        f"def check({head}):\n"
        f"    if {wrong}:\n"
        f"        {refuse}"
        f"    return self._check({{{columns}}}{weights})\n"
    )
