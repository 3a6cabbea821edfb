"""Pure functions on arrays: the stateless arithmetic of the metrics."""
