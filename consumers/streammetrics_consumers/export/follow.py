"""Writes the results of a store into a file: all of them, or what has changed since the last time.

What the file holds decides what is written. A row is appended if the file has none of its key, or
has another content as the last one. So whenever a process is killed, the next one appends what is
missing, and no row twice. States between two reads of the store are not in the file.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from streammetrics_consumers.export.files import FORMS, GrowingFile, Target, write_text, write_whole
from streammetrics_consumers.export.parts import PARQUET, Parts, schema, write_parquet
from streammetrics_consumers.export.result_rows import WrittenRows, read_rows
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.query.moments import Moment, moment_of
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import Progress, no_report

SUFFIXES = (PARQUET, *FORMS)


def require_format(path: Path) -> None:
    """Refuse a file whose name does not say its format. Raises QueryError."""
    if path.suffix.lower() not in SUFFIXES:
        raise QueryError(
            expected=f"a name that ends with {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}",
            got=repr(path.name[:80]),
            where="--results",
            hint="the end of the name chooses the format",
        )


def write_results(ledger: Ledger, query: Query, path: Path, report: Progress = no_report) -> int:
    """Write all rows of a query into a file, which is replaced; returns their number."""
    require_format(path)
    if path.is_dir():
        raise QueryError(
            expected="a file",
            got="a folder",
            where=str(path),
            hint="name another one, or append to a folder of parts with --follow",
        )
    form = FORMS.get(path.suffix.lower())
    if form is None:
        schema()
    write = write_parquet if form is None else partial(write_text, form)
    return write_whole(path, lambda part: write(part, read_rows(ledger, query, report=report)))


class Follower:
    """Appends to a file what has changed in the results of a query. One thread may use it."""

    def __init__(self, ledger: Ledger, query: Query, path: Path) -> None:
        """Opens the file, or creates it. Raises InputError or StateError if it is not one that this
        store can be followed into."""
        require_format(path)
        self._ledger, self._query = ledger, query
        self._target: Target = Parts(path) if path.suffix.lower() == PARQUET else GrowingFile(path)
        self._written = WrittenRows(ledger.store.id, str(path))
        self._moment: Moment | None = None
        try:
            self._written.add(self._target.rows())
        except BaseException:
            self.close()
            raise

    def append(self, report: Progress = no_report) -> int:
        """Append what has changed; returns the number of rows. Nothing is read while nothing is
        counted and nobody looks."""
        moment = view(self._ledger, moment_of, generation=self._query.generation)
        if moment == self._moment:
            return 0
        rows = read_rows(self._ledger, self._query, self._target.next_part, report)
        count = self._target.append(self._written.new(rows))
        self._moment = moment
        return count

    def close(self) -> None:
        """Let another process append to the file."""
        self._target.close()
        self._written.close()
