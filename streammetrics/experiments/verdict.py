"""The verdict on one comparison, and the recommendation for the whole experiment: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.evidence import Anytime
from streammetrics.experiments.nearness import treatment_is_nearer
from streammetrics.experiments.plan import Safeguard
from streammetrics.experiments.running import Reading

Verdict = Literal[
    "better",
    "worse",
    "higher",
    "lower",
    "faded",
    "no_difference_yet",
    "kept",
    "broken",
    "open",
    "disbelieved",
    "not_started",
]
Action = Literal["ship", "do_not_ship", "decide", "wait", "check_setup"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do now, by everything that the experiment says together.

    action: "ship"; "do_not_ship"; "decide", where a person has to judge: of a metric with no
    declared direction, or where no difference is shown and one of the planned size would be;
    "wait"; "check_setup", where waiting would not help. sentence: the action and its reason.
    rests_on: the names of the contrasts that it follows from, none where it follows from the
    units. treatments: the variants that the action is about.
    """

    action: Action
    sentence: str
    rests_on: tuple[str, ...] = ()
    treatments: tuple[str, ...] = ()


def verdict_of(contrast: Contrast, reading: Reading, against: str = "") -> Verdict:
    """The verdict on one contrast; against: why nothing of the experiment is to be believed.

    "not_started" where there is no always-valid interval yet, or none will come. Of a decision:
    "better" and "worse" where the difference has a direction, "higher" and "lower" where it has
    none, or where it is not certain which arm is nearer to the target; "faded" where `has_faded`.
    Of a guardrail: "kept", "broken" or "open", and "kept" only where it has not faded.
    """
    if against or not reading.consistent:
        return "disbelieved"
    if not reading.known:
        return "not_started"
    faded = has_faded(contrast, reading)
    if contrast.safeguard is not None:
        return _of_guardrail(contrast.safeguard, reading, faded)
    if not (reading.lower > 0 or reading.upper < 0):
        return "no_difference_yet"
    if faded:
        return "faded"
    rises = reading.lower > 0
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
    """Whether the last look alone says less than the looks together: it does not show what they
    show, or its estimate lies nearer to no effect than their interval."""
    if not (reading.known and reading.consistent) or reading.looks < 2:
        return False
    rail, last = contrast.safeguard, reading.last
    if rail is not None:
        sign = 1.0 if rail.higher_is_better else -1.0
        bound, alone = (_worst(one, sign) for one in (reading, last))
        if bound > -rail.margin:
            return alone <= -rail.margin or sign * reading.estimate < bound
        best, alone = -_worst(reading, -sign), -_worst(last, -sign)
        return best < -rail.margin and (alone >= -rail.margin or sign * reading.estimate > best)
    if not (reading.lower > 0 or reading.upper < 0):
        return False
    if reading.lower > 0:
        return reading.estimate < reading.lower or not last.lower > 0
    return reading.estimate > reading.upper or not last.upper < 0


def _of_guardrail(rail: Safeguard, reading: Reading, faded: bool) -> Verdict:
    sign = 1.0 if rail.higher_is_better else -1.0
    if _worst(reading, sign) > -rail.margin:
        return "open" if faded else "kept"
    return "broken" if -_worst(reading, -sign) < -rail.margin else "open"


def _worst(of: Reading | Anytime, sign: float) -> float:
    """The least effect that is not excluded; sign: -1 where less is better."""
    return of.lower if sign > 0 else -of.upper
