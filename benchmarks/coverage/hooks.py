"""How often an experiment without an effect sends a hook, which stops it, in 50 looks."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.streams import logarithmic
from benchmarks.coverage.table import Row, Table
from streammetrics import Accumulator, Ratio
from streammetrics.experiments import (
    Anytime,
    Experiment,
    Horizon,
    Outcome,
    Plan,
    Safeguard,
    Watched,
)

N: Final = 20_000  # units of an arm at the end
LOOKS: Final = 50
RATE: Final = 0.1
MARGIN: Final = 0.01  # of the guardrail
DECIDED: Final = ("ctr", "orders")


def sends(
    arms: int, harm: float, lift: float, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Whether a decision was `worse` at the first look with a hook, whether a guardrail was broken,
    whether there was one, and at which share of the units.

    harm: what the treatments add to the rate of the guardrail, of which less is better; lift: to
    those of the decisions.
    """
    names = ["control", *(f"arm {i}" for i in range(1, arms))]
    plan = Plan(
        control="control",
        variants=tuple(names),
        decision=DECIDED,
        guardrails=(Safeguard("errors", MARGIN, True),),
        horizon=Horizon(mde=0.01),
        better={"ctr": "higher", "orders": "higher", "errors": "lower"},
    )
    states: dict[str, dict[str, Accumulator]] = {
        name: {metric: Ratio() for metric in (*DECIDED, "errors")} for name in names
    }
    watched: dict[str, Watched] = {}
    first, worse, broken = np.nan, False, False
    counts = logarithmic(N)
    counts = np.add.reduceat(counts, np.arange(0, len(counts), len(counts) // LOOKS))
    for n, so_far in zip(counts, counts.cumsum(), strict=True):
        for name in names:
            treated = name != "control"
            for metric in (*DECIDED, "errors"):
                rate = RATE + treated * (harm if metric == "errors" else lift)
                clicks = int(rng.binomial(n, rate))
                state = states[name][metric]
                assert isinstance(state, Ratio)
                state.update(np.repeat([1, 0], [clicks, n - clicks]))
        outcome = Experiment(plan, states).outcome()
        watched = watched_after(outcome, watched)
        verdicts = {finding.verdict for finding in outcome.report(watched).findings}
        worse, broken = worse or "worse" in verdicts, broken or "broken" in verdicts
        if worse or broken:
            first = so_far / N
            break
    return float(worse), float(broken), float(worse or broken), float(first)


def watched_after(outcome: Outcome, before: dict[str, Watched]) -> dict[str, Watched]:
    """All looks together, after one more."""
    return {
        name: _joined(reading, before.get(name)) for name, reading in outcome.readings().items()
    }


def _joined(reading: Anytime, before: Watched | None) -> Watched:
    """The same as `Monitor.watched`, of one look more."""
    lower = reading.lower if before is None else max(before.lower, reading.lower)
    upper = reading.upper if before is None else min(before.upper, reading.upper)
    log_e = max(0.0, reading.log_e, 0.0 if before is None else before.log_e)
    return Watched(
        looks=1 if before is None else before.looks + 1,
        log_e=log_e,
        p_value=Anytime(log_e=log_e).p_value,
        lower=lower,
        upper=upper,
        consistent=lower <= upper,
        nested=True,
        first_reject=None,
        latest=reading,
    )


HOOKS: Final = Table(
    "hooks",
    "experiment",
    ("`worse`", "`guardrail_broken`", "either", "units until then"),
    tuple(
        Row(name, partial(sends, arms, harm, lift), 200, 400.0)
        for name, arms, harm, lift in (
            ("A/A, two arms", 2, 0.0, 0.0),
            ("A/A, four arms", 4, 0.0, 0.0),
            ("two arms, the guardrail exactly at its margin", 2, MARGIN, 0.0),
            ("two arms, decisions 39 % less", 2, 0.0, -0.39 * RATE),
        )
    ),
)
