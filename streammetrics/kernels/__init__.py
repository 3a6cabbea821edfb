"""Pure functions on arrays: the arithmetic of the metrics, which remember nothing."""
