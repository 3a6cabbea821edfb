"""The exit codes of the command line, and what an error says to whoever typed the command."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FATAL: Final = 1
USAGE: Final = 2  # words or config that cannot be used
SETTINGS: Final = 3  # settings or schema that differ from what was counted
GAP: Final = 4  # the log has lost what comes next
TOO_MANY_BAD: Final = 5  # more events refused than store.max_bad_share allows
NOT_LET_IN: Final = 77  # a password, a user or a right: another start would end as this one did
INTERRUPTED: Final = 130  # Ctrl-C, as shells have it


def explained(error: Exception) -> tuple[str, int] | None:
    """(message, exit code) of an error that users can meet; None for one that is our mistake."""
    # Only an error needs all of these: most commands serve nothing.
    from streammetrics import SettingsError, StreamMetricsError
    from streammetrics_consumers.config.section import ConfigError
    from streammetrics_consumers.counting.commits import ErrorBudgetExceeded
    from streammetrics_consumers.ledger.failures import LedgerError
    from streammetrics_consumers.model.chunk import SourceError
    from streammetrics_consumers.query.query import QueryError
    from streammetrics_consumers.query.state_files import UnknownState
    from streammetrics_consumers.server import ServeError
    from streammetrics_consumers.sources import Disconnected, GapError, NotLetIn, Unsuitable

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
