"""Intervals, tails, variances and e-values."""
