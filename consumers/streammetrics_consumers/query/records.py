"""The JSON of the records that answers pass on: those of the library, and rows of answers.

A field is named as the attribute that it holds, unless `elsewhere` says where it is. The order of
the fields is that of the schema; JSON has them sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, UnsetType

from streammetrics_consumers.query.json_kinds import (
    Count,
    Counts,
    Digest,
    Level,
    Names,
    Number,
    Share,
    recorded,
)
from streammetrics_consumers.query.rows import ComparisonText, ResultText, Window

if TYPE_CHECKING:
    from streammetrics.experiments import Plan, SampleRatioFound

_Read = Callable[[Any], object]


class RecordJson(NamedTuple):
    """The JSON object of a record: its name and description in the schema, and the kind of each
    field; a text names a type of `streammetrics.experiments`, which is imported only for a schema.
    elsewhere: the attributes of fields that have another name, with dots, or a function."""

    name: str
    description: str
    fields: Mapping[str, object]
    elsewhere: Mapping[str, str | _Read] = {}


def _guardrails(plan: Plan) -> tuple[str, ...]:
    return tuple(guardrail.metric for guardrail in plan.guardrails)


def _units(ratio: SampleRatioFound) -> Mapping[str, int]:
    return dict(ratio.counts)


_INTERVAL: Final = recorded("Interval")

RECORDS: Final[Mapping[str, RecordJson]] = {  # by the name of the class
    "Interval": RecordJson(
        "Interval",
        "A statistical interval. n_eff: n divided by the design effect, deff.",
        {
            "lower": Number,
            "upper": Number,
            "level": Level,
            "method": str,
            "n": Count,
            "n_eff": Number,
            "deff": Number,
            "reason": Annotated[str, Meta(description="why it is undefined, or empty")],
        },
    ),
    "SliceRow": RecordJson(
        "Result",
        "One view of one metric in one slice of one window. The exact value lies in [low, high], "
        "which\nare null for measures of error, such as p-values. band: of quantiles of "
        "independent rows, for\nall of them and all looks together. text: only with "
        "`texts=tables`, here and in the other\nobjects.",
        {
            "window": Window,
            "slice": Names,
            "metric": str,
            "type": str,
            "view": str,
            "value": Number,
            "low": Number,
            "high": Number,
            "counts": Counts,
            "digest": Digest,
            "interval": Annotated[
                _INTERVAL | None,
                Meta(description="null where there is no formula"),
            ],
            "band": _INTERVAL | UnsetType,
            "text": ResultText | UnsetType,
        },
        {"view": "shown.name", "interval": "shown.interval", "counts": "shown.counts"},
    ),
    "Direction": RecordJson(
        "Direction",
        "The better direction of a metric; the target is null if it has none.",
        {"better": Literal["higher", "lower", "target", "none"], "target": float | None},
    ),
    "RowsPerUnit": RecordJson(
        "RowsPerUnit",
        "Rows per unit of both arms, beside a mean or a rate per row.\n\n"
        "differ: at all looks together, at 0.1 %; the comparison is then one of rows, not of "
        "units.",
        {
            "control": Number,
            "treatment": Number,
            "differ": bool,
            "reason": Annotated[
                str, Meta(description="why it is not known whether they differ, or empty")
            ],
        },
    ),
    "WindowFinding": RecordJson(
        "Comparison",
        "A treatment compared with the control over one window, after the looks so far.\n\n"
        "since_effect: the effect of the rows since the decision, as estimated now; since_lower,\n"
        "since_upper: its interval, of all looks since then, which may exclude it; null before.\n"
        "faded: it lies apart from that of all rows, nearer to no effect or beyond it. "
        "holm_pvalue:\nadjusted for all decisions, of all rows since the start; null elsewhere. "
        "margin: the effect at\nwhich a guardrail is broken, with its sign; null for a decision.",
        {
            "metric": str,
            "view": str,
            "control_variant": str,
            "treatment_variant": str,
            "guardrail": bool,
            "window": Window,
            "control": Number,
            "treatment": Number,
            "effect_size": Number,
            "effect_size_ci_lower": Number,
            "effect_size_ci_upper": Number,
            "rel_effect_size": Number,
            "rel_effect_size_ci_lower": Number,
            "rel_effect_size_ci_upper": Number,
            "pvalue": Number,
            "statistic": Number,
            "std_error": Number,
            "df": Number,
            "level": Number,
            "n": Number,
            "n_eff": Number,
            "deff": Number,
            "method": str,
            "reason": Annotated[str, Meta(description="why the effect is undefined, or empty")],
            "anytime_lower": Number,
            "anytime_upper": Number,
            "anytime_pvalue": Number,
            "anytime_reason": Annotated[
                str, Meta(description="why there is no such interval, or empty")
            ],
            "holm_pvalue": Number,
            "e_value": Number,
            "gated": Annotated[
                bool, Meta(description="whether this is before the end of the burn-in")
            ],
            "distrusted": bool,
            "verdict": "Verdict",
            "direction": recorded("Direction"),
            "faded": bool,
            "since_effect": Number,
            "since_lower": Number,
            "since_upper": Number,
            "rows_per_unit": recorded("RowsPerUnit") | None,
            "margin": Number,
            "required": Annotated[
                bool, Meta(description="false for a guardrail that is only watched")
            ],
            "looks": Count,
            "sentence": str,
            "text": ComparisonText | UnsetType,
        },
        {
            **{
                name: f"contrast.{name}"
                for name in ("metric", "view", "control_variant", "treatment_variant")
            },
            **{
                name: f"comparison.{name}"
                for name in (
                    *("control", "treatment", "effect_size", "effect_size_ci_lower"),
                    *("effect_size_ci_upper", "rel_effect_size", "rel_effect_size_ci_lower"),
                    *("rel_effect_size_ci_upper", "pvalue", "statistic", "std_error", "df"),
                    *("level", "n", "n_eff", "deff", "method", "reason"),
                )
            },
            **{
                name: f"finding.{name}"
                for name in (
                    *("anytime_lower", "anytime_upper", "anytime_pvalue", "e_value", "gated"),
                    *("distrusted", "verdict", "direction", "faded", "since_effect"),
                    *("since_lower", "since_upper", "rows_per_unit", "sentence"),
                )
            },
            "anytime_reason": "finding.reason",
        },
    ),
    "Recommendation": RecordJson(
        "Recommendation",
        "The recommended action, and the comparisons that it rests on.",
        {
            "action": "Action",
            "sentence": str,
            "rests_on": tuple[str, ...],
            "treatments": tuple[str, ...],
        },
    ),
    "Contamination": RecordJson(
        "Contamination",
        "The units that were seen in several variants.",
        {"units": Number, "share": Share, "dropped": bool, "warning": bool, "sentence": str},
    ),
    "SampleRatioFound": RecordJson(
        "SampleRatio",
        "The check that units have the planned shares of the variants, since the start.",
        {
            "pvalue": Number,
            "e_value": Number,
            "counts": Counts,
            "reason": Annotated[str, Meta(description="why it is undefined, or empty")],
            "greatest_e_value": Number,
            "alarm": Annotated[
                bool, Meta(description="whether an e-value of its epoch has reached 1,000")
            ],
            "acknowledged": Annotated[str, Meta(description="why the alarm is ignored, or empty")],
        },
        {"counts": _units},
    ),
    "Plan": RecordJson(
        "Plan",
        "The declaration of an experiment.",
        {
            "control": str,
            "variants": tuple[str, ...],
            "decision": tuple[str, ...],
            "guardrails": tuple[str, ...],
            "level": Level,
            "cluster": Literal["groups", "none"],
        },
        {"guardrails": _guardrails},
    ),
}
