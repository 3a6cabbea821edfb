"""Answers to queries as bytes or text, made in one place for the command line and for HTTP.

An answer is followed: a page that asks every second costs one look at the heads while nothing is
counted, and the new rows of the store when something was.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import PurePath
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from consumers.ledger.ledger import Ledger
from consumers.results.figures_table import Truth
from consumers.results.follow import Follower
from consumers.results.query import Query
from consumers.results.results import Results
from consumers.results.table import table
from consumers.results.terminal import Style

KEPT: Final = 32  # answers; a page asks for a few, again and again
KEPT_BYTES: Final = 1 << 30  # of the states behind them


def results_text(
    results: Results, query: Query, style: Style, *, store: str, truth: Truth | None = None
) -> str:
    """The text of `results`, and in plain style of `GET /results.txt`."""
    title = f"{store_name(store)}, generation {results.generation}"
    return table(results, style, title=title, all_views=query.metric is not None, truth=truth)


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
        self._kept: OrderedDict[Query, tuple[Lock, Follower]] = OrderedDict()
        self._lock = Lock()

    def results(self, query: Query) -> Results:
        """As `read_results`."""
        with self._lock:
            one = self._kept.pop(query, None) or (Lock(), Follower(self._ledger, query))
            self._kept[query] = one  # as the last one
        mine, follower = one
        with mine:
            results = follower.results()
        with self._lock:
            size = sum(kept.nbytes for _, kept in self._kept.values())
            while len(self._kept) > KEPT or (size > KEPT_BYTES and self._kept):
                _, (_, oldest) = self._kept.popitem(last=False)
                size -= oldest.nbytes
        return results
