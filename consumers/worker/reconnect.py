"""A source that went away and will be back: when to try again."""

from __future__ import annotations

from typing import Final

from consumers.sources.source import SourceError

FIRST_PAUSE_S: Final = 0.5
GREATEST_PAUSE_S: Final = 30.0
FIRST_TRIES: Final = 6  # about half a minute, before anything was read


class Disconnected(SourceError):
    """The source failed and has to be opened anew; what was read before the failure is good.

    `exit_code` is for a source that could not be reached at all: the same command may work later.
    """

    exit_code = 75


class Backoff:
    """Pauses that double while nothing is read.

    >>> backoff = Backoff()
    >>> backoff.pause_s(), backoff.pause_s(), backoff.pause_s()
    (0.5, 1.0, 2.0)
    >>> backoff.reset()
    >>> backoff.pause_s()
    0.5
    """

    def __init__(self) -> None:
        self._failures = 0
        self._ever_read = False

    @property
    def is_hopeless(self) -> bool:
        """Whether the source could never be read, however often it was tried."""
        return not self._ever_read and self._failures >= FIRST_TRIES

    def reset(self) -> None:
        """Something was read: the next failure is a new one."""
        self._failures = 0
        self._ever_read = True

    def pause_s(self) -> float:
        """How long to wait before the next try."""
        pause_s = min(FIRST_PAUSE_S * 2.0**self._failures, GREATEST_PAUSE_S)
        self._failures += 1
        return pause_s
