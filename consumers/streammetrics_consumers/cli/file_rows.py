"""The rows of one file on their way into metrics, and the file, row and column in their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from streammetrics import Accumulator, InputError
from streammetrics.engines import states_by_group
from streammetrics_consumers.cli.eval_expressions import Reads, place_in_flags
from streammetrics_consumers.cli.eval_inputs import InputFile
from streammetrics_consumers.cli.eval_metrics import column_of
from streammetrics_consumers.model import formatting

if TYPE_CHECKING:
    import pyarrow as pa
    from pyarrow.parquet import ParquetFile

ROWS: Final = 1 << 16  # of a batch of a file
# What is counted at once: one pass of the kernels over many rows costs less, and lists are large.
_MOST_ROWS: Final = 1 << 19
_MOST_BYTES: Final = 1 << 25


def parquet_batches(file: ParquetFile, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows of these columns, in batches: as many rows as are counted at once where each takes
    few bytes, so that none is copied. A reader holds what it has read of all its row groups, so
    there is one for each large row group, or for several small ones. It has no threads, which cost
    more than they save for a few columns."""
    from pyarrow.types import is_primitive

    few_bytes = all(is_primitive(file.schema_arrow.field(name).type) for name in columns)
    rows = _MOST_ROWS if few_bytes else ROWS
    groups, n = [], 0
    for group in range(file.num_row_groups):
        groups.append(group)
        n += file.metadata.row_group(group).num_rows
        if n >= _MOST_ROWS or group + 1 == file.num_row_groups:
            yield from file.iter_batches(rows, groups, columns, use_threads=False)
            groups, n = [], 0


class FileRows:
    """The rows of a file, in batches of some columns, which know where they are for messages."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        reads: Reads,
        file: InputFile,
    ) -> None:
        self.batches, self.reads, self.file = batches, reads, file
        self.first = self.n = 0  # of the batches that are joined
        self.joined: list[pa.RecordBatch] = []

    def states(
        self, spec: Accumulator, key_columns: Sequence[str]
    ) -> Iterator[tuple[tuple[object, ...], Accumulator]]:
        """Each group and its state; InputError with the file and the row."""
        import pyarrow as pa

        try:
            yield from self._states(self._pieces(), spec, key_columns)
        except InputError as error:
            first_error = self._first_error(error, spec, key_columns)
            raise first_error.but(where=self._place(first_error), hint=_hint(first_error)) from None
        except pa.ArrowException as error:
            raise unreadable(self.file, error) from None

    def _states(
        self, batches: Iterable[pa.RecordBatch], spec: Accumulator, key_columns: Sequence[str]
    ) -> Iterator[tuple[tuple[object, ...], Accumulator]]:
        reads = self.reads
        return states_by_group(
            batches, spec, key_columns, columns=reads.arguments, where=reads.where
        )

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        """The batches, several as one; those before an error of Arrow come before it."""
        import pyarrow as pa

        n_bytes, unread = 0, None
        while unread is None:
            try:
                batch = next(self.batches, None)
            except pa.ArrowException as error:
                batch, unread = None, error
            if batch is not None:
                self.joined.append(batch.select([*self.reads.columns]))
                self.n, n_bytes = self.n + batch.num_rows, n_bytes + self.joined[-1].nbytes
            if self.joined and (batch is None or self.n >= _MOST_ROWS or n_bytes >= _MOST_BYTES):
                yield _one(self.joined)
                self.first, self.n, n_bytes, self.joined = self.first + self.n, 0, 0, []
            if batch is None:
                break
        if unread is not None:
            raise unread

    def _first_error(
        self, error: InputError, spec: Accumulator, key_columns: Sequence[str]
    ) -> InputError:
        """The error of the first few rows that are refused by themselves: many rows at once may be
        refused for a column that is wrong in a later row. `self.first` is then the first of them.
        """
        for batch in self.joined:
            for start in range(0, batch.num_rows, ROWS):
                few = batch.slice(start, ROWS)
                try:
                    [*self._states([few], spec, key_columns)]
                except InputError as of_few:
                    return of_few
                self.first += few.num_rows
        return error

    def _place(self, error: InputError) -> str:
        """The row and the column in the file, where the library names those of a batch."""
        if not len(error.rows):
            return f"{self.file.name}: {error.where}"
        argument = re.sub(r"^metric '[^']*', |\[.*", "", error.where)
        column = column_of(argument, self.reads.arguments) or error.where
        place = place_in_flags(error) or formatting.name(column)
        row = self.first + int(error.rows[0])
        return f"{self.file.name}, row {row} (the first is 0), {place}"


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of several batches, at least one, as one batch."""
    import pyarrow as pa

    if len(batches) == 1:
        return batches[0]
    joined = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined[0] if joined else batches[0]  # a table without rows has no batch


def unreadable(file: InputFile, error: Exception) -> InputError:
    """The error for a file that is not of its kind."""
    error_text = " ".join(str(error).split())
    return InputError(
        expected=f"a {file.path.suffix} file",
        got=error_text if len(error_text) < 160 else error_text[:159] + "…",
        where=file.name,
        hint="write the file again, or correct the row",
    )


def _hint(error: InputError) -> str:
    """The hint, without a keyword that only programs have."""
    if "positive=" not in error.hint:
        return error.hint
    return "map the labels to 0 and 1, or ask for measures of lists, which take grades"
