"""The texts of exposed units: how many were active and converted, the effects by days since the
exposure, and those on the units that the plan does not decide by; and of the exposures of a
stream."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.exposed_answers import (
    ExposedAnswer,
    ExposedEffect,
    ExposedEffectText,
    ExposureStatus,
    FunnelArm,
    FunnelText,
    SinceExposure,
)
from streammetrics_consumers.query.json_kinds import Axis

NAME: Final = 30  # characters of the name of a metric or arm
CONVERTED: Final = 4  # metrics of which a table shows the converted units
ONE_LOOK: Final = "at one look"


class CaptionedTable(NamedTuple):
    """A table as texts. names: the first cells of a line that are names, not numbers."""

    caption: str
    head: tuple[str, ...]
    names: int
    lines: tuple[tuple[str, ...], ...]


def exposed_with_texts(answer: ExposedAnswer) -> ExposedAnswer:
    """The answer with the text of each number, and the axes that drawings share."""
    effects = [effect for part in answer.since for effect in part.effects]
    axes = _axes(effects)
    return replace(
        answer,
        beside=_effects_with_texts(answer.beside, _axes(answer.beside)),
        since=tuple(
            replace(part, effects=_effects_with_texts(part.effects, axes)) for part in answer.since
        ),
        funnel=tuple(replace(arm, text=_funnel_text(arm)) for arm in answer.funnel),
    )


def exposed_tables(answer: ExposedAnswer) -> Iterator[CaptionedTable]:
    """The tables of an answer that have lines."""
    if answer.funnel:
        yield _funnel(answer.funnel)
    if answer.beside:
        yield _other_units(answer.beside)
    for metric, view in dict.fromkeys(
        (effect.metric, effect.view) for part in answer.since for effect in part.effects
    ):
        yield _day_effects(answer.since, metric, view)


def exposures_line(status: ExposureStatus) -> str:
    """The counts of the exposures of a stream in one line."""
    return ", ".join(
        f"{count} {name.strip()}" + (f" ({note})" if note else "")
        for name, count, note in exposures_counts(status)
    )


def exposures_counts(status: ExposureStatus) -> Iterator[tuple[str, str, str]]:
    """The events and exposures of a stream by their status: name, count, and what it is of."""
    count = formatting.count
    yield "events counted", count(status.closed), ""
    yield "  pending", count(status.pending_events), ""
    yield "  too late", count(status.late_events), ""
    yield "units exposed", count(status.unit_exposures), "once for each experiment and arm"
    yield "  exposures pending", count(status.pending_exposures), ""
    yield "  exposures too late", count(status.late_exposures), ""
    if status.several:
        yield "  in several arms", count(status.several), ""
    if status.dropped:
        yield "  exposures left out", count(status.dropped), "their experiment did not count them"


def exposures_window(status: ExposureStatus) -> str:
    """How long events count after an exposure."""
    if math.isnan(status.window_s):
        return "without a window"
    return f"window {formatting.span_text(round(1000 * status.window_s))}"


def exposures_with_texts(status: ExposureStatus) -> ExposureStatus:
    """The status of exposures, with its counts in one line."""
    return replace(status, text=exposures_line(status))


def decapitalized(sentence: str) -> str:
    """A sentence after a colon."""
    return sentence[:1].lower() + sentence[1:]


def days_text(part: SinceExposure) -> str:
    """Days since an exposure.

    >>> days_text(SinceExposure(2, 4, 0, 0, ())), days_text(SinceExposure(16, 17, 0, 0, ()))
    ('2 to 3', '16')
    """
    last = part.to_day - 1
    return f"{part.from_day} to {last}" if last > part.from_day else str(last)


def _funnel(arms: Sequence[FunnelArm]) -> CaptionedTable:
    metrics = list(arms[0].converted)[:CONVERTED]
    texts = [_funnel_text(arm) for arm in arms]
    titles = (f"{formatting.name(metric, NAME)} above 0" for metric in metrics)
    lines = (
        (
            formatting.name(arm.variant, NAME),
            text.exposed,
            text.active,
            *(text.converted[metric] for metric in metrics),
        )
        for arm, text in zip(arms, texts, strict=True)
    )
    head = ("variant", "exposed", "active", *titles)
    return CaptionedTable("units after their exposure", head, 1, tuple(lines))


def _funnel_text(arm: FunnelArm) -> FunnelText:
    return FunnelText(
        exposed=_count(arm.exposed),
        active=_part(arm.active, arm.share_active),
        converted={
            metric: _part(above, arm.share_converted[metric])
            for metric, above in arm.converted.items()
        },
    )


def _other_units(effects: Sequence[ExposedEffect]) -> CaptionedTable:
    head = ("metric", "treatment - control", "units", "effect", "always valid")
    texts = [_effect_text(effect, ()) for effect in effects]
    lines = ((text.label, text.arms, text.units, text.effect, text.always) for text in texts)
    return CaptionedTable("beside it, without a verdict", head, 2, tuple(lines))


def _day_effects(parts: Sequence[SinceExposure], metric: str, view: str) -> CaptionedTable:
    """The effects on one view, a line for each treatment and days."""
    chosen = [
        (part, effect)
        for part in parts
        for effect in part.effects
        if (effect.metric, effect.view) == (metric, view)
    ]
    label = formatting.label(metric, view, most=NAME)
    level = formatting.level(chosen[0][1].level)
    lines = [
        (text.arms, days_text(part), text.units, text.effect, text.once)
        for part, effect in chosen
        for text in (_effect_text(effect, ()),)
    ]
    lines.sort(key=lambda line: line[0])
    return CaptionedTable(
        f"effect on {label} by days since the exposure, per exposed unit",
        ("treatment - control", "days", "units", "effect", f"{ONE_LOOK}, {level}"),
        2,
        tuple(lines),
    )


def _effects_with_texts(
    effects: Sequence[ExposedEffect], axes: dict[tuple[str, str], Axis]
) -> tuple[ExposedEffect, ...]:
    return tuple(
        replace(effect, text=_effect_text(effect, axes[effect.metric, effect.view], dash=True))
        for effect in effects
    )


def _axes(effects: Sequence[ExposedEffect]) -> dict[tuple[str, str], Axis]:
    """The axis of each view, over all of these effects."""
    numbers: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0])
    for effect in effects:
        numbers[effect.metric, effect.view] += [
            effect.effect_size, effect.effect_size_ci_lower, effect.effect_size_ci_upper
        ]  # fmt: skip
    return {
        place: formatting.axis(filter(math.isfinite, values), signed=True)
        for place, values in numbers.items()
    }


def _effect_text(effect: ExposedEffect, axis: Axis, *, dash: bool = False) -> ExposedEffectText:
    """The texts of an effect. dash: in place of what is undefined."""
    once = effect.effect_size_ci_lower, effect.effect_size_ci_upper
    decimals = formatting.effect_decimals(effect.effect_size, *once)
    missing = formatting.DASH if dash else ""

    def number(value: float, *, signed: bool = False) -> str:
        is_known = math.isfinite(value)
        return formatting.number(value, decimals, signed=signed) if is_known else missing

    def interval(lower: float, upper: float) -> str:
        if math.isnan(lower) or math.isnan(upper):
            return missing
        return formatting.between(lower, upper, decimals, signed=True)

    arms = effect.treatment_variant, effect.control_variant
    return ExposedEffectText(
        label=formatting.label(effect.metric, effect.view, most=NAME),
        arms=" - ".join(formatting.name(arm, NAME) for arm in arms),
        control=number(effect.control),
        treatment=number(effect.treatment),
        effect=number(effect.effect_size, signed=True),
        lift=formatting.lift(effect.rel_effect_size) or missing,
        once=interval(*once),
        always=interval(effect.anytime_lower, effect.anytime_upper),
        units=formatting.count(effect.units),
        axis=axis,
    )


def _count(n: float) -> str:
    return formatting.UNDEFINED if math.isnan(n) else formatting.count(round(n))


def _part(n: float, share: float) -> str:
    return _count(n) if math.isnan(share) else f"{_count(n)} ({formatting.percent(share)})"
