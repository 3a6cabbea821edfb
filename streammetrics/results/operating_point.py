"""Thresholds that are best by some aim, and what they lead to."""

from __future__ import annotations

from dataclasses import dataclass

from streammetrics.results.bounded import Bounded
from streammetrics.results.rates import Rates


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """A threshold, positive iff score >= threshold, and the rates at it.

    threshold: +inf where nothing is predicted positive; nan if a score is +inf itself, so that no
    threshold predicts nothing.
    """

    threshold: float
    rates: Rates


@dataclass(frozen=True, slots=True)
class BestPoints:
    """The best value that a threshold reaches, and every threshold that reaches it.

    value: nan where it is undefined. `Bounded` of a histogram: a threshold inside a bucket may be
    better than those at the edges of buckets, which are the ones listed.
    points: from the highest threshold down; () where the value is undefined.
    """

    value: float | Bounded
    points: tuple[OperatingPoint, ...]
