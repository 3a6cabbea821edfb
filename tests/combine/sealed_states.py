"""Rows of users, and their sealed states in buckets."""

from __future__ import annotations

from random import Random
from typing import Any

from streammetrics import (
    Accumulator,
    GroupedAUC,
)
from streammetrics.combine.sealed import Sealed, Sealing, seal

DAY = "2026-11-01"


def sealing(n: int = 4, *, of: str = "user", name: str = "hash", scope: str = DAY) -> Sealing:
    return Sealing(of=of, n_buckets=n, hash=name, scope=scope)


def fed(rows: list[tuple[int, int, float]], metric: Accumulator | None = None) -> Accumulator:
    """A state of rows (user, label, score)."""
    state = (metric or GroupedAUC()).empty()
    if rows:
        users, labels, scores = zip(*rows, strict=True)
        state.update(labels=labels, scores=scores, groups=users)
    return state


def some_rows(n: int, seed: int, users: int = 9) -> list[tuple[int, int, float]]:
    random = Random(seed)
    return [
        (random.randrange(users), random.randrange(2), random.randrange(8) / 8) for _ in range(n)
    ]


def dealt(rows: list[tuple[int, int, float]], n: int, **how: Any) -> list[Sealed]:
    """The rows of users sealed in n buckets."""
    parts = [[row for row in rows if row[0] % n == bucket] for bucket in range(n)]
    return [seal(fed(part), sealing(n, **how), i) for i, part in enumerate(parts)]
