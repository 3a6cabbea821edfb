"""The verdict on one comparison, and the recommendation for the experiment, as plain values."""

from __future__ import annotations

from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.finding import Verdict
from streammetrics.experiments.lift import treatment_is_nearer
from streammetrics.experiments.monitor import Reading
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.plan import Safeguard


def verdict_of(contrast: Contrast, reading: Reading, against: str = "") -> Verdict:
    """The verdict on one contrast; against: why the experiment must not be believed, or "".

    "not_started" if there is no always-valid interval, yet or ever. For a decision: "better" and
    "worse" if the metric has a direction, "higher" and "lower" if it has none, if rows per unit
    differ, or if it is not certain which arm is nearer to the target; "faded" if `has_faded`. For a
    guardrail: "kept", "broken" or "open", and "kept" only if it has not faded. "disbelieved" also
    if the looks exclude one another and nothing was decided before.
    """
    faded = has_faded(contrast, reading)
    if against or not (reading.consistent or (faded and contrast.safeguard is None)):
        return "disbelieved"
    if not reading.known:
        return "not_started"
    if not reading.consistent:
        return "faded"
    if contrast.safeguard is not None:
        return _guardrail_verdict(contrast.safeguard, reading, faded)
    if not (reading.lower > 0 or reading.upper < 0):
        return "no_difference_yet"
    if faded:
        return "faded"
    rises = reading.lower > 0
    if contrast.rows_differ:
        return "higher" if rises else "lower"
    match contrast.direction.better:
        case "none":
            return "higher" if rises else "lower"
        case "target":
            nearer = treatment_is_nearer(contrast)
            if nearer is None:
                return "higher" if rises else "lower"
            return "better" if nearer else "worse"
        case way:
            return "better" if rises == (way == "higher") else "worse"


def has_faded(contrast: Contrast, reading: Reading) -> bool:
    """Whether the effect since the decision lies apart from that of all looks together, nearer to
    no effect or beyond it; of a guardrail, on the side of harm. Also if the intervals of all looks
    exclude one another after a decision."""
    since = reading.since
    if since is None or not reading.known:
        return False
    if not reading.consistent:
        return True
    rail = contrast.safeguard
    if rail is not None:
        rises = rail.higher_is_better is not False
        if _worst(reading, 1.0 if rises else -1.0) <= -rail.margin:
            return False
    elif reading.lower > 0 or reading.upper < 0:
        rises = reading.lower > 0
    else:
        return False
    return since.upper < reading.lower if rises else since.lower > reading.upper


def _guardrail_verdict(rail: Safeguard, reading: Reading, faded: bool) -> Verdict:
    sign = 1.0 if rail.higher_is_better else -1.0
    if _worst(reading, sign) > -rail.margin:
        return "open" if faded else "kept"
    return "broken" if -_worst(reading, -sign) < -rail.margin else "open"


def _worst(reading: Reading | Anytime, sign: float) -> float:
    """The worst effect that is not excluded, as a gain; sign: -1 if lower is better."""
    return reading.lower if sign > 0 else -reading.upper
