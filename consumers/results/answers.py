"""Answers to queries as bytes or text, made in one place for the command line and for HTTP.

A result is a function of the heads and deltas of the store, so an answer is kept until these
change, and a page that asks every second costs one look at the heads.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import PurePath
from threading import Lock
from typing import Final
from urllib.parse import urlsplit

from consumers.ledger.ledger import Ledger
from consumers.ledger.rows import Snapshot
from consumers.results.figures_table import Truth
from consumers.results.query import Query, require_generation
from consumers.results.reader import read_results
from consumers.results.results import Results
from consumers.results.table import table
from consumers.results.terminal import Style

KEPT: Final = 32  # answers; a page asks for a few, again and again


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
    """Reads a ledger, and keeps the last answers for as long as nothing was committed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: OrderedDict[Query, tuple[Snapshot, Results]] = OrderedDict()
        self._lock = Lock()

    def results(self, query: Query) -> Results:
        """As `read_results`."""
        if query.generation is not None:
            require_generation(query.generation, [one.id for one in self._ledger.generations()])
        seen = self._ledger.snapshot(generation=query.generation)
        with self._lock:
            known = self._kept.get(query)
        if known is not None and known[0] == seen:
            return known[1]
        # Read after it was seen: what is kept under `seen` may be newer, never older.
        results = read_results(self._ledger, query)
        with self._lock:
            self._kept[query] = seen, results
            self._kept.move_to_end(query)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return results
