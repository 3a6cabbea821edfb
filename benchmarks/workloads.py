"""All data of the benchmarks: seeded, made in memory, no clock and no network."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SEED = 20191124  # the first day of obd_men; any number would do, but one


def generator(stream: int = 0) -> np.random.Generator:
    """The random numbers of one workload; another `stream` for each array that a bench needs."""
    return np.random.default_rng([SEED, stream])


def labels(n: int, share: float = 0.05, stream: int = 1) -> NDArray[np.uint8]:
    """uint8 [n] of 0 and 1 with the given share of ones."""
    return (generator(stream).random(n, np.float32) < share).astype(np.uint8)


def uniform_scores(n: int, stream: int = 2) -> NDArray[np.float32]:
    """float32 [n], uniform in [0, 1): the most buckets at once."""
    return generator(stream).random(n, np.float32)


def click_scores(n: int, stream: int = 3) -> NDArray[np.float32]:
    """float32 [n] near 0 as click probabilities are: log-normal, median 0.4 %, cut at 1."""
    scores = 0.004 * np.exp(generator(stream).standard_normal(n, np.float32))
    return np.minimum(scores, np.float32(1))


def unit_floats(n: int, stream: int = 4) -> NDArray[np.float64]:
    """float64 [n], uniform in [0, 1)."""
    return generator(stream).random(n)


def wild_floats(n: int, stream: int = 5) -> NDArray[np.float64]:
    """float64 [n] of either sign and of magnitudes from 1e-150 to 1e150."""
    rng = generator(stream)
    return rng.standard_normal(n) * 10.0 ** rng.uniform(-150, 150, n)


def users(n: int, n_users: int, exponent: float = 1.1, stream: int = 6) -> NDArray[np.int64]:
    """int64 [n] ids of at most `n_users` users; activity falls as rank ** -exponent."""
    rng = generator(stream)
    share = np.arange(1, n_users + 1) ** -exponent
    rank = np.searchsorted(np.cumsum(share) / share.sum(), rng.random(n))
    ids = rng.integers(0, 1 << 62, n_users, dtype=np.int64)
    return ids[np.minimum(rank, n_users - 1)]
