"""Compactors in a simulation: each plans now, and merges now or some steps later."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

from streammetrics_consumers.ledger.compact import Compactor, MergeRun
from streammetrics_consumers.ledger.compaction import Group
from streammetrics_consumers.ledger.failures import StoreReplaced, StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.lives import Unsteady


class Compactions:
    """Two compactors of the store that is there, and what others have planned of earlier ones."""

    def __init__(self, rng: random.Random, seen: Counter[str], made: type[Compactor]) -> None:
        self._rng, self._seen, self._made = rng, seen, made
        self._compactors: list[Compactor] = []
        self._plans: list[tuple[Compactor, MergeRun, Group]] = []

    def open(self, ledger: Ledger) -> None:
        """This store is there from now on."""
        self._compactors = [self._made(ledger.store, above=1) for _ in range(2)]

    def happen(self, ledger: Ledger, unsteady: Unsteady) -> None:
        """They may plan, and what was planned may be merged, over a connection that may go."""
        rng = self._rng
        if rng.random() < 0.3:
            heads = [head.id for head in ledger.snapshot().heads]
            for compactor in self._compactors:
                for run in compactor.runs(heads)[:2]:
                    self._plans += [(compactor, run, rows) for rows in compactor.plan(run)]
        rng.shuffle(self._plans)
        while self._plans and rng.random() < 0.6:
            unsteady.fails = rng.choice([[], [], ["before"], ["after"]])[:]
            self._merge()
            unsteady.fails.clear()

    def finish(self) -> None:
        """Merge all that was planned."""
        while self._plans:
            self._merge()

    def _merge(self) -> None:
        compactor, run, rows = self._plans.pop()
        done = None
        with suppress(StoreReplaced, StoreUnavailable):
            done = compactor.merge(run, rows)
        self._seen["compaction was late" if done is None else "compacted"] += 1
