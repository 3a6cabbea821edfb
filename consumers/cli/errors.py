"""What an error says to whoever typed the command, and the exit code that goes with it."""

from __future__ import annotations

from consumers.cli.exit_codes import FATAL, GAP, NOT_LET_IN, SETTINGS, TOO_MANY_BAD, USAGE
from consumers.config.section import ConfigError
from consumers.counting.commits import ErrorBudgetExceeded
from consumers.ledger.failures import LedgerError
from consumers.results.query import QueryError
from consumers.results.state_files import UnknownState
from consumers.server import ServeError
from consumers.sources.source import Disconnected, GapError, NotLetIn, SourceError, Unsuitable
from streammetrics import SettingsError, StreamMetricsError


def explained(error: Exception) -> tuple[str, int] | None:
    """(message, exit code) of an error that users can meet; None for one that is our mistake."""
    match error:
        case ConfigError() | QueryError() | Unsuitable():
            return str(error), USAGE
        case LedgerError() | Disconnected():
            return str(error), error.exit_code
        case GapError():
            return f"{error}; read on where the log begins with --on-gap skip", GAP
        case NotLetIn():
            return str(error), NOT_LET_IN
        case ErrorBudgetExceeded():
            return str(error), TOO_MANY_BAD
        case SettingsError() | UnknownState():
            return str(error), SETTINGS
        case StreamMetricsError() | SourceError() | ServeError():
            return str(error), FATAL
        case OSError():
            said = f"{error.filename or 'this machine'}: {error.strerror or error}"
            return f"{said}; check the path, its permissions and the room on its disk", FATAL
    return None
