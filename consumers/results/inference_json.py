"""What JSON says of intervals, comparisons and the sample ratio."""

from __future__ import annotations

from typing import Final

from consumers.results.json_text import Json, number
from streammetrics import Interval
from streammetrics.experiments import Contamination, Finding, Recommendation, SampleRatioFound
from streammetrics.results import Direction

# Fields of Comparison that are numbers, under their own names.
_COMPARED: Final = (
    "control",
    "treatment",
    "effect_size",
    "effect_size_ci_lower",
    "effect_size_ci_upper",
    "rel_effect_size",
    "rel_effect_size_ci_lower",
    "rel_effect_size_ci_upper",
    "pvalue",
    "statistic",
    "std_error",
    "df",
    "level",
    "n",
    "n_eff",
    "deff",
)


def interval_json(interval: Interval | None) -> Json:
    """An interval; null where there is no formula for it."""
    if interval is None:
        return None
    return {
        "lower": number(interval.lower),
        "upper": number(interval.upper),
        "level": interval.level,
        "method": interval.method,
        "n": interval.n,
        "n_eff": number(interval.n_eff),
        "deff": number(interval.deff),
        "reason": interval.reason,
    }


def comparison_json(finding: Finding, looks: int, *, decides: bool) -> dict[str, Json]:
    """A comparison as it stands after so many looks, without its window. decides: whether it is of
    all rows since the start, which decisions rest on together, and so Holm's p-values."""
    contrast, found = finding.contrast, finding.contrast.comparison
    return {
        "metric": contrast.metric,
        "view": contrast.view,
        "control_variant": contrast.control_variant,
        "treatment_variant": contrast.treatment_variant,
        "guardrail": contrast.safeguard is not None,
        **{name: number(getattr(found, name)) for name in _COMPARED},
        "method": found.method,
        "reason": found.reason,
        "anytime_lower": number(finding.anytime_lower),
        "anytime_upper": number(finding.anytime_upper),
        "anytime_pvalue": number(finding.anytime_pvalue),
        "holm_pvalue": number(finding.holm) if decides and finding.holm is not None else None,
        "e_value": number(finding.e_value),
        "gated": finding.gated,
        "anytime_reason": finding.reason,
        "distrusted": finding.distrusted,
        "verdict": finding.verdict,
        "direction": direction_json(finding.direction),
        "faded": finding.faded,
        "margin": _margin(finding),
        "looks": looks,
        "sentence": finding.sentence,
    }


def direction_json(found: Direction) -> Json:
    """In which direction a metric is better; the target is null where it has none."""
    return {"better": found.better, "target": found.target}


def recommendation_json(found: Recommendation | None) -> Json:
    """What to do now; null where there is no experiment."""
    if found is None:
        return None
    return {
        "action": found.action,
        "sentence": found.sentence,
        "rests_on": list(found.rests_on),
        "treatments": list(found.treatments),
    }


def contamination_json(found: Contamination | None) -> Json:
    """The units that were seen in several variants; null where units are not counted."""
    if found is None:
        return None
    return {
        "units": number(found.units),
        "share": number(found.share),
        "dropped": found.dropped,
        "warning": found.warning,
        "sentence": found.sentence,
    }


def srm_json(found: SampleRatioFound | None) -> Json:
    """The sample ratio check; null where there is no experiment."""
    if found is None:
        return None
    return {
        "pvalue": number(found.pvalue),
        "e_value": number(found.e_value),
        "counts": dict(found.counts),
        "reason": found.reason,
    }


def _margin(finding: Finding) -> Json:
    """The effect at which a guardrail is broken, with its sign; null of a decision."""
    rail = finding.contrast.safeguard
    if rail is None:
        return None
    return number(-rail.margin if rail.higher_is_better else rail.margin)
