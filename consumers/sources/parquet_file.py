"""A parquet file, row group by row group. The only file that knows pyarrow."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, overload

from consumers.sources.source import Chunk, Partition, SourceError, Values

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
            _RowTexts(batch),
            columns=_Columns(batch),
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


class _Columns(Mapping[str, Values]):
    """Dotted path to plain values, converted when someone asks."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._arrays = dict(_flat(batch.schema.names, batch.columns))

    def __getitem__(self, path: str) -> Values:
        return _plain(path, self._arrays[path])

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _flat(
    names: Sequence[str], arrays: Sequence[pa.Array], prefix: str = ""
) -> Iterator[tuple[str, pa.Array]]:
    import pyarrow.types

    for name, array in zip(names, arrays, strict=True):
        if pyarrow.types.is_struct(array.type):
            # flatten() carries the nulls of the struct on to its fields.
            inner = [array.type.field(i).name for i in range(array.type.num_fields)]
            yield from _flat(inner, array.flatten(), f"{prefix}{name}.")
        else:
            yield prefix + name, array


def _plain(path: str, array: pa.Array) -> Values:
    import pyarrow.types

    kind = array.type
    if pyarrow.types.is_timestamp(kind):
        if kind.tz is None:
            raise SourceError(
                f"column {path!r} holds times without a zone; write them with one, or as integers "
                "with time_unit"
            )
        # Without the zone, which is one way of printing; numpy then cuts off toward the past.
        utc = array.cast(pyarrow.timestamp(kind.unit)).to_numpy(zero_copy_only=False)
        values: Values = utc.astype("datetime64[ms]")
    elif pyarrow.types.is_dictionary(kind):
        values = array.dictionary_decode().to_pylist()
    elif array.null_count == 0 and (
        pyarrow.types.is_floating(kind) or pyarrow.types.is_integer(kind)
    ):
        values = array.to_numpy(zero_copy_only=False).tolist()
    else:
        values = array.to_pylist()
    return values


class _RowTexts(Sequence[bytes]):
    """The rows as JSON, made when one is asked for: only a refused row needs its text."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[bytes]: ...
    def __getitem__(self, at: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(at, slice):
            return [self[i] for i in range(len(self))[at]]
        (row,) = self._batch.slice(at, 1).to_pylist()
        return json.dumps(row, default=str, ensure_ascii=False).encode("utf-8", "replace")

    def __len__(self) -> int:
        rows: int = self._batch.num_rows
        return rows
