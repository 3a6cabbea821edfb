"""Reading and checking one experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeGuard

from streammetrics import InputError, Paired
from streammetrics.experiments import keeps_units, needs_one_epoch
from streammetrics.results import Direction, direction_of, headlines_of, views_of
from streammetrics_consumers.config.arms import DeclaredArms
from streammetrics_consumers.config.event import EventConfig, read_where
from streammetrics_consumers.config.experiment import (
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
)
from streammetrics_consumers.config.experiment_states import counted_metrics
from streammetrics_consumers.config.keys import read, read_keys
from streammetrics_consumers.config.kinds import finite
from streammetrics_consumers.config.metric_entry import GROUPS_SALT, Better, is_of_units
from streammetrics_consumers.config.metrics import MetricConfig, WatchedView, find_watched
from streammetrics_consumers.config.rates import rate_mdes, with_rates
from streammetrics_consumers.config.section import RefusedSetting, Section, did_you_mean
from streammetrics_consumers.model.generation import ACTIVE, UNITS

MAX_WATCHED: Final = 100  # metrics of the decision, or guardrails
_COULD: Final = "only {} can drop units"
_COULD_BE: Final = (
    'use a GroupedAUC or GroupedScores with {} for its groups or lists, ids = "hashed" or '
    '"exact", and no weights'
)
_GUARDRAIL: Final = '{ metric = "auc", margin = 0.01 }'
_COVARIATE: Final = 'write for example { revenue = { metric = "revenue_before", theta = 0.4 } }'
_ANY: Final = "a metric of [metrics], or metric.view"


def read_experiment(
    section: Section, event: EventConfig, metrics: Sequence[MetricConfig], arms: DeclaredArms
) -> ExperimentConfig:
    """Read one experiment; arms: its arms, which are read before. After a problem in the section,
    the result must not be used."""
    experiment = read(section, ExperimentConfig)
    experiment = replace(
        experiment,
        decision=_read_decision(section, metrics),
        guardrails=_read_guardrails(section, metrics),
        unit=experiment.unit or event.user,
        shares=_read_shares(section, arms.names),
        metrics=_read_metrics(section, metrics),
        where=read_where(section, event),
        arms=arms,
    )
    watched = {name: watch for name in experiment.watched if (watch := find_watched(name, metrics))}
    directions = _directions(section, experiment, watched)
    rails = []
    for i, rail in enumerate(experiment.guardrails):
        key, name = f"guardrails[{i}].higher_is_better", rail.metric
        is_higher = _is_higher_better(section, key, rail, watched[name], directions.get(name))
        rails.append(replace(rail, higher_is_better=is_higher))
    better = {name: directions[name] for name in directions if name in experiment.decision}
    experiment = replace(experiment, guardrails=tuple(rails), better=better)
    experiment = with_rates(experiment, metrics) if experiment.watch_rates else experiment
    experiment = replace(
        experiment,
        mdes={**rate_mdes(experiment), **_read_mdes(section, experiment)},
        covariates=_read_covariates(section, experiment, metrics),
    )
    _require_consistent(section, experiment, event)
    _require_comparable_over_epochs(section, experiment, event, watched)
    _require_closable(section, experiment, watched)
    counted = counted_metrics(experiment, metrics)
    _refuse_epochs_of_units(section, experiment, event, counted)
    if experiment.is_exposed and ACTIVE in counted:
        hint = "rename it; the exposed units with an event have this name"
        section.problem(section.title, f"metrics with other names than {ACTIVE!r}", ACTIVE, hint)
    if experiment.on_several_variants == "drop" and experiment.unit is not None:
        _require_droppable(section, experiment, counted, metrics)
    return experiment


def _require_consistent(section: Section, experiment: ExperimentConfig, event: EventConfig) -> None:
    """Check the keys of one value against each other and [event]."""
    control, variants = experiment.control, experiment.arms.names
    if control and variants and control not in variants:
        expected = "one of its variants" if experiment.is_named else "one of [event] variants"
        section.bad("control", expected, did_you_mean(control, variants))
    start, end = experiment.start, experiment.end
    if start is not None and end is not None and start >= end:
        section.bad("end", "a time after start", "correct one of the two")
    if experiment.cluster == "groups" and experiment.unit is None:
        expected = "the field of the unit that is assigned to variants, to group rows by"
        section.bad("unit", expected, 'name it, or write cluster = "none"')
    elif experiment.is_exposed and experiment.unit is None:
        expected = "the field of the unit, since its arms are those of exposures"
        section.bad("unit", expected, 'name it here, or [event] user, such as "user_id"')
    if experiment.on_several_variants != "keep" and experiment.unit is None:
        hint = "name the field of the unit"
        section.bad("on_several_variants", '"keep", since there is no unit', hint)
    if experiment.interactions and experiment.unit is None:
        section.bad("interactions", "false, since there is no unit", "name the field of the unit")
    if experiment.interactions and experiment.is_exposed:
        # The sums of a sample of units know only those with an event.
        expected = "false, since the arms come from [exposures]"
        section.bad("interactions", expected, "remove it: interactions need arms in events")
    if experiment.epochs and event.epoch is not None and not experiment.is_named:
        expected = "nothing, since [event] epoch names the field of the epoch"
        section.bad("epochs", expected, "declare one of the two")
    if experiment.mde is not None and experiment.horizon is not None:
        section.bad("mde", "nothing, since there is a horizon", "declare one of the two")
    elif experiment.horizon is not None and section.raw("baseline") is None:
        hint = "add it, or declare an mde instead of both"
        section.bad("baseline", "a rate from an earlier period, since there is a horizon", hint)
    if section.raw("horizon") is None and experiment.baseline is not None:
        section.bad("baseline", "nothing, since there is no horizon", "remove it, or add a horizon")
    if experiment.days is not None and (experiment.min_days or 0) > experiment.days:
        section.bad("min_days", f"at most days = {experiment.days}", "lower it, or plan more days")
    if experiment.assignment_salt == GROUPS_SALT:
        expected = f"a salt other than {GROUPS_SALT!r}, which hashes units into groups"
        hint = "with the same salt, groups depend on variants; assign with another"
        section.bad("assignment_salt", expected, hint)
    n_epochs = len(experiment.epochs) + 1
    if len(experiment.shares) not in (0, 1, n_epochs):
        expected = f"one table, or {n_epochs}: one before each of epochs, and one after the last"
        section.bad("shares", expected, "add or remove some")


def _require_comparable_over_epochs(
    section: Section,
    experiment: ExperimentConfig,
    event: EventConfig,
    watched: Mapping[str, WatchedView],
) -> None:
    """Check that no quantile is compared over several epochs, which would wait for ever."""
    required = [guardrail.metric for guardrail in experiment.guardrails if guardrail.required]
    names = [("decision", name) for name in experiment.decision]
    names += [("guardrails", name) for name in required]
    for key, name in names if _has_epochs(experiment, event) else ():
        metric, view = watched[name]
        if needs_one_epoch(metric.plain, view):
            section.problem(
                section.where(key),
                "metrics that can be compared over epochs, since epochs are declared",
                name,
                "the always-valid interval of a quantile is of one epoch: watch the rate of "
                "rows above a limit instead, or remove the epochs",
            )


def _has_epochs(experiment: ExperimentConfig, event: EventConfig) -> bool:
    return bool(experiment.epochs or (event.epoch and not experiment.is_named))


def _require_closable(
    section: Section, experiment: ExperimentConfig, watched: Mapping[str, WatchedView]
) -> None:
    """Check that only means and rates of units decide in a plan by closed units: rows are not kept
    by the day of the exposure."""
    of_rows = [name for name in experiment.decision if not is_of_units(watched[name].metric.empty)]
    if experiment.units == "closed" and of_rows:
        section.problem(
            section.where("decision"),
            'means and rates of units alone, since units = "closed"',
            of_rows,
            "decide by a UnitMean or UnitRate, or leave units out",
        )


def _refuse_epochs_of_units(
    section: Section,
    experiment: ExperimentConfig,
    event: EventConfig,
    counted: Mapping[str, MetricConfig],
) -> None:
    """Refuse epochs beside means and rates over units: all rows of a unit belong to the epoch of
    its first one, which an event does not know, and by the event's epoch a ramp alone moves
    them. An exposure is that first one, and known."""
    of_units = sorted(name for name, metric in counted.items() if is_of_units(metric.empty))
    if not of_units or experiment.is_exposed or not _has_epochs(experiment, event):
        return
    kinds = " and ".join(sorted({counted[name].type for name in of_units}))
    expected = (
        f"no epochs, since {', '.join(of_units)} is a {kinds}: all rows of a unit belong to the "
        "epoch of its first one, which events do not say"
    )
    where = section.where("epochs") if experiment.epochs else "[event] epoch"
    got = list(experiment.epoch_names[1:]) if experiment.epochs else event.epoch
    section.problem(where, expected, got, "leave the epochs out, or decide by a metric of rows")


def _require_droppable(
    section: Section,
    experiment: ExperimentConfig,
    counted: Mapping[str, MetricConfig],
    metrics: Sequence[MetricConfig],
) -> None:
    """Check that the states of all counted metrics keep the rows of each unit apart."""
    undroppable = sorted(
        name for name, metric in counted.items() if not _is_per_unit(metric, experiment.unit)
    )
    if undroppable:
        could = [metric.name for metric in metrics if _is_per_unit(metric, experiment.unit)]
        section.bad(
            "on_several_variants",
            f'"keep" or "error", since {", ".join(undroppable)} adds up rows of many units',
            _COULD.format(", ".join(could)) if could else _COULD_BE.format(experiment.unit),
        )
    if experiment.unit_share < 1:
        hint = "remove it, or keep these units"
        section.bad("unit_share", '1, since on_several_variants = "drop" needs each unit', hint)


def _is_per_unit(metric: MetricConfig, unit: str | None) -> bool:
    """Whether the states keep the rows of each unit apart, under the unit's own id."""
    groups = metric.inputs.get("groups")
    if groups is None or not keeps_units(metric.empty) or "weights" in metric.inputs:
        return False
    return groups.path == unit and groups.kind in ("hashed_id", "text_id")


