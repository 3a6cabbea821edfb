"""The texts of an experiment, as the page shows them: each treatment in one line, how far the
experiment is of what was planned, and the axes that the drawings of a table share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import (
    ArmText,
    ExperimentAnswer,
    ExperimentText,
    ProgressAnswer,
)
from streammetrics_consumers.query.json_kinds import Tone
from streammetrics_consumers.query.rows import WindowFinding
from streammetrics_consumers.render.cells import METRIC, compared, contrast_numbers, units_of
from streammetrics_consumers.render.exposed_text import exposed_with_texts
from streammetrics_consumers.render.verdict_words import (
    ACTION_SYMBOLS,
    ACTION_TONES,
    parted,
    standing,
    tone_of,
    tone_of_verdict,
    words,
)

NAMES: Final = 5  # of guardrails that a line names
ALIKE: Final = 30.0  # the greatest ratio of two extents that one axis shows
SHOWN: Final = ("better", "worse", "higher", "lower")  # verdicts that a size may follow
_UNRESOLVED: Final = ("open", "not_started", "disbelieved")
_WORST: Final[tuple[Tone, ...]] = ("bad", "warn", "neutral", "good")
_SYMBOLS: Final[Mapping[Tone, str]] = {"bad": "✕", "warn": "!", "neutral": "○", "good": "✓"}


def experiment_with_texts(answer: ExperimentAnswer) -> ExperimentAnswer:
    """The answer about an experiment, with the text of each number in its table."""
    advice, mixed = answer.recommendation, answer.contamination
    control, arms = ("", ()) if answer.plan is None else (answer.plan.control, answer.plan.variants)
    if advice is None:
        return answer
    text = ExperimentText(
        symbol=ACTION_SYMBOLS[advice.action],
        tone=ACTION_TONES[advice.action],
        worst=tone_of(advice, mixed),
        advice=tuple(_shortened(part, arms) for part in parted(advice.sentence, mixed)),  # type: ignore[arg-type]
        standing=_shortened(standing(answer.state, answer.sentence, mixed, advice), arms),
        units="" if answer.srm is None else "".join(units_of(answer.srm, control).line),
        arms=tuple(arms_of(answer.comparisons)),
        progress=progress_text(answer.progress, answer.looks),
        axes=dict(_axes(answer.comparisons)),
    )
    exposed = UNSET if answer.exposed is UNSET else exposed_with_texts(answer.exposed)
    comparisons = compared(answer.comparisons)
    return replace(answer, text=text, comparisons=comparisons, exposed=exposed)


def _shortened(sentence: str, variants: Iterable[str]) -> str:
    """A sentence with long names of variants as they are in tables."""
    for name in filter(None, variants):
        sentence = sentence.replace(name, formatting.name(name))
    return sentence


def arms_of(rows: Sequence[WindowFinding]) -> Iterator[ArmText]:
    """Each treatment in one line: the verdicts on its decisions, then its guardrails."""
    for arm in dict.fromkeys(row.contrast.treatment_variant for row in rows):
        comparisons = [row for row in rows if row.contrast.treatment_variant == arm]
        tones = {tone_of_verdict(row.finding) for row in comparisons}
        tone = next(tone for tone in _WORST if tone in tones)
        parts = [_decision(row) for row in comparisons if not row.guardrail]
        many = f"{len(parts) - NAMES} more decisions" if len(parts) > NAMES else ""
        parts = [*parts[:NAMES], *filter(None, (many, *_rails(comparisons)))]
        yield ArmText(formatting.name(arm), _SYMBOLS[tone], tone, "; ".join(parts))


def progress_text(progress: ProgressAnswer | None, looks: int) -> str:
    """How far an experiment is of what was planned; parts that are not known are left out.

    >>> progress_text(ProgressAnswer(8.04, 14, 9612, 20000.0), 6)
    'Planned 14 days, at least 8.0 so far; planned 20,000 units, 9,612 so far; 6 looks'
    >>> progress_text(ProgressAnswer(None, None, 9612, None), 1)
    '9,612 units so far; 1 look'
    """
    if progress is None:
        return ""
    count = formatting.count
    days = formatting.least_days(progress.days)
    units = None if progress.units is None else count(progress.units)
    whole = None if progress.planned_days is None else count(progress.planned_days)
    planned = None if progress.planned_units is None else count(round(progress.planned_units))
    parts = (
        _planned_part(f"at least {days}" if days else None, whole, "days"),
        _planned_part(units, planned, "units"),
        f"{count(looks)} look{'' if looks == 1 else 's'}",
    )
    text = "; ".join(filter(None, parts))
    return text[0].upper() + text[1:]


def _planned_part(so_far: str | None, planned: str | None, unit: str) -> str:
    if planned is None:
        return "" if so_far is None else f"{so_far} {unit} so far"
    return f"planned {planned} {unit}" + ("" if so_far is None else f", {so_far} so far")


def _decision(row: WindowFinding) -> str:
    verdict = row.finding.verdict
    lift = formatting.lift(row.comparison.rel_effect_size) if verdict in SHOWN else ""
    lift = f" ({lift})".replace(" %", "\u00a0%") if lift else ""  # it stays on one line
    return f"{_label(row)} {words(verdict)}{lift}"


def _label(row: WindowFinding) -> str:
    return formatting.label(row.contrast.metric, row.contrast.view, most=METRIC)


def _rails(rows: Iterable[WindowFinding]) -> Iterator[str]:
    """The guardrails of a treatment: broken and unresolved ones by name."""
    every = [row for row in rows if row.guardrail]
    shown = ("broken", "disbelieved")
    rails = [row for row in every if row.required or row.finding.verdict in shown]
    broken = [_label(row) for row in rails if row.finding.verdict == "broken"]
    unresolved = [_label(row) for row in rails if row.finding.verdict in _UNRESOLVED]
    n_kept = len(rails) - len(broken) - len(unresolved)
    for names, status in ((broken, "broken"), (unresolved, "unresolved")):
        if names:
            yield f"{_guardrails(len(names))} {status}: {_listed(names)}"
    if n_kept:
        yield f"{formatting.count(n_kept)} {_guardrails(n_kept)} kept"
    if watched := [_label(row) for row in every if row not in rails]:
        yield f"{_guardrails(len(watched))} not broken: {_listed(watched)}"


def _guardrails(n: int) -> str:
    return "guardrail" if n == 1 else "guardrails"


def _listed(names: Sequence[str]) -> str:
    tail = [f"and {len(names) - NAMES} more"] if len(names) > NAMES else []
    return ", ".join([*names[:NAMES], *tail])


def _axes(rows: Sequence[WindowFinding]) -> Iterator[tuple[str, tuple[tuple[float, str], ...]]]:
    """The axis of each view that several metrics have, in the same unit and of similar extents."""
    by_view: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        of_metric = by_view.setdefault(row.contrast.view, {})
        of_metric.setdefault(row.contrast.metric, []).extend(contrast_numbers(row))
    for view, metrics in by_view.items():
        extents = [max(map(abs, numbers), default=0.0) for numbers in metrics.values()]
        positive = [extent for extent in extents if extent > 0]
        if view and len(metrics) > 1 and positive and max(positive) <= ALIKE * min(positive):
            finite = [n for numbers in metrics.values() for n in numbers if math.isfinite(n)]
            yield view, formatting.axis([*finite, 0.0], signed=True)
