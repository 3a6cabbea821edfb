"""The contents of the screen of `watch`, read from the store again and again, with their speed.

The values by window are read for the rows that are shown alone, and every few seconds at most:
there may be a month of windows.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.view import View, view
from streammetrics_consumers.query.comparisons import verdict
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.history import MAX_WINDOWS
from streammetrics_consumers.query.query import Query, store_name
from streammetrics_consumers.query.results import Results
from streammetrics_consumers.render.cells import names_of, rows_shown
from streammetrics_consumers.render.terminal import History, Shown, history_key
from streammetrics_consumers.render.verdict_words import standing

HISTORY_S: Final = 10.0  # between two readings of the values by window
SPEED_S: Final = 10.0  # over which the rate of events is taken
MAX_EFFECTS: Final = 10  # comparisons whose looks are shown
MAX_METRICS: Final = 40  # whose values are shown by window


class Watcher:
    """Looks at a store, by the clock that it is given. One thread may use it."""

    def __init__(self, ledger: Ledger, query: Query, monotonic: Callable[[], float]) -> None:
        self._ledger, self._monotonic = ledger, monotonic
        self._query = replace(query, headlines=True)
        self._answers = QueryCache(ledger)
        self._history: History = {}
        self._looks: dict[str, list[float]] = {}
        self._read: tuple[float, int, int] | None = None  # when, generation and rows
        self._seen: deque[tuple[float, int]] = deque()
        self._moved_s = monotonic()
        self.rate = 0.0

    @property
    def quiet_s(self) -> float:
        """Since the last look at which there was something new."""
        return self._monotonic() - self._moved_s

    def look(self) -> Shown:
        """What there is to show now. Raises LedgerError where the store does not answer."""
        results = self._answers.results(self._query)
        now_s = self._monotonic()
        self._measure(now_s, results.rows_read)
        if self._is_old(now_s, results):
            self._history = self._read_history(results)
            self._looks = self._read_looks(results)
            self._read = now_s, results.generation, results.rows_read
        title = f"{store_name(self._ledger.store.name)}, generation {results.generation}"
        said = self._verdict(results)
        return Shown(title, results, said, history=self._history, looks=self._looks)

    def _measure(self, now_s: float, rows: int) -> None:
        if self._seen and rows != self._seen[-1][1]:
            self._moved_s = now_s
        self._seen.append((now_s, rows))
        while len(self._seen) > 2 and now_s - self._seen[1][0] >= SPEED_S:
            self._seen.popleft()
        then_s, before = self._seen[0]
        self.rate = max(rows - before, 0) / (now_s - then_s) if now_s > then_s else 0.0

    def _is_old(self, now_s: float, results: Results) -> bool:
        if self._read is None:
            return True
        then_s, *read = self._read
        return read != [results.generation, results.rows_read] and now_s - then_s >= HISTORY_S

    def _read_history(self, results: Results) -> History:
        rows = rows_shown(results)
        found: dict[tuple[str, str, tuple[object, ...]], list[float]] = {}
        for metric in list(dict.fromkeys(row.metric for row in rows))[:MAX_METRICS]:
            one = next(row for row in rows if row.metric == metric)
            query = Query("all", names_of(one), self._query.where, metric, self._query.generation,
                          headlines=True)  # fmt: skip
            answer = self._answers.rows(query)
            inside = [row for row in answer.rows if row.window.start_ms is not None]
            windows = list(dict.fromkeys(row.window for row in inside))[-MAX_WINDOWS:]
            place = {window: i for i, window in enumerate(windows)}
            for row in inside:
                if row.headline and row.window in place:
                    key = history_key(row)
                    values = found.setdefault(key, [math.nan] * len(windows))
                    values[place[row.window]] = row.value
        return found

    def _read_looks(self, results: Results) -> dict[str, list[float]]:
        names = [row.finding.contrast.name for row in results.comparisons[:MAX_EFFECTS]]

        def look(now: View) -> dict[str, list[float]]:
            of = declared(now.version.generation)
            if of is None:
                return {}
            return {name: [one.effect for one in now.points(of.fingerprint, name)]
                    for name in dict.fromkeys(names)}  # fmt: skip

        return view(self._ledger, look, generation=results.generation) if names else {}

    def _verdict(self, results: Results) -> str:
        if results.srm is None:
            return ""
        of = view(self._ledger, lambda now: declared(now.version.generation),
                  generation=results.generation)  # fmt: skip
        total = self._answers.experiment(Query(generation=self._query.generation))
        return standing(*verdict(of, total.comparisons), total.contamination, total.recommendation)
