"""Why a contrast has no verdict yet or ever, and reasons to doubt one."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from streammetrics.estimators.enough import GROUPS
from streammetrics.estimators.request import NO_SPREAD
from streammetrics.experiments.arms import Arm
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.monitor import Reading
from streammetrics.present.numerals import least
from streammetrics.results.has_intervals import UNEXPLAINED

LARGE_GROUP: Final = 0.25  # share of an arm's rows in one group, above which sentences name it
TIMES: Final = 10.0  # the planned size: a larger effect is rarely one of the treatment
FACTOR: Final = 5.0  # between the rates of both arms, likewise


def why_not_started(contrast: Contrast, reading: Reading) -> str:
    """Why there is no interval; if the last look is older than the states, its own reason."""
    infinite = _infinite(contrast)
    if infinite and not contrast.no_horizon:
        return f"{_joined(infinite, 'has', 'have')} an infinite estimate"
    if reading.looks and reading.last != contrast.anytime:
        return _named_by_variant(contrast, reading.last.reason) or "the last look has no interval"
    comparison = contrast.comparison
    if why := contrast.no_horizon:
        return why
    if why := why_never(contrast):
        return why
    every = len(_arms(contrast))
    for test, lack, at_least in (
        (lambda arm: not arm.counts.rows, "no rows yet", 1),
        (lambda arm: _has_none(arm, "rate", 0), "no event yet", every),
        (lambda arm: _has_none(arm, "rate", 1), "no row without an event yet", every),
        (lambda arm: _has_none(arm, "area", 0), "no positive yet", 1),
        (lambda arm: _has_none(arm, "area", 1), "no negative yet", 1),
    ):
        names = _variants(contrast, test)
        if len(names) >= at_least:
            lack += _one_of_epochs(contrast) + _one_stream(contrast)
            return f"{_joined(names, 'has', 'have')} {lack}"
    if has_no_error(contrast):
        reason = _named_by_variant(contrast, comparison.reason)
        return reason or "there is no formula for its standard error"
    if comparison.groups is not None and comparison.groups < GROUPS:
        return f"an arm has too few groups of users: {comparison.groups}, needs {GROUPS}"
    if _variants(contrast, lambda arm: math.isnan(arm.value)):
        return _undefined(contrast)
    reason = reading.last.reason or comparison.reason
    return _named_by_variant(contrast, reason) or "its standard error is unknown"


def _named_by_variant(contrast: Contrast, reason: str) -> str:
    """A reason of a comparison, with the names of the variants for its arms."""
    names = ("control", contrast.control_variant), ("treatment", contrast.treatment_variant)
    for arm, name in names:
        reason = reason.replace(f"{arm}: ", f"of {name}, ")
    return reason


def _one_of_epochs(contrast: Contrast) -> str:
    """What limits a lack to one epoch, where several are left out and none is compared; else ""."""
    comparison = contrast.comparison
    several = len(comparison.left_out) > 1 and not comparison.epochs
    if not several or not any(arm.counts.rows for _, arm in _arms(contrast)):
        return ""
    return f" in one of {len(comparison.left_out)} epochs that all have too few rows"


def _one_stream(contrast: Contrast) -> str:
    """How to compare variants that share the rows of one of them, if these may be such; else ""."""
    arms = [arm for _, arm in _arms(contrast)]
    effects = [
        effect
        for arm in arms
        for effect in arm.traits.effects
        if arm.view not in arm.traits.effects
    ]
    effects = [] if all(arm.counts.rows for arm in arms) else effects
    return f"; if both variants are in the same rows, decide by {effects[0]}" if effects else ""


def _undefined(contrast: Contrast) -> str:
    """The arms without a defined estimate, and why, where their results say so."""
    by_reason: dict[str, list[str]] = {}
    for name, arm in _arms(contrast):
        if math.isnan(arm.value):
            why = "" if arm.precision.reason == UNEXPLAINED else arm.precision.reason
            by_reason.setdefault(why, []).append(name)
    return "; ".join(
        f"{_joined(names, 'has', 'have')} no defined estimate yet{f': {why}' * bool(why)}"
        for why, names in by_reason.items()
    )


def cannot_start(contrast: Contrast) -> bool:
    """Whether waiting would not help: no horizon was declared, an estimate is infinite (an infinite
    log loss stays infinite), there is no standard error for such rows, or no interval of the
    view holds at all looks."""
    never = contrast.no_horizon or why_never(contrast)
    return bool(never) or bool(_infinite(contrast)) or has_no_error(contrast)


def why_never(contrast: Contrast) -> str:
    """Why no interval of the view holds at all looks, or ""."""
    pair = contrast.pair
    return "" if pair is None else pair.treatment.traits.never or pair.control.traits.never


def has_no_error(contrast: Contrast) -> bool:
    """Whether an arm has an estimate from several rows, but no formula for its standard error: one
    whose values are all equal so far has one."""

    def unknown(arm: Arm) -> bool:
        is_known = arm.without.replicates is not None or arm.quantile is not None
        is_known = is_known or arm.precision.reason == NO_SPREAD
        is_known = is_known or not math.isnan(arm.precision.variance)
        return arm.counts.rows > 1 and math.isfinite(arm.value) and not is_known

    return bool(_variants(contrast, unknown))


def warnings_of(contrast: Contrast) -> str:
    """Sentences on reasons to doubt the estimate of an arm, else ""."""
    by_doubt: dict[str, list[str]] = {}
    for name, arm in _arms(contrast):
        for why in arm.traits.doubts:
            by_doubt.setdefault(why, []).append(name)
    doubts = "; ".join(f"of {' and '.join(names)}, {why}" for why, names in by_doubt.items())
    return f" Warning: {doubts}." if doubts else ""


def heavy_user(contrast: Contrast) -> str:
    """A clause on arms with over a quarter of their rows in one group of users, else ""."""
    return " and ".join(
        "one user or group of users has at least "
        f"{least(100 * arm.counts.largest_group)} % of the rows of {name}"
        for name, arm in _arms(contrast)
        if arm.counts.largest_group > LARGE_GROUP
    )


def implausible(contrast: Contrast, reading: Reading) -> str:
    """A clause on an effect that is shown and larger than experiments usually have, which a fault
    of the logging explains more often; else ""."""
    if not reading.consistent or not (reading.lower > 0 or reading.upper < 0):
        return ""
    comparison, planned = contrast.comparison, contrast.horizon.mde
    if (
        planned
        and math.isfinite(comparison.effect_size)
        and abs(comparison.effect_size) > TIMES * planned
    ):
        times = least(abs(comparison.effect_size) / planned)
        return f"the estimated effect on {contrast.watched} is {times} times the planned size"
    low, high = sorted((comparison.control, comparison.treatment))
    if comparison.kind == "rate" and high > 0 and FACTOR * low <= high:
        change = f"by a factor of {least(high / low)}" if low > 0 else "from 0"
        if comparison.treatment == 0:
            change = "to 0"
        way = "rises" if comparison.treatment > comparison.control else "falls"
        return f"{contrast.watched} {way} {change}"
    return ""


def _infinite(contrast: Contrast) -> list[str]:
    return _variants(contrast, lambda arm: math.isinf(arm.value))


def _joined(names: list[str], singular: str, several: str) -> str:
    return f"{' and '.join(names)} {several if len(names) > 1 else singular}"


def _has_none(arm: Arm, kind: str, place: int) -> bool:
    return (
        arm.counts.kind == kind
        and len(arm.counts.counted) > place
        and arm.counts.counted[place] == 0
    )


def _variants(contrast: Contrast, test: Callable[[Arm], bool]) -> list[str]:
    return [name for name, arm in _arms(contrast) if test(arm)]


def _arms(contrast: Contrast) -> list[tuple[str, Arm]]:
    """Both arms by their variants; none if unknown, and no control that has no rows of its own."""
    names, pair = (contrast.control_variant, contrast.treatment_variant), contrast.pair
    arms = [] if pair is None else zip(names, (pair.control, pair.treatment), strict=True)
    return [(name, arm) for name, arm in arms if not arm.known]


def has_grown(contrast: Contrast, reading: Reading) -> bool:
    """Whether the effect since the decision lies apart from that of all looks together, farther
    from no effect."""
    since = reading.since
    if since is None or not reading.consistent or contrast.safeguard is not None:
        return False
    if reading.lower > 0:
        return since.lower > reading.upper
    return reading.upper < 0 and since.upper < reading.lower
