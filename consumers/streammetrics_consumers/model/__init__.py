"""Plain values that all parts of the consumer share. It imports no other part."""
