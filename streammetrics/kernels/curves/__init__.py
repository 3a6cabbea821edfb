"""Areas under curves, their bounds, and the points of curves."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
