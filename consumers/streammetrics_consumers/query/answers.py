"""The answers to queries, which every surface renders, and their JSON.

/openapi.json is generated from these classes, including docstrings and constraints. Objects are
closed: they have exactly these keys. The JSON has sorted keys, is UTF-8 and ends with a newline.
Results depend only on the counted rows and the offsets read, never on a clock, host or worker.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple, TypeAlias, cast

from msgspec import UNSET, Meta, Raw, Struct, UnsetType, to_builtins

from streammetrics import experiments
from streammetrics_consumers.query.query import Slice, WindowState

Json = str | int | float | bool | None | Sequence["Json"] | Mapping[str, "Json"]

Tone = Literal["good", "bad", "warn", "neutral"]
ExperimentState = Literal["none", "waiting", "distrusted", "early", "undecided", "decided"]

if TYPE_CHECKING:
    Number: TypeAlias = float
else:  # the JSON form, for the schema
    Number: TypeAlias = Annotated[
        float | Literal["inf", "-inf"] | None, Meta(description="a double; null where undefined")
    ]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = Mapping[str, Count]
Time: TypeAlias = Annotated[int, Meta(description="milliseconds since 1970, UTC")]
Level: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]
Share: TypeAlias = Annotated[Number, Meta(description="a fraction of 1; null if the whole is 0")]
Digest: TypeAlias = Annotated[str, Meta(pattern="^sha256:[0-9a-f]{64}$")]
Names: TypeAlias = Annotated[
    Slice, Meta(description="values by name; (other) lists the names that were summed over")
]
Bin: TypeAlias = Annotated[
    tuple[int, int, Count], Meta(description="[from, to, outcomes], in seconds")
]
Axis: TypeAlias = Annotated[
    tuple[tuple[float, str], ...], Meta(description="the labelled marks of an axis: [value, text]")
]
Figure: TypeAlias = Annotated[
    Mapping[str, Raw],  # any JSON
    Meta(
        description="a Vega-Lite specification with its data",
        extra_json_schema={"required": ["$schema", "data", "description"]},
    ),
]


class Answer(Struct, frozen=True, forbid_unknown_fields=True):
    """An object of an answer."""


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of one object, shown in place of its numbers; `render.cells` writes them."""


class ResultText(Text, frozen=True):
    """A result as tables show it. certain, interval: "" where there is none. reason: why the value
    or its interval is undefined, or "". axis: shared by the rows of the metric and view."""

    value: str
    certain: str
    interval: str
    level: str
    rows: str
    reason: str
    axis: Axis
    band: str | UnsetType = UNSET


class ComparisonText(Text, frozen=True):
    """A comparison as tables show it. label: the metric and, where that says more, the view. lift:
    the effect relative to the control, in per cent, ""
    if it is undefined. margin: "" for a decision. reason: why the effect or its always-valid
    interval is undefined, or "". rows: rows per unit of both arms, "" if they are not known. axis:
    shared by the comparisons of the metric and view."""

    label: str
    verdict: str
    symbol: str
    tone: Tone
    effect: str
    lift: str
    margin: str
    once: str
    p_once: str
    always: str
    p: str
    p_title: str
    reason: str
    rows: str
    axis: Axis


class OutcomeText(Text, frozen=True):
    """An outcome of a join as tables show it."""

    attributed: str
    unattributed: str
    after_window: str


class ArmText(Text, frozen=True):
    """One treatment in one line: its decisions, then its guardrails."""

    variant: str
    symbol: str
    tone: Tone
    line: str


class ExperimentText(Text, frozen=True):
    """The texts of an experiment. advice: the recommendation in three parts: before, within and
    after the words about units of several variants. tone: of the action; worst: of all parts.
    standing: the further conclusions. units: the number of each variant. arms: each treatment.
    progress: how far the experiment is of what was planned. axes: by view, where the effects on
    several metrics have the same unit."""

    symbol: str
    tone: Tone
    worst: Tone
    advice: tuple[str, str, str]
    standing: str
    units: str
    arms: tuple[ArmText, ...]
    progress: str
    axes: Mapping[str, Axis]


class Problem(Answer, frozen=True):
    """The expected value, the actual one, the location, and a hint."""

    got: str
    expected: str | UnsetType = UNSET
    where: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class Error(Answer, frozen=True):
    """The reason that there is no answer."""

    error: Problem


class Window(Answer, frozen=True):
    """A span of event time [start_ms, end_ms) and its state; null, null for the total.

    Open: the newest event of some partition is before the end. Closing: late rows are still
    expected. Closed: all further rows are late. The state is for display and part of no digest."""

    start_ms: Time | None
    end_ms: Time | None
    state: WindowState


SINCE_THE_START: Final = Window(None, None, "total")


