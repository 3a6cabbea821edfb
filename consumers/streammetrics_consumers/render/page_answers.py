"""The answers that the page asks for: those of the API, with the text of each number beside it.

The texts are those of the view model, so that a number reads the same on the page as on every other
surface, and the page formats none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from streammetrics_consumers.model import formatting
from streammetrics_consumers.query import answers
from streammetrics_consumers.query.answer_texts import (
    ComparisonText,
    ExperimentText,
    OutcomeText,
    ResultText,
)
from streammetrics_consumers.query.join_status import JoinFound
from streammetrics_consumers.query.results import ComparisonRow, Results
from streammetrics_consumers.render.cells import (
    NONE,
    Effect,
    blocks_of,
    effects_of,
    join_counts,
    join_outcomes,
    units_of,
)
from streammetrics_consumers.render.verdict_words import (
    ACTION_SYMBOLS,
    ACTION_TONES,
    parted,
    standing,
    tone_of,
)

_Answer = TypeVar("_Answer", answers.Results, answers.Experiment)


def results_with_texts(answer: answers.Results, results: Results) -> answers.Results:
    """The answer to a query, each number as the table of its window and slices shows it."""
    found = {
        id(cell.row): ResultText(
            cell.value,
            cell.certain,
            cell.interval,
            formatting.level(cell.row.interval.level) if cell.row.interval else "",
            cell.rows,
        )
        for block in blocks_of(results.rows, results.variants)
        for figure in block.figures()
        for cell in figure.cells
        if cell is not None
    }
    rows = zip(answer.results, results.rows, strict=True)
    shown = tuple(replace(one, text=found[id(row)]) for one, row in rows)
    join = None if answer.join is None or results.join is None else _join(answer.join, results.join)
    return _compared(replace(answer, results=shown, join=join), results.comparisons)


def experiment_with_texts(answer: answers.Experiment, results: Results) -> answers.Experiment:
    """The answer about an experiment; results: what it was made of."""
    advice, mixed = results.recommendation, results.contamination
    if advice is None:
        return answer
    text = ExperimentText(
        symbol=ACTION_SYMBOLS[advice.action],
        tone=ACTION_TONES[advice.action],
        worst=tone_of(advice, mixed),
        advice=parted(advice.sentence, mixed),
        standing=standing(answer.state, answer.sentence, mixed, advice),
        units="" if results.srm is None else "".join(units_of(results.srm).line),
    )
    rows = (row for row in results.comparisons if row.window.start_ms is None)
    return replace(_compared(answer, rows), text=text)


def _compared(answer: _Answer, rows: Iterable[ComparisonRow]) -> _Answer:
    title, effects = effects_of(list(rows))
    pairs = zip(answer.comparisons, effects, strict=True)
    shown = tuple(replace(one, text=_effect(effect, title)) for one, effect in pairs)
    return replace(answer, comparisons=shown)


def _effect(one: Effect, title: str) -> ComparisonText:
    found = one.row.finding.contrast.comparison
    known = not math.isnan(found.effect_size_ci_lower) or not math.isnan(found.effect_size_ci_upper)
    return ComparisonText(
        verdict=one.verdict,
        symbol=one.symbol,
        tone=one.tone,
        effect=one.effect,
        margin=one.margin,
        once=one.once if known else NONE,
        p_once=NONE if math.isnan(found.pvalue) else one.p_once,
        always=one.always,
        p=one.p,
        p_title=title,
    )


def _join(answer: answers.Join, found: JoinFound) -> answers.Join:
    counts = ", ".join(
        f"{count} {name.strip()}" + (f" ({share})" if share else "")
        for name, count, share in join_counts(found)
    )
    outcomes = {
        name: replace(one, text=OutcomeText(attributed, unattributed, after_window))
        for (name, one), (_, attributed, unattributed, _, _, after_window) in zip(
            answer.outcomes.items(), join_outcomes(found), strict=True
        )
    }
    return replace(answer, outcomes=outcomes, text=counts)
