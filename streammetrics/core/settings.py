"""Settings: their types, their canonical JSON, and the first difference between two of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, wraps
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.codec import NOTHING_LACKING, Lacking, damaged, named_hash
from streammetrics.core.entry_points import METRICS, load_all
from streammetrics.core.errors import SettingsError, StateError, argument_hint, shown, similar

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

P = ParamSpec("P")
V = TypeVar("V")
Setting: TypeAlias = (
    "bool | int | float | str | Fraction | tuple[Setting, ...] | Mapping[str, Setting]"
    " | Content | Declared | None"
)
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# No exponent: Python would spend hours on raising ten to the power of "1e999999999".
_FRACTION: Final = re.compile(r"-?[0-9]{1,100}(/[1-9][0-9]{0,99})?")
_LIBRARY: Final = __name__.partition(".")[0]
MAX_NESTING: Final = 16  # metrics within metrics; three are in use
CLASSES: Final[dict[str, type[Declared]]] = {}  # every metric by its schema name
_HEADS: Final[dict[bytes, StateHead]] = {}  # recently read ones
_MOST_HEADS: Final = 1024  # a metric of an experiment each, and few bytes
_MOST_HEAD_BYTES: Final = 1 << 21


class _FrozenMap(Mapping[str, Setting]):
    """An immutable mapping."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Mapping[str, Setting]) -> None:
        self._inner = {name: frozen(value) for name, value in inner.items()}

    def __getitem__(self, name: str) -> Setting:
        return self._inner[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)

    def __repr__(self) -> str:
        return repr(self._inner)


def frozen(value: Setting) -> Setting:
    """The same setting, in a form that the caller cannot change."""
    match value:
        case tuple():
            return tuple(map(frozen, value))
        case Mapping():
            return _FrozenMap(value)
        case _:
            return value


def setting_text(value: object) -> str:
    """A setting as text, in which a metric has all settings that its bytes hold. `repr` leaves out
    those that are the default, so its text may change when a default is added.

    >>> from streammetrics import HistogramAUC
    >>> setting_text({"auc": HistogramAUC()})[:38]
    "{'auc': HistogramAUC(grid='relative', "
    """
    written = getattr(value, "_written", None)
    if written is not None:
        inner = (f"{name}={setting_text(setting)}" for name, setting in written().items())
        return f"{type(value).__name__}({', '.join(inner)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{k!r}: {setting_text(v)}' for k, v in value.items())}}}"
    return repr(value)


def setting_texts(metric: Declared) -> dict[str, str]:
    """The settings that the bytes of a metric hold, as texts by name; numbers and texts as `str`.

    >>> from streammetrics import Regression
    >>> setting_texts(Regression())
    {'round_weights': 'False', 'weight_unit': '1'}
    """
    written = sorted(metric._written().items())
    return {n: str(v) if isinstance(v, str | Fraction) else setting_text(v) for n, v in written}


class StateHead(NamedTuple):
    """What a head describes: an empty accumulator, of the current schema, and the parts that the
    bytes behind the head lack, if it names former schemas."""

    empty: Declared
    lacking: Lacking


