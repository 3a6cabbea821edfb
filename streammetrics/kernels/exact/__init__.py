"""Arithmetic without rounding, or with the same last bit on every processor."""
