"""The results for those who cannot wait: Prometheus gives up after 10 s, and then it has nothing,
not even how the process is. So they are read in a thread of their own, and who asks gets those of
the last reading where this one takes too long."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event, Lock, Thread
from typing import Final

from consumers.ledger.failures import LedgerError
from consumers.results.answers import Answers
from consumers.results.query import Query, QueryError
from consumers.results.results import Results

WINDOWS: Final = ("total", "latest")
WAIT_S: Final = 3.0


class LatestResults:
    """Those since the start and those of the latest window, for any number of threads."""

    def __init__(self, answers: Answers, wait_s: float = WAIT_S) -> None:
        self._answers, self._wait_s = answers, wait_s
        self._lock = Lock()
        self._read: Event | None = None  # of the reading that is under way
        self._found: Mapping[str, Results] = {}

    def by_window(self) -> Mapping[str, Results]:
        """The results by window; empty where they cannot be read, or never were in time."""
        with self._lock:
            if self._read is None:
                self._read = Event()
                Thread(target=self._look, args=(self._read,), name="results", daemon=True).start()
            read = self._read
        read.wait(self._wait_s)
        return self._found

    def _look(self, read: Event) -> None:
        found: Mapping[str, Results] = {}
        try:
            asked = (Query(window=window, headlines=True) for window in WINDOWS)
            found = {str(query.window): self._answers.results(query) for query in asked}
        except (LedgerError, QueryError):
            pass  # the gauge of the store says that it is away
        finally:
            with self._lock:
                self._found, self._read = found, None
            read.set()