def _read_name(
    section: Section, key: str, metrics: Sequence[MetricConfig], taken: set[str] | None = None
) -> str:
    """The value of a key: the name of a metric, or of a view, that an experiment can compare.
    taken: the views named so far, each with its metric, if a second name of one is refused."""
    name = section.raw(key)
    watched = find_watched(name, metrics)
    if watched is None:
        section.unknown(section.where(key), _ANY, name, [metric.name for metric in metrics])
        raise RefusedSetting
    metric, view = watched
    if metric.name == UNITS:
        hint = "rename it; the units of the experiment have this name"
        section.refuse(key, f"a metric with a name other than {UNITS!r}", hint)
    if isinstance(metric.empty, Paired):
        hint = "name a metric of one model; the difference of two has its interval in results"
        section.refuse(key, "a metric without models", hint)
    figures = metric.plain.compute()
    views = list(views_of(figures))
    if view is not None and view not in views:
        expected, hint = f"a view of {metric.name}", did_you_mean(view, views)
        if "(" not in view:
            section.refuse(key, expected, hint)
        try:
            metric.plain.confidence_interval(view=view)
        except InputError as error:
            expected = expected if error.where == "view" else f"{expected} with {error.expected}"
            section.refuse(key, expected, error.hint)
    if taken is not None:
        whole = f"{metric.name}.{view or next(iter(headlines_of(figures)), '')}"
        if whole in taken:
            section.refuse(key, f"another view than {whole}", "remove the repetition")
        taken.add(whole)
    return str(name)


