"""Reading [experiment], [experiments] and [layers]."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from streammetrics_consumers.config.arms import event_arms, read_arms
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.experiment import ExperimentConfig
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.read_experiment import read_experiment
from streammetrics_consumers.config.section import Section

MAX_EXPERIMENTS: Final = 1000
MAX_LAYERS: Final = 1000


def read_experiments(
    section: Callable[[str], Section],
    is_given: Callable[[str], bool],
    event: EventConfig,
    metrics: Sequence[MetricConfig],
) -> dict[str, ExperimentConfig]:
    """Read [experiment], whose name is "", [experiments] and [layers]. section: that of a table.
    After a problem in one of these, the result must not be used."""
    experiments: dict[str, ExperimentConfig] = {}
    if is_given("experiment"):
        table = section("experiment")
        experiments[""] = read_experiment(table, event, metrics, event_arms(table, event))
    if is_given("experiments"):
        has_exposures = is_given("exposures")
        experiments |= _read_entries(section("experiments"), event, metrics, has_exposures)
    if is_given("layers"):
        layers = _read_layers(section("layers"), [name for name in experiments if name])
        for name, experiment in experiments.items():
            own_layers = tuple(layer for layer, members in layers.items() if name in members)
            experiments[name] = replace(experiment, layers=own_layers)
    return experiments


def _read_entries(
    section: Section, event: EventConfig, metrics: Sequence[MetricConfig], has_exposures: bool
) -> dict[str, ExperimentConfig]:
    """The entries of [experiments], by name."""

    def read_entry(entries: Section, name: str) -> tuple[str, ExperimentConfig]:
        entries.require_name(name, "rename it; the key `name` is its title")
        entry = entries.entry(name, f"write [experiments.{name}] on a separate line")
        table = section.inner(f"[experiments.{name}]", entry.table, between=" ")
        arms = read_arms(table, event, name, has_exposures=has_exposures)
        experiment = read_experiment(table, event, metrics, arms)
        return name, replace(experiment, position=list(entries.table).index(name) + 1)

    if len(section.table) > MAX_EXPERIMENTS:
        got = len(section.table)
        section.problem(section.title, f"at most {MAX_EXPERIMENTS:,}", got, "leave some out")
    experiments = dict(section.each(read_entry, MAX_EXPERIMENTS))
    section.done()
    return experiments


def _read_layers(section: Section, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The groups of experiments that exclude each other, by name."""

    def read_layer(layers: Section, layer: str) -> tuple[str, tuple[str, ...]]:
        layers.require_name(layer)
        expected = "a list of at least two different experiments of [experiments]"
        members = layers.elements(layer, expected, 'write ["ranker", "pricing"]', least=2)
        for place, name in members.table.items():
            if name not in names:
                where = members.where(place)
                members.unknown(where, "an experiment of [experiments]", name, names)
        texts = tuple(map(str, members.table.values()))
        if len(set(texts)) < len(texts):
            layers.bad(layer, expected, "remove the repetition")
        return layer, texts

    if len(section.table) > MAX_LAYERS:
        got = len(section.table)
        section.problem(section.title, f"at most {MAX_LAYERS:,}", got, "leave some out")
    layers = dict(section.each(read_layer, MAX_LAYERS))
    section.done()
    return layers
