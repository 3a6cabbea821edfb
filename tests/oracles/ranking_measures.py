"""What one order of a list is worth under each measure, from the definitions, as Fractions.

Every function gives a formula of the ranked grades and of all judged grades (best first). `rel` is
the grade from which on an item is relevant, R how many judged items are, `cut` the last rank that
counts (None: all of them). Irrational discounts are taken to 60 digits.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from fractions import Fraction
from functools import cache

from tests.oracles.ranking import UNJUDGED, Formula, Grades


def cg(gain: str, cut: int | None) -> Formula:
    """Sum of gains (Jaervelin and Kekaelaeinen 2002)."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        return Fraction(sum(gain_of(gain, grade) for grade in ranked[:cut]))

    return formula


def dcg(gain: str, cut: int | None) -> Formula:
    """Sum of gain/log2(rank + 1)."""

    @cache
    def formula(ranked: Grades) -> Fraction:
        return _total(
            gain_of(gain, grade) * discount(rank)
            for rank, grade in enumerate(ranked[:cut], 1)
            if grade > 0
        )

    return lambda ranked, pool: formula(ranked)


def ndcg(gain: str, cut: int | None) -> Formula:
    """DCG over that of all known grades in their best order; 0 where that is 0."""
    sum_of = dcg(gain, cut)

    @cache
    def formula(ranked: Grades, pool: Grades) -> Fraction:
        best = sum_of(pool, pool)
        return sum_of(ranked, pool) / best if best else Fraction(0)

    return formula


def reciprocal_rank(rel: int, cut: int | None) -> Formula:
    """1/rank of the first relevant item, 0 without one."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        ranks = _relevant_ranks(ranked[:cut], rel)
        return Fraction(1, ranks[0]) if ranks else Fraction(0)

    return formula


def hit(rel: int, cut: int | None) -> Formula:
    """Whether a relevant item is in the first `cut`."""
    return lambda ranked, pool: Fraction(bool(_relevant_ranks(ranked[:cut], rel)))


def hits(rel: int, cut: int | None) -> Formula:
    """How many relevant items are in the first `cut`."""
    return lambda ranked, pool: Fraction(len(_relevant_ranks(ranked[:cut], rel)))


def precision(rel: int, cut: int) -> Formula:
    """Relevant items in the first `cut`, over `cut`, also where the list is shorter."""
    return lambda ranked, pool: Fraction(len(_relevant_ranks(ranked[:cut], rel)), cut)


def recall(rel: int, cut: int | None) -> Formula:
    """Relevant items in the first `cut`, over R; 0 where that is 0."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        total = n_relevant(pool, rel)
        count = len(_relevant_ranks(ranked[:cut], rel))
        return Fraction(count, total) if total else Fraction(0)

    return formula


def f1(rel: int, cut: int) -> Formula:
    """The harmonic mean of precision and recall; 0 where both are 0."""
    p, r = precision(rel, cut), recall(rel, cut)

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        a, b = p(ranked, pool), r(ranked, pool)
        return 2 * a * b / (a + b) if a + b else Fraction(0)

    return formula


def average_precision(rel: int, denominator: str, cut: int | None) -> Formula:
    """Sum of the precisions at the relevant ranks, over R ("all") or min(R, cut) ("min")."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        over = n_relevant(pool, rel)
        if denominator == "min" and cut is not None:
            over = min(over, cut)
        ranks = _relevant_ranks(ranked[:cut], rel)
        total = _total(Fraction(i, rank) for i, rank in enumerate(ranks, 1))
        return total / over if over else Fraction(0)

    return formula


def expected_reciprocal_rank(max_grade: int, cut: int | None) -> Formula:
    """Sum of R_r/r times the product of the 1 - R_i before it (Chapelle et al. 2009, eq. 5)."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        terms, not_stopped = [], Fraction(1)
        for rank, grade in enumerate(ranked[:cut], 1):
            if grade > 0:
                stops = Fraction(2**grade - 1, 2**max_grade)
                terms.append(not_stopped * stops / rank)
                not_stopped *= 1 - stops
        return _total(terms)

    return formula


def rank_biased_precision(p: str, rel: int, cut: int | None) -> Formula:
    """(1 - p) times the sum of p^(rank - 1) over relevant ranks (Moffat and Zobel 2008)."""
    share = Fraction(p)

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        ranks = _relevant_ranks(ranked[:cut], rel)
        return (1 - share) * _total(share ** (rank - 1) for rank in ranks)

    return formula


