"""Comparison of two variants: intervals and e-values valid at every look, and sanity checks."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
