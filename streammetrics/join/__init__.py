"""Joins: impressions, and the outcomes that follow them within a label window."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
