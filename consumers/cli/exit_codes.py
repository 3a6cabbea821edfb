"""The exit codes of the command line."""

from typing import Final

DONE: Final = 0
FATAL: Final = 1
USAGE: Final = 2  # words or config that cannot be used
SETTINGS: Final = 3  # settings or schema that differ from what was counted
GAP: Final = 4  # the log has lost what comes next
TOO_MANY_BAD: Final = 5  # more events refused than store.max_bad_share allows
NOT_LET_IN: Final = 77  # a password, a user or a right: another start would end as this one did
INTERRUPTED: Final = 130  # Ctrl-C, as shells have it
