"""Plain values that every part of the shell shares. It imports no other part of it."""
