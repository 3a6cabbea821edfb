"""Group ids, their indices, and the hashes of ids, units and keys."""
