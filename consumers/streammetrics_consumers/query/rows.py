"""The rows of an answer: a value of a slice, and a finding of a window, as the library has them,
each with its place in the store."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, UnsetType

from streammetrics_consumers.query.json_kinds import Answer, Axis, Text, Time, Tone
from streammetrics_consumers.query.query import Slice, WindowState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streammetrics import Interval
    from streammetrics.experiments import Comparison, Contrast, Finding
    from streammetrics.present import ValueRow


class Window(Answer, frozen=True):
    """A span of event time [start_ms, end_ms) and its state; null, null for the total.

    Open: the newest event of some partition is before the end. Closing: late rows are still
    expected. Closed: all further rows are late. The state is for display and part of no digest."""

    start_ms: Time | None
    end_ms: Time | None
    state: WindowState


SINCE_THE_START: Final = Window(None, None, "total")


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


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One value of one metric in one slice of one window.

    shown: the value, as every table of the library has it: its view, certain bounds, interval and
    counts. type: of the metric; digest: of its state. band: of quantiles of independent rows, for
    all of them and all looks together. text: for tables, UNSET elsewhere."""

    window: Window
    slice: Slice
    metric: str
    type: str
    digest: str
    shown: ValueRow
    band: Interval | UnsetType = UNSET
    text: ResultText | UnsetType = UNSET

    def with_text(self, text: ResultText) -> SliceRow:
        """The row with its text."""
        place = self.window, self.slice, self.metric, self.type, self.digest
        return SliceRow(*place, self.shown, self.band, text)

    @property
    def view(self) -> str:
        """The view of the metric."""
        return self.shown.name

    @property
    def value(self) -> float:
        """The value, without its bounds."""
        value = self.shown.value
        return value if type(value) is float else float(value)

    @property
    def low(self) -> float:
        """The certain lower bound; nan of a measure of error."""
        bounds = self.shown.exact_within
        return math.nan if bounds is None else bounds[0]

    @property
    def high(self) -> float:
        """The certain upper bound; nan of a measure of error."""
        bounds = self.shown.exact_within
        return math.nan if bounds is None else bounds[1]

    @property
    def interval(self) -> Interval | None:
        """The confidence interval; None where there is no formula."""
        return self.shown.interval

    @property
    def counts(self) -> Mapping[str, int]:
        """The denominators."""
        return self.shown.counts  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class WindowFinding:
    """A finding of the library: a treatment compared with the control over one window, after this
    number of looks. text: for tables, UNSET elsewhere."""

    window: Window
    finding: Finding
    looks: int
    text: ComparisonText | UnsetType = UNSET

    @property
    def contrast(self) -> Contrast:
        """The metric, the view and both variants."""
        return self.finding.contrast

    @property
    def comparison(self) -> Comparison:
        """The effect, and its interval of one look."""
        return self.finding.contrast.comparison

    @property
    def name(self) -> str:
        """The name under which its looks are stored."""
        contrast = self.finding.contrast
        return f"{contrast.metric}.{contrast.view}/{contrast.treatment_variant}"

    @property
    def guardrail(self) -> bool:
        """Whether it is of a guardrail; else of a decision."""
        return self.finding.contrast.safeguard is not None

    @property
    def required(self) -> bool:
        """Whether it must be kept; not a guardrail that is only watched."""
        rail = self.finding.contrast.safeguard
        return rail is None or rail.required

    @property
    def margin(self) -> float:
        """The effect at which a guardrail is broken, with its sign; nan for a decision."""
        rail = self.finding.contrast.safeguard
        if rail is None:
            return math.nan
        return -rail.margin if rail.higher_is_better else rail.margin

    @property
    def holm_pvalue(self) -> float:
        """The always-valid p-value, adjusted for all decisions, of all rows since the start; nan in
        a window, where one decision may be read without the others."""
        holm = self.finding.holm
        return math.nan if holm is None or self.window.start_ms is not None else holm
