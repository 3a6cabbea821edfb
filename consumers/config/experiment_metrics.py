"""What an experiment counts: states by allocation epoch and variant, beside those of the slices.

`experiment/NAME` is the metric NAME of the config, in groups of users where rows of one user hang
together, and `experiment/units` the units that were seen. No metric of a config has such a name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from consumers.config.event import EventConfig, Field
from consumers.config.experiment import BETTER, GROUPS, GROUPS_SALT, UNITS, ExperimentConfig
from consumers.config.family import Family
from consumers.config.metrics import MetricConfig
from consumers.config.read_experiment import metric_of
from consumers.config.tables import SlicesConfig, WindowsConfig
from consumers.events.fields import EPOCH
from streammetrics import Units, UserGroups

PREFIX: Final = "experiment/"
BY: Final = (EPOCH, "variant")
MAX_KEYS: Final = 10_000  # epochs times variants, where epochs come from events


def experiment_metrics(
    experiment: ExperimentConfig | None, event: EventConfig, metrics: Sequence[MetricConfig]
) -> tuple[MetricConfig, ...]:
    """The metrics of the decision, the guardrails and the covariates, each once, and the units; by
    name."""
    if experiment is None:
        return ()
    named = experiment.counted
    plain = {found[0].name: found[0] for name in named if (found := metric_of(name, metrics))}
    made = [_watched(experiment, metric) for metric in plain.values()]
    if experiment.unit is not None:
        empty = Units(share=experiment.unit_share, max_units=experiment.max_units)
        inputs = {"units": Field(experiment.unit, "hashed_id")}
        made.append(MetricConfig(PREFIX + UNITS, "Units", {}, inputs, empty))
    return tuple(sorted(made, key=lambda metric: metric.name))


def _watched(experiment: ExperimentConfig, metric: MetricConfig) -> MetricConfig:
    name = PREFIX + metric.name
    if experiment.cluster == "none" or experiment.unit is None:
        return MetricConfig(name, metric.type, metric.settings, metric.inputs, metric.empty)
    empty = UserGroups(
        metric.empty, k=GROUPS, salt=GROUPS_SALT, assignment_salt=experiment.assignment_salt
    )
    inputs = {**metric.inputs, "users": Field(experiment.unit, "hashed_id")}
    return MetricConfig(name, "UserGroups", metric.settings, inputs, empty)


def experiment_family(
    experiment: ExperimentConfig,
    metrics: tuple[MetricConfig, ...],
    event: EventConfig,
    windows: WindowsConfig,
) -> Family:
    """The metrics by (epoch, variant). An epoch that follows from the time has its path."""
    assert event.variant is not None
    paths = {EPOCH: event.epoch or event.time, "variant": event.variant}
    columns = {EPOCH: EPOCH, "variant": "variant"}
    slices = SlicesConfig((BY,), MAX_KEYS)
    # Another variant is another plan: more comparisons share one level, and shares are others.
    declared = {"experiment": {**experiment.plan, "variants": sorted(event.variants or ())}}
    shown = {BETTER: dict(sorted(experiment.better.items()))} if experiment.better else {}
    return Family(slices, metrics, event, windows, paths, columns, declared, shown)


def paths_of(experiment: ExperimentConfig | None, event: EventConfig) -> Mapping[str, str]:
    """The fields that an experiment reads beside those of metrics, by where they are named."""
    if experiment is None:
        return {}
    found = {"[experiment] unit": experiment.unit, "[event] epoch": event.epoch}
    return {where: path for where, path in found.items() if path is not None}
