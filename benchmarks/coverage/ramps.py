"""Ramps: the treatment's share of the users changes while the rate drifts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.draws import add_rows
from benchmarks.coverage.table import Row, Table
from streammetrics import Ratio
from streammetrics.experiments import ConfidenceSequence, Experiment, Horizon, Plan, compare

UNITS: Final = 100_000  # of both arms, over all epochs
LOOKS: Final = 8


@dataclass(frozen=True, slots=True)
class Ramp:
    """The treatment's share in each epoch of equal size; the rate at the start and at the end, and
    the amplitude of its season."""

    shares: tuple[float, ...]
    rates: tuple[float, float] = (0.05, 0.05)
    season: float = 0.0

    def rate(self, time: float) -> float:
        """The rate of both arms at a time from 0 to 1."""
        first, last = self.rates
        return first + (last - first) * time + self.season * math.sin(2 * math.pi * time)

    def plan(self, units: int) -> Plan:
        """The plan declared before the data."""
        names = tuple(str(i) for i in range(len(self.shares)))
        return Plan(
            control="a",
            variants=("a", "b"),
            decision=("rate",),
            horizon=Horizon(units=units, baseline=0.05),
            epochs=names,
            epoch_shares={
                name: {"a": 1 - x, "b": x} for name, x in zip(names, self.shares, strict=True)
            },
        )


def look_at(ramp: Ramp, units: int, looks: int, rng: np.random.Generator) -> list[float]:
    """Whether an A/A test was significant: pooled over epochs, by p at the end and by the sequence
    ever; by epoch, by p at the end, by the sequence ever and by the label e-value ever."""
    plan = ramp.plan(units)
    pooled = {"a": Ratio(), "b": Ratio()}
    epochs = {name: {"a": Ratio(), "b": Ratio()} for name in plan.epochs}
    sequence = ConfidenceSequence(v_opt=plan.horizon_of("rate", "b").v_opt)
    ever = [False] * 3
    simple = stratified = math.nan
    steps = looks * 4  # the rate moves within an epoch, and between looks
    for step in range(steps):
        name = plan.epochs[step * len(plan.epochs) // steps]
        b = int(rng.binomial(units // steps, ramp.shares[int(name)]))
        for arm, n in (("a", units // steps - b), ("b", b)):
            successes = int(rng.binomial(n, ramp.rate((step + 0.5) / steps)))
            add_rows(pooled[arm], successes, n)
            add_rows(epochs[name][arm], successes, n)
        if (step + 1) % 4:
            continue
        states = {e: {v: {"rate": s} for v, s in arms.items()} for e, arms in epochs.items()}
        (contrast,) = Experiment(plan, states).contrasts()
        together = compare(pooled["a"], pooled["b"])
        simple, stratified = together.pvalue, contrast.comparison.pvalue
        assert contrast.label is not None
        now = (sequence.at(together).p_value, contrast.anytime.p_value, contrast.label.p_value)
        ever = [flag or p <= 0.05 for flag, p in zip(ever, now, strict=True)]
    return [float(simple <= 0.05), float(ever[0]), float(stratified <= 0.05), *map(float, ever[1:])]


RAMPS: Final = Table(
    "ramps",
    "the treatment's share; the rate",
    (
        "pooled, z-test at the end",
        "pooled, sequence at any look",
        "by epoch, z-test at the end",
        "by epoch, sequence at any look",
        "by epoch, label e-value at any look",
    ),
    tuple(
        Row(name, partial(look_at, ramp, UNITS, LOOKS), 300, 97 if len(ramp.shares) == 1 else 217)
        for name, ramp in (
            ("50 %; 5 %", Ramp((0.5,))),
            ("10, 30, 50 %; 5 %", Ramp((0.1, 0.3, 0.5))),
            ("10, 30, 50 %; 4 to 6 % and back, by season", Ramp((0.1, 0.3, 0.5), season=0.01)),
            ("2, 10, 50 %; rises from 3 to 8 %", Ramp((0.02, 0.1, 0.5), (0.03, 0.08))),
        )
    ),
)
