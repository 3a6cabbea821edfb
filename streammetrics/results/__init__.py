"""Frozen results of metrics: rates, curves, averages, each with its denominators.

The public names here read any result without knowledge of its metric.
"""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
