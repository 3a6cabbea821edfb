"""Paths into a record's key and headers: words that are kept for a later version.

In a Kafka topic `key.NAME` and `header.NAME` will mean the record's key and headers. Until then
they are errors there, since a config that reads a field of that name now would mean something
else then, and its results would change in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from consumers.config.schema import Problem, shown

KEPT: Final = ("key.", "header.")


def refuse_record_paths(document: Mapping[str, object], problems: list[Problem]) -> None:
    """Note each path of a config, as it stands in the file, that begins with one of these."""
    for where, path in _paths(document):
        if isinstance(path, str) and path.startswith(KEPT):
            problems.append(
                Problem(
                    where,
                    "a path in the event",
                    shown(path),
                    f"reading from a record's {path.partition('.')[0]} is not in this version; "
                    "name a field of the event",
                )
            )


def _paths(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for role, path in _table(document.get("event")).items():
        yield f"[event] {role}", path
    by = _table(document.get("slices")).get("by")
    for i, names in enumerate(by if isinstance(by, list) else ()):
        for name in names if isinstance(names, list) else ():
            yield f"[slices] by[{i}]", name
    for metric, table in _table(document.get("metrics")).items():
        for argument, path in _table(_table(table).get("inputs")).items():
            yield f"[metrics] {metric}.inputs.{argument}", path


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