def _require_watched(section: Section, key: str, name: str, experiment: ExperimentConfig) -> None:
    """Refuse an entry of a key without the name of a decision metric or a guardrail."""
    watched = experiment.watched
    if name not in watched:
        hint = did_you_mean(name, watched) if watched else "name it there too"
        section.problem(section.where(key), "a name of decision or guardrails", name, hint)
        raise RefusedSetting


def _read_decision(section: Section, metrics: Sequence[MetricConfig]) -> tuple[str, ...]:
    expected = f"a list of 1 to {MAX_WATCHED} different metrics"
    hint = 'name the metrics that decide, such as ["ctr"]'
    names = section.elements("decision", expected, hint, least=1, most=MAX_WATCHED)
    views = set[str]()
    return tuple(names.each(lambda names, key: _read_name(names, key, metrics, views)))


def _read_guardrails(
    section: Section, metrics: Sequence[MetricConfig]
) -> tuple[GuardrailConfig, ...]:
    views = set[str]()

    def read_guardrail(rails: Section, key: str) -> GuardrailConfig:
        entry = rails.entry(key, f"write {_GUARDRAIL}")
        keys = section.inner(f"[{section.title[1:-1]}.guardrails{key}]", entry.table, between=" ")
        rail = read(keys, GuardrailConfig)
        _read_name(entry, "metric", metrics, views)
        return rail

    expected = f"a list of at most {MAX_WATCHED} tables"
    rails = section.elements("guardrails", expected, f"write [{_GUARDRAIL}]", most=MAX_WATCHED)
    return tuple(rails.each(read_guardrail))


def _read_metrics(section: Section, metrics: Sequence[MetricConfig]) -> tuple[str, ...]:
    expected = f"a list of at most {MAX_WATCHED} metrics of [metrics]"
    names = section.elements("metrics", expected, 'write for example ["ctr"]', most=MAX_WATCHED)

    def read_metric(names: Section, key: str) -> str:
        metric_names, name = [metric.name for metric in metrics], names.raw(key)
        if name not in metric_names:
            names.unknown(names.where(key), "a metric of [metrics]", name, metric_names)
            raise RefusedSetting
        return _read_name(names, key, metrics)

    return tuple(dict.fromkeys(names.each(read_metric)))


