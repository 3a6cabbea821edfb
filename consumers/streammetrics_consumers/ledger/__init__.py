"""States and offsets, together in one transaction."""
