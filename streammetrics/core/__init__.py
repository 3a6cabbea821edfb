"""The algebra: accumulators, the parts of their state, bytes, checks and errors."""

from streammetrics.core.heap import keep_freed_memory

keep_freed_memory()
