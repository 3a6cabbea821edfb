"""The same state from any engine: partial states, their merge, and sealed states."""

from streammetrics.combine.sealed import Sealed, Sealing, seal
from streammetrics.engines.groups import HASH, user_buckets
from streammetrics.engines.keyed import aggregate
from streammetrics.engines.merging import (
    agree,
    merge_all,
    merge_once,
    merged,
    results_rows,
    results_schema,
)
from streammetrics.engines.partial import (
    Positions,
    Task,
    partial,
    states_by_group,
    states_schema,
    update_from,
)

__all__ = [
    "HASH",
    "Positions",
    "Sealed",
    "Sealing",
    "Task",
    "aggregate",
    "agree",
    "merge_all",
    "merge_once",
    "merged",
    "partial",
    "results_rows",
    "results_schema",
    "seal",
    "states_by_group",
    "states_schema",
    "update_from",
    "user_buckets",
]
