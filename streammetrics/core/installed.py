"""Metrics and measures of installed packages: what their entry points name.

A package declares them where it is built:

    [project.entry-points."streammetrics.metrics"]
    ClickDepth = "my_package.my_module:ClickDepth"

Nothing is imported before a name or a schema is asked for that is not known. Bytes and texts never
say what to import: an unknown one makes the entry points of what is installed be loaded, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

METRICS: Final = "streammetrics.metrics"
MEASURES: Final = "streammetrics.measures"


@cache
def entry_points_of(group: str) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name, those of packages that are installed now."""
    from importlib.metadata import entry_points  # takes as long as to import all of this library

    return {one.name: one for one in sorted(entry_points(group=group))}


@cache
def load_all(group: str) -> tuple[Mapping[str, object], str]:
    """What the entry points of a group name, loaded once, and in words which of them failed."""
    found: dict[str, object] = {}
    failed = []
    for name, one in entry_points_of(group).items():
        try:
            found[name] = one.load()
        except Exception as error:  # one bad package must not take the others away
            failed.append(f"{name} = {one.value} ({type(error).__name__}: {error})")
    said = f"; these entry points of {group} failed: {'; '.join(failed)}" if failed else ""
    return found, said
