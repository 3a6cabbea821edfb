"""The algebra: accumulators, the parts of their state, bytes, checks and errors."""
