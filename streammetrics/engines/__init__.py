"""The same state from any engine: partial states, their merge, and sealed ones."""

from streammetrics.engines.partial import (
    merge_all,
    merged,
    partial,
    results_rows,
    results_schema,
    states_schema,
    update_from,
)
from streammetrics.engines.sealed import Sealed, Sealing, seal
from streammetrics.engines.task import Positions, Task

__all__ = [
    "Positions",
    "Sealed",
    "Sealing",
    "Task",
    "merge_all",
    "merged",
    "partial",
    "results_rows",
    "results_schema",
    "seal",
    "states_schema",
    "update_from",
]
