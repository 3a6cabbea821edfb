"""A Parquet file, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from streammetrics_consumers.events.arrow_columns import ArrowColumns, RowTexts
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.partition import Partition

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_HEAD_BYTES = 4096
ROWS = 32_768  # per batch; what a chunk costs whatever its size is then small beside its rows
_CHUNK_BYTES = 8 << 20  # per chunk of several rows; plain values take five times as much


class ParquetFile:
    """A `Table` of Parquet rows; a dotted path selects a field of a struct column."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.fs
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise SourceError(
                "reading parquet needs the package pyarrow; "
                "install it with: pip install '.[parquet]' in a clone of streammetrics"
            ) from None
        self.path = path
        kinds = OSError, MemoryError, ValueError, OverflowError, IndexError
        self._errors = (pyarrow.ArrowException, *kinds)
        try:
            self._handle = pyarrow.fs.LocalFileSystem().open_input_file(str(path))
            stored = pyarrow.parquet.ParquetFile(self._handle)
            self._rows = self._rows_of_groups(stored.metadata)
            self._schema = stored.schema_arrow
            self._file = pyarrow.parquet.ParquetFile(
                self._handle,
                metadata=stored.metadata,
                read_dictionary=columns_of_few_texts(stored),
                page_checksum_verification=True,
            )
        except self._errors as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # the file cannot be opened; errors in its content have no errno
            raise SourceError(
                f"[source] path: expected a parquet file, got {path} ({_short(error)}); check the "
                "path and [source] format, or write the file again if it is damaged"
            ) from None
        self.offset = 0
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def _rows_of_groups(self, metadata: pq.FileMetaData) -> list[int]:
        """The number of rows of each row group, from the footer."""
        rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        if min(rows, default=0) < 0 or sum(rows) != metadata.num_rows:
            raise SourceError(
                f"{self.path}: expected row groups with the {metadata.num_rows} rows of the "
                f"footer, got {sum(rows)}; the file is damaged: write it again"
            )
        return rows

    def beginning(self) -> bytes | None:
        """The first bytes and the number of rows: a Parquet file is written once."""
        if not self.count():
            return None
        with self.path.open("rb") as file:
            return file.read(_HEAD_BYTES) + str(self.count()).encode()

    def count(self) -> int:
        """The number of rows in the file."""
        return sum(self._rows)

    def skip_to(self, offset: int) -> int:
        """Move to this row; complete row groups before it are not read."""
        before, first = 0, 0
        while first < len(self._rows) and before + self._rows[first] <= offset:
            before += self._rows[first]
            first += 1
        self._batches = self._from_group(first)
        self._rest = None
        self.offset = before
        while self.offset < offset:
            batch = self._next(offset - self.offset)
            if batch is None:
                break
            self.offset += batch.num_rows
        return self.offset

    def read(self, partition: Partition, limit: int) -> Chunk | None:
        """The next rows."""
        batch = self._next(limit)
        if batch is None:
            return None
        start, self.offset = self.offset, self.offset + batch.num_rows
        return Chunk(
            partition,
            start,
            self.offset,
            range(start, self.offset),
            RowTexts(batch, self._schema),
            columns=ArrowColumns(batch),
        )

    def close(self) -> None:
        """Close the file."""
        self._handle.close()

    def _from_group(self, first: int) -> Iterator[pa.RecordBatch]:
        """The batches of the row groups from `first` on; a batch may span groups. Raises
        SourceError for a damaged group, after the rows before it."""
        groups, count = range(first, len(self._rows)), 0
        try:
            for batch in self._file.iter_batches(batch_size=ROWS, row_groups=list(groups)):
                count += batch.num_rows
                yield batch
        except self._errors:
            pass  # the damaged row group is located below
        if count != sum(self._rows[first:]):
            for group in groups:
                yield from self._group_rows(group, count)
                count = max(0, count - self._rows[group])

    def _group_rows(self, group: int, past: int) -> Iterator[pa.RecordBatch]:
        """The batches of one row group, without its first `past` rows."""
        count = 0
        try:
            for batch in self._file.iter_batches(batch_size=ROWS, row_groups=[group]):
                left = batch.slice(min(max(0, past - count), batch.num_rows))
                count += batch.num_rows
                if left.num_rows:
                    yield left
        except self._errors as error:
            raise self._damaged(group, f"an error ({_short(error)})") from error
        if count != self._rows[group]:
            raise self._damaged(group, f"{count} of its {self._rows[group]} rows")

    def _damaged(self, group: int, got: str) -> SourceError:
        first = sum(self._rows[:group])
        return SourceError(
            f"{self.path}: expected row group {group} (rows {first} to "
            f"{first + self._rows[group] - 1}) to be readable, got {got}; the file is damaged, "
            "but the rows before the group can be counted: write or copy the file again"
        )

    def _next(self, limit: int) -> pa.RecordBatch | None:
        batch = self._rest if self._rest is not None else next(self._batches, None)
        self._rest = None
        if batch is None:
            return None
        if batch.nbytes > _CHUNK_BYTES:  # rows with long lists or texts
            limit = max(1, min(limit, batch.num_rows * _CHUNK_BYTES // batch.nbytes))
        if batch.num_rows > limit:
            self._rest = batch.slice(limit)
            batch = batch.slice(0, limit)
        return batch


def columns_of_few_texts(file: pq.ParquetFile) -> list[str]:
    """The columns of texts that take at most a byte a row: each row group has a dictionary of few
    texts, and their codes. Arrow gives both as they are stored, so no text is copied or compared.

    Of a column with more texts, each batch would have all texts of the batches before it."""
    import pyarrow

    groups = [file.metadata.row_group(i) for i in range(file.num_row_groups)]
    names = []
    for i in range(len(file.schema)):
        name = file.schema.column(i).path
        place = file.schema_arrow.get_field_index(name)
        if place < 0 or file.schema_arrow.field(place).type != pyarrow.string():
            continue  # fields of structs and lists have other names
        columns = [group.column(i) for group in groups]
        if all(column.total_uncompressed_size <= column.num_values for column in columns):
            names.append(name)
    return names


def _short(error: BaseException) -> str:
    """The message of an error, on one line."""
    return " ".join((str(error) or type(error).__name__).split())[:200]
