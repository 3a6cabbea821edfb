"""The exit codes of commands, and the errors that users read."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FATAL: Final = 1
USAGE: Final = 2  # invalid arguments or config
SETTINGS: Final = 3  # settings or schema differ from those of the counted states
GAP: Final = 4  # the log has lost the next records
TOO_MANY_BAD: Final = 5  # more events refused than store.max_bad_share allows
NOT_LET_IN: Final = 77  # a wrong password or user, or missing rights: a restart would fail again
DIFFERS: Final = 6  # verify: the store differs from its log
NOT_COMPARED: Final = 7  # verify: nothing differs, but something could not be compared
INTERRUPTED: Final = 130  # Ctrl-C, as shells have it

EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 fatal, 2 usage or config, 3 settings or schema, 4 gap, "
    "5 too many bad events, 6 verify: differs, 7 verify: could not compare, 75 try again, "
    "77 access denied"
)


def explained(error: Exception) -> tuple[str, int] | None:
    """(message, exit code) of an error for users; None for a bug of the program."""
    # Imported here since only an error needs all of them.
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
            return f"{error}; to continue with its remaining records, use --on-gap skip", GAP
        case NotLetIn():
            return str(error), NOT_LET_IN
        case ErrorBudgetExceeded():
            return str(error), TOO_MANY_BAD
        case SettingsError() | UnknownState():
            return str(error), SETTINGS
        case StreamMetricsError() | SourceError() | ServeError():
            return str(error), FATAL
        case OSError():
            text = f"{error.filename or 'this machine'}: {error.strerror or error}"
            return f"{text}; check the path, its permissions and the free disk space", FATAL
    return None
