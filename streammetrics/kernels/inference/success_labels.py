"""Of all successes, which arm? The exact sequential test of two rates, whatever the base rate does.

Where a share π of the units goes to the treatment and both arms have one rate, each success is the
treatment's with probability π, however that rate moves in time. Where the treatment's rate is ψ
times the control's, the probability is θ = πψ / (πψ + 1 - π). So the successes alone are counts
of two classes, with an e-value that needs no large numbers:

    ln e(ψ) = ln B(kπ + S_B, k(1 - π) + S_A) - ln B(kπ, k(1 - π)) - S_B ln θ - S_A ln(1 - θ).

Valid for one success a unit at most, or for events that come independently (Poisson), without a
sample ratio mismatch. Where π changed, each epoch is a factor of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from streammetrics.kernels.inference.dirichlet_multinomial import log_e_of_counts as log_e_of_counts
from streammetrics.kernels.inference.tails import last_inside

_STEEPEST = 700.0  # of ln ψ: exp of it is still a float


@dataclass(frozen=True, slots=True)
class Successes:
    """The successes of both arms while the treatment's share of the units was `share`, 0 < π < 1.

    share: a float stands for itself; a Fraction says thirds exactly.
    """

    control: int
    treatment: int
    share: Fraction | float = Fraction(1, 2)


def log_e(epochs: Iterable[Successes], k: float = 100.0, relative_rate: float = 1.0) -> float:
    """The logarithm of the e-value against ψ = relative_rate > 0.

    k: the weight of the prior, in successes.

    >>> round(log_e([Successes(520, 585)]), 12)
    0.508596177869
    """
    psi = Fraction(relative_rate)
    return math.fsum(_log_e(one, Fraction(k), psi) for one in epochs)


def _log_e(found: Successes, k: Fraction, psi: Fraction) -> float:
    share = Fraction(found.share)
    counts, prior = (found.treatment, found.control), (k * share, k * (1 - share))
    of_b = share.numerator * psi.numerator
    of_a = (share.denominator - share.numerator) * psi.denominator
    theta = Fraction(of_b, of_a + of_b), Fraction(of_a, of_a + of_b)
    return log_e_of_counts(counts, theta, prior)


def relative_rates(
    epochs: Iterable[Successes], alpha: float, k: float = 100.0
) -> tuple[float, float]:
    """The ψ whose e-value is below 1/alpha: they hold the true one at all looks together.

    (0, inf) without a success. (inf, 0) where no ψ is left, which only epochs that contradict one
    another can do.

    >>> [round(end, 10) for end in relative_rates([Successes(520, 585)], 0.05)]
    [0.9409996575, 1.3458231812]
    """
    found = [one for one in epochs if one.control or one.treatment]
    goal = -math.log(alpha)

    def holds(log_psi: float) -> bool:
        return log_e(found, k, math.exp(log_psi)) < goal

    # ln e is convex in ln ψ, and stays low on the side where an arm has no success.
    best = _best(found)
    if not holds(best):
        return math.inf, 0.0
    low, high = 0.0, math.inf
    if not holds(-_STEEPEST):
        low = math.exp(last_inside(best, -_STEEPEST, holds))
    if not holds(_STEEPEST):
        high = math.exp(last_inside(best, _STEEPEST, holds))
    return low, high


def _best(found: list[Successes]) -> float:
    """The ln ψ of the greatest likelihood: where the treatment has its expected successes."""
    treated = sum(one.treatment for one in found)
    every = [(one.control + one.treatment, float(one.share)) for one in found]

    def too_low(log_psi: float) -> bool:
        psi = math.exp(log_psi)
        return math.fsum(n * p * psi / (p * psi + 1.0 - p) for n, p in every) < treated

    if not any(one.control for one in found):
        return _STEEPEST if treated else 0.0
    return last_inside(-_STEEPEST, _STEEPEST, too_low) if treated else -_STEEPEST
