"""The answers about experiments whose arms are those of exposures, and about the exposures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from streammetrics_consumers.query.json_kinds import (
    Answer,
    Axis,
    Count,
    Level,
    Number,
    Share,
    Text,
    Time,
    UnitView,
)


class ExposedEffectText(Text, frozen=True):
    """An effect on exposed units as tables show it. label: the metric and, where that says more,
    the view. arms: treatment - control; lift: relative to the control, in per cent. once, always:
    the interval at one look, and that at all looks; "" where undefined. axis: shared by the effects
    on the metric and view."""

    label: str
    arms: str
    control: str
    treatment: str
    effect: str
    lift: str
    once: str
    always: str
    units: str
    axis: Axis


class ExposedEffect(Answer, frozen=True):
    """The effect on a mean or rate of exposed units, without a verdict.

    units: of both arms together. effect_size_ci_lower, effect_size_ci_upper: valid at one planned
    look. anytime_lower, anytime_upper: of these units alone, at all looks. reason: why the effect
    or its interval is undefined, or empty.
    """

    metric: str
    view: str
    control_variant: str
    treatment_variant: str
    units: Count
    control: Number
    treatment: Number
    effect_size: Number
    effect_size_ci_lower: Number
    effect_size_ci_upper: Number
    rel_effect_size: Number
    level: Level
    anytime_lower: Number
    anytime_upper: Number
    reason: str
    text: ExposedEffectText | UnsetType = UNSET


class SinceExposure(Answer, frozen=True):
    """What units did in some days since their exposure, per exposed unit: [from_day, to_day) in
    days of 24 hours, the last of which the window may end earlier. Of the units that were exposed
    on the UTC days [exposed_from_ms, exposed_to_ms), for which these days are over."""

    from_day: Count
    to_day: Count
    exposed_from_ms: Time
    exposed_to_ms: Time
    effects: tuple[ExposedEffect, ...]


class FunnelText(Text, frozen=True):
    """The units of one arm as tables show them: exposed, active, and converted by metric."""

    exposed: str
    active: str
    converted: Mapping[str, str]


class FunnelArm(Answer, frozen=True):
    """The units of one arm: exposed; active, with any event after their exposure; and converted,
    with a value above 0, by metric. Estimates where units are sampled."""

    variant: str
    exposed: Number
    active: Number
    share_active: Share
    converted: Mapping[str, Number]
    share_converted: Mapping[str, Share]
    text: FunnelText | UnsetType = UNSET


class ExposedAnswer(Answer, frozen=True):
    """What an experiment shows of exposed units besides its comparisons.

    units: those by which the plan decides: so_far, all exposed units, each with what it did until
    now; or closed, those whose window after the exposure is over. sentence: which they are, and
    what that leaves open. closed_ms: events up to it are counted. closed_from_ms, closed_to_ms: the
    days [from, to) of exposures whose window is over, null before there are any. beside: the
    effects on the other units, without a verdict; other: which these are. since: by days since the
    exposure. reason: why effects are missing, or empty.
    """

    units: UnitView
    sentence: str
    window_s: Number
    closed_ms: Time | None
    closed_from_ms: Time | None
    closed_to_ms: Time | None
    other: str
    beside: tuple[ExposedEffect, ...]
    since: tuple[SinceExposure, ...]
    funnel: tuple[FunnelArm, ...]
    reason: str


class ExposureStatus(Answer, frozen=True):
    """The status of the exposures of experiments, since the start: how many events and exposures
    are counted, or wait until no earlier event can come.

    several: units that were exposed to several arms of an experiment, once for each experiment.
    dropped: exposures of experiments that did not count them. unit_exposures: the units of all
    experiments, each once for each experiment and arm.
    """

    closed_ms: Time | None
    window_s: Number
    events: Count
    closed: Annotated[int, Meta(ge=0, description="events that are counted")]
    pending_events: Count
    pending_exposures: Count
    unit_exposures: Count
    several: Count
    dropped: Count
    late_events: Count
    late_exposures: Count
    warnings: tuple[str, ...]
    text: Annotated[str, Meta(description="the counts in one line")] | UnsetType = UNSET
