"""The results of a store, or of a server of one, as frames, figures and values: only the name."""
