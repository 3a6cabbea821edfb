"""What a task of an engine says of the rows that it counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from streammetrics.core.errors import InputError
from streammetrics.core.provenance import Provenance
from streammetrics.engines.groups import grouped

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Task:
    """One of the tasks of a job: `job` is chosen once for each job, `number` names the task.

    Each emission notes `job/tasks: [number, number + 1)`, so a retry that is merged beside the
    first try refuses.
    """

    job: str
    number: int


@dataclass(frozen=True)
class Positions:
    """Rows that know where they stand: columns that name a source, and the column of the offset.

    `Positions(("topic", "partition"), "offset")` notes `clicks/3: [0, 5000)` of a task whose rows
    of that partition have offsets from 0 to 4999. So a task must have a range of its own, as one
    that reads a log has, or a group or a bucket of its own, as one after `groupBy` has; of rows
    that were sent to tasks at random the ranges overlap, and their states refuse to merge.
    """

    source: tuple[str, ...]
    offset: str


class Counted:
    """The ranges of a task's rows, to be noted of each of its states."""

    def __init__(self, counted: Task | Positions | None) -> None:
        self._positions = counted if isinstance(counted, Positions) else None
        self._ranges: dict[str, tuple[int, int]] = {}
        if isinstance(counted, Task):
            self._ranges[f"{counted.job}/tasks"] = counted.number, counted.number + 1

    def see(self, batch: pa.RecordBatch) -> None:
        """Take in the positions of these rows."""
        if self._positions is None or not batch.num_rows:
            return
        column = batch.column(self._positions.offset)
        if column.null_count:
            raise InputError(
                expected="an offset in each row",
                got=f"{column.null_count} nulls",
                where=f"column {self._positions.offset!r}",
                hint="leave these rows out, or name a Task instead",
            )
        offsets = np.array(column.to_numpy(zero_copy_only=False), np.int64)
        sources = grouped(batch, self._positions.source)
        for code, source in enumerate(sources.values):
            here = offsets[sources.codes == code]
            name = "/".join(map(str, source if isinstance(source, tuple) else (source,)))
            low, high = self._ranges.get(name, (int(here[0]), int(here[0]) + 1))
            self._ranges[name] = min(low, int(here.min())), max(high, int(here.max()) + 1)

    def note(self, provenance: Provenance, piece: str) -> None:
        """Add the ranges, as those of this piece."""
        for source, (start, end) in sorted(self._ranges.items()):
            provenance.add(source, start, end, piece)
