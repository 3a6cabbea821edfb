"""How much information an effect needs to be found by a sequence that is looked at every day."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(256)
_FAR: Final = 9.0  # standard deviations, beyond which there is no probability to speak of
_HALVINGS: Final = 50
_ROOT_HALF: Final = math.sqrt(0.5)


def information_of_looks(
    effect: float,
    power: float,
    step: float,
    multiplier: Callable[[float], float],
    opens: float = 0.0,
) -> float:
    """The information at whose look an effect has been found with this power, then or before.

    effect: above 0. step: the information that is added between two looks; the last look is after a
    part of a step. multiplier: how many standard errors the estimate must be from 0 at an
    information, as those of a confidence sequence, so that a larger effect or more information
    finds it in the end. opens: the information before which nothing is found, since a gate is shut.

    With information v the estimate times v is normal with mean effect · v and variance v, and has
    independent increments: its distribution among those not yet found is integrated from look to
    look. (Armitage, McPherson and Rowe 1969, J. R. Stat. Soc. A 132, 235-244.)

    >>> round(information_of_looks(0.1, 0.8, 1e9, lambda v: 1.959964), 1)  # one look
    784.9
    >>> information_of_looks(0.1, 0.8, 50.0, lambda v: 3.0) < (3.0 + 0.8416) ** 2 / 0.01
    True
    """
    sums, probabilities, start, reached_power = np.zeros(1), np.ones(1), 0.0, 0.0
    if _found(sums, probabilities, effect, start, opens, multiplier) >= power:
        return opens  # however many looks were before
    while True:
        end = start + step
        newly = _found(sums, probabilities, effect, start, end, multiplier) if end >= opens else 0.0
        if reached_power + newly >= power:
            break
        reached_power += newly
        bound = multiplier(end) * math.sqrt(end) if end >= opens else math.inf
        sums, probabilities = _left(sums, probabilities, effect, (start, end), bound)
        start = end
    lower, upper = max(start, opens), end
    for _ in range(_HALVINGS):
        middle = 0.5 * (lower + upper)
        if reached_power + _found(sums, probabilities, effect, start, middle, multiplier) >= power:
            upper = middle
        else:
            lower = middle
    return upper


def _found(
    sums: Floats,
    probabilities: Floats,
    effect: float,
    start: float,
    end: float,
    multiplier: Callable[[float], float],
) -> float:
    """The probability to be found at `end`, on the side of the effect, and not before."""
    if not end > start:
        return 0.0
    bound, scale = multiplier(end) * math.sqrt(end), _ROOT_HALF / math.sqrt(end - start)
    missing = (bound - effect * (end - start) - sums) * scale
    tails = np.array([0.5 * math.erfc(distance) for distance in missing.tolist()])
    return float(probabilities @ tails)


def _left(
    sums: Floats, probabilities: Floats, effect: float, span: tuple[float, float], bound: float
) -> tuple[Floats, Floats]:
    """The sums at the end of a step that are not found, with their probabilities."""
    start, end = span
    added = effect * (end - start)
    far, mean = _FAR * math.sqrt(end), effect * end
    low, high = max(-bound, mean - far), min(bound, mean + far)
    half = 0.5 * (high - low)
    following = 0.5 * (high + low) + half * _NODES
    apart = following[:, None] - (sums + added)
    density = np.exp(apart * apart * (-0.5 / (end - start))) @ probabilities
    density /= math.sqrt(2.0 * math.pi * (end - start))
    return following, half * _WEIGHTS * density
