"""The command line."""

from streammetrics_consumers.cli.main import main

__all__ = ["main"]