def encode_head(
    schema: str,
    settings: Mapping[str, Setting],
    former: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Canonical JSON of a schema name and its settings.

    former: by the current schemas of metrics, those to write in their place.
    """
    return _dumps([former.get(schema, schema), _inner(schema, settings, 0, former)])


def decode_head(head: bytes) -> StateHead:
    """What a head describes, whether its schemas are current or former ones."""
    decoded = _HEADS.get(head)
    if decoded is None:
        decoded = _read_head(head)
        room = _MOST_HEAD_BYTES - len(head)
        if len(_HEADS) >= _MOST_HEADS or sum(map(len, [*_HEADS])) > room:
            _HEADS.clear()
        _HEADS[head] = decoded
    return decoded


def register(metric: type[Declared]) -> None:
    """Register a class by its schema; SettingsError if another one has it."""
    if metric.__module__.partition(".")[0] != _LIBRARY:
        load_library()  # it may have this schema
    for schema in (metric.schema, *metric._schemas):
        owner = CLASSES.get(schema, metric)
        if (owner.__module__, owner.__qualname__) != (metric.__module__, metric.__qualname__):
            raise SettingsError(
                expected="a schema that no other metric has",
                got=f"{schema!r}, that of {owner.__module__}.{owner.__qualname__}",
                where=f"{metric.__name__}(schema)",
                hint="choose another schema, such as 'my-package.my-metric/1'",
            )
    CLASSES.update(dict.fromkeys(metric._schemas, metric))
    CLASSES[metric.schema] = metric  # a notebook cell that runs again redefines its class
    _HEADS.clear()


@cache
def load_library() -> None:
    """Import every public name of this library, which otherwise happens when it is first used."""
    library = import_module(_LIBRARY)
    for name in library.__all__:
        getattr(library, name)


def _load_named(schema: str) -> None:
    """Import the public name that a schema is called after, if there is one: `HistogramAUC` for
    histogram-auc/3. The other names cost a short process 100 ms."""
    library, class_name = import_module(_LIBRARY), schema.partition("/")[0].replace("-", "")
    for name in library.__all__:
        if name.lower() == class_name:
            getattr(library, name)


def _read_head(head: bytes) -> StateHead:
    try:
        value = json.loads(head)
    except (ValueError, RecursionError):
        raise damaged("settings that are not JSON") from None
    former: dict[str, str] = {}
    try:
        empty = _accumulator(value, former)
    except RecursionError:
        raise damaged("settings nested too deep") from None
    # A head is of one version of the code, so that all states of a metric have one layout.
    if encode_head(empty.schema, empty._stored_settings(), former) != head:
        raise damaged("settings that are not in their canonical form")
    return StateHead(empty, _lacking(former.values()) if former else NOTHING_LACKING)


def _lacking(schemas: Iterable[str]) -> Lacking:
    """The parts that bytes of these former schemas lack, by the class of their metric."""
    lacking: dict[type, Collection[str]] = {}
    waiting = [*schemas]
    for schema in waiting:
        # A metric that no head names is known where the metric that has it is.
        lacks = CLASSES[schema]._schemas[schema] if schema in CLASSES else ()
        waiting += [name for name in lacks if "/" in name]
        if schema in CLASSES:
            lacking[CLASSES[schema]] = [name for name in lacks if "/" not in name]
    return lacking


def _accumulator(value: Json, former: dict[str, str]) -> Declared:
    """The empty accumulator of a schema and its settings; adds the former schemas to `former`."""
    match value:
        case [str(schema), dict(settings)]:
            pass
        case _:
            raise damaged("settings that are not a schema and its values")
    if schema not in CLASSES:
        _load_named(schema)
    if schema not in CLASSES:
        load_library()
    failed = "" if schema in CLASSES else load_all(METRICS)[1]
    versions = [key for key in sorted(CLASSES) if key.partition("/")[0] == schema.partition("/")[0]]
    if schema not in CLASSES and versions:
        raise StateError(
            expected=f"a known schema ({', '.join(versions)})",
            got=shown(schema),
            where="state bytes",
            hint="use the release that wrote it, or count its rows again",
        )
    if schema not in CLASSES:
        raise StateError(
            expected=f"a known schema, such as {similar(schema[:100], CLASSES) or 'ratio/1'}",
            got=shown(schema),
            where="state bytes",
            hint="import the module that defines it, install the package that registers it as an"
            f" entry point, or use the release that wrote it{failed}",
        )
    metric = CLASSES[schema]
    accepted = {metric._stored_as.get(name, name) for name in metric._settings} - metric._unwritten
    if not accepted - metric._later <= set(settings) <= accepted:
        raise damaged(f"the settings {shown(sorted(settings))} for {metric.__name__}")
    try:
        stored = {name: _from_json(value, former) for name, value in settings.items()}
        restored = metric(**metric._restored_settings(stored))
        lacks = metric._schemas.get(schema, "")
        if not isinstance(lacks, str):
            former[restored.schema] = schema
        elif restored.schema != schema:
            raise StateError(
                expected=f"the schema {restored.schema!r} for these settings",
                got=repr(schema),
                where="state bytes",
                hint=lacks or "restore the original bytes, or count again",
            )
        return restored
    except StateError:
        raise
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        # A metric checks the values of its settings; hostile bytes may hold any type.
        raise damaged(f"settings that {metric.__name__} rejects ({shown(str(error))})") from None


def _inner(
    schema: str, settings: Mapping[str, Setting], depth: int, former: Mapping[str, str]
) -> Json:
    return {
        name: _to_json(value, f"{schema}: {name}", depth, former)
        for name, value in settings.items()
    }


def _to_json(
    value: Setting,
    where: str = "settings",
    depth: int = 0,
    former: Mapping[str, str] = MappingProxyType({}),
) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if value == value:
            return {"$float": str(float(value))} if math.isinf(value) else value
        case Fraction() if _FRACTION.fullmatch(str(value)):
            return {"$fraction": str(value)}
        case Content():
            return {"$content": [value.digest, [*value.shape]]}
        case tuple():
            return [_to_json(v, where, depth, former) for v in value]
        case Mapping() if all(isinstance(name, str) for name in value):
            return {"$map": {name: _to_json(v, where, depth, former) for name, v in value.items()}}
    if hasattr(value, "schema") and not isinstance(value, type) and depth < MAX_NESTING:
        metric: Declared = value  # type: ignore[assignment]
        schema, settings = metric.schema, metric._stored_settings()
        inner = _inner(schema, settings, depth + 1, former)
        return {"$metric": [former.get(schema, schema), inner]}
    raise SettingsError(
        expected="a bool, integer, float, string, None, Fraction, tuple, mapping from strings,"
        f" or metric (nested at most {MAX_NESTING} deep)",
        got=f"{shown(value)} ({type(value).__name__})",
        where=where,
        hint="convert it",
    )


def _from_json(value: Json, former: dict[str, str]) -> Setting:
    match value:
        case list():
            return tuple(_from_json(v, former) for v in value)
        case {"$float": ("inf" | "-inf") as text, **rest} if not rest:
            return float(text)
        case {"$fraction": str(text), **rest} if not rest and _FRACTION.fullmatch(text):
            return Fraction(text)
        case {"$content": [str(digest), list(shape)], **rest} if not rest:
            return Content.read(shape, digest)
        case {"$map": dict(inner), **rest} if not rest:
            return {name: _from_json(v, former) for name, v in inner.items()}
        case {"$metric": list(inner), **rest} if not rest:
            return _accumulator(inner, former)
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise damaged(f"the setting {shown(value)}")


# -- names in stored settings: `names` is name -> its name there, where that is another ------------
def rename_to_stored(names: Mapping[str, str], settings: Mapping[str, V]) -> dict[str, V]:
    """The values by their names in stored settings."""
    return {names.get(name, name): value for name, value in settings.items()}


def rename_from_stored(names: Mapping[str, str], stored: Mapping[str, V]) -> dict[str, V]:
    """The values by their own names; the inverse of `rename_to_stored`."""
    own_names = {stored_name: name for name, stored_name in names.items()}
    return {own_names.get(name, name): value for name, value in stored.items()}


def named_settings(
    names: tuple[str, ...], required: tuple[str, ...] = ()
) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """Decorate an `__init__`: an error lists the settings where Python would raise a TypeError."""

    def decorate(init: Callable[P, None]) -> Callable[P, None]:
        @wraps(init)
        def checked(*values: P.args, **keywords: P.kwargs) -> None:
            n = len(values) - 1  # without self
            twice = [f"{name} twice" for name in names[:n] if name in keywords]
            got = [shown(name) for name in keywords if name not in names] + twice
            if n > len(names):
                got.append(f"{n} values")
            absent = [
                setting
                for setting in required
                if setting not in keywords and setting not in names[:n]
            ]
            if absent and not got:
                raise SettingsError(
                    expected=f"a value for {' and '.join(absent)}, which has no default",
                    got="none",
                    where=type(values[0]).__name__,
                    hint=f"add {', '.join(f'{setting}=...' for setting in absent)}",
                )
            if got:
                unknown = [name for name in keywords if name not in names]
                hint = "pass each setting by one of these names" + ", once" * bool(twice)
                raise SettingsError(
                    expected=f"settings among {', '.join(names)}" if names else "no settings",
                    got=got[0],
                    where=type(values[0]).__name__,
                    hint=argument_hint(unknown, names, hint) if unknown else hint,
                )
            init(*values, **keywords)

        return checked

    return decorate


# -- differences ----------------------------------------------------------------------------------
def difference(accumulator: Declared, other: Declared) -> tuple[str, str, str]:
    """The first setting in which two accumulators differ: its name, and both values."""
    if type(accumulator) is not type(other):
        return "type", type(accumulator).__name__, type(other).__name__
    for name, value in accumulator.settings().items():
        if name in accumulator._unwritten:
            continue
        texts = _difference(name, value, other.settings()[name])
        if texts:
            return texts
    return "settings", "equal", "equal"


def _difference(name: str, a: Setting, b: Setting) -> tuple[str, str, str] | None:
    if _dumps(_to_json(a)) == _dumps(_to_json(b)):
        return None
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                return f"{name}[{key!r}]", shown(a.get(key, "absent")), shown(b.get(key, "absent"))
            texts = _difference(f"{name}[{key!r}]", a[key], b[key])
            if texts:
                return texts
    if hasattr(a, "schema") and type(a) is type(b):
        where, x, y = difference(a, b)  # type: ignore[arg-type]
        return f"{name}.{where}", x, y
    return name, shown(a), shown(b)


def _dumps(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


# -- a setting that is too large for the head of a state, which holds its hash --------------------
# Equality, merging and bytes use the hash. The numbers are kept beside it within a process, and in
# a pickle; a state from bytes can be merged, computed and written, but cannot count rows.
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_AXES: Final = 4


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Content:
    """An array of float64, known by its shape and the SHA-256 of its canonical bytes.

    data: those bytes (row by row, little-endian, no NaN, -0.0 as 0.0), or None where only the
    hash is known.

    >>> import numpy as np
    >>> table = Content.of(np.array([[0.0, 1.0], [1.0, -0.0]]))
    >>> table == Content(table.shape, table.digest), Content(table.shape, table.digest).known
    (True, False)
    """

    shape: tuple[int, ...]
    digest: str
    data: bytes | None = field(default=None, repr=False)

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Content:
        """The content of an array without NaN; the array may change afterwards."""
        data = np.ascontiguousarray(values + 0.0, "<f8").tobytes()
        digest = _digest(values.shape, data)
        return _TABLES.setdefault(digest, cls(values.shape, digest, data))

    @classmethod
    def read(cls, shape: Sequence[object], digest: str, data: bytes | None = None) -> Content:
        """The content that another process wrote; StateError unless `of` may have made it."""
        sizes = tuple(n for n in shape if type(n) is int and 0 <= n < 1 << 48)
        if len(sizes) < len(shape) or len(sizes) > _MAX_AXES or not _DIGEST.fullmatch(digest):
            raise damaged("a setting that is not a hash and a shape")
        if data is not None and (
            len(data) != 8 * math.prod(sizes) or _digest(sizes, data) != digest
        ):
            raise damaged("a setting whose content does not match its hash")
        return cls(sizes, digest, data)

    def __reduce__(self) -> tuple[object, ...]:
        return Content.read, (self.shape, self.digest, self.data)

    @property
    def known(self) -> bool:
        """Whether the numbers are here, and not only their hash."""
        return self.data is not None

    def values(self, where: str) -> NDArray[np.float64]:
        """The numbers, read-only; StateError where only their hash is known.

        where: the setting, such as "IntraListSimilarity.vectors".
        """
        if self.data is None:
            metric, _, name = where.rpartition(".")
            raise StateError(
                expected=f"the numbers of {name}, which counting needs",
                got=f"only their hash, {self.digest}, as in all state bytes",
                where=where,
                hint=f"merge this state into an empty one whose {metric} has the numbers",
            )
        return np.frombuffer(self.data, "<f8").astype(np.float64, copy=False).reshape(self.shape)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        return (self.shape, self.digest) == (other.shape, other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)


_TABLES: Final[WeakValueDictionary[str, Content]] = WeakValueDictionary()  # pickled once each


def _digest(shape: tuple[int, ...], data: bytes) -> str:
    head = f"streammetrics float64 {list(shape)}\n".encode()
    return named_hash(head + data)


def nested_settings(value: Setting) -> Iterator[Setting]:
    """A setting, and all settings within it: in tuples, in mappings and of metrics."""
    yield value
    inner: Iterable[Setting] = ()
    if isinstance(value, tuple):
        inner = value
    elif isinstance(value, Mapping):
        inner = value.values()
    elif hasattr(value, "schema"):
        metric: Declared = value  # type: ignore[assignment]
        inner = metric.settings().values()
    for setting in inner:
        yield from nested_settings(setting)
