"""The measures of lists whose items answer subtopics of a query: novelty and diversity."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Final

from streammetrics.kernels.ranking import novelty
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.ranking.measure import (
    SHARE,
    Thresholded,
    Values,
    check_parameter,
    check_share,
)


@dataclass(frozen=True, repr=False)
class _OfSubtopics(Thresholded):
    """A measure of the subtopics that items answer."""

    subtopics = True


@dataclass(frozen=True, repr=False)
class _AlphaNDCG(_OfSubtopics):
    """α-DCG over that of the greedy order of all known items, both cut at k (Clarke et al. 2008).

    An item at rank i gains (1 - alpha)**c / log2(i + 1) for each subtopic that it answers, if c
    items above it answer the subtopic too. The greedy order, as in the TREC tool ndeval, gives each
    rank an item of the greatest gain; it may not be the best one, so that a value can be above 1.
    `alpha`: from 0 to 1 (0.5 by default), taken as its printed decimal.
    """

    alpha: float = 0.5
    greedy = True
    name = "AlphaNDCG"
    limits = (0.0, inf)
    rational = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "alpha", self.alpha, 0.0)

    def of(self, lists: Ranked) -> Values:
        return Values(novelty.alpha_ndcg(lists, self.alpha, self.rel, self.cut))


@dataclass(frozen=True, repr=False)
class _ERRIA(_OfSubtopics):
    """Intent-aware expected reciprocal rank: the mean over subtopics of Σ (1 - alpha)**c / i.

    The sum is over the ranks i of the items that answer the subtopic; c items above answer it too.
    `denominator`: "perfect" (default), the value of a list whose every item answers it, as in the
    TREC tool ndeval; or "one", with alpha times the sum, the expectation of Chapelle et al. (2011)
    for a user who stops at each such item with probability alpha. `alpha`: from 0.001 to 1 (0.5 by
    default), taken as its printed decimal.
    """

    alpha: float = 0.5
    denominator: str = "perfect"
    name = "ERRIA"
    limits = SHARE
    cuts = "must"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "alpha", self.alpha, 0.001)
        check_parameter(self, "denominator", self.denominator, ("perfect", "one"))

    def of(self, lists: Ranked) -> Values:
        assert self.cut is not None
        perfect = self.denominator == "perfect"
        columns = novelty.intent_aware_err(lists, self.alpha, self.rel, self.cut, perfect)
        return Values(*columns)


class _StRecall(_OfSubtopics):
    """Subtopic recall: the share of subtopics that one of the first k items answers (Zhai et al.
    2003)."""

    name = "StRecall"
    limits = SHARE

    def of(self, lists: Ranked) -> Values:
        return Values(*novelty.subtopic_recall(lists, self.rel, self.cut))


AlphaNDCG: Final = _AlphaNDCG()
ERRIA: Final = _ERRIA()
StRecall: Final = _StRecall()
