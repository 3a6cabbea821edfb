"""The conclusion of a contrast as an unambiguous sentence.

A sentence states the verdict and its interval, or the reason why there is no verdict. Numbers
after "at least" are rounded towards 0.
"""

from __future__ import annotations

import math

from streammetrics.estimators.enough import ENOUGH
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.finding import Verdict
from streammetrics.experiments.lift import anytime_lift
from streammetrics.experiments.monitor import Reading
from streammetrics.experiments.more_units import more_units, planned
from streammetrics.experiments.notes import DISTRUSTED
from streammetrics.experiments.reasons import (
    cannot_start,
    has_grown,
    heavy_user,
    implausible,
    warnings_of,
    why_not_started,
)
from streammetrics.present.numerals import (
    declared,
    least,
    most,
    p_value,
    percent,
    plain,
)
from streammetrics.present.texts import between, effect_decimals


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
    clause = _verdict_clause(contrast, reading, verdict, faded)
    return f"{first}{clause}{_estimate_outside(contrast, reading)}{warnings_of(contrast)}"


def _verdict_clause(contrast: Contrast, reading: Reading, verdict: Verdict, faded: bool) -> str:
    match verdict:
        case "kept" | "broken" | "open":
            clause = _guardrail(contrast, reading, verdict, faded)
            return clause if faded else f"{clause}{decision_clause(contrast, reading)}"
        case "no_difference_yet":
            return _no_difference(contrast, reading)
        case "faded":
            return _faded(contrast, reading)
    clause = f"{contrast.treatment_variant} is {verdict}: {_interval(contrast, reading)}"
    ending = f"{_target(contrast, verdict)}{decision_clause(contrast, reading)}"
    return f"{clause}, a difference of at least {_least_text(contrast, reading)}.{ending}"


def rows_sentence(contrast: Contrast, verdict: Verdict) -> str:
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
            f"{decision_clause(contrast, reading)}"
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


def decision_clause(contrast: Contrast, reading: Reading) -> str:
    """The effect since the decision, beside a verdict that it does not change; "" if unknown."""
    since = reading.since
    if since is None or not since.known:
        return ""
    bounds = _bounds(contrast, since.lower, since.upper)
    grown = ": it has grown" if has_grown(contrast, reading) else ""
    effect = plain(since.effect, signed=True)
    if since.is_inside:
        return f" Since the decision, the effect is {effect} ({bounds}){grown}."
    return (
        f" Since the decision, the effect is {bounds}, and {effect} at the last look alone{grown}."
    )


def _estimate_outside(contrast: Contrast, reading: Reading) -> str:
    """That the estimate beside the interval of all looks is not in it, or ""."""
    effect = contrast.comparison.effect_size
    if not reading.consistent or math.isnan(effect) or reading.lower <= effect <= reading.upper:
        return ""
    return f" The estimate now, {plain(effect, signed=True)}, is outside the always-valid interval."


def _no_difference(contrast: Contrast, reading: Reading) -> str:
    needed_units = more_units(contrast, reading.lower, reading.upper)
    bounds = needed_units is not None and (needed_units.excluded or not needed_units.more)
    word = "No difference is shown" if bounds else "We cannot tell yet"
    sentence = f"{word}: {_interval(contrast, reading)}."
    return sentence if needed_units is None else f"{sentence} {planned(needed_units)}"


def _least_text(contrast: Contrast, reading: Reading) -> str:
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
    shown = f"harm of at least {least(-best)} is shown" if best < 0 else ""
    who, name, margin = contrast.treatment_variant, _compared(contrast), declared(rail.margin)
    if verdict == "kept":
        harm = f"harm above {most(-bound)}" if bound < 0 else "any harm"
        looks = "the last look excludes" if contrast.so_far else "all looks together exclude"
        left = f"{looks} {harm}"
        return f"{who} keeps the guardrail {name}: {left}; margin: {margin}."
    if verdict == "broken":
        return f"{who} breaks the guardrail {name}: {shown}; margin: {margin}."
    if faded:
        return (
            f"We can no longer tell whether {name} keeps its guardrail: all looks together exclude "
            f"harm above {most(max(0.0, -bound))}, but {_changed(contrast, reading)}; margin: "
            f"{margin}."
        )
    lost = f"harm of up to {most(-bound)} is not excluded"
    if bound == -math.inf:
        lost = "no greater harm is excluded" if shown else "no harm is excluded"
    lost = f"{shown}, and {lost}" if shown else lost
    clause = f"It is not shown yet that {name} keeps its guardrail"
    if not rail.required:
        clause = f"No harm to {name} is shown"
        if shown:
            clause = f"Some harm to {name} is shown, but not as much as its margin"
    return f"{clause}: {lost}; margin: {margin}."


def _not_started(contrast: Contrast, reading: Reading) -> str:
    comparison, why = contrast.comparison, why_not_started(contrast, reading)
    if not cannot_start(contrast):
        return f"Too early to judge {_compared(contrast)}: {why}."
    fixed = ""
    if math.isfinite(comparison.effect_size) and math.isfinite(comparison.effect_size_ci_lower):
        bounds = _bounds(contrast, comparison.effect_size_ci_lower, comparison.effect_size_ci_upper)
        level = declared(100 * comparison.level)
        # The p-value of few rows, or of a view that they chose, is no measure.
        few = comparison.no_sequence or comparison.least_count < ENOUGH[comparison.kind].need
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
