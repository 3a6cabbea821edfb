"""Which formula, and which closed form of its mean over tied items, belong to a measure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

from streammetrics.ranking import (
    AP,
    CG,
    DCG,
    ERR,
    F1,
    HR,
    MRR,
    NDCG,
    RBP,
    Bpref,
    InfAP,
    IPrec,
    Judged,
    Measure,
    NumRel,
    NumRelRet,
    NumRet,
    P,
    PooledHR,
    R,
    RPrec,
    SetAP,
    SetF,
    SetP,
)
from tests.oracles import ranking_measures as one
from tests.oracles import tied_means as mean
from tests.oracles.ranking import AllOrders, Formula, Grades, judged, ties_of
from tests.oracles.tied_means import Mean, best_order, worst_order

# The grades of each tie, the order where ties have one, and the grades that are known.
Parted: TypeAlias = tuple[list[Grades], Grades | None, Grades]


def parted(items: Sequence[tuple[float, int]], ties: str, unseen: Grades = ()) -> Parted:
    """What every measure sees of one list."""
    groups, pool = ties_of(items), judged([grade for _, grade in items], unseen)
    if ties == "expected":
        return groups, None, pool
    return groups, {"worst": worst_order, "best": best_order}[ties](groups), pool


@dataclass(frozen=True)
class Truth:
    """What a measure is of one order, and of all orders; by how many last digits it may be off.

    Of a measure of pooled lists `formula` is the numerator, and R by `pooled` the denominator.
    """

    measure: Measure
    formula: Formula
    mean: Mean
    ulps: int = 0
    pooled: int | None = None

    def value(self, items: Sequence[tuple[float, int]], ties: str, unseen: Grades = ()) -> Fraction:
        """The value of one list (of a pooled measure: its numerator), without trying all orders."""
        return self.value_of_parted(parted(items, ties, unseen))

    def value_of_parted(self, one_list: Parted) -> Fraction:
        """The value of a list that was parted once for all measures."""
        groups, order, pool = one_list
        return self.mean(groups, pool) if order is None else self.formula(order, pool)

    def denominator(self, items: Sequence[tuple[float, int]], unseen: Grades = ()) -> int:
        """What stands below the value of one list: R where lists are pooled, else 1."""
        if self.pooled is None:
            return 1
        return one.n_relevant(judged([grade for _, grade in items], unseen), self.pooled)

    def denominators(self, lists: AllOrders) -> list[int]:
        """`denominator` of each of many lists."""
        if self.pooled is None:
            return [1] * len(lists.lists)
        return [self.denominator(items, lists.unseen) for items in lists.lists]

    def agrees(self, got: float, top: int | Fraction, bottom: int) -> bool:
        """Whether a double is top/bottom, correctly rounded or within `ulps`; nan where 0/0."""
        if not bottom:
            return math.isnan(got)
        exact = float(top / bottom)  # of integers or a Fraction: rounded once, correctly
        return got == exact or abs(got - exact) <= self.ulps * math.ulp(exact)


# The measures that the stored states of the cases have.
STORED = ("CG", "MRR", "HR", "PooledHR", "P", "R", "F1", "AP", "ERR", "RBP", "RPrec", "Bpref")


def truths(
    cuts: Sequence[int | None], *, rel: Sequence[int] = (1, 2), max_grade: Sequence[int] = (4, 2)
) -> list[Truth]:
    """Every measure with several parameters at each cut."""
    return [*_without_cut(rel), *(truth for k in cuts for truth in _cut_truths(k, rel, max_grade))]


def _cut_truths(k: int | None, rels: Sequence[int], highest: Sequence[int]) -> Iterator[Truth]:
    def cut(measure: Measure) -> Measure:
        return measure if k is None else measure @ k

    for gain in ("exponential", "linear"):
        yield Truth(cut(NDCG(gain=gain)), one.ndcg(gain, k), mean.ndcg(gain, k), 3)
        yield Truth(cut(DCG(gain=gain)), one.dcg(gain, k), mean.dcg(gain, k), 2)
        yield Truth(cut(CG(gain=gain)), one.cg(gain, k), mean.cg(gain, k))
    for rel in rels:
        yield Truth(cut(MRR(rel=rel)), one.reciprocal_rank(rel, k), mean.reciprocal_rank(rel, k))
        yield Truth(cut(HR(rel=rel)), one.hit(rel, k), mean.hit(rel, k))
        yield Truth(cut(PooledHR(rel=rel)), one.hits(rel, k), mean.hits(rel, k), pooled=rel)
        yield Truth(cut(R(rel=rel)), one.recall(rel, k), mean.recall(rel, k))
        if k is not None:
            yield Truth(P(rel=rel) @ k, one.precision(rel, k), mean.precision(rel, k))
            yield Truth(F1(rel=rel) @ k, one.f1(rel, k), mean.f1(rel, k))
        for over in ("all", "min"):
            yield Truth(
                cut(AP(rel=rel, denominator=over)),
                one.average_precision(rel, over, k),
                mean.average_precision(rel, over, k),
            )
    yield Truth(cut(Judged), one.judged_share(k), mean.judged_share(k))
    for most in highest:
        yield Truth(
            cut(ERR(max_grade=most)),
            one.expected_reciprocal_rank(most, k),
            mean.expected_reciprocal_rank(most, k),
        )
    for p, rel in ((0.8, 1), (0.5, 2), (0.95, 1)):
        yield Truth(
            cut(RBP(p=p, rel=rel)),
            one.rank_biased_precision(str(p), rel, k),
            mean.rank_biased_precision(str(p), rel, k),
        )


def _without_cut(rels: Sequence[int]) -> Iterator[Truth]:
    yield Truth(NumRet, one.number_listed(0), mean.any_order(one.number_listed(0)))
    for rel in rels:
        yield Truth(RPrec(rel=rel), one.r_precision(rel), mean.r_precision(rel))
        yield Truth(Bpref(rel=rel), one.bpref(rel), mean.bpref(rel))
        whole: list[tuple[Measure, Formula]] = [
            (SetP(rel=rel), one.set_precision(rel)),
            (SetF(rel=rel), one.set_f(rel, "1")),
            (SetF(rel=rel, beta=0.123), one.set_f(rel, "0.123")),
            (SetAP(rel=rel), one.set_average_precision(rel)),
            (NumRelRet(rel=rel), one.number_listed(rel)),
            (NumRel(rel=rel), one.number_known(rel)),
        ]
        for measure, formula in whole:
            yield Truth(measure, formula, mean.any_order(formula))


def ordered_truths(rels: Sequence[int] = (1, 2)) -> list[Truth]:
    """The measures that have no mean over the orders of tied items."""
    rows = []
    for rel in rels:
        formula = one.inferred_precision(rel)
        rows.append(Truth(InfAP(rel=rel), formula, mean.any_order(formula)))
        for recall in (0.0, 0.1, 0.35, 1.0):
            formula = one.interpolated_precision(rel, recall)
            rows.append(Truth(IPrec(rel=rel, recall=recall), formula, mean.any_order(formula)))
    return rows


def differences(
    values: Mapping[Measure, Sequence[float]],
    lists: AllOrders,
    chosen: Sequence[Truth],
    ties: str,
) -> list[str]:
    """Where the value of a list is not that of all its orders; at most five of each measure."""
    wrong = []
    for truth in chosen:
        tops, unit = lists.tops(truth.formula, ties)
        bottoms = [bottom * unit for bottom in truth.denominators(lists)]
        got = values[truth.measure]
        wrong += [
            f"{truth.measure} of {lists.lists[i]}: {got[i]!r}, not {Fraction(top, bottom or 1)}"
            for i, (top, bottom) in enumerate(zip(tops.tolist(), bottoms, strict=True))
            if not truth.agrees(got[i], top, bottom)
        ][:5]
    return wrong
