"""Why there is no always-valid interval of a contrast, in the words of what is the case."""

from __future__ import annotations

import math
from collections.abc import Callable

from streammetrics.experiments.arm import GROUPS, Arm
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.running import Reading

WHALE = 0.25  # of an arm's rows in one group, from which it is said


def why_nothing(contrast: Contrast, reading: Reading) -> str:
    """What is missing for an interval; of an earlier look than that of now, what it said."""
    infinite = _infinite(contrast)
    if infinite and contrast.horizon.v_opt is not None:
        return f"{_joined(infinite, 'has', 'have')} an infinite estimate"
    if reading.looks and reading.last != contrast.anytime:
        return reading.reason or "the last look has no interval"
    found = contrast.comparison
    if contrast.horizon.v_opt is None:
        return contrast.horizon.reason
    for test, said in (
        (lambda arm: not arm.rows, "no rows yet"),
        (lambda arm: _has_none(arm, "rate", 0), "no success yet"),
        (lambda arm: _has_none(arm, "rate", 1), "no failure yet"),
        (lambda arm: _has_none(arm, "area", 0), "no positive yet"),
        (lambda arm: _has_none(arm, "area", 1), "no negative yet"),
    ):
        names = _variants(contrast, test)
        if names:
            return f"{_joined(names, 'has', 'have')} {said}"
    if has_no_error(contrast):
        return found.reason or "there is no formula for its standard error"
    if found.groups is not None and found.groups < GROUPS:
        met = f"{found.groups} group{'s' * (found.groups != 1)}"
        return f"too few users: an arm has {met} of them, and {GROUPS} are needed"
    undefined = _variants(contrast, lambda arm: math.isnan(arm.value))
    if undefined:
        return f"{_joined(undefined, 'has', 'have')} no defined estimate yet"
    return reading.reason or found.reason or "nothing is known of its standard error"


def never(contrast: Contrast) -> bool:
    """Whether waiting would not help: no size was declared, an estimate is infinite, as a log loss
    stays once it is, or there is no standard error of such rows."""
    return contrast.horizon.v_opt is None or bool(_infinite(contrast)) or has_no_error(contrast)


def has_no_error(contrast: Contrast) -> bool:
    """Whether an arm has an estimate of several rows, and no formula for how well it is known."""
    return bool(
        _variants(
            contrast,
            lambda arm: (
                arm.rows > 1
                and arm.replicates is None
                and math.isfinite(arm.value)
                and math.isnan(arm.variance)
            ),
        )
    )


def whales(contrast: Contrast) -> str:
    """A sentence on arms of which one group of users has a quarter of the rows, else ""."""
    if contrast.pair is None:
        return ""
    arms = (
        (contrast.control_variant, contrast.pair.control),
        (contrast.treatment_variant, contrast.pair.treatment),
    )
    said = [
        f"one user or group of users has {100 * arm.largest_group:.0f} % of the rows of {name}"
        for name, arm in arms
        if arm.largest_group > WHALE
    ]
    return f" Beware: {' and '.join(said)}." if said else ""


def _infinite(contrast: Contrast) -> list[str]:
    return _variants(contrast, lambda arm: math.isinf(arm.value))


def _joined(names: list[str], one: str, several: str) -> str:
    return f"{' and '.join(names)} {several if len(names) > 1 else one}"


def _has_none(arm: Arm, kind: str, place: int) -> bool:
    return arm.kind == kind and len(arm.counted) > place and arm.counted[place] == 0


def _variants(contrast: Contrast, test: Callable[[Arm], bool]) -> list[str]:
    if contrast.pair is None:
        return []
    arms = (
        (contrast.control_variant, contrast.pair.control),
        (contrast.treatment_variant, contrast.pair.treatment),
    )
    return [name for name, arm in arms if test(arm)]
