"""A process that counts: it starts, connects again, says how it is, and stops."""
