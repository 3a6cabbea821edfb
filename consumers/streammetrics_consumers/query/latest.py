"""The results of a server for clients that cannot wait, of the last moment that was read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event, Lock, Thread
from typing import Final, NamedTuple

from streammetrics import StateError
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.moments import Last, Moment
from streammetrics_consumers.query.query import Query, QueryError

WINDOWS: Final = ("total", "latest")
WAIT_S: Final = 3.0


class Latest(NamedTuple):
    """The results since the start and of the latest window, by window; and, by name, those since
    the start of each experiment that runs and can be read, without rows."""

    by_window: Mapping[str, ResultsAnswer] = {}
    experiments: Mapping[str, ResultsAnswer] = {}


class LatestResults:
    """The latest results. Thread-safe.

    For clients that cannot wait: Prometheus gives up after 10 s, and then has nothing, not even the
    status of the workers. So a separate thread reads the results, and a client gets those of the
    previous read if this one takes too long.

    wait_s: how long a client waits for a read; None: until it ends. rows: of each window, see
    `Query`.
    """

    def __init__(
        self, cache: QueryCache, wait_s: float | None = WAIT_S, rows: int | None = None
    ) -> None:
        self._cache, self._wait_s, self._rows = cache, wait_s, rows
        self._lock = Lock()
        self._read: Event | None = None  # of the read in progress
        self._found = Latest()
        self._moment: Moment | None = None  # of these results, or an earlier one
        self._text: Last[bytes] = Last()

    def text(self, write: Callable[[Latest], bytes], moment: Moment | None) -> bytes:
        """What a function makes of the results, once as long as nothing changes. moment:
        the present one, if it is known; if it is that of the last read, nothing is read."""
        with self._lock:
            is_same = moment is not None and moment == self._moment
            results = self._found
        return self._text.result(write, results if is_same else self.latest())

    def latest(self) -> Latest:
        """The results, the same object as long as nothing changes; empty if the last read failed,
        or none has finished yet."""
        with self._lock:
            if self._read is None:
                self._read = Event()
                Thread(
                    target=self._read_all, args=(self._read,), name="results", daemon=True
                ).start()
            read = self._read
        read.wait(self._wait_s)
        return self._found

    def _read_all(self, read: Event) -> None:
        results = Latest()
        moment = None  # of a failed read, so that the next one tries again
        try:
            now = self._cache.moment()
            results = self._found if now == self._moment else self._results()
            moment = now
        except (LedgerError, QueryError, StateError):
            pass  # the gauges of the store and of the results report it
        finally:
            with self._lock:
                self._found, self._moment, self._read = results, moment, None
            read.set()

    def _results(self) -> Latest:
        queries = (Query(window, headlines=True, rows=self._rows) for window in WINDOWS)
        by_window = {str(query.window): self._cache.results(query) for query in queries}
        index = by_window["total"].index
        names = [
            entry.name
            for entry in (() if index is None else index.experiments)
            if entry.name
            and entry.state != "ended"
            and not entry.archived
            # The states of others can be read; of those without advice they cannot.
            and entry.recommendation is not None
        ]
        experiments = {name: self._cache.experiment(Query(experiment=name)) for name in names}
        return Latest(by_window, experiments)
