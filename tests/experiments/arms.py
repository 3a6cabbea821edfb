"""States of an experiment, for its tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streammetrics import Accumulator, HistogramAUC, Ratio, Units, UserGroups
from streammetrics.experiments import (
    Contrast,
    Experiment,
    Finding,
    Horizon,
    Look,
    Monitor,
    Plan,
    Report,
)
from streammetrics.experiments.one_look import Anytime

NAME = "ctr.ratio/bts"
UP = {"better": {"ctr": "higher"}}


def clicks(successes: int, n: int) -> Ratio:
    """A rate of n independent rows."""
    state = Ratio()
    state.update(np.repeat([1, 0], [successes, n - successes]))
    return state


def grouped_clicks(seed: int, users: int, rate: float, *, first: int = 0) -> UserGroups:
    """Ten rows of each user, who each have a rate of their own."""
    rng, state = np.random.default_rng(seed), UserGroups(Ratio())
    who = np.repeat(np.arange(first, first + users), 10)
    rates = np.repeat(rng.beta(1, 1 / rate - 1, users), 10)
    state.update(groups=who, numerators=(rng.random(len(who)) < rates).astype(float))
    return state


def area(seed: int, n: int, shift: float) -> HistogramAUC:
    """Scores of two classes that lie `shift` apart."""
    rng, state = np.random.default_rng(seed), HistogramAUC()
    labels = rng.integers(0, 2, n)
    state.update(labels, 1 / (1 + np.exp(-rng.normal(shift * labels, 1.0))))
    return state


def units(ids: range) -> Units:
    """The units with these ids."""
    state = Units()
    state.update(list(ids))
    return state


def plan(**settings: object) -> Plan:
    """random against bts on ctr, with the horizon of the real stream, unless said otherwise."""
    arguments = {
        "control": "random",
        "variants": ("random", "bts"),
        "decision": ("ctr",),
        "horizon": Horizon(units=10_000, baseline=0.00575),
        **settings,
    }
    return Plan(**arguments)  # type: ignore[arg-type]


def of_states(
    control: Accumulator,
    treatment: Accumulator,
    metric: str = "ctr",
    variant_ids: tuple[range, ...] = (),
    **settings: object,
) -> Experiment:
    """One epoch of two states of one metric. variant_ids: of the units of both, if they count."""
    arms = {"random": {metric: control}, "bts": {metric: treatment}}
    counted = (
        {"": {name: units(ids) for name, ids in zip(arms, variant_ids, strict=True)}}
        if variant_ids
        else {}
    )
    return Experiment(plan(**settings), {"": arms}, counted)


def two(control: tuple[int, int], treatment: tuple[int, int], **settings: object) -> Experiment:
    """One epoch of two rates."""
    return of_states(clicks(*control), clicks(*treatment), **settings)


def only(experiment: Experiment) -> Contrast:
    """Its one comparison."""
    (contrast,) = experiment.contrasts()
    return contrast


def followed(experiments: Sequence[Experiment], *, days: float | None = None) -> Report:
    """The report after a look at each of these, one after the other."""
    monitor = Monitor()
    for i, experiment in enumerate(experiments):
        readings = experiment.readings(monitor.last("x", 1))
        monitor += Monitor.of([Look.at("x", 1, {"a": i}, readings)])
    outcome = experiments[-1].outcome()
    watched = {name: monitor.watched("x", 1, name, alpha) for name, alpha in outcome.alphas.items()}
    return outcome.report(watched, days=days)


def finding(experiment: Experiment, *readings: Anytime) -> Finding:
    """What it finds of its one comparison, after looks at ctr with these readings."""
    rows = [Look.at("x", 1, {"a": i}, {NAME: reading}) for i, reading in enumerate(readings)]
    watched = {NAME: Monitor.of(rows).watched("x", 1, NAME)} if rows else None
    (result,) = experiment.report(watched).findings
    return result
