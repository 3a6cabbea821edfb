"""Rows to export: of a store, and made up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from streammetrics_consumers.cli.main import main
from streammetrics_consumers.export.columns import COLUMNS, NAMES, Row, content_of, key_of
from streammetrics_consumers.export.files import GrowingFile, Target
from streammetrics_consumers.export.parts import Parts
from streammetrics_consumers.export.result_rows import read_rows
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query

from tests.consumers.server.asking import EXPERIMENT
from tests.consumers.stores import EVENTS, write_config, write_events

ALL = Query("all", headlines=True)
FORMATS = (".csv", ".jsonl", ".parquet")
HOSTILE = 'a "quote", a\nline,\r\nanother, é甲\x00'


def count(folder: Path, events: Sequence[object] = EVENTS) -> Path:
    """Count these events, or go on with those that are new, with an experiment; the store."""
    write_events(folder, events)
    path = write_config(folder, rest=EXPERIMENT)
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"


def row(part: int = 1, **cells: object) -> Row:
    """A row with cells of every kind, those that are named with these values."""
    samples = {str: "text", int: 3, float: 0.1, bool: True}
    values: dict[str, object] = {
        column.name: samples[column.kind] if i % 3 else None for i, column in enumerate(COLUMNS)
    }
    values |= {"part": part, "store": "s", "value": math.inf, "low": -math.inf, "high": 1e-300}
    return tuple((values | cells)[name] for name in NAMES)  # type: ignore[misc]


def target_of(path: Path) -> Target:
    """A file as it is appended to."""
    return Parts(path) if path.suffix == ".parquet" else GrowingFile(path)


def rows_in(path: Path) -> list[Row]:
    """All rows of a file that was followed into."""
    with closing(target_of(path)) as target:
        return list(target.rows())


def now(store: Path) -> dict[bytes, bytes]:
    """What each row of a store says now."""
    with closing(Ledger.open(str(store))) as ledger:
        return {key_of(row): content_of(row) for row in read_rows(ledger, ALL)}


def newest(rows: Sequence[Row]) -> dict[bytes, bytes]:
    """What the newest row of each key says; no row repeats the one before it."""
    contents: dict[bytes, bytes] = {}
    for cells in rows:
        key, content = key_of(cells), content_of(cells)
        assert contents.get(key) != content, cells
        contents[key] = content
    return contents
