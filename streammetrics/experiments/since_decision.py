"""The effect since the decision: a confidence sequence of its own, on the increments.

A decision is the first look whose interval excludes no effect, or the margin of a guardrail. From
then on the increment of the estimate θ with the information v = 1 / std_error² is

    (θ v - θ₀ v₀) / (v - v₀),  with the variance 1 / (v - v₀),

θ₀ and v₀ those of the decision. It is a function of sums, of the rows since then alone, so it does
not see the chance that led to the decision. The effect has changed if the running interval of the
increments and that of all rows lie apart, or if that of all rows is empty.

The looks store both beside the reading of a contrast, under names of their own: the decision, as
θ₀ ± one standard error, which later looks repeat, and the reading of the increments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from streammetrics.experiments.confidence_sequence import ConfidenceSequence
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.evidence import Evidence
from streammetrics.experiments.monitor import midpoint
from streammetrics.experiments.one_look import DECIDED, SINCE, Anytime


def bound_of(contrast: Contrast) -> float:
    """The effect that an interval must exclude: 0, or the margin of a guardrail."""
    rail = contrast.safeguard
    if rail is None:
        return 0.0
    return rail.margin if rail.higher_is_better is False else -rail.margin


def decides(contrast: Contrast, reading: Anytime) -> bool:
    """Whether a reading is a decision."""
    bound = bound_of(contrast)
    return reading.lower > bound or reading.upper < bound


def readings_since(
    contrast: Contrast, last: Mapping[str, Anytime]
) -> Iterator[tuple[str, Anytime]]:
    """What a look stores beside the reading of a contrast: the decision, and the reading of the
    increments since. last: the readings of the look before."""
    decided = last.get(contrast.name + DECIDED)
    comparison = contrast.comparison
    if decided is not None:
        yield contrast.name + DECIDED, decided
        yield contrast.name + SINCE, reading_of_increments(contrast, decided)
    elif decides(contrast, contrast.anytime) and 0 < comparison.anytime_error < math.inf:
        error = comparison.anytime_error
        ends = comparison.effect_size - error, comparison.effect_size + error
        yield contrast.name + DECIDED, Anytime(*ends)


def reading_of_increments(contrast: Contrast, decided: Anytime) -> Anytime:
    """The reading of the effect of the rows since the decision, two-sided."""
    comparison = contrast.comparison
    before, error = midpoint(decided.lower, decided.upper), (decided.upper - decided.lower) / 2
    error_now, df = comparison.anytime_error, comparison.anytime_df
    if not (math.isfinite(comparison.effect_size) and 0 < error_now < math.inf and error > 0):
        return Anytime(gated=True, reason="the effect or its standard error is undefined")
    v, v0 = error_now**-2.0, error**-2.0
    if not (v > v0 and v < math.inf):
        return Anytime(gated=True, reason="there is no information since the decision")
    increment = Evidence(
        effect_size=comparison.effect_size + (comparison.effect_size - before) * (v0 / (v - v0)),
        std_error=1.0 / math.sqrt(v - v0),
        df=df,
        least_count=comparison.least_count,
        groups=comparison.groups,
        resolution=comparison.resolution * (v + v0) / (v - v0),
    )
    return ConfidenceSequence(alpha=contrast.alpha, horizon=contrast.horizon).at(increment)
