"""Metrics of ranked lists and of groups."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
