"""Real workers, a real broker and real stores, all of them killed at random: see `make chaos`."""
