"""Paths into a record's key and headers, which only records of Kafka have.

In a file `key.NAME` and `header.NAME` are errors: a config that reads them as fields of the event
would mean something else once its events come from Kafka, and its results would change in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from consumers.config.schema import Problem, shown
from consumers.config.where import entries_of

BESIDE: Final = ("key.", "header.")


def check_record_paths(document: Mapping[str, object], kind: str, problems: list[Problem]) -> None:
    """Note each path of a config, as it stands in the file, that this source cannot have."""
    for where, path in _paths(document):
        if not isinstance(path, str):
            continue
        if kind != "kafka" and path.startswith(BESIDE):
            problems.append(
                Problem(
                    where,
                    "a path in the event",
                    shown(path),
                    f"only a record of Kafka has a {path.partition('.')[0]}, and this source is a "
                    f"{kind}; name a field of the event",
                )
            )
        elif kind == "kafka" and path == "header":
            problems.append(
                Problem(where, "header.NAME", shown(path), "say which header of the record")
            )


def _paths(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for role, path in _table(document.get("event")).items():
        yield f"[event] {role}", path
    for name, _ in entries_of(_table(_table(document.get("event")).get("where"))):
        yield f"[event] where.{name}", name
    yield "[experiment] unit", _table(document.get("experiment")).get("unit")
    yield "[dedup] event_id", _table(document.get("dedup")).get("event_id")
    yield from _of_join(_table(document.get("join")))
    by = _table(document.get("slices")).get("by")
    for i, names in enumerate(by if isinstance(by, list) else ()):
        for name in names if isinstance(names, list) else ():
            yield f"[slices] by[{i}]", name
    for metric, table in _table(document.get("metrics")).items():
        for argument, path in _table(_table(table).get("inputs")).items():
            yield f"[metrics] {metric}.inputs.{argument}", path


def _of_join(join: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    yield "[join] id", join.get("id")
    yield "[join] impression", _table(join.get("impression")).get("field")
    for name, mark in _table(join.get("outcomes")).items():
        yield f"[join.outcomes] {name}.field", _table(mark).get("field")
        yield f"[join.outcomes] {name}.value", _table(mark).get("value")


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
