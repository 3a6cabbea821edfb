"""Answers to queries, made in one place for the command line and for HTTP.

An answer is followed: a page that asks every second costs one look at the heads while nothing is
counted, and the new rows of the store when something was.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import PurePath
from threading import Lock
from typing import Final, TypeVar
from urllib.parse import urlsplit

from consumers.ledger.ledger import Ledger
from consumers.results.experiment_rows import ExperimentRows, Totals
from consumers.results.follow import Follower
from consumers.results.join_reader import JoinReader
from consumers.results.query import Query
from consumers.results.results import Results
from consumers.results.states import SliceState, results_of

T = TypeVar("T")
_Kept = tuple[Lock, Follower, ExperimentRows]

KEPT: Final = 256  # answers; a page asks for a few of each metric, again and again
KEPT_BYTES: Final = 1 << 30  # of the states behind them


def store_name(url: str) -> str:
    """A store as a title names it: its file, or its host and database, and never a password."""
    if "://" not in url:
        return PurePath(url).name
    parts = urlsplit(url)
    name = PurePath(parts.path).name or parts.scheme
    return f"{parts.hostname}/{name}" if parts.hostname else name


class Answers:
    """Reads a ledger for any number of threads. An answer that was asked for before costs what was
    counted since."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: OrderedDict[Query, _Kept] = OrderedDict()
        self._totals: Totals = {}
        self._joins = JoinReader(ledger)
        self._lock = Lock()

    def results(self, query: Query) -> Results:
        """As `read_results`."""
        return self._with(
            query,
            lambda follower, experiment: self._joins.beside(
                lambda: experiment.beside(follower.results)
            ),
        )

    def rows(self, query: Query) -> Results:
        """As `read_results`, and nothing of an experiment."""
        return self._with(query, lambda follower, _: follower.results())

    def experiment(self, query: Query) -> Results:
        """As `read_results`, and no rows."""

        def read() -> Results:
            return results_of(self._ledger.snapshot(generation=query.generation), ())

        return self._with(query, lambda _, experiment: experiment.beside(read))

    def states(self, query: Query, take: Callable[[Sequence[SliceState]], T]) -> T:
        """What `take` makes of the states behind the rows; it may not keep them."""
        return self._with(query, lambda follower, _: take(follower.states()))

    def _with(self, query: Query, work: Callable[[Follower, ExperimentRows], T]) -> T:
        with self._lock:
            one = self._kept.pop(query, None) or self._begin(query)
            self._kept[query] = one  # as the last one
        mine, follower, experiment = one
        with mine:
            found = work(follower, experiment)
        with self._lock:
            size = sum(kept.nbytes for _, kept, _ in self._kept.values())
            while len(self._kept) > KEPT or (size > KEPT_BYTES and self._kept):
                _, (_, oldest, _) = self._kept.popitem(last=False)
                size -= oldest.nbytes
        return found

    def _begin(self, query: Query) -> _Kept:
        return (
            Lock(),
            Follower(self._ledger, query),
            ExperimentRows(self._ledger, query, self._totals),
        )
