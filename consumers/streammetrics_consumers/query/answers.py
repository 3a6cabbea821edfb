"""The answers to queries, which every surface renders.

/openapi.json is generated from these classes, including docstrings and constraints, and from the
table of `records`. Objects are closed: they have exactly these keys. Results depend only on the
counted rows and the offsets read, never on a clock, host or worker.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from streammetrics_consumers.query.exposed_answers import ExposedAnswer, ExposureStatus
from streammetrics_consumers.query.hook_answers import SentHook
from streammetrics_consumers.query.json_kinds import (
    Answer,
    Axis,
    Bin,
    Count,
    Counts,
    ExperimentState,
    Number,
    Phase,
    Share,
    Text,
    Time,
    Tone,
    UnitView,
    recorded,
)

if TYPE_CHECKING:
    from streammetrics.experiments import (
        Contamination,
        Plan,
        Recommendation,
        SampleRatioFound,
        Verdict,
    )
    from streammetrics_consumers.query.rows import SliceRow, WindowFinding
else:  # their JSON, for the schema: `records.RECORDS`
    SliceRow, WindowFinding = recorded("Result"), recorded("Comparison")
    Contamination, Plan = recorded("Contamination"), recorded("Plan")
    Recommendation, SampleRatioFound = recorded("Recommendation"), recorded("SampleRatio")
    Verdict = str


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


class ProblemAnswer(Answer, frozen=True):
    """The expected value, the actual one, the location, and a hint."""

    got: str
    expected: str | UnsetType = UNSET
    where: str | UnsetType = UNSET
    hint: str | UnsetType = UNSET


class Error(Answer, frozen=True):
    """The reason that there is no answer."""

    error: ProblemAnswer


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


class TableLayout(NamedTuple):
    """More data of tables. variants: in order; control: of an experiment; headlines: by default, in
    the order of the config; ranges: by metric and view; groupings, left_out: of `FirstBlocks`;
    experiments: the names of all."""

    variants: tuple[str, ...] = ()
    control: str = ""
    headlines: tuple[tuple[str, str], ...] = ()
    ranges: Mapping[tuple[str, str], tuple[float, float]] = {}
    groupings: tuple[frozenset[str], ...] = ()
    left_out: int = 0
    experiments: tuple[str, ...] = ()

    def limits(self, metric: str, view: str) -> tuple[float, float]:
        """The least and the greatest value of a view, infinite if unknown."""
        return self.ranges.get((metric, view), (-math.inf, math.inf))


class Slices(Answer, frozen=True):
    """How many lines the table of a metric has: slices in windows, each with all its variants; how
    many have the searched text, and how many of these are given."""

    all: Count
    found: Count
    shown: Count


class ProgressAnswer(Answer, frozen=True):
    """How far an experiment is of what was planned. days: that it has at least run, up to
    the newest event; units: the sum over the variants; null where unknown, or not planned."""

    days: float | None
    planned_days: Count | None
    units: Count | None
    planned_units: float | None


class EntryText(Text, frozen=True):
    """The texts of an experiment in the index. symbol, tone: of the recommendation; advice: its
    action in words, "" without one. days, units: so far, and of how many planned; of exposed units
    also whether only closed ones decide. guardrails: how many are broken or kept, and which if one
    is broken; ratio: whether the units are split as planned, each with its tone. label: the metric
    of the effect; effect, always, lift: its size, its always-valid interval and its size relative
    to the control, "" where undefined."""

    symbol: str
    tone: Tone
    advice: str
    days: str
    units: str
    guardrails: str
    guardrails_tone: Tone
    ratio: str
    ratio_tone: Tone
    label: str
    effect: str
    always: str
    lift: str
    axis: Axis


class EntryGuardrails(Answer, frozen=True):
    """The guardrails of an experiment: the broken ones by name, and how many are kept, or neither
    yet."""

    broken: tuple[str, ...]
    kept: Count
    waiting: Count


class EntryEffect(Answer, frozen=True):
    """The effect on the first decision metric, of the treatment that is recommended, else the first
    one. lower, upper: of its always-valid interval; reason: why there is none, or empty. course:
    the effect look by look."""

    metric: str
    view: str
    variant: str
    estimate: Number
    relative: Number
    lower: Number
    upper: Number
    reason: str
    verdict: Verdict
    course: tuple[Number, ...]


class ExperimentEntry(Answer, frozen=True):
    """One experiment of the index.

    name: in the config, empty for the one without a name. title, hypothesis: as declared, or empty.
    state: waiting, before its first event; running; or ended, by its declared end or because it was
    taken out of the config. archived: whether lists leave it out. sentence: the conclusion.
    start_ms: its declared start, or that of its first window, null where unknown. end_ms: its
    declared end. effect: null before there is one. units: of which exposed units the plan's means
    and rates are; only where its arms are those of exposures.
    """

    name: str
    title: str
    hypothesis: str
    state: Phase
    archived: bool
    sentence: str
    recommendation: Recommendation | None
    start_ms: Time | None
    end_ms: Time | None
    progress: ProgressAnswer | None
    guardrails: EntryGuardrails
    srm: SampleRatioFound | None
    effect: EntryEffect | None
    looks: Count
    text: EntryText | UnsetType = UNSET
    units: UnitView | UnsetType = UNSET


class LayerEntry(Answer, frozen=True):
    """Experiments that exclude each other, those that are archived left out. units: those that are
    in two which ran at the same time, null where unknown; alarm: whether one certainly is."""

    name: str
    experiments: tuple[str, ...]
    units: Number
    alarm: bool
    sentence: str


class OverlapEntry(Answer, frozen=True):
    """Two experiments, and the units in both, null where unknown. alarm: whether their arms are not
    independent, at all looks together; adjusted_p: of that, for all pairs, null where it is not
    tested."""

    experiments: tuple[str, str]
    units: Number
    adjusted_p: Number
    alarm: bool
    sentence: str


class InteractionEntry(Answer, frozen=True):
    """Whether the effect of one arm of the first of two experiments on a metric differs between one
    arm and the control of the second. variants: these arms. estimate: the effect in that arm, less
    the effect in the control. lower, upper: at all looks together, null where unknown. adjusted_p:
    at all looks together and for all that are asked for, null where unknown; differs: whether it is
    at most 0.05."""

    experiments: tuple[str, str]
    metric: str
    variants: tuple[str, str]
    estimate: Number
    lower: Number
    upper: Number
    adjusted_p: Number
    differs: bool
    sentence: str


class ExperimentsAnswer(Answer, frozen=True, tag_field="format", tag="streammetrics-experiments/1"):
    """The experiments of a store, in the order of the config; those that were taken out of it
    last."""

    generation: Count
    offsets: Counts
    incomplete: Counts
    experiments: tuple[ExperimentEntry, ...]
    layers: tuple[LayerEntry, ...]
    overlaps: Annotated[
        tuple[OverlapEntry, ...],
        Meta(description="pairs of running experiments that share units, or may"),
    ]
    interactions: Annotated[
        tuple[InteractionEntry, ...],
        Meta(description="of those whose config has `interactions`; at most 1,000"),
    ]


class ResultsAnswer(
    EventCounts,
    frozen=True,
    tag_field="format",
    tag="streammetrics-results/1",
    rename={"rows": "results"},
):
    """The answer to a query: how far the logs were read, the values, and the experiment.

    incomplete: the logs that were counted further before the store went back, each with that
    offset. slices: by metric; only with `most`. experiments: the index, where any has a name and
    the query names none. exposures: where the config has them; exposed: of an experiment whose arms
    are those of exposures.
    """

    generation: Count
    offsets: Counts
    incomplete: Counts
    rows: tuple[SliceRow, ...]
    comparisons: tuple[WindowFinding, ...]
    recommendation: Recommendation | None
    contamination: Contamination | None
    srm: SampleRatioFound | None
    notes: tuple[str, ...]
    join: Annotated[Join | None, Meta(description="null where events are not joined")]
    slices: Mapping[str, Slices] | UnsetType = UNSET
    experiments: ExperimentsAnswer | UnsetType = UNSET
    exposures: ExposureStatus | UnsetType = UNSET
    exposed: ExposedAnswer | UnsetType = UNSET
    tables: TableLayout = TableLayout()
    internal: ClassVar[tuple[str, ...]] = ("tables",)

    @property
    def index(self) -> ExperimentsAnswer | None:
        """The index of experiments; None if the answer has none."""
        return None if self.experiments is UNSET else self.experiments

    @property
    def exposure_status(self) -> ExposureStatus | None:
        """The status of exposures; None where the config has none."""
        return None if self.exposures is UNSET else self.exposures

    @property
    def exposed_units(self) -> ExposedAnswer | None:
        """What the experiment shows of exposed units; None of any other."""
        return None if self.exposed is UNSET else self.exposed

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


class ExperimentAnswer(Answer, frozen=True, tag_field="format", tag="streammetrics-experiment/1"):
    """The status of an experiment since the start: its recommendation and its conclusions.

    experiment: its name in the config; left out of the one without a name. exposed: only where its
    arms are those of exposures.
    """

    generation: Count
    offsets: Counts
    incomplete: Counts
    state: ExperimentState
    sentence: str
    name: Annotated[str, Meta(description="as declared, or empty")]
    hypothesis: Annotated[str, Meta(description="as declared, or empty")]
    progress: ProgressAnswer | None
    recommendation: Recommendation | None
    plan: Plan | None
    looks: Count
    comparisons: tuple[WindowFinding, ...]
    srm: SampleRatioFound | None
    contamination: Contamination | None
    notes: tuple[str, ...]
    text: ExperimentText | UnsetType = UNSET
    experiment: str | UnsetType = UNSET
    hooks: (
        Annotated[
            tuple[SentHook, ...], Meta(description="the newest events of hooks; left out of none")
        ]
        | UnsetType
    ) = UNSET
    exposed: ExposedAnswer | UnsetType = UNSET
