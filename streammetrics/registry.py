"""From names to metrics: what reads a state, a file or a config needs no list of imports."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike, fspath
from pathlib import Path

from streammetrics import classification, combine, ranking
from streammetrics.combine.sealed import Sealed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import FILE_MAGIC
from streammetrics.core.errors import SettingsError, StateError
from streammetrics.core.settings import Setting

__all__ = ["load", "metric", "metric_types"]

_PACKAGES = (classification, ranking, combine)
_OUTPUTS = (Sealed,)  # what is read from bytes as metrics are, and counts nothing


def metric_types() -> Mapping[str, type[Accumulator]]:
    """Every public accumulator by its name, in order of names.

    >>> "HistogramAUC" in metric_types()
    True
    """
    found = {
        name: kind
        for package in _PACKAGES
        for name in package.__all__
        if isinstance(kind := getattr(package, name), type) and issubclass(kind, Accumulator)
    }
    return dict(sorted(found.items()))


def metric(type_name: str, settings: Mapping[str, Setting] | None = None) -> Accumulator:
    """An empty metric of a type given by name; SettingsError names what is wrong.

    >>> metric("HistogramAUC", {"resolution": 6}).resolution
    6
    """
    known = metric_types()
    if type_name not in known:
        raise SettingsError(
            expected=f"one of {', '.join(known)}",
            came=repr(type_name),
            where="type",
            todo="correct the name",
        )
    kind = known[type_name]
    takes = [*kind._settings]
    for name in settings or {}:
        if name not in takes:
            raise SettingsError(
                expected=f"a setting of {type_name} ({', '.join(takes) or 'it has none'})",
                came=repr(name),
                where=f"{type_name}.{name}",
                todo="correct the name or leave it out",
            )
    try:
        made: Accumulator = kind(**dict(settings or {}))
    except TypeError as error:
        raise SettingsError(
            expected=f"the settings of {type_name} ({', '.join(takes)})",
            came=str(error),
            where=type_name,
            todo="give those that are missing",
        ) from None
    return made


def load(source: bytes | str | PathLike[str]) -> Accumulator:
    """The state, of any class, in these bytes (state or state file) or in the file at this path.

    Raises StateError for anything that is not one.

    >>> from streammetrics import Ratio
    >>> load(Ratio().to_bytes())
    Ratio()
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, where = bytes(source), "state bytes"
    else:
        data, where = Path(source).read_bytes(), fspath(source)
    kind = Accumulator
    try:
        if data[:4] == FILE_MAGIC:
            return kind.from_file_bytes(data)
        return kind.from_bytes(data)
    except StateError as error:
        if where == "state bytes":
            raise
        raise StateError(
            expected=error.expected, came=error.came, where=where, todo=error.todo
        ) from None
