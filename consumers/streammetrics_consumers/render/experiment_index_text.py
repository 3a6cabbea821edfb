"""The texts of the index of experiments: of each what it says, how far it is, what it rests on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import (
    EntryEffect,
    EntryText,
    ExperimentEntry,
    ExperimentsAnswer,
)
from streammetrics_consumers.query.json_kinds import Tone
from streammetrics_consumers.render.cells import METRIC
from streammetrics_consumers.render.verdict_words import ACTION_SYMBOLS, ACTION_TONES, SYMBOLS

NAME: Final = 24  # characters of a name in the table
CLOSED: Final = "(closed decide)"  # behind the units, of which those so far do not decide


def index_with_texts(answer: ExperimentsAnswer) -> ExperimentsAnswer:
    """The index, with the text of each number in its table."""
    entries = (replace(entry, text=entry_text(entry)) for entry in answer.experiments)
    return replace(answer, experiments=tuple(entries))


def entry_text(entry: ExperimentEntry) -> EntryText:
    """The texts of one experiment."""
    progress = entry.progress
    days, units = ("", ""), ("", "")
    if progress is not None:
        least, planned = formatting.least_days(progress.days), progress.planned_days
        days = f"≥ {least}" if least else "", _count(planned)
        units = _count(progress.units), _count(progress.planned_units)
    rails, rails_tone = _guardrails(entry)
    ratio, ratio_tone = _ratio(entry)
    label, effect, always, lift, numbers = _effect(entry.effect)
    symbol, tone, action = _advice(entry)
    return EntryText(
        symbol=symbol,
        tone=tone,
        advice=action,
        days=_share_of_plan(*days),
        units=f"{_share_of_plan(*units)} {CLOSED if entry.units == 'closed' else ''}".strip(),
        guardrails=rails,
        guardrails_tone=rails_tone,
        ratio=ratio,
        ratio_tone=ratio_tone,
        label=label,
        effect=effect,
        always=always,
        lift=lift,
        axis=formatting.axis([*numbers, 0.0], signed=True) if numbers else (),
    )


def index_columns(
    entries: Sequence[ExperimentEntry],
) -> Mapping[str, Sequence[tuple[str, Tone]]]:
    """The columns of the table, the most important first: a text and its tone for each entry.
    Those without any text are left out. A terminal has no room for CLOSED."""
    texts = [entry_text(entry) for entry in entries]
    cells: dict[str, list[tuple[str, Tone]]] = {
        "experiment": [(entry_name(entry), "neutral") for entry in entries],
        "state": [(entry.state, "neutral") for entry in entries],
        "advice": [(f"{row.symbol} {row.advice}".strip() or "unknown", row.tone) for row in texts],
        "guardrails": [(row.guardrails, row.guardrails_tone) for row in texts],
        "effect": [(f"{row.label} {row.lift or row.effect}".strip(), "neutral") for row in texts],
        "days": [(row.days, "neutral") for row in texts],
        "units": [(row.units.removesuffix(CLOSED).rstrip(), "neutral") for row in texts],
        "sample ratio": [(row.ratio, row.ratio_tone) for row in texts],
    }
    return {title: column for title, column in cells.items() if any(text for text, _ in column)}


def index_alarms(answer: ExperimentsAnswer) -> Sequence[str]:
    """The sentences of the layers that are broken, of the pairs whose arms depend, and of the
    effects that differ between the arms of another experiment."""
    layers = [layer.sentence for layer in answer.layers if layer.alarm]
    pairs = [pair.sentence for pair in answer.overlaps if pair.alarm]
    effects = [entry.sentence for entry in answer.interactions if entry.differs]
    return [*layers, *pairs, *effects]


def entry_name(entry: ExperimentEntry) -> str:
    """The name of an experiment in tables."""
    return formatting.name(entry.name or entry.title or "(no name)", NAME)


def _advice(entry: ExperimentEntry) -> tuple[str, Tone, str]:
    """The symbol, the tone and the words of the recommendation. One that has ended waits for
    nothing."""
    advice = entry.recommendation
    if advice is None:
        return "", "warn", ""
    if advice.action == "wait" and entry.state == "ended":
        return SYMBOLS["no_difference_yet"], "neutral", "not decided"
    return (
        ACTION_SYMBOLS[advice.action],
        ACTION_TONES[advice.action],
        advice.action.replace("_", " "),
    )


def _guardrails(entry: ExperimentEntry) -> tuple[str, Tone]:
    rails = entry.guardrails
    if len(rails.broken) > 1:
        return f"{len(rails.broken)} broken", "bad"
    if rails.broken:
        return f"broken: {formatting.name(rails.broken[0], METRIC)}", "bad"
    kept_text = f"{rails.kept} kept" if rails.kept else ""
    waiting = f"{rails.waiting} open" if rails.waiting else ""
    tone: Tone = "good" if kept_text and not waiting else "neutral"
    return ", ".join(filter(None, (kept_text, waiting))), tone


def _ratio(entry: ExperimentEntry) -> tuple[str, Tone]:
    ratio = entry.srm
    if ratio is None or ratio.reason:
        return "", "neutral"
    if ratio.alarm:
        return ("acknowledged", "warn") if ratio.acknowledged else ("not as planned", "bad")
    return "as planned", "good"


def _effect(effect: EntryEffect | None) -> tuple[str, str, str, str, list[float]]:
    """The label, the effect, its interval and its relative size as texts; the finite numbers."""
    if effect is None or math.isnan(effect.estimate):
        return "", "", "", "", []
    decimals = formatting.effect_decimals(effect.estimate, effect.lower, effect.upper)
    always = ""
    if not effect.reason:
        always = formatting.between(effect.lower, effect.upper, decimals, signed=True)
    numbers = [number for number in (effect.estimate, effect.lower, effect.upper)
               if math.isfinite(number)]  # fmt: skip
    return (
        formatting.label(effect.metric, effect.view, most=METRIC),
        formatting.number(effect.estimate, decimals, signed=True),
        always,
        formatting.lift(effect.relative),
        numbers,
    )


def _count(n: float | None) -> str:
    return "" if n is None else formatting.count(round(n))


def _share_of_plan(so_far: str, planned: str) -> str:
    """A number of a planned one; each may be unknown.

    >>> _share_of_plan("≥ 8.0", "14"), _share_of_plan("≥ 8.0", ""), _share_of_plan("", "14")
    ('≥ 8.0 of 14', '≥ 8.0', 'planned 14')
    """
    if not planned:
        return so_far
    return f"{so_far} of {planned}" if so_far else f"planned {planned}"
