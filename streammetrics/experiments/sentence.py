"""What may be concluded, in a sentence that nobody can misread.

A sentence says how sure it is (all looks together, or one fixed look), what is excluded, and where
nothing can be said, why.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.assignment import why_unknown
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.sample_ratio import SampleRatioFound

LOSSES: Final = frozenset(
    {"log_loss", "normalized_entropy", "brier", "ece", "mae", "mse", "rmse"}
    | {"error_rate", "fpr", "fnr", "hamming_loss"}
)  # views of which less is better


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What holds at all looks together. consistent: the looks do not exclude one another."""

    lower: float
    upper: float
    pvalue: float
    gated: bool
    reason: str
    consistent: bool = True

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return self.lower > -math.inf or self.upper < math.inf


def disbelief(plan: Plan, srm: SampleRatioFound, several: UnitsResult | None) -> str:
    """Why nothing of this experiment is to be believed; "" where nothing is known against it."""
    if srm.alarm:
        found = f"sample-ratio e-value {srm.e_value:.2g}: {_counts(srm)}"
        return f"Not to be believed: units fall to the variants as they should not ({found})."
    if plan.on_several_variants == "error" and several is not None and several.sampled:
        count = f"{several.units:.6g} units have been seen in several variants"
        return f"Not to be believed: {count}, and the plan says that none may be."
    why = why_unknown(several) if plan.on_several_variants == "drop" else ""
    if why:
        which = "units of several variants should be dropped, and which they are is not known"
        return f"Not to be believed: {which}: {why}."
    return ""


def sentence_of(plan: Plan, contrast: Contrast, reading: Reading, against: str = "") -> str:
    """What may be concluded of one contrast. against: `disbelief`, which comes before all."""
    if against:
        return against
    if not reading.consistent:
        return (
            f"Not to be believed: the always-valid intervals of {_what(contrast)} exclude one "
            "another, so the effect drifts or an assumption is false."
        )
    if not reading.known:
        return _nothing(contrast, reading)
    if contrast.safeguard is not None:
        return _guarded(contrast, reading)
    return _decided(plan, contrast, reading)


def lower_is_better(plan: Plan, contrast: Contrast) -> bool:
    """Whether less is better: as the plan says, or by the name of the view."""
    if contrast.safeguard is not None:
        return not contrast.safeguard.higher_is_better
    named = {contrast.metric, f"{contrast.metric}.{contrast.view}"}
    return bool(named & set(plan.lower_is_better)) or contrast.view in LOSSES


def _decided(plan: Plan, contrast: Contrast, reading: Reading) -> str:
    less = lower_is_better(plan, contrast)
    interval = f"the always-valid interval of {_what(contrast)} is {_ends(reading)}"
    if reading.lower > 0 or reading.upper < 0:
        word = "better" if (reading.lower > 0) != less else "worse"
        least = min(abs(reading.lower), abs(reading.upper))
        size = f"a difference of at least {_size(contrast, least)}"
        return f"{contrast.treatment_variant} is {word}: {interval}, {size}."
    loss = reading.upper if less else -reading.lower
    if loss == math.inf or (not less and loss >= contrast.comparison.control > 0):
        return f"No difference shown yet: {interval}, which excludes no loss."
    excluded = f"so losses above {_size(contrast, loss)} are excluded"
    return f"No difference shown yet: {interval}, {excluded}."


def _guarded(contrast: Contrast, reading: Reading) -> str:
    rail = contrast.safeguard
    assert rail is not None
    bound = reading.lower if rail.higher_is_better else -reading.upper  # the worst, as a gain
    best = reading.upper if rail.higher_is_better else -reading.lower
    who, what, margin = contrast.treatment_variant, _what(contrast), f"{rail.margin:.4g}"
    if bound > -rail.margin:
        left = f"a loss above {max(0.0, -bound):.4g} is excluded at all looks"
        return f"{who} keeps the guardrail {what}: {left}; allowed: {margin}."
    if best < -rail.margin:
        least = f"a loss of at least {-best:.4g} is shown"
        return f"{who} breaks the guardrail {what}: {least}; allowed: {margin}."
    most = f"losses to {-bound:.4g} are possible"
    if bound == -math.inf or (rail.higher_is_better and -bound >= contrast.comparison.control > 0):
        most = "no loss is excluded"
    return f"Not shown yet that {what} keeps its guardrail: {most}; allowed: {margin}."


def _nothing(contrast: Contrast, reading: Reading) -> str:
    found = contrast.comparison
    why = reading.reason or "no look has been taken"
    if reading.gated:
        return f"Too early to say of {_what(contrast)}: {why}."
    fixed = ""
    if math.isfinite(found.effect_size) and found.std_error > 0:
        ends = f"{found.effect_size_ci_lower:+.4g} to {found.effect_size_ci_upper:+.4g}"
        fixed = (
            f" As the only look, it gives {ends} at {100 * found.level:g} %, p {found.pvalue:.2g}."
        )
    return f"No always-valid interval of {_what(contrast)}: {why}.{fixed}"


def _what(contrast: Contrast) -> str:
    """Ctr (bts - random): a metric by its name, with its view where that is another word."""
    return f"{contrast.watched} ({contrast.treatment_variant} - {contrast.control_variant})"


def _ends(reading: Reading) -> str:
    return f"{reading.lower:+.4g} to {reading.upper:+.4g}"


def _size(contrast: Contrast, size: float) -> str:
    """Relative to the control where that means something: of rates and means above 0."""
    base = contrast.comparison.control
    if contrast.comparison.kind == "area" or not base > 0:
        return f"{size:.2g}"
    of = "rate" if contrast.comparison.kind == "rate" else "mean"
    return f"{100 * size / base:.2g} % of the control's {of}"


def _counts(srm: SampleRatioFound) -> str:
    return ", ".join(f"{arm} {n}" for arm, n in srm.counts)
