"""Metrics of numbers: quantiles, moments, and means and rates over units."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
