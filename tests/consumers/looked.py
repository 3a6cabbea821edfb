"""Looks at an experiment in a simulation: claimed, read, and taken at once or some steps later."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress

from streammetrics_consumers.ledger.failures import StoreReplaced
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.looks import LookRow, claim, heads_of, read_monitor, take
from streammetrics_consumers.ledger.view import view

from streammetrics.experiments import Look

PRINT = "print of an experiment"
Held = tuple[Ledger, LookRow, int]  # where it was read, what it says, and when it was claimed


class OutOfOrder(AssertionError):
    """A look is not where it can be."""


class Looks:
    """Those who look. After each look, all looks in the store must follow one another."""

    def __init__(self, rng: random.Random, seen: Counter[str]) -> None:
        self._rng, self._seen = rng, seen
        self._held: list[Held] = []
        self._now_ms = 0

    def happen(self, ledger: Ledger, generation: int) -> None:
        """Somebody may claim a look and read, and somebody who has read may take one."""
        rng = self._rng
        if rng.random() < 0.3:
            self._hold(ledger, generation)
        rng.shuffle(self._held)
        while self._held and rng.random() < 0.6:
            self.take(*self._held.pop())
        require_in_order(ledger, generation)

    def finish(self, ledger: Ledger, generation: int) -> None:
        """All who have read take their looks, if they still may."""
        self._hold(ledger, generation)
        while self._held:
            self.take(*self._held.pop())
        require_in_order(ledger, generation)

    def _hold(self, ledger: Ledger, generation: int) -> None:
        self._held.append(self.read(ledger, generation, self.claim(ledger, generation)))

    def claim(self, ledger: Ledger, generation: int) -> int:
        """Claim a look, which is always due; answers the time of the claim."""
        self._now_ms += 1000
        now_ms = self._now_ms
        assert claim(ledger.store, generation, PRINT, now_ms=now_ms, every_ms=1, last=False)
        return now_ms

    def read(self, ledger: Ledger, generation: int, claimed_ms: int) -> Held:
        """What a look would say now."""
        version = view(ledger, lambda now: now.version, generation=generation)
        heads = heads_of(version.heads, version.retry)
        return ledger, LookRow(Look.at(PRINT, generation, heads, {}), None, {}), claimed_ms

    def take(self, mine: Ledger, row: LookRow, claimed_ms: int) -> None:
        """Take a look that was read, if it still may be taken."""
        with suppress(StoreReplaced):
            done = take(mine.store, row, claimed_ms)
            self._seen["looked" if done else "look was late"] += 1


def require_in_order(ledger: Ledger, generation: int) -> None:
    """No look is at more than the store has counted, and each is at no less than the one before."""
    monitor = ledger.store.read(lambda one: read_monitor(one, generation, PRINT))
    now = view(ledger, lambda seen: seen.version, generation=generation)
    before: dict[str, int] = {}
    places = [dict(one.heads) for one in monitor.looks.values()]
    places.sort(key=lambda heads: (sum(heads.values()), len(heads)))  # a new log may stand at 0
    for heads in [*places, heads_of(now.heads, now.retry)]:
        if any(heads.get(name, -(1 << 62)) < offset for name, offset in before.items()):
            raise OutOfOrder(f"looks are not in order: {before}, then {heads}")
        before = heads
