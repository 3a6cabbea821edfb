"""Measures of ranked lists."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
