"""Rows for the peers of torch, random and nasty, and how close float32 comes."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from tests.peers.torch_process import Step, Tensor, update

Labels = NDArray[np.int64]
Scores = NDArray[np.float32]


def rows() -> dict[str, tuple[Labels, Scores]]:
    """Labels and probabilities, which float32 holds, so that every peer reads the same numbers."""
    rng = np.random.default_rng(21)
    p = rng.random(600).astype(np.float32)
    drawn = (rng.random(600) < p).astype(np.int64)
    order = np.argsort(p, kind="stable")
    same = np.ones_like(p)
    return {
        "random": (drawn, p),
        "rare": ((rng.random(600) < p**8).astype(np.int64), p**8),
        "tied": (drawn, np.round(p, 1)),
        "sorted": (drawn[order], p[order]),
        "sorted down": (drawn[order[::-1]], p[order[::-1]]),
        "all tied": (drawn, same / 4),
        "all at the threshold": (drawn, same / 2),
        "all 1.0": (drawn, same),
        "all 0.0": (drawn, 0 * same),
        "separated": ((p > 0.5).astype(np.int64), p),
        "all wrong": ((p <= 0.5).astype(np.int64), p),
        "only positives": (np.ones_like(drawn), p),
        "only negatives": (np.zeros_like(drawn), p),
        "one row": (np.array([1]), np.array([0.75], np.float32)),
    }


ROWS = rows()
BOTH_CLASSES = [name for name, (labels, _) in ROWS.items() if 0 < labels.mean() < 1]


def lists() -> list[tuple[Labels, Scores]]:
    """Grades and scores of lists of 1 to 40 items: sorted either way, all relevant, none."""
    rng = np.random.default_rng(26)
    pairs = []
    for i in range(60):
        n = int(rng.integers(1, 41))
        grades = np.where(rng.random(n) < rng.choice([0, 0.05, 0.3, 1]), rng.integers(1, 5, n), 0)
        scores = (rng.permutation(n) + 1).astype(np.float32) / np.float32(64)
        scores = np.sort(scores)[:: 1 - 2 * (i % 2)] if i % 5 == 0 else scores
        pairs.append((grades.astype(np.int64), scores))
    return pairs


def updates(scores: NDArray[np.generic], labels: Labels, dtype: str = "float32") -> list[Step]:
    """The rows in three batches, in the order of arguments that torch's metrics have."""
    cut = [0, len(labels) // 3, len(labels) // 2, len(labels)]
    return [
        update(Tensor(scores[i:j], dtype), Tensor(labels[i:j], "int64"))
        for i, j in itertools.pairwise(cut)
        if j > i
    ]


def above(threshold: float) -> float:
    """The threshold that float32 scores reach where they exceed this one, as theirs must."""
    return float(np.nextafter(np.float32(threshold), np.float32(2)))


def equal(value: object, peer_value: object) -> bool:
    """Whether theirs is ours as float32, with nan for a 0 of theirs that stands for 0/0."""
    floats = np.nan_to_num(np.asarray(value, np.float64)).astype(np.float32)
    return bool(np.array_equal(floats, np.asarray(peer_value, np.float32)))


def close(value: object, peer_value: object, roundings: int = 64) -> bool:
    """Whether so many roundings of float32 explain the gap; both may be nan."""
    gap = roundings * 2.0**-24
    return bool(
        np.allclose(np.asarray(value), np.asarray(peer_value), rtol=gap, atol=gap, equal_nan=True)
    )


def undefined(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)
