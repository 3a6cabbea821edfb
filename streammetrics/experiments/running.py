"""What all looks at one contrast say together, beside what the last look says alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.evidence import Anytime
from streammetrics.experiments.monitor import Watched


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What holds at all looks together. consistent: the looks do not exclude one another.

    looks: how many were taken; last: what the last of them says alone, or the states of now where
    none was taken; estimate: the effect that it was read of, nan where that is not known.
    """

    lower: float
    upper: float
    pvalue: float
    gated: bool
    reason: str
    consistent: bool = True
    looks: int = 0
    last: Anytime = field(default_factory=Anytime)
    estimate: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return self.lower > -math.inf or self.upper < math.inf


def reading_of(contrast: Contrast, seen: Watched | None) -> Reading:
    """The reading of a contrast; seen: what the looks at it say, None where none was taken."""
    now = contrast.anytime
    if seen is None or seen.latest is None:
        return Reading(
            lower=now.lower,
            upper=now.upper,
            pvalue=now.p_value,
            gated=now.gated,
            reason=now.reason,
            consistent=now.lower <= now.upper,
            last=now,
            estimate=contrast.comparison.effect_size,
        )
    last = seen.latest
    return Reading(
        lower=seen.lower,
        upper=seen.upper,
        pvalue=seen.p_value,
        gated=last.gated,
        reason=last.reason,
        consistent=seen.consistent,
        looks=seen.looks,
        last=last,
        estimate=_estimate(contrast, last),
    )


def _estimate(contrast: Contrast, last: Anytime) -> float:
    """The effect at a look: an interval of two sides lies evenly about it."""
    if last == contrast.anytime:
        return contrast.comparison.effect_size
    if contrast.safeguard is None and math.isfinite(last.lower) and math.isfinite(last.upper):
        return last.lower + (last.upper - last.lower) / 2
    return math.nan
