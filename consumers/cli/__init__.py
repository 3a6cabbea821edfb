"""The command line."""

from consumers.cli.main import main

__all__ = ["main"]
