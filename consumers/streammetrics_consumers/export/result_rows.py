"""The rows of an export: those of a query, and which of them a file lacks.

The rows of the slices are read at one moment, and those of each experiment at one of their own: a
row has the revision of the generation at its moment."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from streammetrics import StateError
from streammetrics_consumers.export.columns import (
    COMPARISON,
    EXPOSED,
    RESULT,
    STORE,
    Origin,
    Row,
    content_of,
    key_of,
    row_of,
)
from streammetrics_consumers.export.exposed_values import exposed_values
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.encoding import Encoder, as_bytes
from streammetrics_consumers.query.experiment_plan import declared, experiments_of
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import Progress, no_report, read_spooled

UNNAMED: Final = ""  # the name of [experiment]


def read_rows(
    ledger: Ledger, query: Query, part: int = 1, report: Progress = no_report
) -> Iterator[Row]:
    """The rows of a query, those of the slices and then those of each experiment, in the order of
    the JSON of results: the values, the comparisons, then the effects on exposed units. They are in
    a temporary file, so that memory is bounded. The errors are those of `read_results`."""
    for name in _experiments(ledger, query):
        yield from _rows_of(ledger, replace(query, experiment=name), part, report)


def _experiments(ledger: Ledger, query: Query) -> Sequence[str | None]:
    """The experiments that a query asks for; None stands for the slices, and the comparisons of
    [experiment]. Without a name it asks for all, or with a metric for those that count it; with
    names of slices for none, since an experiment has only arms."""
    if query.experiment is not None:
        return (query.experiment,)
    if query.by is not None or query.where:
        return (None,)
    generation = ledger.generation(query.generation)
    designs = [
        design for name in experiments_of(generation) if (design := declared(generation, name))
    ]
    return None, *(
        design.name
        for design in designs
        if (design.name or design.ended)
        and (query.metric is None or f"{design.prefix}{query.metric}" in design.metrics)
    )


def _rows_of(ledger: Ledger, query: Query, part: int, report: Progress) -> Iterator[Row]:
    """The rows of a query of one experiment, or of the slices."""
    spool, results, revision = read_spooled(ledger, query, report)
    origin = Origin(part, ledger.store.id, results.generation, revision, query.experiment)
    for piece in spool.rows(results):
        yield from (row_of(RESULT, value, origin) for value in json.loads(b"[%b]" % piece))
    encoder, origin = Encoder(), Origin(*origin[:-1], query.experiment or UNNAMED)
    for finding in results.comparisons:
        yield row_of(COMPARISON, json.loads(as_bytes(encoder.text(finding))), origin)
    if results.exposed_units is not None:
        yield from (row_of(EXPOSED, item, origin) for item in exposed_values(results.exposed_units))


class WrittenRows:
    """The newest content of each row of a file. It is a temporary database, so that memory does not
    grow with the file."""

    def __init__(self, store: str, where: str) -> None:
        """store: the id of the store that rows must be of. where: the file."""
        self._store, self._where = store, where
        self._database = sqlite3.connect("", isolation_level=None)  # a file without a name
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(
            "CREATE TABLE row (key BLOB PRIMARY KEY, content BLOB NOT NULL) WITHOUT ROWID"
        )

    def add(self, rows: Iterable[Row]) -> None:
        """Note the rows of the file, in their order. Raises StateError if one is of another
        store."""
        for number, row in enumerate(rows, 1):
            if row[STORE] != self._store:
                raise StateError(
                    expected=f"rows of this store, whose id is {self._store}",
                    got=f"one of {row[STORE]}",
                    where=f"{self._where}, row {number}",
                    hint="name another file: each store is followed into its own",
                )
            self._note(key_of(row), content_of(row))

    def new(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The rows that the file lacks, or has with another content; they are noted."""
        for row in rows:
            key, content = key_of(row), content_of(row)
            cursor = self._database.execute("SELECT content FROM row WHERE key = ?", (key,))
            if cursor.fetchone() != (content,):
                self._note(key, content)
                yield row

    def _note(self, key: bytes, content: bytes) -> None:
        self._database.execute("INSERT OR REPLACE INTO row VALUES (?, ?)", (key, content))

    def close(self) -> None:
        """Remove the database."""
        self._database.close()
