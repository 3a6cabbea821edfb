"""All data of the benchmarks: seeded, made in memory, without clock or network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

SEED = 20191124  # the first day of obd_men; an arbitrary but fixed number


def generator(stream: int = 0) -> np.random.Generator:
    """The random generator of one array; each array of a benchmark has another `stream`."""
    return np.random.default_rng([SEED, stream])


def labels(n: int, share: float = 0.05, stream: int = 1) -> NDArray[np.uint8]:
    """uint8 [n] of 0 and 1 with the given share of ones."""
    return (generator(stream).random(n, np.float32) < share).astype(np.uint8)


def uniform_scores(n: int, stream: int = 2) -> NDArray[np.float32]:
    """float32 [n], uniform in [0, 1): fills the most buckets."""
    return generator(stream).random(n, np.float32)


def click_scores(n: int, stream: int = 3) -> NDArray[np.float32]:
    """float32 [n] near 0 like click probabilities: log-normal, median 0.4 %, clipped at 1."""
    scores = 0.004 * np.exp(generator(stream).standard_normal(n, np.float32))
    return np.minimum(scores, np.float32(1))


def labels_of(
    scores: NDArray[np.floating], share: float = 0.05, stream: int = 7
) -> NDArray[np.uint8]:
    """uint8 [n] with about this share of ones; a higher score makes a one more likely."""
    chance = scores * (share / max(float(scores.mean()), 1e-30))
    return (generator(stream).random(len(scores), np.float32) < chance).astype(np.uint8)


def nasty_scores(n: int) -> dict[str, NDArray[np.float32]]:
    """float32 [n] by name: extreme cases for a sort or a table of counts."""
    uniform = uniform_scores(n)
    return {
        "all tied": np.full(n, 0.25, np.float32),
        "sorted": np.sort(uniform),
        "sorted backwards": np.sort(uniform)[::-1].copy(),
        "4 digits": np.round(uniform, 4),
        "0 and 1 only": np.round(uniform),
    }


def nasty_users(n: int) -> dict[str, NDArray[np.int64]]:
    """int64 [n] ids: of one user, of a million, and of as many users as rows, by name."""
    return {
        "one user": np.full(n, 1 << 40, np.int64),
        "a million users, evenly": generator(8).integers(0, 1_000_000, n),
        "a user a row": generator(9).permutation(n),
    }


Batch: TypeAlias = tuple[NDArray[np.generic], ...]


def cut(size: int, *columns: NDArray[np.generic]) -> list[Batch]:
    """Columns of equal length in batches of `size` rows."""
    starts = range(0, len(columns[0]), size)
    return [tuple(column[i : i + size] for column in columns) for i in starts]


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


@dataclass(frozen=True, slots=True)
class ScoredLists:
    """Lists of 20 to 100 items, concatenated; a tenth of the items is relevant.

    offsets: int64 [lists + 1]. grades: uint8 [items], 0 or, evenly, 1 to 4. scores: float32
    [items], uniform in [0, 1). relevant: uint8 [items], 1 where a grade is not 0.
    """

    offsets: NDArray[np.int64]
    grades: NDArray[np.uint8]
    scores: NDArray[np.float32]
    relevant: NDArray[np.uint8]

    def first(self, n: int) -> ScoredLists:
        """The first n lists."""
        end = self.offsets[n]
        return ScoredLists(
            self.offsets[: n + 1], self.grades[:end], self.scores[:end], self.relevant[:end]
        )

    def without_ties(self) -> ScoredLists:
        """The lists in which no two scores are equal, because peers treat ties differently."""
        owners = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        order = np.lexsort((self.scores, owners))
        same = np.diff(self.scores[order]) == 0
        tied = np.isin(owners, owners[order][1:][same & (np.diff(owners[order]) == 0)])
        sizes = np.bincount(owners[~tied], minlength=len(self.offsets) - 1)
        ends = np.concatenate([[0], np.cumsum(sizes[sizes > 0])])
        return ScoredLists(ends, self.grades[~tied], self.scores[~tied], self.relevant[~tied])


def scored_lists(n: int, stream: int = 30) -> ScoredLists:
    """Draw n lists, from this stream and the three after it."""
    offsets = np.concatenate([[0], np.cumsum(generator(stream).integers(20, 101, n))])
    items = int(offsets[-1])
    relevant = labels(items, 0.1, stream + 1)
    grades = relevant * generator(stream + 2).integers(1, 5, items, np.uint8)
    return ScoredLists(offsets, grades, uniform_scores(items, stream + 3), relevant)


def classes(n: int, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Truth and guess, uint8 [n] below `count`; half of the guesses are right."""
    truth = generator(50).integers(0, count, n, np.uint8)
    guess = generator(51).integers(0, count, n, np.uint8)
    return truth, np.where(generator(52).random(n) < 0.5, truth, guess)