class Interval(Answer, frozen=True):
    """A statistical interval. n_eff: n divided by the design effect, deff."""

    lower: Number
    upper: Number
    level: Level
    method: str
    n: Count
    n_eff: Number
    deff: Number
    reason: Annotated[str, Meta(description="why it is undefined, or empty")]


class Result(Answer, frozen=True):
    """One view of one metric in one slice of one window. The exact value lies in [low, high], which
    are null for measures of error, such as p-values. band: of quantiles of independent rows, for
    all of them and all looks together. text: only with `texts=tables`, here and in the other
    objects."""

    window: Window
    slice: Names
    metric: str
    type: str
    view: str
    value: Number
    low: Number
    high: Number
    counts: Counts
    digest: Digest
    interval: Annotated[Interval | None, Meta(description="null where there is no formula")]
    band: Interval | UnsetType = UNSET
    text: ResultText | UnsetType = UNSET


class Direction(Answer, frozen=True):
    """The better direction of a metric; the target is null if it has none."""

    better: Literal["higher", "lower", "target", "none"]
    target: float | None


class ContrastNames(Answer, frozen=True):
    """A treatment and the control that it is compared with."""

    metric: str
    view: str
    control_variant: str
    treatment_variant: str
    guardrail: bool


class RowsPerUnit(Answer, frozen=True):
    """Rows per unit of both arms, beside a mean or a rate per row.

    differ: at all looks together, at 0.1 %; the comparison is then one of rows, not of units.
    """

    control: Number
    treatment: Number
    differ: bool
    reason: Annotated[str, Meta(description="why it is not known whether they differ, or empty")]


class Comparison(ContrastNames, frozen=True):
    """A treatment compared with the control over one window, after the looks so far.

    since_effect, since_lower, since_upper: the effect of the rows since the decision; null before.
    faded: it lies apart from that of all rows, nearer to no effect or beyond it. holm_pvalue:
    adjusted for all decisions, of all rows since the start; null elsewhere. margin: the effect at
    which a guardrail is broken, with its sign; null for a decision.
    """

    window: Window
    control: Number
    treatment: Number
    effect_size: Number
    effect_size_ci_lower: Number
    effect_size_ci_upper: Number
    rel_effect_size: Number
    rel_effect_size_ci_lower: Number
    rel_effect_size_ci_upper: Number
    pvalue: Number
    statistic: Number
    std_error: Number
    df: Number
    level: Number
    n: Number
    n_eff: Number
    deff: Number
    method: str
    reason: Annotated[str, Meta(description="why the effect is undefined, or empty")]
    anytime_lower: Number
    anytime_upper: Number
    anytime_pvalue: Number
    anytime_reason: Annotated[str, Meta(description="why there is no such interval, or empty")]
    holm_pvalue: Number
    e_value: Number
    gated: Annotated[bool, Meta(description="whether this is before the end of the burn-in")]
    distrusted: bool
    verdict: experiments.Verdict
    direction: Direction
    faded: bool
    since_effect: Number
    since_lower: Number
    since_upper: Number
    rows_per_unit: RowsPerUnit | None
    margin: Number
    required: Annotated[bool, Meta(description="false for a guardrail that is only watched")]
    looks: Count
    sentence: str
    text: ComparisonText | UnsetType = UNSET

    @property
    def name(self) -> str:
        """The name under which its looks are stored."""
        return f"{self.metric}.{self.view}/{self.treatment_variant}"


class Recommendation(Answer, frozen=True):
    """The recommended action, and the comparisons that it rests on."""

    action: experiments.Action
    sentence: str
    rests_on: tuple[str, ...]
    treatments: tuple[str, ...]


class Contamination(Answer, frozen=True):
    """The units that were seen in several variants."""

    units: Number
    share: Share
    dropped: bool
    warning: bool
    sentence: str


class SampleRatio(Answer, frozen=True):
    """The check that units have the planned shares of the variants, since the start."""

    pvalue: Number
    e_value: Number
    counts: Counts
    reason: Annotated[str, Meta(description="why it is undefined, or empty")]
    greatest_e_value: Number
    alarm: Annotated[bool, Meta(description="whether an e-value of its epoch has reached 1,000")]
    acknowledged: Annotated[str, Meta(description="why the alarm is ignored, or empty")]


class JoinOutcome(Answer, frozen=True):
    """One outcome of a join. waiting: outcomes whose impression is not certain yet."""

    waiting: Count
    attributed: Count
    unattributed: Count
    unknown: Annotated[
        int, Meta(ge=0, description="unattributed outcomes without a known impression")
    ]
    share_unattributed: Share
    share_after_window: Share
    share_last_tenth: Share
    delays_s: tuple[Bin, ...]
    unattributed_delays_s: tuple[Bin, ...]
    text: OutcomeText | UnsetType = UNSET


