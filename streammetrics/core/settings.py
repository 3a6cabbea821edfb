"""Settings: what they may be, their one JSON form, and the first difference of two of them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from streammetrics.core.bytes.codec import damaged
from streammetrics.core.content import Content
from streammetrics.core.errors import SettingsError, StateError, shown
from streammetrics.core.installed import METRICS, load_all

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Setting: TypeAlias = (
    "bool | int | float | str | Fraction | tuple[Setting, ...] | Mapping[str, Setting]"
    " | Content | Declared | None"
)
Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# No exponent: Python would spend hours on raising ten to the power of "1e999999999".
_FRACTION: Final = re.compile(r"-?[0-9]{1,100}(/[1-9][0-9]{0,99})?")
MAX_NESTING: Final = 16  # metrics within metrics; three are in use
_HEADS: Final[dict[bytes, Declared]] = {}  # empty accumulators of the heads that came last
_MOST_HEADS: Final = 64


class _FrozenMap(Mapping[str, Setting]):
    """A mapping that nobody changes any more."""

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
    """The same setting, in a form that its giver cannot change."""
    match value:
        case tuple():
            return tuple(map(frozen, value))
        case Mapping():
            return _FrozenMap(value)
        case _:
            return value


def encode_head(schema: str, settings: Mapping[str, Setting]) -> bytes:
    """Canonical JSON of a schema name and its settings."""
    return _dumps([schema, _inner(schema, settings, 0)])


def decode_head(
    head: bytes,
    classes: Mapping[str, type[Declared]],
    contents: Mapping[str, bytes] | None = None,
) -> Declared:
    """The empty accumulator that a head describes.

    contents: by digest, the bytes of settings that a head knows by their hash alone.
    """
    if contents:
        return _read_head(head, _Known(classes, contents))
    made = _HEADS.get(head)
    if made is None:
        made = _read_head(head, _Known(classes, {}))
        if len(_HEADS) >= _MOST_HEADS:
            _HEADS.clear()
        _HEADS[head] = made
    return made


def forget_heads() -> None:
    """Forget what was made of heads, because a class has changed."""
    _HEADS.clear()


class _Known(NamedTuple):
    """Schemas, and the bytes of contents by their digests."""

    classes: Mapping[str, type[Declared]]
    contents: Mapping[str, bytes]


def _read_head(head: bytes, known: _Known) -> Declared:
    try:
        value = json.loads(head)
    except (ValueError, RecursionError):
        raise damaged("settings that are not JSON") from None
    try:
        made = _accumulator(value, known)
    except RecursionError:
        raise damaged("settings nested too deep") from None
    if made._head() != head:
        raise damaged("settings that are not in their canonical form")
    return made


def _accumulator(value: Json, known: _Known) -> Declared:
    match value:
        case [str(schema), dict(settings)]:
            pass
        case _:
            raise damaged("settings that are not a schema and its values")
    failed = "" if schema in known.classes else load_all(METRICS)[1]
    if schema not in known.classes:
        raise StateError(
            expected=f"a known schema ({', '.join(sorted(known.classes))})",
            got=shown(schema),
            where="state bytes",
            hint="import the module that defines it, install the package that names it among its"
            f" entry points, or use the release that wrote it{failed}",
        )
    made = known.classes[schema]
    names = {made._formerly.get(name, name): name for name in made._settings}
    if set(settings) != set(names):
        raise damaged(f"the settings {shown(sorted(settings))} for {made.__name__}")
    try:
        return made(**{names[name]: _from_json(v, known) for name, v in settings.items()})
    except StateError:
        raise
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError) as error:
        # A metric checks the values of its settings; hostile bytes may hold any type.
        raise damaged(f"settings that {made.__name__} refuses ({shown(str(error))})") from None


def _inner(schema: str, settings: Mapping[str, Setting], depth: int) -> Json:
    return {name: _to_json(value, f"{schema}: {name}", depth) for name, value in settings.items()}


def _to_json(value: Setting, where: str = "settings", depth: int = 0) -> Json:
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
            return [_to_json(v, where, depth) for v in value]
        case Mapping() if all(isinstance(name, str) for name in value):
            return {"$map": {name: _to_json(v, where, depth) for name, v in value.items()}}
    if hasattr(value, "schema") and not isinstance(value, type) and depth < MAX_NESTING:
        metric: Declared = value  # type: ignore[assignment]
        return {
            "$metric": [metric.schema, _inner(metric.schema, metric._stored_settings(), depth + 1)]
        }
    raise SettingsError(
        expected="a bool, integer, float, string, None, Fraction, tuple, mapping from strings,"
        f" or metric (at most {MAX_NESTING} within each other)",
        got=f"{shown(value)} ({type(value).__name__})",
        where=where,
        hint="convert it",
    )


def _from_json(value: Json, known: _Known) -> Setting:
    match value:
        case list():
            return tuple(_from_json(v, known) for v in value)
        case {"$float": ("inf" | "-inf") as text, **rest} if not rest:
            return float(text)
        case {"$fraction": str(text), **rest} if not rest and _FRACTION.fullmatch(text):
            return Fraction(text)
        case {"$content": [str(digest), list(shape)], **rest} if not rest:
            return Content.read(shape, digest, known.contents.get(digest))
        case {"$map": dict(inner), **rest} if not rest:
            return {name: _from_json(v, known) for name, v in inner.items()}
        case {"$metric": list(inner), **rest} if not rest:
            return _accumulator(inner, known)
        case None | bool() | int() | float() | str():
            return value
        case _:
            raise damaged(f"the setting {shown(value)}")


def difference(mine: Declared, theirs: Declared) -> tuple[str, str, str]:
    """The first setting in which two accumulators differ: its name, and both values."""
    if type(mine) is not type(theirs):
        return "type", type(mine).__name__, type(theirs).__name__
    for name, value in mine.settings().items():
        found = _difference(name, value, theirs.settings()[name])
        if found:
            return found
    return "settings", "equal", "equal"


def _difference(name: str, a: Setting, b: Setting) -> tuple[str, str, str] | None:
    if _dumps(_to_json(a)) == _dumps(_to_json(b)):
        return None
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                return f"{name}[{key!r}]", shown(a.get(key, "absent")), shown(b.get(key, "absent"))
            found = _difference(f"{name}[{key!r}]", a[key], b[key])
            if found:
                return found
    if hasattr(a, "schema") and type(a) is type(b):
        where, x, y = difference(a, b)  # type: ignore[arg-type]
        return f"{name}.{where}", x, y
    return name, shown(a), shown(b)


def _dumps(value: Json) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
