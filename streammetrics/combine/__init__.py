"""Products, maps and groups of metrics, which obey the laws of a metric themselves."""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
