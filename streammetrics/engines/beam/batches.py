"""Tables as the batches that are counted at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 1 << 16


def batches_of(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The batches of a table, of at most 65,536 rows; a batch as it is."""
    if hasattr(rows, "to_batches"):
        batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=_BATCH_ROWS)
        return batches
    return [rows]
