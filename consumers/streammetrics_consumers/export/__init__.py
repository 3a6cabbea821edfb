"""Results as the rows of files: written whole, or followed, each change once."""
