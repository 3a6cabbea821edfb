"""Metrics of policies: off-policy values, interleaving and uplift."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
