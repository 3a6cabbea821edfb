"""A folder of parquet files, each of which is written once: the appendable form of parquet.

A parquet file has its index at its end, so it cannot grow. A part is written under a name that
readers of folders ignore, and renamed when it is whole; so the folder never has half of a part, and
polars, pandas, DuckDB and Spark read it as one table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from streammetrics import InputError, SettingsError, StateError
from streammetrics_consumers.export.columns import COLUMNS, NAMES, Row
from streammetrics_consumers.export.files import lock, other_columns

if TYPE_CHECKING:
    import pyarrow as pa

PARQUET: Final = ".parquet"
GROUP_ROWS: Final = 10_000  # of a row group, which is in memory at once
_PART: Final = re.compile(r"part-(\d{8})\.parquet")
_UNFINISHED: Final = ".part.tmp"  # readers of folders ignore names that begin with a dot


class Parts:
    """A folder of parts."""

    def __init__(self, path: Path) -> None:
        """Creates the folder if there is none. Raises InputError if it is a file, or if another
        process appends to it."""
        schema()  # before anything is created
        try:
            path.mkdir(exist_ok=True)
        except FileExistsError:
            raise InputError(
                expected="a folder of parquet files, to which parts can be added",
                got="a file",
                where=str(path),
                hint="name another one; a single parquet file cannot grow",
            ) from None
        self._path = path
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            lock(self._folder, path)
            (path / _UNFINISHED).unlink(missing_ok=True)  # of a killed process
            self._last = max(self._numbers(), default=0)
        except BaseException:
            os.close(self._folder)
            raise

    def _numbers(self) -> list[int]:
        names = sorted(self._path.iterdir())
        return [int(match[1]) for path in names if (match := _PART.fullmatch(path.name))]

    def rows(self) -> Iterator[Row]:
        """See `files.Target`."""
        for number in self._numbers():
            yield from read_parquet(self._part(number))

    @property
    def next_part(self) -> int:
        """See `files.Target`."""
        return self._last + 1

    def append(self, rows: Iterable[Row]) -> int:
        """See `files.Target`: all rows are one part."""
        unfinished = self._path / _UNFINISHED
        count = write_parquet(unfinished, rows)
        if not count:
            unfinished.unlink()
            return 0
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(unfinished, self._part(self.next_part))
        os.fsync(self._folder)
        self._last += 1
        return count

    def _part(self, number: int) -> Path:
        return self._path / f"part-{number:08d}{PARQUET}"

    def close(self) -> None:
        """See `files.Target`."""
        os.close(self._folder)


def schema() -> pa.Schema:
    """The columns, as parquet has them. Raises SettingsError if pyarrow is not installed."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError as error:
        raise SettingsError(
            expected="the package pyarrow, which writes parquet",
            got=str(error),
            where=PARQUET,
            hint="pip install '.[parquet]' in a clone of streammetrics; .csv and .jsonl need no "
            "package",
        ) from None
    kinds = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    return pa.schema([(column.name, kinds[column.kind]) for column in COLUMNS])


def write_parquet(path: Path, rows: Iterable[Row]) -> int:
    """Write a parquet file; returns the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns, count, remaining_rows = schema(), 0, iter(rows)
    with pq.ParquetWriter(path, columns, compression="zstd") as writer:
        while group := list(islice(remaining_rows, GROUP_ROWS)):
            arrays = [
                pa.array(cells, field.type)
                for cells, field in zip(zip(*group, strict=True), columns, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=columns))
            count += len(group)
    return count


def read_parquet(path: Path) -> Iterator[Row]:
    """The rows of a parquet file. Raises StateError for one that no export has written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            if not file.schema_arrow.equals(schema()):
                raise other_columns(str(path))
            for batch in file.iter_batches(GROUP_ROWS, columns=list(NAMES)):
                yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
    except (pa.ArrowException, OSError) as error:
        raise StateError(
            expected="a parquet file that `export --results` has written",
            got=f"{type(error).__name__}: {error}",
            where=str(path),
            hint="name another folder, or restore this file",
        ) from None
