"""The kinds of state that a metric declares, one a module."""