def _directions(
    section: Section, experiment: ExperimentConfig, watched: Mapping[str, WatchedView]
) -> dict[str, Better]:
    """The declared directions, by name in the decision or the guardrails."""
    directions = {
        name: metric.better for name, (metric, _) in watched.items() if metric.better is not None
    }
    for i, name in enumerate(experiment.lower_is_better):
        where = section.where(f"lower_is_better[{i}]")
        direction = directions.get(name, "lower")
        if name not in watched:
            section.unknown(where, "a name of decision or guardrails", name, list(watched))
        elif direction != "lower":
            expected = f"another metric, since {name} has better = {direction!r}"
            section.problem(where, expected, name, "remove one of the two")
        else:
            directions[name] = "lower"
    return directions


def _is_higher_better(
    section: Section, key: str, rail: GuardrailConfig, watched: WatchedView, better: Better | None
) -> bool:
    """The direction of a guardrail: its own, else that of the metric in the config, else that of
    the view; True if none is declared."""
    is_higher = rail.higher_is_better
    if is_higher is not None:
        if better in ("higher", "lower") and is_higher is not (better == "higher"):
            expected = f"{'true' if better == 'higher' else 'false'}, since {better} is better"
            section.problem(section.where(key), expected, is_higher, "remove one of the two")
        return is_higher
    if isinstance(better, str):
        return better != "lower"
    direction = direction_of(watched.metric.plain.compute(), watched.view)
    if better is not None:
        direction = Direction("target", better)
    if direction.better == "target":
        name = watched.metric.name
        expected = f"true or false, since {name} has the target {direction.target:g}"
        hint = "write false if a rise is harm, else true"
        section.problem(section.where(key), expected, None, hint)
    return direction.better != "lower"


def _read_shares(section: Section, variants: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    def read_weights(section: Section, key: str) -> dict[str, float]:
        table = section.raw(key)
        if (
            not isinstance(table, dict)
            or set(table) != set(variants)
            or not all(map(_is_positive, table.values()))
        ):
            expected = "a table with a positive weight for each of variants"
            section.refuse(key, expected, "write for example { control = 1, new = 1 }")
        weights = {name: float(table[name]) for name in variants}
        total = sum(weights.values())
        if not (total < math.inf and min(weights.values()) / total > 0):
            expected = "weights with a finite sum, of which each is a share above 0"
            section.refuse(key, expected, "write for example { control = 99, new = 1 }")
        return weights

    if isinstance(section.raw("shares"), list):
        hint = "leave it out if the shares are equal"
        tables = section.elements("shares", "at least one table", hint, least=1)
        return tuple(tables.each(read_weights))
    if section.raw("shares") is not None:
        with suppress(RefusedSetting):
            return (read_weights(section, "shares"),)
    return ()


def _read_mdes(section: Section, experiment: ExperimentConfig) -> dict[str, float]:
    """The smallest effects that matter, for metrics that declare their own."""

    def read_mde(mdes: Section, name: str) -> tuple[str, float]:
        value, expected = mdes.raw(name), "a number above 0"
        if isinstance(value, dict):
            mdes.refuse(name, expected, 'put names with dots in quotes, as in "auc.gini" = 0.01')
        _require_watched(section, "mdes", name, experiment)
        if not _is_positive(value):
            mdes.refuse(name, expected, "give the smallest absolute difference that matters")
        return name, float(value)

    expected = "a table of the smallest effects that matter, by metric"
    mdes = section.entries("mdes", expected, "write for example { auc = 0.005 }")
    return dict(mdes.each(read_mde))


def _is_positive(value: object) -> TypeGuard[float]:
    return (finite(value) or 0) > 0


def _read_covariates(
    section: Section, experiment: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> dict[str, CovariateConfig]:
    """The covariates, by the name of the metric that they adjust."""

    def read_covariate(covariates: Section, name: str) -> tuple[str, CovariateConfig]:
        _require_watched(section, "covariates", name, experiment)
        entry = covariates.entry(name, _COVARIATE)
        covariate = read_keys(entry, CovariateConfig)
        entry.done(place=f"[covariates.{name}] ")
        if _read_name(entry, "metric", metrics) == name:
            expected = "another metric than the one that it adjusts"
            entry.refuse("metric", expected, "name a metric known before the exposure")
        return name, covariate

    covariates = section.entries("covariates", "a table of covariates, by metric", _COVARIATE)
    if covariates.table and experiment.cluster != "groups":
        hint = 'covariates need groups of users: write cluster = "groups"'
        section.bad("covariates", 'nothing, since cluster is "none"', hint)
    return dict(covariates.each(read_covariate))
