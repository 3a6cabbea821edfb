"""The measures of a ranked list as values: `NDCG @ 10` prints as `NDCG@10`.

What one prints is what a config accepts, the key in results and the label on the page.

>>> NDCG(gain="linear") @ 5
NDCG(gain="linear")@5
>>> AP(denominator="min") @ 3
AP(denominator="min")@3
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np

from streammetrics.core.checks import MAX_GRADE
from streammetrics.core.errors import shown
from streammetrics.kernels import first_hit
from streammetrics.kernels import gain as gains
from streammetrics.kernels.average_precision import average_precision
from streammetrics.kernels.bpref import bpref
from streammetrics.kernels.discounts import GAINS
from streammetrics.kernels.expected_reciprocal_rank import expected_reciprocal_rank
from streammetrics.kernels.hits import cumulative_gain, relevant_shown
from streammetrics.kernels.lists import Ranked
from streammetrics.kernels.rank_biased import rank_biased_precision
from streammetrics.ranking.measure import Measure, Values, refused

_CHOOSE: Final = "choose one of these"
_PASS: Final = "pass how likely a user goes on to the next item"


def _check_choice(measure: Measure, name: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in choices:
        expected = " or ".join(f'"{choice}"' for choice in choices)
        raise refused(expected, shown(value), f"{measure.name}.{name}", _CHOOSE)


@dataclass(frozen=True, repr=False)
class _Gained(Measure):
    """`gain`: "exponential", 2**grade - 1 (the default but for CG), or "linear", the grade."""

    gain: str = "exponential"

    def __post_init__(self) -> None:
        _check_choice(self, "gain", self.gain, tuple(GAINS))


@dataclass(frozen=True, repr=False)
class _Thresholded(Measure):
    """`rel`: the grade from which on an item is relevant, 1 to 15 (1 by default)."""

    rel: int = 1

    def __post_init__(self) -> None:
        if type(self.rel) is not int or not 1 <= self.rel <= MAX_GRADE:
            raise refused("a grade from 1 to 15", shown(self.rel), f"{self.name}.rel", _CHOOSE)


@dataclass(frozen=True, repr=False)
class _OverKnown(_Thresholded):
    """One whose value depends on how many items of grade `rel` or more are known."""

    @property
    def graded_from(self) -> int:
        return 0 if self.rel > 1 else super().graded_from


class _DCG(_Gained):
    """Sum of gain/log2(rank + 1) over the first k ranks (Jaervelin and Kekaelaeinen 2002)."""

    name = "DCG"
    rational = False

    def of(self, lists: Ranked) -> Values:
        return Values(gains.dcg(lists, self.gain, self.cut))


class _NDCG(_Gained):
    """DCG over the DCG of all known relevant items in their best order, both cut at k."""

    name = "NDCG"
    rational = False

    @property
    def graded_from(self) -> int:
        return 2

    def of(self, lists: Ranked) -> Values:
        return Values(gains.ndcg(lists, self.gain, self.cut))


@dataclass(frozen=True, repr=False)
class _CG(_Gained):
    """Sum of the gains, linear by default, of the first k (Jaervelin and Kekaelaeinen 2002)."""

    gain: str = "linear"
    name = "CG"

    def of(self, lists: Ranked) -> Values:
        return Values(*cumulative_gain(lists, self.gain, self.cut))


class _MRR(_Thresholded):
    """1/rank of the first relevant item, 0 when none is among the first k."""

    name = "MRR"

    def of(self, lists: Ranked) -> Values:
        return Values(*first_hit.reciprocal_rank(lists, self.rel, self.cut))


class _HR(_Thresholded):
    """1 if any of the first k items is relevant, else 0."""

    name = "HR"

    def of(self, lists: Ranked) -> Values:
        return Values(*first_hit.hit(lists, self.rel, self.cut))


class _PooledHR(_OverKnown):
    """Relevant items among the first k of all lists, over all known relevant items of all lists."""

    name = "PooledHR"
    pooled = True

    def of(self, lists: Ranked) -> Values:
        known = lists.known(self.rel).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, self.cut), known)


class _P(_Thresholded):
    """Relevant items among the first k, over k, also when the list is shorter."""

    name = "P"
    cuts = "must"

    def of(self, lists: Ranked) -> Values:
        assert self.cut is not None
        divisors = np.full(lists.n, float(self.cut))
        return Values(*relevant_shown(lists, self.rel, self.cut, divisors))


class _R(_OverKnown):
    """Relevant items among the first k, over all known relevant items."""

    name = "R"

    def of(self, lists: Ranked) -> Values:
        divisors = np.maximum(lists.known(self.rel), 1).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, self.cut, divisors))


class _RPrec(_OverKnown):
    """R-precision: relevant items among the first R, over R, the number of known relevant ones."""

    name = "RPrec"
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        known = lists.known(self.rel)
        divisors = np.maximum(known, 1).astype(np.float64)
        return Values(*relevant_shown(lists, self.rel, known, divisors))


@dataclass(frozen=True, repr=False)
class _AP(_OverKnown):
    """Average precision: the sum of P@i over the relevant ranks i of the first k, over R.

    `denominator`: "all" (default), R is the number of known relevant items, as in trec_eval, or
    "min", k where that is less.
    """

    denominator: str = "all"
    name = "AP"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_choice(self, "denominator", self.denominator, ("all", "min"))

    def of(self, lists: Ranked) -> Values:
        cut_denominator = self.denominator == "min"
        return Values(*average_precision(lists, self.rel, self.cut, cut_denominator))


@dataclass(frozen=True, repr=False)
class _ERR(Measure):
    """Expected reciprocal rank of where a user is content (Chapelle et al. 2009).

    `max_grade`: the highest grade there is (4 by default), at which (2**max_grade - 1) of
    2**max_grade users are; items of a higher grade are refused.
    """

    max_grade: int = 4
    name = "ERR"

    def __post_init__(self) -> None:
        if type(self.max_grade) is not int or not 1 <= self.max_grade <= MAX_GRADE:
            where = f"{self.name}.max_grade"
            raise refused("a grade from 1 to 15", shown(self.max_grade), where, _CHOOSE)

    @property
    def highest(self) -> int:
        return self.max_grade

    def of(self, lists: Ranked) -> Values:
        return Values(*expected_reciprocal_rank(lists, self.max_grade, self.cut))


@dataclass(frozen=True, repr=False)
class _RBP(_Thresholded):
    """Rank-biased precision: (1 - p) times the sum of p**(rank - 1) over relevant ranks.

    `p`: how likely a user goes on to the next item (0.8 by default), taken as the decimal that it
    prints as.
    """

    p: float = 0.8
    name = "RBP"

    def __post_init__(self) -> None:
        super().__post_init__()
        given: object = self.p
        if not isinstance(given, float) or not 0.0001 <= given < 1:
            raise refused("a float from 0.0001 to below 1", shown(given), "RBP.p", _PASS)
        object.__setattr__(self, "p", float(self.p))  # a float of numpy prints otherwise

    def of(self, lists: Ranked) -> Values:
        return Values(*rank_biased_precision(lists, self.p, self.rel, self.cut))


class _Bpref(_OverKnown):
    """Binary preference: how few judged items that are not relevant are above those that are."""

    name = "Bpref"
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(*bpref(lists, self.rel))


NDCG: Final = _NDCG()
DCG: Final = _DCG()
CG: Final = _CG()
MRR: Final = _MRR()
HR: Final = _HR()
PooledHR: Final = _PooledHR()
P: Final = _P()
R: Final = _R()
RPrec: Final = _RPrec()
AP: Final = _AP()
ERR: Final = _ERR()
RBP: Final = _RBP()
Bpref: Final = _Bpref()

MEASURES: Final[Mapping[str, Measure]] = MappingProxyType(
    {
        measure.name: measure
        for measure in (NDCG, DCG, CG, MRR, HR, PooledHR, P, R, RPrec, AP, ERR, RBP, Bpref)
    }
)
