"""What experiments count: the metric set of each, by allocation epoch and variant.

`experiment/METRIC` is a metric of the config as [experiment] counts it, in groups of users if rows
of one user are correlated, `experiment/units` the observed units, and `experiment/units:METRIC` the
sums of a metric by unit; those of an experiment with a name are `experiment/NAME/METRIC`. Such
names are not valid for metrics of a config.

Each event must have a variant of [experiment]. For an experiment with a name it need not: an event
without its arm or its unit is no event of this experiment, and others count it.

An experiment whose arms come from [exposures] counts other rows beside events: a unit is in it from
its first exposure on, whether or not it does anything. `experiment/NAME/units` are the exposed
units, and `experiment/NAME/active` those with an event since then. Means and rates over units count
a value 0 for each exposure, and are kept by the day of the exposure and the time since then too.
The epoch of a row is that of the unit's first exposure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from streammetrics import Accumulator, Moments, Ratio, UnitMean, UnitRate, Units, UnitSums
from streammetrics_consumers.config.event import EventConfig, Field, condition_field
from streammetrics_consumers.config.experiment import ExperimentConfig
from streammetrics_consumers.config.exposed_rows import (
    EXPOSED_ON,
    EXPOSURE_DAY,
    SINCE,
    SPAN_SINCE,
    exposed_arm,
)
from streammetrics_consumers.config.metric_entry import group_users, is_of_units
from streammetrics_consumers.config.metrics import MetricConfig, find_watched
from streammetrics_consumers.config.states import (
    EPOCH,
    EVENTS,
    MetricSet,
    RowCondition,
    RowKind,
)
from streammetrics_consumers.config.tables import SlicesConfig, WindowsConfig
from streammetrics_consumers.model.generation import (
    ACTIVE,
    BETTER,
    KINDS,
    UNIT_SUMS,
    UNITS,
    WATCH_RATES,
    experiment_set,
)

BY: Final = (EPOCH, "variant")
MAX_KEYS: Final = 10_000  # epochs times variants, if epochs come from events
# The arguments of UnitSums, by those of a metric whose shares and means it has of the same rows.
_OF_UNIT_SUMS: Final[Mapping[type[Accumulator], Mapping[str, str]]] = {
    Ratio: {"numerators": "values", "denominators": "denominators"},
    Moments: {"values": "values"},
    UnitMean: {"values": "values", "units": "units"},
    UnitRate: {"values": "values", "units": "units"},
}


def counted_metrics(
    experiment: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> dict[str, MetricConfig]:
    """The metrics of the config that an experiment counts, by name, each once."""
    matches = (find_watched(name, metrics) for name in experiment.counted)
    return {watched.metric.name: watched.metric for watched in matches if watched is not None}


def experiment_metrics(
    name: str, experiment: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> tuple[MetricConfig, ...]:
    """The metrics that an experiment counts, each once, and the units, sorted by name. name: that
    of the experiment."""
    prefix = f"{experiment_set(name)}/"
    unit = None
    if experiment.unit is not None:
        unit = Field(experiment.unit, "hashed_id", optional=experiment.is_named)
    counted = counted_metrics(experiment, metrics)
    configs = [_count_by_unit(experiment, unit, metric) for metric in counted.values()]
    if unit is not None:
        configs += _sums_by_unit(experiment, unit, metrics)
        empty = Units(share=experiment.unit_share, max_units=experiment.max_units)
        names = (UNITS, ACTIVE) if experiment.is_exposed else (UNITS,)
        configs += [MetricConfig(name, "Units", {}, {"units": unit}, empty) for name in names]
    prefixed_metrics = (replace(metric, name=prefix + metric.name) for metric in configs)
    return tuple(sorted(prefixed_metrics, key=lambda metric: metric.name))


def _sums_by_unit(
    experiment: ExperimentConfig, unit: Field, metrics: Sequence[MetricConfig]
) -> Iterator[MetricConfig]:
    """What interactions read, which are asked of units: beside each decision metric that is a share
    or a mean of a field, what each of a sample of units did."""
    matches = (find_watched(name, metrics) for name in experiment.decision)
    decisions = {watched.metric.name: watched.metric for watched in matches if watched is not None}
    for metric in decisions.values() if experiment.interactions else ():
        arguments, takes = _OF_UNIT_SUMS.get(type(metric.plain), {}), metric.plain.arguments()
        inputs = {name: field for name, field in metric.inputs.items() if name in takes}
        if arguments and inputs.keys() <= arguments.keys():
            yield MetricConfig(
                f"{UNIT_SUMS}{metric.name}",
                UnitSums.__name__,
                {},
                {arguments[name]: field for name, field in inputs.items()} | {"units": unit},
                UnitSums(),
                position=metric.position if experiment.is_named else 0,
                where=metric.where,
            )


def _count_by_unit(
    experiment: ExperimentConfig, unit: Field | None, metric: MetricConfig
) -> MetricConfig:
    """A metric of the config as the experiment counts it."""
    empty, type_name, plain = metric.plain, metric.type, metric.plain.arguments()
    inputs = {name: field for name, field in metric.inputs.items() if name in plain}
    if unit is not None:
        if is_of_units(empty):
            inputs["units"] = unit
        elif experiment.cluster == "groups":
            empty, type_name = group_users(empty), "UserGroups"
            inputs[next(iter(empty.arguments()))] = unit
    # [experiment] has its metrics in the order of their names.
    position = metric.position if experiment.is_named else 0
    return MetricConfig(
        metric.name,
        type_name,
        metric.settings,
        inputs,
        empty,
        position=position,
        where=metric.where,
    )


def experiment_metric_sets(
    name: str,
    experiment: ExperimentConfig,
    metrics: tuple[MetricConfig, ...],
    event: EventConfig,
    windows: WindowsConfig,
) -> tuple[MetricSet, ...]:
    """The metrics by (epoch, variant); where arms come from exposures, those of other rows apart.
    name: that of the experiment."""
    whole = _metric_set(name, experiment, metrics, event, windows)
    if not experiment.is_exposed:
        return (whole,)
    of_exposures: dict[tuple[RowKind, ...], list[MetricConfig]] = {
        EVENTS: [],
        ("event", "exposure"): [],
        ("exposure", "later_exposure"): [],
    }
    for metric in metrics:
        if is_of_units(metric.empty):
            of_exposures["event", "exposure"].append(metric)
        elif metric.name == f"{experiment_set(name)}/{UNITS}":
            of_exposures["exposure", "later_exposure"].append(metric)
        else:
            of_exposures[EVENTS].append(metric)
    return tuple(
        _exposed_set(name, whole, kinds, metrics)
        for kinds, metrics in of_exposures.items()
        if metrics
    )


def _exposed_set(
    name: str, whole: MetricSet, kinds: tuple[RowKind, ...], metrics: Sequence[MetricConfig]
) -> MetricSet:
    """The metrics of an experiment with exposures that count these kinds of rows."""
    groupings, keys = whole.slices.by, whole.keys
    if kinds == ("event", "exposure"):
        groupings = (*groupings, (*BY, EXPOSED_ON, SINCE))
        keys = {**keys, EXPOSED_ON: EXPOSURE_DAY, SINCE: SPAN_SINCE}
    return replace(
        whole,
        slices=replace(whole.slices, by=groupings),
        metrics=tuple(metrics),
        keys=keys,
        declared={**whole.declared, KINDS: list(kinds)},
        rows=replace(whole.rows, kinds=kinds, exposed=name),
    )


def _metric_set(
    name: str,
    experiment: ExperimentConfig,
    metrics: tuple[MetricConfig, ...],
    event: EventConfig,
    windows: WindowsConfig,
) -> MetricSet:
    """The metrics by (epoch, variant). An epoch derived from the time has the path of the time."""
    epoch = None if experiment.is_named else event.epoch
    arm = Field(experiment.arms.path, "variant", name="variant")
    if experiment.is_named:
        arm = Field(experiment.arms.path, "arm", texts=experiment.arms.values, optional=True)
    if experiment.is_exposed:
        arm = exposed_arm(name)
    keys = {EPOCH: Field(epoch or event.time, "variant", name=EPOCH), "variant": arm}
    slices = SlicesConfig((BY,), MAX_KEYS)
    # A new variant changes the plan: more comparisons share one level, and the shares change.
    declared = {"experiment": {**experiment.plan, "variants": sorted(experiment.arms.names)}}
    details: Mapping[str, object] = {
        BETTER: dict(sorted(experiment.better.items())),
        "name": experiment.name,
        "hypothesis": experiment.hypothesis,
        "days": experiment.days,
        "min_days": experiment.min_days,
        "sample_ratio_acknowledged": experiment.sample_ratio_acknowledged,
        "archived": experiment.archived,
        "order": experiment.position,
        "layers": list(experiment.layers),
    }
    shown = {key: value for key, value in details.items() if value}
    shown |= {} if experiment.watch_rates else {WATCH_RATES: False}
    shown |= {"variants": list(experiment.arms.names)} if experiment.arms.merged else {}
    return MetricSet(
        slices,
        metrics,
        replace(event, variant=experiment.arms.path, variants=experiment.arms.values or None),
        windows,
        keys,
        declared,
        shown,
        rows=_own_rows(experiment, arm),
        epochs=(experiment.epochs, experiment.epoch_names) if epoch is None else None,
    )


def _own_rows(experiment: ExperimentConfig, arm: Field) -> RowCondition:
    """The events of an experiment. Each has an arm and a unit, since those of [experiment] are
    refused without."""
    flags = [condition_field(condition) for condition in experiment.where]
    if experiment.is_named and experiment.unit is not None:
        flags.append(Field(experiment.unit, "has_id", optional=True))
    return RowCondition(
        experiment.start,
        experiment.end,
        arm if experiment.is_named else None,
        experiment.arms.values if experiment.is_named else (),
        tuple(flags),
    )


def paths_of(
    experiments: Mapping[str, ExperimentConfig], event: EventConfig
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The fields that experiments read besides those of metrics, by the setting that names them:
    those of one value, and those of which conditions are tested."""
    values: dict[str, str | None] = {}
    tested: dict[str, str] = {}
    for name, experiment in experiments.items():
        title = f"[experiments.{name}]" if experiment.is_named else "[experiment]"
        values[f"{title} unit"] = experiment.unit
        values |= {f"{title} variant": experiment.arms.path} if experiment.is_named else {}
        values |= {} if experiment.is_named else {"[event] epoch": event.epoch}
        tested |= {f"{title} where.{test.name}": test.path for test in experiment.where}
    return {where: path for where, path in values.items() if path}, tested
