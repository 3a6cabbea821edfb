"""The mean of each measure over all orders of tied items, in closed form, as Fractions.

Where a tie is too large for all its orders. Every function gives a formula of the ties (the grades
of the items of each score, from the highest score down) and of all judged grades.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import comb

from tests.oracles import ranking_measures as measures
from tests.oracles.ranking import UNJUDGED, Formula, Grades

Mean = Callable[[Sequence[Grades], Grades], Fraction]


def worst_order(ties: Sequence[Grades]) -> Grades:
    """The lowest grades of each tie first."""
    return tuple(grade for tie in ties for grade in sorted(tie))


def best_order(ties: Sequence[Grades]) -> Grades:
    """The highest grades of each tie first."""
    return tuple(grade for tie in ties for grade in sorted(tie, reverse=True))


def _placed(ties: Sequence[Grades], cut: int | None) -> Iterator[tuple[Grades, int, int]]:
    """Each tie that begins within the cut, how many items stand before it, how many of it count."""
    before = 0
    for tie in ties:
        counted = len(tie) if cut is None else min(len(tie), cut - before)
        if counted <= 0:
            return
        yield tie, before, counted
        before += len(tie)


def _weighted(
    gain: Callable[[int], int], weight: Callable[[int], Fraction | int], cut: int | None
) -> Callable[[Sequence[Grades]], Fraction]:
    """Mean of the sum of gain times weight(rank): a rank has the mean gain of its tie."""

    def mean(ties: Sequence[Grades]) -> Fraction:
        total = Fraction(0)
        for tie, before, counted in _placed(ties, cut):
            gains = sum(map(gain, tie))
            if gains:
                weights = sum((weight(before + j) for j in range(1, counted + 1)), Fraction(0))
                total += Fraction(gains, len(tie)) * weights
        return total

    return mean


def dcg(gain: str, cut: int | None) -> Mean:
    mean = _weighted(lambda grade: measures.gain_of(gain, grade), measures.discount, cut)
    return lambda ties, pool: mean(ties)


def ndcg(gain: str, cut: int | None) -> Mean:
    mean, ideal = dcg(gain, cut), measures.dcg(gain, cut)

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        best = ideal(pool, pool)
        return mean(ties, pool) / best if best else Fraction(0)

    return formula


def cg(gain: str, cut: int | None) -> Mean:
    mean = _weighted(lambda grade: measures.gain_of(gain, grade), lambda rank: 1, cut)
    return lambda ties, pool: mean(ties)


def hits(rel: int, cut: int | None) -> Mean:
    mean = _weighted(lambda grade: int(grade >= rel), lambda rank: 1, cut)
    return lambda ties, pool: mean(ties)


def precision(rel: int, cut: int) -> Mean:
    expected_hits = hits(rel, cut)
    return lambda ties, pool: expected_hits(ties, pool) / cut


def f1(rel: int, cut: int) -> Mean:
    expected_hits = hits(rel, cut)
    return lambda ties, pool: 2 * expected_hits(ties, pool) / (cut + measures.n_relevant(pool, rel))


def recall(rel: int, cut: int | None) -> Mean:
    expected_hits = hits(rel, cut)

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        total = measures.n_relevant(pool, rel)
        return expected_hits(ties, pool) / total if total else Fraction(0)

    return formula


def r_precision(rel: int) -> Mean:
    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        total = measures.n_relevant(pool, rel)
        return hits(rel, total)(ties, pool) / total if total else Fraction(0)

    return formula


def rank_biased_precision(p: str, rel: int, cut: int | None) -> Mean:
    share = Fraction(p)
    mean = _weighted(lambda grade: int(grade >= rel), lambda rank: share ** (rank - 1), cut)
    return lambda ties, pool: (1 - share) * mean(ties)


def hit(rel: int, cut: int | None) -> Mean:
    """All of the first ranks of a tie lack its r relevant items in C(n - r, m) of C(n, m) ways."""

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        missed = Fraction(1)
        for tie, _, counted in _placed(ties, cut):
            n, r = len(tie), sum(grade >= rel for grade in tie)
            missed *= Fraction(comb(n - r, counted), comb(n, counted))
        return 1 - missed

    return formula


def reciprocal_rank(rel: int, cut: int | None) -> Mean:
    """The first of r relevant items among n is at place j in C(n - j, r - 1) of C(n, r) ways."""

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        for tie, before, counted in _placed(ties, cut):
            n, r = len(tie), sum(grade >= rel for grade in tie)
            if r:
                ways = (Fraction(comb(n - j, r - 1), before + j) for j in range(1, counted + 1))
                return sum(ways, Fraction(0)) / comb(n, r)
        return Fraction(0)

    return formula


def average_precision(rel: int, denominator: str, cut: int | None) -> Mean:
    """Place j is relevant with chance r/n; above it are then (j - 1)(r - 1)/(n - 1) of its tie."""

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        over = measures.n_relevant(pool, rel)
        if denominator == "min" and cut is not None:
            over = min(over, cut)
        total, above = Fraction(0), 0
        for tie, before, counted in _placed(ties, cut):
            n, r = len(tie), sum(grade >= rel for grade in tie)
            for j in range(1, counted + 1) if r else ():
                of_tie = Fraction((j - 1) * (r - 1), n - 1) if n > 1 else 0
                total += Fraction(r, n) * (above + 1 + of_tie) / (before + j)
            above += r
        return total / over if over else Fraction(0)

    return formula


def expected_reciprocal_rank(max_grade: int, cut: int | None) -> Mean:
    """Not to have stopped after m items of a tie has the mean e_m/C(n, m).

    e_m is the elementary symmetric polynomial of its 1 - R_i; to stop at place m is the difference
    of two of these. Ties are independent.
    """

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        total, not_stopped = Fraction(0), Fraction(1)
        for tie, before, counted in _placed(ties, cut):
            n = len(tie)
            goes_on = [1 - Fraction(2**grade - 1, 2**max_grade) for grade in tie if grade > 0]
            if not goes_on:
                continue
            e = [Fraction(comb(n - len(goes_on), m)) for m in range(n + 1)]
            for x in goes_on:
                e = [e[m] + (x * e[m - 1] if m else 0) for m in range(n + 1)]
            after = [e[m] / comb(n, m) for m in range(counted + 1)]
            for m in range(1, counted + 1):
                total += not_stopped * (after[m - 1] - after[m]) / (before + m)
            not_stopped *= e[n]
        return total

    return formula


def bpref(rel: int) -> Mean:
    """Above a relevant item are 0 to b of the b judged others of its tie, all as likely."""

    def formula(ties: Sequence[Grades], pool: Grades) -> Fraction:
        relevant = measures.n_relevant(pool, rel)
        nonrelevant = len(pool) - relevant
        total, above = Fraction(0), 0
        for tie in ties:
            r = sum(grade >= rel for grade in tie)
            b = len(tie) - r - tie.count(UNJUDGED)
            lost = sum(min(above + j, relevant) for j in range(b + 1)) if r else 0
            if lost:
                lost_share = Fraction(lost, (b + 1) * min(nonrelevant, relevant))
                total -= r * lost_share
            total += r
            above += b
        return total / relevant if relevant else Fraction(0)

    return formula


def any_order(formula: Formula) -> Mean:
    """The mean of what is the same in each order."""
    return lambda ties, pool: formula(best_order(ties), pool)


def judged_share(cut: int | None) -> Mean:
    """A rank has the mean share of judged items of its tie."""
    mean = _weighted(lambda grade: int(grade != UNJUDGED), lambda rank: 1, cut)

    def share(ties: Sequence[Grades], pool: Grades) -> Fraction:
        size = sum(map(len, ties))
        size = size if cut is None else min(size, cut)
        return mean(ties) / size if size else Fraction(0)

    return share
