"""An index of experiments that between them have all that a table of them can show."""

from __future__ import annotations

import math
from typing import Final

from streammetrics_consumers.query.answers import (
    EntryEffect,
    EntryGuardrails,
    ExperimentEntry,
    ExperimentsAnswer,
    InteractionEntry,
    LayerEntry,
    OverlapEntry,
    ProgressAnswer,
)

from streammetrics.experiments import Report
from tests.consumers.stores import HOSTILE

RAILS: Final = EntryGuardrails((), 2, 1)
PROGRESS: Final = ProgressAnswer(8.04, 14, 9612, 20_000.0)
EFFECT: Final = EntryEffect(
    "ctr", "ratio", "new", 0.0123, 0.0246, 0.001, 0.0236, "", "better", (0.02, 0.0123)
)


def interaction(
    name: str, estimate: float, adjusted_p: float, differs: bool, sentence: str
) -> InteractionEntry:
    """An interaction of an experiment with `pricing`."""
    ends = (math.nan, math.nan) if math.isnan(estimate) else (estimate - 0.05, estimate + 0.05)
    names, variants = (name, "pricing"), ("new", "new")
    return InteractionEntry(names, "ctr", variants, estimate, *ends, adjusted_p, differs, sentence)


def entry(
    name: str,
    report: Report | None,
    *,
    rails: EntryGuardrails = RAILS,
    progress: ProgressAnswer | None = PROGRESS,
    effect: EntryEffect | None = EFFECT,
    archived: bool = False,
) -> ExperimentEntry:
    """One experiment; without a report it cannot be read."""
    return ExperimentEntry(
        name=name,
        title="",
        hypothesis="",
        state="running" if report is not None else "waiting",
        archived=archived,
        sentence=f"The conclusion of {name}.",
        recommendation=None if report is None else report.recommendation,
        start_ms=0,
        end_ms=None,
        progress=progress,
        guardrails=rails,
        srm=None if report is None else report.srm,
        effect=effect,
        looks=3,
    )


def index(win: Report, broken: Report, odd: Report) -> ExperimentsAnswer:
    """The index. win: a report on a better arm; broken: on a broken guardrail; odd: on units that
    are not split as planned."""
    single, many = (EntryGuardrails(names, 1, 0) for names in (("stay",), ("stay", "errors")))
    unknown = EntryEffect(
        "ctr", "ratio", "new", math.nan, math.nan, math.nan, math.nan, "why", "not_started", ()
    )
    unbounded = EntryEffect(
        "auc", "gini", "new", -0.5, math.nan, -math.inf, math.inf, "", "no_difference_yet", ()
    )
    return ExperimentsAnswer(
        generation=1,
        offsets={"clicks/0": 1},
        incomplete={},
        experiments=(
            entry("ranker", win),
            entry("pricing", broken, rails=many, progress=ProgressAnswer(0.01, None, None, 500.0)),
            entry("x" * 64, odd, rails=EntryGuardrails((), 0, 0), effect=unbounded),
            entry("unknown", win, effect=unknown, progress=ProgressAnswer(None, 14, 3, None)),
            entry("broken", broken, rails=single),
            entry("hidden", win, archived=True),
            entry(HOSTILE, None, rails=EntryGuardrails((), 0, 0), effect=None, progress=None),
        ),
        layers=(
            LayerEntry("search", ("ranker", "pricing"), 3.0, True, "3 units are in two."),
            LayerEntry("prices", ("pricing", "unknown"), 0.0, False, "No unit is in two."),
        ),
        overlaps=(
            OverlapEntry(
                ("broken", "ranker"), 900.0, 1e-9, True, "Their arms are not independent."
            ),
            OverlapEntry(("broken", "pricing"), 800.0, 1.0, False, "800 units are in both."),
        ),
        interactions=(
            interaction("ranker", -0.1, 1e-6, True, "The effect differs."),
            interaction("broken", 0.01, 1.0, False, "The effect is not shown to differ."),
            interaction("unknown", math.nan, math.nan, False, "Whether it differs is not known."),
        ),
    )
