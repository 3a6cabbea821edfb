"""From names to metrics, so that readers of states, files or configs need no list of imports.

A metric is one of this library, or an entry point (`streammetrics.metrics`) of an installed
package, or the class that a config names with its module, `module:Class`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import import_module
from inspect import isabstract
from os import PathLike
from typing import Final

from streammetrics import classification, combine, distributions, join, policies, ranking
from streammetrics.combine.sealed import Sealed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import instance
from streammetrics.core.entry_points import METRICS, entry_points_of
from streammetrics.core.errors import SettingsError, StreamMetricsError, nearest, shown
from streammetrics.core.settings import Setting, setting_text, setting_texts

__all__ = [
    "load",
    "metric",
    "metric_names",
    "metric_type",
    "metric_types",
    "setting_text",
    "setting_texts",
]

_PACKAGES = (classification, distributions, policies, ranking, combine, join)
_OUTPUTS = (Sealed,)  # classes that are read from bytes as metrics are, but count nothing
_PATH: Final = re.compile(r"(?P<module>[^\W\d]\w*(?:\.[^\W\d]\w*)*):(?P<name>[^\W\d]\w*)")


def metric_types() -> Mapping[str, type[Accumulator]]:
    """Every public accumulator of this library by its name, sorted by name.

    >>> "HistogramAUC" in metric_types()
    True
    """
    kinds = {name: _ours(name) for package in _PACKAGES for name in package.__all__}
    return {name: kind for name, kind in sorted(kinds.items()) if kind is not None}


def _ours(name: str) -> type[Accumulator] | None:
    """The public accumulator of this library with this name; imports no other."""
    for package in _PACKAGES:
        if name in package.__all__:
            kind: object = getattr(package, name)
            return kind if isinstance(kind, type) and issubclass(kind, Accumulator) else None
    return None


def metric_names() -> tuple[str, ...]:
    """The names that `metric_type` accepts: those of this library, then those of installed
    packages, which are not imported.

    >>> metric_names()[0]
    'BinaryConfusion'
    """
    own_types = metric_types()
    return (*own_types, *(name for name in entry_points_of(METRICS) if name not in own_types))


def metric_type(name: str) -> type[Accumulator]:
    """The class of a metric: of this library, of an entry point, or of `module:Class`.

    It may import the named module, so the name must come from the operator, never from data.
    SettingsError for a name that is not a metric.

    >>> metric_type("Ratio") is metric_type("streammetrics:Ratio")
    True
    """
    instance(name, str, "metric_type(name)", "the name of a metric", 'pass "HistogramAUC"')
    own_type = _ours(name)
    if own_type is not None:
        return own_type
    installed = entry_points_of(METRICS).get(name)
    path = name if installed is None else installed.value
    path_match = _PATH.fullmatch(path)
    if path_match is None:
        raise SettingsError(
            expected=f"one of {', '.join(metric_names())}, or module:Class",
            got=shown(name),
            where="type",
            hint=nearest(name, metric_names()),
        )
    return _class_of(path_match["module"], path_match["name"])


def _class_of(module: str, name: str) -> type[Accumulator]:
    """The accumulator of this name in a module; imports the module."""
    try:
        namespace = import_module(module)
    except StreamMetricsError as error:  # such as a schema of another class
        raise SettingsError(
            expected=error.expected, got=error.got, where=error.where, hint=error.hint
        ) from error
    except Exception as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        absent = missing is not None and f"{module}.".startswith(f"{missing}.")
        raise SettingsError(
            expected=f"a module that {'Python finds' if absent else 'can be imported'}",
            got=f"{module}: {type(error).__name__}: {error}",
            where="type",
            hint="install its package, or name its folder in PYTHONPATH"
            if absent
            else "correct the module",
        ) from error
    kind = getattr(namespace, name, None)
    if kind is None:
        raise SettingsError(
            expected=f"a class of {module}",
            got=repr(name),
            where="type",
            hint=nearest(
                name, [attribute for attribute, v in vars(namespace).items() if _is_metric(v)]
            ),
        )
    if not _is_metric(kind):
        raise SettingsError(
            expected="a class made as `class M(Accumulator, schema=...)`, with all of its methods",
            got=f"{module}:{name}, {shown(kind)}",
            where="type",
            hint="name a metric",
        )
    metric_class: type[Accumulator] = kind
    return metric_class


def _is_metric(candidate: object) -> bool:
    is_class = isinstance(candidate, type) and issubclass(candidate, Accumulator)
    return is_class and bool(candidate.schema) and not isabstract(candidate)  # type: ignore[attr-defined]


def metric(type_name: str, settings: Mapping[str, Setting] | None = None) -> Accumulator:
    """An empty metric of a type given by name; SettingsError for an invalid name or setting.

    >>> metric("HistogramAUC", {"resolution": 6}).resolution
    6
    """
    kind = metric_type(type_name)
    takes = [*kind._settings]
    for name in settings or {}:
        if name not in takes:
            raise SettingsError(
                expected=f"a setting of {type_name} ({', '.join(takes) or 'none'})",
                got=repr(name),
                where=f"{type_name}.{name}",
                hint="correct the name or leave it out",
            )
    try:
        accumulator: Accumulator = kind(**dict(settings or {}))
    except TypeError as error:
        raise SettingsError(
            expected=f"the settings of {type_name} ({', '.join(takes)})",
            got=str(error),
            where=type_name,
            hint="pass the missing settings",
        ) from None
    return accumulator


def load(source: bytes | str | PathLike[str]) -> Accumulator:
    """The state, of any class, in these bytes (state or state file) or in the file at this path.

    Raises StateError for anything that is not a state.

    >>> from streammetrics import Ratio
    >>> load(Ratio().to_bytes())
    Ratio()
    """
    return Accumulator.load(source)
