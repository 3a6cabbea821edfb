"""Ranked lists with judgements, as the peers of trec_eval take them and as RankingMetrics does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streammetrics.ranking import Measure, RankingMetrics

UNIT = 2.0**-53  # what one rounding changes at most, as a share of the value


@dataclass(frozen=True)
class JudgedList:
    """ids: best first. truth: the grade of every item that somebody judged."""

    ids: tuple[str, ...]
    truth: Mapping[str, int]

    @property
    def scores(self) -> dict[str, float]:
        """Falling scores around 0 that float32 holds, so that every peer reads this order."""
        return {id_: len(self.ids) // 2 - float(rank) for rank, id_ in enumerate(self.ids)}

    @property
    def relevant(self) -> int:
        return sum(grade >= 1 for grade in self.truth.values())


def random_lists(n: int, *, seed: int, top: int = 4) -> list[JudgedList]:
    """Lists of 1 to 40 items out of 60, of which some are judged, and some of these relevant."""
    rng = np.random.default_rng(seed)
    lists = []
    for _ in range(n):
        pool = [f"d{i:02d}" for i in rng.permutation(60)]
        ids = tuple(pool[: rng.integers(1, 41)])
        judged = [id_ for id_ in pool if rng.random() < rng.choice([0.2, 0.6, 0.95])]
        share = rng.choice([0.0, 0.05, 0.3, 0.9], p=[0.1, 0.3, 0.4, 0.2])
        grades = np.where(rng.random(len(judged)) < share, rng.integers(1, top + 1, len(judged)), 0)
        lists.append(JudgedList(ids, dict(zip(judged, grades.tolist(), strict=True))))
    return lists


NASTY = [
    JudgedList(("a",), {"a": 1}),  # one item
    JudgedList(("a",), {"a": 0}),  # nothing relevant
    JudgedList(("a", "b"), {"c": 0}),  # nothing judged of what was found
    JudgedList(("a",), {"a": 4, "b": 4, "c": 1}),  # shorter than any cut; relevant items are missed
    JudgedList(("x", "y", "z"), {"a": 2, "b": 1}),  # no relevant item is found
    JudgedList(("x", "y", "a"), {"a": 3, "x": 0, "q": 0}),  # y is not judged, q was not found
    JudgedList(("a", "b", "c"), {"a": 1, "b": 1, "c": 1}),  # nobody judged anything as bad
    JudgedList(("u", "v", "w", "a", "x", "b"), {"a": 1, "b": 1, "x": 0}),  # the unjudged lead
    JudgedList(("x", "y", "z", "a"), {"a": 1, "x": 0, "y": 0, "z": 0}),  # more bad ones than good
    JudgedList((*(f"n{i}" for i in range(99)), "a"), {"a": 1}),  # found at rank 100
]

LISTS = NASTY + random_lists(150, seed=1)
LONGEST = max(len(ranking.ids) for ranking in LISTS)


def qrels(lists: Sequence[JudgedList]) -> dict[str, dict[str, int]]:
    """The judgements by list; lists are named 1, 2, ..., as gdeval asks."""
    return {str(i): dict(ranking.truth) for i, ranking in enumerate(lists, 1)}


def run(lists: Sequence[JudgedList]) -> dict[str, dict[str, float]]:
    """The scores by list."""
    return {str(i): ranking.scores for i, ranking in enumerate(lists, 1)}


def mean_values(measures: Sequence[Measure], lists: Sequence[JudgedList]) -> list[float]:
    """The means, lists with nothing relevant counting 0 as they do in trec_eval."""
    metric = RankingMetrics(measures, empty="zero", complete_lists=True)
    metric.update_ranked([ranking.ids for ranking in lists], [ranking.truth for ranking in lists])
    result = metric.compute()
    return [result[measure] for measure in measures]


def near(value: float, peer_value: float, roundings: int) -> bool:
    """Whether so many roundings on the peer's way to a sum of positive terms explain the gap.

    n roundings in a row change such a sum by no more than about n * 2**-53 of it (Higham 2002,
    "Accuracy and stability of numerical algorithms", section 4.2). Ours add 4: two units in the
    last place at most.
    """
    return abs(value - peer_value) <= (roundings + 4) * UNIT * abs(peer_value)
