"""The measures of a whole list as a set, how many of it are judged, and measures of one order."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.errors import shown
from streammetrics.kernels.exact.double_double import quotient
from streammetrics.kernels.ranking import interpolated
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.hits import judged_shown, relevant_shown
from streammetrics.ranking.measure import (
    SHARE,
    Floats,
    Measure,
    OverKnown,
    Thresholded,
    Values,
    check_share,
    refused,
)

_THOUSANDTHS: Final = 1000


def _listed(lists: Ranked) -> Floats:
    """The number of items of each list; [n]."""
    return np.diff(lists.whole.offsets).astype(np.float64)


def _relevant_listed(lists: Ranked, rel: int) -> Floats:
    """The number of items of grade `rel` or more of each list; [n]."""
    return relevant_shown(lists, rel, None).high


class _SetP(Thresholded):
    """Relevant items of the list, over all items of the list: precision of the whole set."""

    name = "SetP"
    limits = SHARE
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        divisors = np.maximum(_listed(lists), 1.0)
        return Values(*relevant_shown(lists, self.rel, None, divisors))


@dataclass(frozen=True, repr=False)
class _SetF(OverKnown):
    """(1 + beta) times the relevant items of the list, over its items plus beta times R, all known
    relevant items.

    It is the harmonic mean of SetP and recall, in which recall weighs `beta` (1.0 by default) times
    as much as SetP, as in trec_eval and ir_measures; van Rijsbergen (1979, chapter 7) calls the
    square root of this weight beta. From 0.001 to 1000, in thousandths.
    """

    beta: float = 1.0
    name = "SetF"
    limits = SHARE
    has_recall = True
    cuts = "cannot"

    def __post_init__(self) -> None:
        super().__post_init__()
        beta: object = self.beta
        decimal = _decimal(beta)
        if decimal is None or not 1 <= decimal * _THOUSANDTHS <= 10**6:
            expected, where = "a number from 0.001 to 1000, in thousandths", f"{self.name}.beta"
            raise refused(expected, shown(beta), where, "pass a weight such as 0.5")
        object.__setattr__(self, "beta", float(decimal))

    def of(self, lists: Ranked) -> Values:
        weight = float((_decimal(self.beta) or 0) * _THOUSANDTHS)  # a whole number
        top = (_THOUSANDTHS + weight) * _relevant_listed(lists, self.rel)
        below = _THOUSANDTHS * _listed(lists) + weight * lists.known(self.rel)
        return Values(*quotient(top, np.maximum(below, 1.0)))


def _decimal(value: object) -> Fraction | None:
    """A number as the decimal that it prints as, if that is a whole number of thousandths."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < inf:
        return None
    decimal = Fraction(repr(float(value)))
    return decimal if (decimal * _THOUSANDTHS).denominator == 1 else None


class _SetAP(OverKnown):
    """SetP times recall: the square of the relevant items of the list, over the product of its
    items and R, all known relevant items."""

    name = "SetAP"
    limits = SHARE
    has_recall = True
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        relevant = _relevant_listed(lists, self.rel)
        below = _listed(lists) * lists.known(self.rel)
        return Values(*quotient(relevant * relevant, np.maximum(below, 1.0)))


class _NumRet(Measure):
    """The number of items of the list, also of one with nothing relevant if such lists count."""

    name = "NumRet"
    limits = (0.0, inf)
    of_empty = True
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(_listed(lists), np.zeros(lists.n))


class _NumRelRet(Thresholded):
    """The number of relevant items of the list."""

    name = "NumRelRet"
    limits = (0.0, inf)
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(_relevant_listed(lists, self.rel), np.zeros(lists.n))


class _NumRel(OverKnown):
    """The number of all known relevant items, in the list or not."""

    name = "NumRel"
    limits = (0.0, inf)
    cuts = "cannot"

    def of(self, lists: Ranked) -> Values:
        return Values(lists.known(self.rel).astype(np.float64), np.zeros(lists.n))


class _Judged(Measure):
    """Judged items among the first k, over k or the items of the list if these are fewer.

    So it is for a list with nothing relevant too, if such lists count.
    """

    name = "Judged"
    limits = SHARE
    of_empty = True

    def of(self, lists: Ranked) -> Values:
        return Values(*judged_shown(lists, self.cut))


@dataclass(frozen=True, repr=False)
class _IPrec(OverKnown):
    """Interpolated precision: the greatest P@i at any rank i with at least a share of recall.

    `recall`: this share of all known relevant items, from 0 to 1 (0.0 by default), as a number of
    items plus 0.9, rounded down, as in trec_eval 9. It has no mean over the orders of equal scores.
    """

    recall: float = 0.0
    name = "IPrec"
    limits = SHARE
    cuts = "cannot"
    ordered = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share(self, "recall", self.recall, 0.0)

    def unsettled(self, lists: Ranked) -> NDArray[np.intp]:
        """The lists in which relevant items and others have equal scores."""
        return interpolated.open_lists(lists, self.rel)

    def of(self, lists: Ranked) -> Values:
        return Values(*interpolated.precision(lists, self.rel, self.recall))


class _InfAP(OverKnown):
    """Inferred average precision: AP of a pool of which a random part is judged.

    P@i is that of the judged items above, as far as items above are of the pool: in `evaluate` the
    documents with a grade, below 0 if they were not judged. Without such grades it is AP but for a
    smoothing of 0.00001. It has no mean over the orders of equal scores.
    """

    name = "InfAP"
    limits = (0.0, inf)
    cuts = "cannot"
    ordered = True

    def unsettled(self, lists: Ranked) -> NDArray[np.intp]:
        """The lists in which relevant items and others have equal scores."""
        return interpolated.open_lists(lists, self.rel)

    def of(self, lists: Ranked) -> Values:
        return Values(*interpolated.inferred_precision(lists, self.rel))


SetP: Final = _SetP()
SetF: Final = _SetF()
SetAP: Final = _SetAP()
NumRet: Final = _NumRet()
NumRelRet: Final = _NumRelRet()
NumRel: Final = _NumRel()
Judged: Final = _Judged()
IPrec: Final = _IPrec()
InfAP: Final = _InfAP()
