"""The e-value of counts against given shares, under a Dirichlet mixture of other shares.

    e = B(a + n) / B(a) · Π p_i^(-n_i),

with counts n_i, shares p_i, the prior a_i, and B the multivariate beta function: a likelihood
ratio, of mean 1 under the shares, at every look. Two classes give the beta-binomial mixture.
(Robbins 1970, Ann. Math. Stat. 41, 1397-1409; Lindon and Malek 2022, NeurIPS, section 3.)

As a difference of ln Γ this is off by 2.4e-6 at 1e9 rows and 2.5e-3 at 1e12. Here the large terms
of Stirling's formula are combined before any is rounded, which is off by less than 1e-13 of the
value or of 1 at any size: with A_i = a_i + n_i, A = Σ A_i, a = Σ a_i, the deviance
D(x, m) = x ln(x/m) - x + m, and R the remainder of Stirling's formula,

    ln e = Σ D(A_i, A p_i) - Σ D(a_i, a p_i) - ½ Σ ln(A_i a / (A a_i)) - (K - 1)/2 ln(A/a)
           + Σ (R(A_i) - R(a_i)) - R(A) + R(a).

All differences and ratios are exact. It is the last step of a result; no state stores it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.tails import (
    chi2_sf,
    deviance_near,
    last_inside,
    stirling_remainder,
)

Number = int | float | Fraction


def log_e_of_counts(
    counts: Sequence[int], shares: Sequence[Number], prior: Sequence[Number]
) -> float:
    """The logarithm of e: counts [k] against shares [k] of sum 1, with a prior [k] above 0.

    One row in a class of share 0 is infinite evidence. Without rows, such a class may have a prior
    of 0 and is then ignored. 0 if no class has rows.

    >>> log_e_of_counts([1, 0], [Fraction(1, 2), Fraction(1, 2)], [1.0, 1.0])
    0.0
    >>> log_e_of_counts([3, 1], [1, 0], [1, 1])
    inf
    """
    classes = [(n, Fraction(p), Fraction(a)) for n, p, a in zip(counts, shares, prior, strict=True)]
    if any(n and not p for n, p, _ in classes):
        return math.inf
    classes = [class_ for class_ in classes if class_[2]]
    rows = sum(n for n, _, _ in classes)
    if not rows:
        return 0.0
    # Everything below is in integers, over one denominator of the priors and one of the shares:
    # a Fraction would compute a common divisor at each step.
    unit = math.lcm(*(a.denominator for _, _, a in classes))
    priors = [a.numerator * (unit // a.denominator) for _, _, a in classes]
    before = sum(priors)
    after = before + rows * unit
    # The share of a class without rows is in no term of e, so a class of share 0 may be given one.
    # The factor by which this reduces the other shares is compensated below.
    empty_share = Fraction(
        sum(a for a, (_, p, _) in zip(priors, classes, strict=True) if not p), after
    )
    left = 1 - empty_share
    expected = (
        [
            p * left if p else Fraction(a, after)
            for a, (_, p, _) in zip(priors, classes, strict=True)
        ]
        if empty_share
        else [p for _, p, _ in classes]
    )
    whole = math.lcm(*(p.denominator for p in expected))
    terms = [
        float(rows) * log_ratio(left.numerator, left.denominator),
        -0.5 * (len(classes) - 1) * log_ratio(after, before),
        stirling_remainder(before / unit) - stirling_remainder(after / unit),
    ]
    for (n, _, _), p, a in zip(classes, expected, priors, strict=True):
        share, x = p.numerator * (whole // p.denominator), a + n * unit
        terms += (
            _deviance(x * whole, after * share, unit * whole),
            -_deviance(a * whole, before * share, unit * whole),
            -0.5 * log_ratio(x * before, after * a),
            _remainder(x, unit) - _remainder(a, unit),
        )
    return math.fsum(terms)


def _deviance(x: int, mean: int, unit: int) -> float:
    """`x ln(x / mean) - x + mean` of x / unit and mean / unit, however close these are."""
    apart, v = (x - mean) / unit, (x - mean) / (x + mean)
    if abs(v) > 0.05:
        return x / unit * log_ratio(x, mean) - apart
    return deviance_near(x / unit, apart, v)


def _remainder(a: int, unit: int) -> float:
    """R(a / unit) by its recurrence where a / unit, and so 1 over it, may be beyond the floats."""
    if (a << 1000) > unit:
        return stirling_remainder(a / unit)
    return 0.5 * log_ratio(unit + a, a) - 1.0 + stirling_remainder(1.0)


def log_ratio(numerator: int, denominator: int) -> float:
    """The logarithm of a positive fraction, within two units in the last place, also near 1.

    >>> log_ratio(10**30 + 1, 10**30)
    1e-30
    """
    if denominator < 2 * numerator < 4 * denominator:
        return math.log1p((numerator - denominator) / denominator)
    common = math.gcd(numerator, denominator)
    return math.log(numerator // common) - math.log(denominator // common)


# Whether units are assigned to arms in the declared shares: the sample ratio mismatch test.


@dataclass(frozen=True, slots=True)
class ChiSquare:
    """The statistic, its degrees of freedom and its p-value."""

    statistic: float
    df: int
    pvalue: float


def shares_of(weights: Sequence[Number]) -> list[Fraction]:
    """Weights [k], nonnegative and not all 0, divided by their sum, exactly.

    >>> shares_of([5, 3, 2])
    [Fraction(1, 2), Fraction(3, 10), Fraction(1, 5)]
    """
    total = sum((Fraction(weight) for weight in weights), Fraction(0))
    return [Fraction(weight) / total for weight in weights]


def chi_square(counts: Sequence[int], weights: Sequence[Number]) -> ChiSquare:
    """Pearson's Σ (n_i - N p_i)² / (N p_i) of counts [k] and weights [k], for one look only.

    Arms of weight 0 add no degree of freedom, and a unit in one of them makes the p-value 0.
    Without units, or with one arm of positive weight, the p-value is 1.

    >>> found = chi_square([5120, 4880], [1, 1])
    >>> found.statistic, round(found.pvalue, 12)
    (5.76, 0.016395071849)
    """
    shares = shares_of(weights)
    df = sum(p > 0 for p in shares) - 1
    if any(n and not p for n, p in zip(counts, shares, strict=True)):
        return ChiSquare(math.inf, df, 0.0)
    total = sum(counts)
    if not total:
        return ChiSquare(0.0, df, 1.0)
    # Σ n_i² / (N p_i) - N, exact until it is rounded.
    squares = (n * n / p for n, p in zip(counts, shares, strict=True) if p)
    statistic = ratio(sum(squares, Fraction(0)) - total * total, total)
    return ChiSquare(statistic, df, chi2_sf(statistic, df))


def log_e(counts: Sequence[int], weights: Sequence[Number], k: float = 10_000.0) -> float:
    """The logarithm of the e-value against the shares, valid at every look; alarm at ln 1000.

    Counts [k], weights [k]; k: the weight of the prior in units, 10,000 for large balanced tests.
    Infinite where an arm of weight 0 has a unit.

    >>> round(log_e([5120, 4880], [1, 1], k=100), 12)
    0.542000517269
    """
    shares = shares_of(weights)
    # An arm of share 0 has a prior of 0: see `log_e_of_counts`.
    prior = [Fraction(k) * p for p in shares]
    return log_e_of_counts(counts, shares, prior)


CONCENTRATIONS: Final = (10.0, 100.0, 1_000.0, 10_000.0)


def log_mean_e(counts: Sequence[int], weights: Sequence[Number]) -> float:
    """The logarithm of the mean of the e-values with each of `CONCENTRATIONS` as k.

    A mean of e-values is an e-value, at most 4 times less than the best of the four: the small
    concentrations see small experiments early, the large ones see small shifts of large ones.

    >>> round(log_mean_e([600, 300], [1, 1]), 12)
    46.806562835067
    """
    logs = [log_e(counts, weights, k) for k in CONCENTRATIONS]
    return log_sum((x, 1.0 / len(logs)) for x in logs)


def log_sum(terms: Iterable[tuple[float, float]]) -> float:
    """Ln Σ w exp(x) of pairs (x, w) with weights above 0, however large each x is.

    >>> log_sum([(1000.0, 0.5), (1000.0, 0.5)])
    1000.0
    """
    pairs = list(terms)
    most = max((x for x, _ in pairs), default=-math.inf)
    if math.isinf(most):
        return most
    return most + math.log(math.fsum(w * math.exp(x - most) for x, w in pairs))


# Whether the columns of tables are independent of their rows, such as the arms of two experiments.
#
# The rows and columns of a table have unknown shares, so the null hypothesis is not one
# distribution. Given the rows, the columns of each row have shares of their own under the
# alternative, of a Dirichlet prior, and the same ones under the null: dividing by the largest
# likelihood of these gives at most the ratio of any of them, so an e-value whatever they are
# (Wasserman, Ramdas and Balakrishnan 2020, PNAS 117, 16880-16890), at all looks together.

Cells = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Crossed:
    """Counts [k, l]; rows, columns: their declared weights [k] and [l], or () if none are."""

    counts: Cells
    rows: Sequence[Number] = ()
    columns: Sequence[Number] = ()

    @property
    def transposed(self) -> Crossed:
        """The rows as columns."""
        return Crossed(tuple(zip(*self.counts, strict=True)), self.columns, self.rows)


def log_e_of_independence(tables: Sequence[Crossed]) -> float:
    """The logarithm of the e-value against columns that are independent of rows in each table.

    It is the mean of two: of the columns given the rows, and of the rows given the columns. Each is
    the mean over priors, `CONCENTRATIONS` times the declared weights and 1/2 for each class; 1/2
    alone where weights are not declared, or one is 0. A mean of e-values is one.

    >>> round(log_e_of_independence([Crossed([[300, 200], [200, 300]])]), 6)
    13.468295
    >>> log_e_of_independence([Crossed([[250, 250], [250, 250]])]) < 0
    True
    """
    directions = tables, [table.transposed for table in tables]
    return log_sum((_log_e_of_columns(direction), 0.5) for direction in directions)


def _log_e_of_columns(tables: Sequence[Crossed]) -> float:
    declared = all(table.columns and all(table.columns) for table in tables)
    concentrations = (0.0, *CONCENTRATIONS) if declared else (0.0,)
    logs = [math.fsum(_log_e_of_rows(table, k) for table in tables) for k in concentrations]
    return log_sum((x, 1.0 / len(logs)) for x in logs)


def _log_e_of_rows(table: Crossed, k: float) -> float:
    """Of each row against the shares of all rows together; k: 0 for a prior of 1/2."""
    totals = [sum(column) for column in zip(*table.counts, strict=True)]
    if not any(totals):
        return 0.0
    pooled = shares_of(totals)
    prior: Sequence[Fraction] = [Fraction(1, 2)] * len(pooled)
    if k:
        prior = [Fraction(k) * share for share in shares_of(table.columns)]
    return math.fsum(log_e_of_counts(row, pooled, prior) for row in table.counts)


def chi_square_of_independence(tables: Sequence[Cells]) -> ChiSquare:
    """Pearson's statistic of each table, added up, for one look only.

    Rows and columns without counts add no degree of freedom; the p-value is 1 without any.

    >>> found = chi_square_of_independence([[[30, 20], [20, 30]]])
    >>> found.statistic, found.df, round(found.pvalue, 9)
    (4.0, 1, 0.045500264)
    """
    statistic, df = Fraction(0), 0
    for counts in tables:
        columns = [sum(column) for column in zip(*counts, strict=True)]
        rows = [sum(row) for row in counts]
        n = sum(rows)
        if not n:
            continue
        df += (sum(map(bool, rows)) - 1) * (sum(map(bool, columns)) - 1)
        # Σ (n_ij - r_i c_j / n)² n / (r_i c_j) = n (Σ n_ij² / (r_i c_j) - 1)
        squares = (
            Fraction(cell * cell, row * column)
            for cells, row in zip(counts, rows, strict=True)
            for cell, column in zip(cells, columns, strict=True)
            if cell
        )
        statistic += n * (sum(squares, Fraction(0)) - 1)
    value = ratio(statistic.numerator, statistic.denominator)
    return ChiSquare(value, df, chi2_sf(value, df) if df else 1.0)


# The arm of each success: an exact sequential test of two rates, for any changes of the base rate.
#
# If a share π of the units goes to the treatment and both arms have one rate, each success is in
# the treatment with probability π, however that rate changes over time. If the treatment's rate is
# ψ times the control's, the probability is θ = πψ / (πψ + 1 - π). So the successes alone are counts
# of two classes, with an e-value that is valid for small counts too:
#
#     ln e(ψ) = ln B(kπ + S_B, k(1 - π) + S_A) - ln B(kπ, k(1 - π)) - S_B ln θ - S_A ln(1 - θ).
#
# Valid for at most one success per unit, or for independent (Poisson) events, without a sample
# ratio mismatch. If π changed, each epoch contributes a factor.

_STEEPEST = 700.0  # the largest |ln ψ|: its exp is still a float


@dataclass(frozen=True, slots=True)
class Successes:
    """The successes of both arms while the treatment's share of the units was `share`, 0 < π < 1.

    share: a float is taken as its exact value; a Fraction represents thirds exactly.
    """

    control: int
    treatment: int
    share: Fraction | float = Fraction(1, 2)


def log_e_of_successes(
    epochs: Iterable[Successes], k: float = 100.0, relative_rate: float = 1.0
) -> float:
    """The logarithm of the e-value against ψ = relative_rate > 0.

    k: the weight of the prior, in successes.

    >>> round(log_e_of_successes([Successes(520, 585)]), 12)
    0.508596177869
    """
    psi = Fraction(relative_rate)
    return math.fsum(_epoch_log_e(epoch, Fraction(k), psi) for epoch in epochs)


def _epoch_log_e(epoch: Successes, k: Fraction, psi: Fraction) -> float:
    share = Fraction(epoch.share)
    counts, prior = (epoch.treatment, epoch.control), (k * share, k * (1 - share))
    of_b = share.numerator * psi.numerator
    of_a = (share.denominator - share.numerator) * psi.denominator
    theta = Fraction(of_b, of_a + of_b), Fraction(of_a, of_a + of_b)
    return log_e_of_counts(counts, theta, prior)


def relative_rates(
    epochs: Iterable[Successes], alpha: float, k: float = 100.0
) -> tuple[float, float]:
    """The interval of ψ with an e-value below 1/alpha; it covers the true ψ at all looks together.

    (0, inf) without a success. (inf, 0) if no ψ remains, which only contradictory epochs can cause.

    >>> [round(end, 10) for end in relative_rates([Successes(520, 585)], 0.05)]
    [0.9409996575, 1.3458231812]
    """
    nonempty = [epoch for epoch in epochs if epoch.control or epoch.treatment]
    goal = -math.log(alpha)

    def holds(log_psi: float) -> bool:
        return log_e_of_successes(nonempty, k, math.exp(log_psi)) < goal

    # ln e is convex in ln ψ, and stays low on the side of an arm without successes.
    best = _best(nonempty)
    if not holds(best):
        return math.inf, 0.0
    low, high = 0.0, math.inf
    if not holds(-_STEEPEST):
        low = math.exp(last_inside(best, -_STEEPEST, holds))
    if not holds(_STEEPEST):
        high = math.exp(last_inside(best, _STEEPEST, holds))
    return low, high


def _best(epochs: list[Successes]) -> float:
    """The ln ψ of maximum likelihood: the treatment's successes equal their expectation."""
    treated = sum(epoch.treatment for epoch in epochs)
    every = [(epoch.control + epoch.treatment, float(epoch.share)) for epoch in epochs]

    def too_low(log_psi: float) -> bool:
        psi = math.exp(log_psi)
        return math.fsum(n * p * psi / (p * psi + 1.0 - p) for n, p in every) < treated

    if not any(epoch.control for epoch in epochs):
        return _STEEPEST if treated else 0.0
    return last_inside(-_STEEPEST, _STEEPEST, too_low) if treated else -_STEEPEST
