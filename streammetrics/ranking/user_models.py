"""The measures of a user who reads a list from the top and may stop at each item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import shown
from streammetrics.kernels.ranking.gain import expected_reciprocal_rank, rank_biased_precision
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.ranking.measure import CHOOSE, SHARE, Measure, Thresholded, Values, refused

_PASS: Final = "pass the probability that a user continues to the next item"


@dataclass(frozen=True, repr=False)
class _ERR(Measure):
    """Expected reciprocal rank at which a user is satisfied (Chapelle et al. 2009).

    `max_grade`: the highest grade (4 by default), which satisfies (2**max_grade - 1) of
    2**max_grade users; items of a higher grade are refused.
    """

    max_grade: int = 4
    name = "ERR"
    limits = SHARE

    def __post_init__(self) -> None:
        if type(self.max_grade) is not int or not 1 <= self.max_grade <= MAX_GRADE:
            where = f"{self.name}.max_grade"
            raise refused("a grade from 1 to 15", shown(self.max_grade), where, CHOOSE)

    @property
    def highest(self) -> int:
        return self.max_grade

    def of(self, lists: Ranked) -> Values:
        return Values(*expected_reciprocal_rank(lists, self.max_grade, self.cut))


@dataclass(frozen=True, repr=False)
class _RBP(Thresholded):
    """Rank-biased precision: (1 - p) times the sum of p**(rank - 1) over relevant ranks.

    `p`: the probability that a user continues to the next item (0.8 by default), taken as its
    printed decimal.
    """

    p: float = 0.8
    name = "RBP"
    limits = SHARE

    def __post_init__(self) -> None:
        super().__post_init__()
        persistence: object = self.p
        if not isinstance(persistence, float) or not 0.0001 <= persistence < 1:
            raise refused("a float from 0.0001 to below 1", shown(persistence), "RBP.p", _PASS)
        object.__setattr__(self, "p", float(self.p))  # a numpy float prints differently

    def of(self, lists: Ranked) -> Values:
        return Values(*rank_biased_precision(lists, self.p, self.rel, self.cut))


ERR: Final = _ERR()
RBP: Final = _RBP()
