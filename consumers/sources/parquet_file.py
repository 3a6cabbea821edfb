"""A parquet file, row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from consumers.sources.arrow_columns import ArrowColumns, RowTexts
from consumers.sources.source import Chunk, Partition, SourceError

if TYPE_CHECKING:
    import pyarrow as pa

_HEAD_BYTES = 4096
_CHUNK_BYTES = 8 << 20  # of a chunk of several rows; plain values take five times as much


class ParquetFile:
    """See `file_source.Table`. Rows are records; a dotted path leads into a column of structs."""

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow.parquet
        except ModuleNotFoundError:
            raise SourceError(
                "reading parquet needs the package pyarrow; "
                "install it with: pip install 'streammetrics[parquet]'"
            ) from None
        self.path = path
        try:
            self._file = pyarrow.parquet.ParquetFile(path)
        except pyarrow.ArrowInvalid as error:
            raise SourceError(
                f"[source] path: expected a parquet file, came {path} ({error}); check the path, "
                "or correct [source] format"
            ) from None
        self.offset = 0
        self._batches: Iterator[pa.RecordBatch] = iter(())
        self._rest: pa.RecordBatch | None = None

    def beginning(self) -> bytes | None:
        """The first bytes and the number of rows: such a file is written once."""
        if not self.count():
            return None
        with self.path.open("rb") as file:
            return file.read(_HEAD_BYTES) + str(self.count()).encode()

    def count(self) -> int:
        """Rows in the file."""
        rows: int = self._file.metadata.num_rows
        return rows

    def skip_to(self, offset: int) -> int:
        """Stand before this row; whole row groups before it are not read."""
        metadata = self._file.metadata
        before, first = 0, 0
        while first < metadata.num_row_groups:
            rows = metadata.row_group(first).num_rows
            if before + rows > offset:
                break
            before += rows
            first += 1
        groups = list(range(first, metadata.num_row_groups))
        self._batches = self._file.iter_batches(batch_size=8192, row_groups=groups)
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
            RowTexts(batch),
            columns=ArrowColumns(batch),
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

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
