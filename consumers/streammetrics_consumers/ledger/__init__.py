"""States and offsets, written together in one transaction."""
