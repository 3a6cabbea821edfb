"""Metrics and measures of installed packages, which declare them where they are built:

    [project.entry-points."streammetrics.metrics"]
    ClickDepth = "my_package.my_module:ClickDepth"

Nothing is imported until an unknown name or schema is requested. Bytes and texts never choose what
to import: an unknown name or schema loads all entry points, once.
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
    from importlib.metadata import entry_points  # takes as long as importing this library

    return {entry.name: entry for entry in sorted(entry_points(group=group))}


@cache
def load_all(group: str) -> tuple[Mapping[str, object], str]:
    """The objects of the entry points of a group, loaded once, and a text that lists failures."""
    objects: dict[str, object] = {}
    failed = []
    for name, entry in entry_points_of(group).items():
        try:
            objects[name] = entry.load()
        except Exception as error:  # one bad package must not disable the others
            failed.append(f"{name} = {entry.value} ({type(error).__name__}: {error})")
    failures = f"; these entry points of {group} failed: {'; '.join(failed)}" if failed else ""
    return objects, failures