class Join(Answer, frozen=True):
    """The status of the join of impressions with their outcomes, since the start."""

    closed_ms: Time | None
    label_window_s: float
    events: Count
    closed: Annotated[int, Meta(ge=0, description="impressions that are counted")]
    pending: Annotated[int, Meta(ge=0, description="impressions that are not counted yet")]
    share_pending: Share
    conflicts: Count
    late_impressions: Count
    late_outcomes: Count
    repeated: Count
    share_repeated: Share
    outcomes: Mapping[str, JoinOutcome]
    warnings: tuple[str, ...]
    text: Annotated[str, Meta(description="the counts and shares in one line")] | UnsetType = UNSET


class EventCounts(Answer, frozen=True):
    """Counts of the events read, and the watermark."""

    rows_read: Count
    quarantined: Count
    late: Count
    future: Count
    expired: Count
    repeated: Count
    skipped: Count
    watermark_ms: Time | None


class Tables(NamedTuple):
    """More data of tables. variants: in order; control: of an experiment; headlines: by default, in
    the order of the config; ranges: by metric and view; groupings, left_out: of `FirstBlocks`."""

    variants: tuple[str, ...] = ()
    control: str = ""
    headlines: tuple[tuple[str, str], ...] = ()
    ranges: Mapping[tuple[str, str], tuple[float, float]] = {}
    groupings: tuple[frozenset[str], ...] = ()
    left_out: int = 0

    def limits(self, metric: str, view: str) -> tuple[float, float]:
        """The least and the greatest value of a view, infinite if unknown."""
        return self.ranges.get((metric, view), (-math.inf, math.inf))


class Slices(Answer, frozen=True):
    """How many lines the table of a metric has: slices in windows, each with all its variants; how
    many have the searched text, and how many of these are given."""

    all: Count
    found: Count
    shown: Count


class Results(
    EventCounts,
    frozen=True,
    tag_field="format",
    tag="streammetrics-results/1",
    rename={"rows": "results"},
):
    """The answer to a query: how far the logs were read, the values, and the experiment.

    incomplete: the logs that were counted further before the store went back, each with that
    offset. slices: by metric; only with `most`.
    """

    generation: Count
    offsets: Counts
    incomplete: Counts
    rows: tuple[Result, ...]
    comparisons: tuple[Comparison, ...]
    recommendation: Recommendation | None
    contamination: Contamination | None
    srm: SampleRatio | None
    notes: tuple[str, ...]
    join: Annotated[Join | None, Meta(description="null where events are not joined")]
    slices: Mapping[str, Slices] | UnsetType = UNSET
    tables: Tables = Tables()  # not in the JSON

    @property
    def incomplete_text(self) -> str | None:
        """A sentence that names the incomplete logs; None if there are none."""
        if not self.incomplete:
            return None
        logs = ", ".join(
            f"{name} is counted up to {self.offsets.get(name, 'nothing')}, previously up to {end}"
            for name, end in sorted(self.incomplete.items())
        )
        return f"incomplete: the store went back, and the lost records are counted again: {logs}"


class Plan(Answer, frozen=True):
    """The declaration of an experiment."""

    control: str
    variants: tuple[str, ...]
    decision: tuple[str, ...]
    guardrails: tuple[str, ...]
    level: Level
    cluster: Literal["groups", "none"]


class Progress(Answer, frozen=True):
    """How far an experiment is of what was planned. days: from the start of the first window to the
    newest event; units: the sum over the variants; null where unknown, or not planned."""

    days: float | None
    planned_days: Count | None
    units: Count | None
    planned_units: float | None


class Experiment(Answer, frozen=True, tag_field="format", tag="streammetrics-experiment/1"):
    """The status of an experiment since the start: its recommendation and its conclusions."""

    generation: Count
    offsets: Counts
    incomplete: Counts
    state: ExperimentState
    sentence: str
    name: Annotated[str, Meta(description="as declared, or empty")]
    hypothesis: Annotated[str, Meta(description="as declared, or empty")]
    progress: Progress | None
    recommendation: Recommendation | None
    plan: Plan | None
    looks: Count
    comparisons: tuple[Comparison, ...]
    srm: SampleRatio | None
    contamination: Contamination | None
    notes: tuple[str, ...]
    text: ExperimentText | UnsetType = UNSET


def dumps(value: Json | Answer) -> bytes:
    """As JSON: nan is null, infinities are strings, and lone surrogates are backslash escapes."""
    text = json.dumps(finite(plain(value)), sort_keys=True, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def plain(value: Json | Answer) -> Json:
    """An answer as mappings, sequences, numbers and strings."""
    return cast("Json", to_builtins(value, enc_hook=_builtin))


def finite(value: Json) -> Json:
    """The value with nulls and strings in place of the floats that JSON lacks."""
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        return {key: finite(member) for key, member in value.items()}
    return [*map(finite, value)] if isinstance(value, list | tuple) else value


def _builtin(value: object) -> object:
    """A NumPy number or a mapping as a built-in type."""
    for kind in (float, int, str):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")
