"""The conclusion of a contrast as an unambiguous sentence.

A sentence states the verdict and its interval, or the reason why there is no verdict. Numbers
after "at least" are rounded towards 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from streammetrics.combine.units import UnitsResult
from streammetrics.experiments.arm import BURN_IN
from streammetrics.experiments.assignment import (
    SampleRatioFound,
    in_several_variants,
    why_unknown,
)
from streammetrics.experiments.compared import error_of
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Reading, anytime_lift
from streammetrics.experiments.numerals import (
    about,
    declared,
    least,
    most,
    p_value,
    percent,
    plain,
)
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.verdict import (
    Verdict,
    cannot_start,
    has_grown,
    heavy_user,
    implausible,
    warnings_of,
    why_not_started,
)
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.tails import normal_isf
from streammetrics.present.texts import between, effect_decimals

_STEPS: Final = 60  # four are usual
_EXACT: Final = 1e-3
_MOST_UNITS: Final = 1e12  # more units than any experiment has
DISTRUSTED: Final = "Not trustworthy: "


@dataclass(frozen=True, slots=True)
class MoreUnits:
    """The additional units that show a difference of the declared size.

    size: the declared absolute difference. more: units of both arms together, in addition to those
    counted, with which one look shows a true difference of that size with probability `power`; 0
    if there are enough. units: whether `more` is in units, else in rows. power: as declared.
    excluded: whether differences of this size and more are excluded.
    """

    size: float
    more: float
    units: bool
    power: float
    excluded: bool = False


def more_units(contrast: Contrast, lower: float, upper: float) -> MoreUnits | None:
    """The additional units, or None if the plan declares no size or the standard error is unknown.

    lower, upper: of the always-valid interval.

    Information v = 1 / V grows in proportion to the units if future units are like past ones. A
    true difference d is shown with this power once d √v = c(v) + z_power, c the multiplier.
    """
    size, v_opt, comparison = contrast.horizon.mde, contrast.horizon.v_opt, contrast.comparison
    (error, df), pair = error_of(comparison), contrast.pair
    if size is None or v_opt is None or pair is None or not 0 < error < math.inf:
        return None
    counted = contrast.units or pair.control.rows + pair.treatment.rows
    power = contrast.horizon.power
    now = 1.0 / error / error
    needed = _information(size, power, tuned(v_opt, contrast.alpha), contrast.alpha, df)
    extra_units = counted * (needed / now - 1.0)
    if not extra_units < _MOST_UNITS:
        return None
    excluded = -size < lower and upper < size
    return MoreUnits(size, max(0.0, extra_units), bool(contrast.units), power, excluded)


def _information(size: float, power: float, rho: float, alpha: float, df: float) -> float:
    """The v with size √v = c(v) + z, by fixed-point iteration until it changes by less than 0.1 %:
    c hardly depends on v, and units are reported to two digits."""
    z, previous = normal_isf(1.0 - power), 0.0
    v = -2.0 * math.log(alpha) / (size * size)  # c is at least √(2 ln(1/α))
    for _ in range(_STEPS):
        if abs(v - previous) <= _EXACT * v or v == math.inf:
            break
        root = (as_t(multiplier(v, rho, alpha), df) + z) / size
        v, previous = root * root, v
    return v


_LARGE_E: Final = 1e6  # above it the exact e-value does not matter


def why_distrusted(plan: Plan, srm: SampleRatioFound, several: UnitsResult | None) -> str:
    """Why this experiment must not be trusted; "" if nothing is known against it."""
    if srm.blocks:
        return f"{DISTRUSTED}units are not split between the variants as planned ({evidence(srm)})."
    if plan.on_several_variants == "error" and several is not None and several.sampled:
        count = in_several_variants(several.units, estimated=several.share < 1)
        return f"{DISTRUSTED}{count}, and the plan allows none."
    why = why_unknown(several) if plan.on_several_variants == "drop" else ""
    if why:
        return f"{DISTRUSTED}the units to drop, seen in several variants, are not all known: {why}."
    return ""


def evidence(srm: SampleRatioFound) -> str:
    """The e-value of a sample-ratio alarm, and the units of its epoch."""

    def text(e: float) -> str:
        return f"above {plain(_LARGE_E)}" if e > _LARGE_E else plain(e)

    since = f" since {srm.epoch}" if srm.epoch and srm.counts != srm.epoch_counts else ""
    counts = ", ".join(f"{arm} {n:,}" for arm, n in srm.epoch_counts or srm.counts)
    clause = f"sample-ratio e-value {text(srm.greatest_e_value)}"
    if srm.log_e < srm.greatest:
        clause += f" at an earlier look, {text(srm.e_value)} now"
    return f"{clause}: {counts}{since}"


def joined(parts: Iterable[str]) -> str:
    """The parts as a list in a sentence: a, b and c."""
    words = [part for part in parts if part]
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def sentence_of(contrast: Contrast, reading: Reading, verdict: Verdict, faded: bool) -> str:
    """The conclusion on one contrast of an experiment that can be trusted."""
    if verdict == "disbelieved":
        return (
            f"{DISTRUSTED}the always-valid intervals of {_compared(contrast)} exclude one "
            "another: the effect drifts, an assumption is false, or one misses the effect by "
            "chance."
        )
    if verdict == "not_started":
        return _not_started(contrast, reading)
    user, odd = heavy_user(contrast), implausible(contrast, reading)
    first = f"{user[0].upper()}{user[1:]}. " if user else ""
    first += f"Check the logging first: {odd}. " if odd else ""
    return f"{first}{_of_verdict(contrast, reading, verdict, faded)}{warnings_of(contrast)}"


def _of_verdict(contrast: Contrast, reading: Reading, verdict: Verdict, faded: bool) -> str:
    match verdict:
        case "kept" | "broken" | "open":
            clause = _guardrail(contrast, reading, verdict, faded)
            return clause if faded else f"{clause}{since_decision(contrast, reading)}"
        case "no_difference_yet":
            return _no_difference(contrast, reading)
        case "faded":
            return _faded(contrast, reading)
    clause = f"{contrast.treatment_variant} is {verdict}: {_interval(contrast, reading)}"
    ending = f"{_target(contrast, verdict)}{since_decision(contrast, reading)}"
    return f"{clause}, a difference of at least {_at_least(contrast, reading)}.{ending}"


def on_rows(contrast: Contrast, verdict: Verdict) -> str:
    """A sentence if rows per unit differ between the arms of a mean or a rate per row, else ""."""
    if not contrast.rows_differ:
        return ""
    shown = verdict in ("higher", "lower", "broken", "faded")
    subject = "this is an effect" if shown else "an effect would be one"
    clause = f"{contrast.rows_differ}: {subject} on rows, not on units."
    return f" {clause[0].upper()}{clause[1:]}"


def _faded(contrast: Contrast, reading: Reading) -> str:
    if not reading.consistent:
        return (
            "The effect has changed since the decision, an assumption is false, or an interval "
            f"misses it by chance: the always-valid intervals of {_compared(contrast)} exclude one "
            "another."
            f"{since_decision(contrast, reading)}"
        )
    word = "higher" if reading.lower > 0 else "lower"
    return (
        f"We can no longer tell: all looks together show that {contrast.treatment_variant} is "
        f"{word} ({_interval(contrast, reading)}), but {_changed(contrast, reading)}."
    )


def _changed(contrast: Contrast, reading: Reading) -> str:
    """That the effect since the decision contradicts that of all looks together."""
    since = reading.since
    if since is None or not since.known:
        return "the effect has changed since the decision"
    return f"since the decision the effect is {_bounds(contrast, since.lower, since.upper)}"


def since_decision(contrast: Contrast, reading: Reading) -> str:
    """The effect since the decision, beside a verdict that it does not change; "" if unknown."""
    since = reading.since
    if since is None or not since.known:
        return ""
    bounds = _bounds(contrast, since.lower, since.upper)
    grown = ": it has grown" if has_grown(contrast, reading) else ""
    effect = plain(since.effect, signed=True)
    return f" Since the decision, the effect is {effect} ({bounds}){grown}."


def _no_difference(contrast: Contrast, reading: Reading) -> str:
    needed_units = more_units(contrast, reading.lower, reading.upper)
    bounds = needed_units is not None and (needed_units.excluded or not needed_units.more)
    word = "No difference is shown" if bounds else "We cannot tell yet"
    sentence = f"{word}: {_interval(contrast, reading)}."
    return sentence if needed_units is None else f"{sentence} {planned(needed_units)}"


def planned(found: MoreUnits) -> str:
    """A sentence on the planned size, for a difference that is not shown yet."""
    size = f"a difference of the planned size, {declared(found.size)},"
    if found.excluded:
        return f"{size.capitalize()} is excluded."
    likely = f"with a probability of {declared(100 * found.power)} %"
    if found.more:
        things = "units" if found.units else "rows"
        return f"About {about(found.more)} more {things} would show {size} {likely}."
    return f"{size.capitalize()} would have been shown by now {likely} or more."


def _at_least(contrast: Contrast, reading: Reading) -> str:
    """The least difference: relative to the control if that is certain as well, else absolute."""
    size = min(abs(reading.lower), abs(reading.upper))
    comparison = contrast.comparison
    if comparison.kind in ("rate", "mean") and comparison.control > 0:
        lift = anytime_lift(contrast, 0) if reading.lower > 0 else -anytime_lift(contrast, 1)
        if 0 < lift < math.inf:
            quantity = "rate" if comparison.kind == "rate" else "mean"
            return f"{percent(lift)} of the control's {quantity}"
    return least(size)


def _target(contrast: Contrast, verdict: Verdict) -> str:
    target = contrast.direction.target
    if target is None:
        return ""
    if verdict in ("better", "worse"):
        where = "nearer to" if verdict == "better" else "farther from"
        return f" It is {where} the target, {declared(target)}."
    return f" Which of the two is nearer to the target, {declared(target)}, is not certain."


def _guardrail(contrast: Contrast, reading: Reading, verdict: Verdict, faded: bool) -> str:
    rail = contrast.safeguard
    assert rail is not None
    bound = reading.lower if rail.higher_is_better else -reading.upper  # the worst, as a gain
    best = reading.upper if rail.higher_is_better else -reading.lower
    who, name, margin = contrast.treatment_variant, _compared(contrast), declared(rail.margin)
    if verdict == "kept":
        harm = f"harm above {most(-bound)}" if bound < 0 else "any harm"
        left = f"all looks together exclude {harm}"
        return f"{who} keeps the guardrail {name}: {left}; margin: {margin}."
    if verdict == "broken":
        shown = f"harm of at least {least(-best)} is shown"
        return f"{who} breaks the guardrail {name}: {shown}; margin: {margin}."
    if faded:
        return (
            f"We can no longer tell whether {name} keeps its guardrail: all looks together exclude "
            f"harm above {most(max(0.0, -bound))}, but {_changed(contrast, reading)}; margin: "
            f"{margin}."
        )
    lost = f"harm of up to {most(-bound)} is not excluded"
    if bound == -math.inf:
        lost = "no harm is excluded"
    if not rail.required:
        return f"No harm to {name} is shown: {lost}; margin: {margin}."
    return f"It is not shown yet that {name} keeps its guardrail: {lost}; margin: {margin}."


def _not_started(contrast: Contrast, reading: Reading) -> str:
    comparison, why = contrast.comparison, why_not_started(contrast, reading)
    if not cannot_start(contrast):
        return f"Too early to judge {_compared(contrast)}: {why}."
    fixed = ""
    if math.isfinite(comparison.effect_size) and math.isfinite(comparison.effect_size_ci_lower):
        bounds = _bounds(contrast, comparison.effect_size_ci_lower, comparison.effect_size_ci_upper)
        level = declared(100 * comparison.level)
        # The p-value of few rows, or of a view that they chose, is no measure.
        few = comparison.no_sequence or comparison.least_count < BURN_IN[comparison.kind]
        p = "" if few else f", {p_value(comparison.pvalue)}"
        fixed = f" If this is the only look: {bounds} at {level} %{p}."
    return f"No always-valid interval of {_compared(contrast)}: {why}.{fixed}"


def _compared(contrast: Contrast) -> str:
    """The metric as the plan names it, with both variants: ctr (bts - random)."""
    return f"{contrast.watched} ({contrast.treatment_variant} - {contrast.control_variant})"


def _interval(contrast: Contrast, reading: Reading) -> str:
    bounds = _bounds(contrast, reading.lower, reading.upper)
    return f"the always-valid interval of {_compared(contrast)} is {bounds}"


def _bounds(contrast: Contrast, lower: float, upper: float) -> str:
    """An interval of the effect, with as many decimals as a table of effects has."""
    decimals = effect_decimals(contrast.comparison.effect_size, lower, upper)
    return between(lower, upper, decimals, signed=True)