def r_precision(rel: int) -> Formula:
    """Relevant items in the first R, over R; 0 where that is 0."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        total = n_relevant(pool, rel)
        count = len(_relevant_ranks(ranked[:total], rel))
        return Fraction(count, total) if total else Fraction(0)

    return formula


def bpref(rel: int) -> Formula:
    """Buckley and Voorhees (2004) as in m_bpref.c of trec_eval.

    (1/R) sum over relevant items in the list of 1 - min(n, R)/min(N, R): n the judged items that
    are not relevant and stand above it, N all judged items that are not relevant. 1 where n is 0.
    """

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        relevant = n_relevant(pool, rel)
        nonrelevant = len(pool) - relevant
        total, above = Fraction(0), 0
        for grade in ranked:
            if grade >= rel:
                total += (
                    1 - Fraction(min(above, relevant), min(nonrelevant, relevant)) if above else 1
                )
            elif grade != UNJUDGED:
                above += 1
        return total / relevant if relevant else Fraction(0)

    return formula


def set_precision(rel: int) -> Formula:
    """Relevant items over all items of the list; 0 for a list of none."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        return Fraction(len(_relevant_ranks(ranked, rel)), len(ranked)) if ranked else Fraction(0)

    return formula


def set_f(rel: int, beta: str) -> Formula:
    """(beta + 1) P R / (R + beta P), as m_set_F.c of trec_eval has it."""
    weight = Fraction(beta)

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        p, r = set_precision(rel)(ranked, pool), recall(rel, None)(ranked, pool)
        return (weight + 1) * p * r / (r + weight * p) if p else Fraction(0)

    return formula


def set_average_precision(rel: int) -> Formula:
    """P times R, as m_set_map.c of trec_eval has it."""
    return lambda ranked, pool: set_precision(rel)(ranked, pool) * recall(rel, None)(ranked, pool)


def number_listed(rel: int) -> Formula:
    """How many items the list has of this grade or more; 0: of all."""
    return lambda ranked, pool: Fraction(len(_relevant_ranks(ranked, rel)) if rel else len(ranked))


def number_known(rel: int) -> Formula:
    """R."""
    return lambda ranked, pool: Fraction(n_relevant(pool, rel))


def judged_share(cut: int | None) -> Formula:
    """The share of judged items in the first `cut`, or in all if there are fewer."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        top = ranked[:cut]
        return Fraction(sum(g != UNJUDGED for g in top), len(top)) if top else Fraction(0)

    return formula


def interpolated_precision(rel: int, recall_share: float) -> Formula:
    """The greatest precision of any rank at or below that of the item with this share of recall, as
    m_iprec_at_recall.c of trec_eval 9 counts the items."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        needed = int(recall_share * n_relevant(pool, rel) + 0.9)
        ranks = enumerate(_relevant_ranks(ranked, rel), 1)
        return max((Fraction(j, rank) for j, rank in ranks if j >= needed), default=Fraction(0))

    return formula


def inferred_precision(rel: int) -> Formula:
    """m_infap.c of trec_eval, where all of the pool is judged."""

    def formula(ranked: Grades, pool: Grades) -> Fraction:
        total, above, nonrelevant, epsilon = Fraction(0), 0, 0, Fraction(1, 100_000)
        for rank, grade in enumerate(ranked, 1):
            if grade >= rel:
                share = (above + epsilon) / (above + nonrelevant + 2 * epsilon)
                total += Fraction(1, rank) + Fraction(above + nonrelevant, rank) * share
                above += 1
            elif grade != UNJUDGED:
                nonrelevant += 1
        relevant = n_relevant(pool, rel)
        return total / relevant if relevant else Fraction(0)

    return formula


def n_relevant(pool: Grades, rel: int) -> int:
    """R: how many judged items have at least this grade."""
    return sum(grade >= rel for grade in pool)


def gain_of(gain: str, grade: int) -> int:
    """What an item adds: 2^grade - 1 or its grade; nothing where nobody judged it."""
    grade = max(grade, 0)
    return 2**grade - 1 if gain == "exponential" else grade


@cache
def discount(rank: int) -> Fraction:
    """1/log2(rank + 1) to 60 digits."""
    with decimal.localcontext() as context:
        context.prec = 60
        return Fraction(decimal.Decimal(2).ln() / decimal.Decimal(rank + 1).ln())


def _relevant_ranks(ranked: Grades, rel: int) -> list[int]:
    return [rank for rank, grade in enumerate(ranked, 1) if grade >= rel]


def _total(terms: Iterable[Fraction]) -> Fraction:
    return sum(terms, Fraction(0))
