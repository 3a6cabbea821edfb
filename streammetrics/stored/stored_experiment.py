"""An experiment of a store, as it stands: its recommendation and its verdicts, as values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Literal, cast

from streammetrics.core.errors import StreamMetricsError, UnknownKeyError, nearest
from streammetrics.experiments.finding import ACTIONS, VERDICTS, Verdict
from streammetrics.experiments.recommendation import Recommendation
from streammetrics.present.value_rows import Columns, Library, frame_of, strict
from streammetrics.stored.json_table import columns_of

if TYPE_CHECKING:
    from streammetrics.present.value_rows import Frame

State = Literal["none", "waiting", "distrusted", "early", "undecided", "decided"]


@dataclass(frozen=True, slots=True)
class StoredFinding:
    """A treatment compared with the control since the start, with all the looks at it.

    effect_size: the estimated effect; anytime_lower, anytime_upper: its always-valid interval, nan
    if there is none, and then `reason` says why. guardrail: whether it is of a guardrail, with its
    margin (nan for a decision). sentence: the conclusion. looks: how many were taken.
    """

    metric: str
    view: str
    control_variant: str
    treatment_variant: str
    verdict: Verdict
    effect_size: float
    anytime_lower: float
    anytime_upper: float
    guardrail: bool
    margin: float
    looks: int
    sentence: str
    reason: str

    @property
    def name(self) -> str:
        """The name by which a recommendation refers to it, such as `ctr.ratio/new`."""
        return f"{self.metric}.{self.view}/{self.treatment_variant}"


@dataclass(frozen=True, slots=True, repr=False)
class StoredExperiment:
    """An experiment of a store, at the moment when it was read.

    name: by which the store knows it, "" of `[experiment]`. title, hypothesis: texts of the config.
    state, sentence: the conclusion. recommendation: None before there is one. findings: of each
    decision and guardrail, and treatment. units: of each variant, empty where they are not counted.
    sample_ratio_alarm: whether they have not the planned shares. notes: sentences about the result.
    """

    name: str
    title: str
    hypothesis: str
    state: State
    sentence: str
    recommendation: Recommendation | None
    findings: tuple[StoredFinding, ...]
    units: Mapping[str, int]
    sample_ratio_alarm: bool
    looks: int
    notes: tuple[str, ...]
    _columns: Columns = field(compare=False, default_factory=dict)

    def finding(self, metric: str, treatment: str | None = None) -> StoredFinding:
        """The finding on a metric, also named with its view as in `ctr.ratio`; treatment: of this
        variant, which may be left out if there is one. UnknownKeyError if there is no such one, or
        if there are several."""
        names = {
            finding.name: finding
            for finding in self.findings
            if metric in (finding.metric, f"{finding.metric}.{finding.view}")
            and treatment in (None, finding.treatment_variant)
        }
        if len(names) == 1:
            return next(iter(names.values()))
        known_names = sorted(names or {finding.name for finding in self.findings})
        raise UnknownKeyError(
            expected=f"one of {', '.join(known_names) or 'no finding: nothing is compared yet'}",
            got=f"{metric!r} of {treatment!r}" if treatment else repr(metric),
            where="finding(metric, treatment)",
            hint="name the view and the treatment" if names else nearest(metric, known_names),
        )

    def to_dict(self) -> dict[str, list[object]]:
        """The findings as columns with the names of the JSON of a comparison
        (docs/http.md#comparison), strict JSON as those of results."""
        return strict(self._columns)

    def to_frame(self, library: Library | None = None) -> Frame:
        """The columns of `to_dict` as a frame of pandas or polars, as `to_frame` of a result."""
        return frame_of(self._columns, library)

    def __repr__(self) -> str:
        lines = [self.title or self.name or "experiment", self.sentence]
        if self.recommendation is not None:
            lines.append(self.recommendation.sentence)
        return "\n".join(
            (
                *lines,
                *(f"{finding.name}: {finding.verdict}" for finding in self.findings),
                *self.notes,
            )
        )

    def _repr_html_(self) -> str:
        """The experiment as a notebook shows it."""
        title, *lines = map(escape, repr(self).split("\n"))
        return f"<h4>{title}</h4>" + "".join(f"<p>{line}</p>" for line in lines)


def stored_experiment(name: str, answer: Mapping[str, object], where: str) -> StoredExperiment:
    """The experiment in an answer of /api/experiment. Raises StreamMetricsError if it is none."""
    try:
        return _experiment(name, answer)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StreamMetricsError(
            expected="the JSON of an experiment, as this version has it",
            got=f"{type(error).__name__}: {error}",
            where=where,
            hint="install the version of the server here",
        ) from None


def _experiment(name: str, answer: Mapping[str, object]) -> StoredExperiment:
    comparisons = cast("Sequence[Mapping[str, object]]", answer["comparisons"])
    ratio = cast("Mapping[str, object] | None", answer["srm"]) or {}
    units = cast("Mapping[str, int]", ratio.get("counts", {}))
    return StoredExperiment(
        name=name,
        title=str(answer["name"]),
        hypothesis=str(answer["hypothesis"]),
        state=cast("State", str(answer["state"])),
        sentence=str(answer["sentence"]),
        recommendation=_recommendation(answer["recommendation"]),
        findings=tuple(map(_finding, comparisons)),
        units={str(variant): int(n) for variant, n in units.items()},
        sample_ratio_alarm=bool(ratio.get("alarm", False)),
        looks=int(cast("int", answer["looks"])),
        notes=tuple(map(str, cast("Sequence[object]", answer["notes"]))),
        _columns=columns_of(comparisons),
    )


def _recommendation(answer: object) -> Recommendation | None:
    if answer is None:
        return None
    values = cast("Mapping[str, object]", answer)
    action = str(values["action"])
    return Recommendation(
        next(known_action for known_action in ACTIONS if known_action == action),
        str(values["sentence"]),
        tuple(map(str, cast("Sequence[object]", values["rests_on"]))),
        tuple(map(str, cast("Sequence[object]", values["treatments"]))),
    )


def _finding(values: Mapping[str, object]) -> StoredFinding:
    verdict = str(values["verdict"])

    def text(name: str) -> str:
        return str(values[name])

    def number(name: str) -> float:
        value = values[name]
        return math.nan if value is None else float(cast("float", value))

    return StoredFinding(
        metric=text("metric"),
        view=text("view"),
        control_variant=text("control_variant"),
        treatment_variant=text("treatment_variant"),
        verdict=next(known_verdict for known_verdict in VERDICTS if known_verdict == verdict),
        effect_size=number("effect_size"),
        anytime_lower=number("anytime_lower"),
        anytime_upper=number("anytime_upper"),
        guardrail=bool(values["guardrail"]),
        margin=number("margin"),
        looks=int(cast("int", values["looks"])),
        sentence=text("sentence"),
        reason=text("reason") or text("anytime_reason"),
    )
