"""The DoFn that counts: tables of a bundle to states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from secrets import randbits
from typing import TYPE_CHECKING, Final, TypeAlias

import apache_beam as beam
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.windowed_value import WindowedValue

from streammetrics.combine.sealed import Sealing
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.rows import Scalar
from streammetrics.engines.buckets import user_buckets
from streammetrics.engines.partial import partial
from streammetrics.engines.task import Positions, Task

if TYPE_CHECKING:
    import pyarrow as pa


# Tables as the batches that are counted at a time.

_BATCH_ROWS: Final = 1 << 16


def batches_of(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The batches of a table, of at most 65,536 rows; a batch as it is."""
    if hasattr(rows, "to_batches"):
        batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=_BATCH_ROWS)
        return batches
    return [rows]


Group: TypeAlias = tuple[Scalar, ...]  # the values of `by`, and the bucket last where it stands
Rows: TypeAlias = "pa.Table | pa.RecordBatch | tuple[int, pa.Table]"

TASK_ROWS: Final = 1 << 20  # rows of a bundle that are counted together
_BUCKET: Final = "streammetrics_bucket"
_NUMBER_BITS: Final = 62


class Counting(beam.DoFn):  # type: ignore[misc]
    """Tables of a bundle to states: those of a window wait for each other up to TASK_ROWS rows."""

    def __init__(
        self,
        spec: Accumulator,
        by: tuple[str, ...],
        columns: Mapping[str, str] | None,
        sealing: Sealing | None,
        counted: str | Positions | None,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._by = by
        self._columns = columns
        self._sealing = sealing
        self._counted = counted
        self._waiting: dict[BoundedWindow, list[pa.RecordBatch]] = {}

    def start_bundle(self) -> None:
        self._waiting = {}

    def process(
        self, element: Rows, window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[Group, bytes]]:
        if isinstance(element, tuple):
            number, table = element
            yield from self._states(batches_of(table), number)
            return
        if isinstance(self._counted, Positions):
            yield from self._states(batches_of(element))
            return
        waiting = self._waiting.setdefault(window, [])
        waiting.extend(batches_of(element))
        if sum(batch.num_rows for batch in waiting) >= TASK_ROWS:
            yield from self._states(self._waiting.pop(window))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for window, batches in self._waiting.items():
            for pair in self._states(batches):
                yield WindowedValue(pair, window.max_timestamp(), [window])
        self._waiting = {}

    def _states(
        self, batches: Iterable[pa.RecordBatch], number: int | None = None
    ) -> Iterator[tuple[Group, bytes]]:
        counted: Task | Positions | None
        if isinstance(self._counted, str):
            counted = Task(self._counted, randbits(_NUMBER_BITS) if number is None else number)
        else:
            counted = self._counted
        if self._sealing is not None:
            batches = (_with_bucket(batch, self._sealing) for batch in batches)
        for made in partial(
            batches,
            self._spec,
            self._by,
            columns=self._columns,
            bucket=0 if self._sealing is None else _BUCKET,
            counted=counted,
        ):
            *group, states = (column.to_pylist() for column in made.columns)
            yield from zip(zip(*group, strict=True), states, strict=True)


def _with_bucket(batch: pa.RecordBatch, sealing: Sealing) -> pa.RecordBatch:
    buckets = user_buckets(batch.column(sealing.of), sealing.n_buckets)
    return batch.append_column(_BUCKET, buckets)
