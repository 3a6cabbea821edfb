"""Reading and checking [experiment]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streammetrics import InputError, Paired
from streammetrics.experiments import keeps_units, needs_one_epoch
from streammetrics.results import Direction, direction_of, views_of
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.experiment import (
    UNITS,
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
)
from streammetrics_consumers.config.keys import read
from streammetrics_consumers.config.metric_entry import Better
from streammetrics_consumers.config.metrics import MetricConfig, metric_of
from streammetrics_consumers.config.rates import rate_mdes, with_rates
from streammetrics_consumers.config.section import Section, did_you_mean
from streammetrics_consumers.config.users import GROUPS_SALT, is_of_units, without_groups

MAX_WATCHED: Final = 100  # metrics of the decision, or guardrails
_COULD: Final = "only {} can drop units"
_COULD_BE: Final = (
    'use a GroupedAUC or GroupedScores with {} for its groups or lists, ids = "hashed" or '
    '"exact", and no weights'
)
_COVARIATE: Final = 'write for example { revenue = { metric = "revenue_before", theta = 0.4 } }'


def read_experiment(
    section: Section, event: EventConfig, metrics: Sequence[MetricConfig]
) -> ExperimentConfig:
    """Read [experiment]. After a problem in the section, the result must not be used."""
    variants = event.variants or ()
    if len(variants) < 2:
        expected = "at least two variants, since there is an [experiment]"
        hint = 'declare them, such as ["control", "new"]'
        section.problem("[event] variants", expected, event.variants, hint)
    experiment = read(section, ExperimentConfig)
    control, unit = experiment.control, experiment.unit or event.user
    if control and variants and control not in variants:
        section.bad("control", "one of [event] variants", did_you_mean(control, variants))
    if experiment.cluster == "groups" and unit is None:
        expected = "the field of the unit that is assigned to variants, to group rows by"
        hint = 'name it, or write cluster = "none"'
        section.bad("unit", expected, hint)
    if experiment.on_several_variants != "keep" and unit is None:
        hint = "name the field of the unit"
        section.bad("on_several_variants", '"keep", since there is no unit', hint)
    if experiment.epochs and event.epoch is not None:
        expected = "nothing, since [event] epoch names the field of the epoch"
        section.bad("epochs", expected, "declare one of the two")
    decision, rails = _read_decision(section, metrics), _read_guardrails(section, metrics)
    names = (*decision, *(rail.metric for rail in rails))
    watched = {name: figure for name in names if (figure := metric_of(name, metrics)) is not None}
    better = _directions(section, watched, experiment.lower_is_better)
    experiment = replace(
        experiment,
        decision=decision,
        guardrails=tuple(
            replace(
                rail,
                higher_is_better=_higher_is_better(
                    section,
                    f"guardrails[{i}].",
                    rail.higher_is_better,
                    better.get(rail.metric),
                    watched[rail.metric],
                ),
            )
            for i, rail in enumerate(rails)
        ),
        unit=unit,
        shares=_read_shares(section, variants),
        better={name: direction for name, direction in better.items() if name in decision},
    )
    experiment = with_rates(experiment, metrics) if experiment.watch_rates else experiment
    experiment = replace(
        experiment,
        mdes={**rate_mdes(experiment), **_read_mdes(section, experiment.watched)},
        covariates=_read_covariates(section, experiment, metrics),
    )
    _require_consistent(section, experiment)
    _require_comparable_over_epochs(section, experiment, event, watched)
    _refuse_epochs_of_units(section, event, experiment, metrics)
    if experiment.on_several_variants == "drop" and experiment.unit is not None:
        _require_droppable(section, experiment, metrics)
    section.done()
    return experiment


def _require_consistent(section: Section, experiment: ExperimentConfig) -> None:
    if experiment.mde is not None and experiment.horizon is not None:
        section.bad("mde", "nothing, since there is a horizon", "declare one of the two")
    elif experiment.horizon is not None and section.raw("baseline") is None:
        hint = "add it, or declare an mde instead of both"
        section.bad("baseline", "a rate from an earlier period, since there is a horizon", hint)
    if section.raw("horizon") is None and experiment.baseline is not None:
        section.bad("baseline", "nothing, since there is no horizon", "remove it, or add a horizon")
    if (
        experiment.min_days is not None
        and experiment.days is not None
        and experiment.min_days > experiment.days
    ):
        section.bad("min_days", f"at most days = {experiment.days}", "lower it, or plan more days")
    if experiment.assignment_salt == GROUPS_SALT:
        expected = f"a salt other than {GROUPS_SALT!r}, which hashes units into groups"
        hint = "with the same salt, groups depend on variants; assign with another"
        section.bad("assignment_salt", expected, hint)
    if len(experiment.shares) > 1 and len(experiment.shares) != len(experiment.epochs) + 1:
        section.bad(
            "shares",
            f"one table, or {len(experiment.epochs) + 1}: one before each of epochs, "
            "and one after the last",
            "add or remove some",
        )


def _require_comparable_over_epochs(
    section: Section,
    experiment: ExperimentConfig,
    event: EventConfig,
    watched: Mapping[str, tuple[MetricConfig, str | None]],
) -> None:
    """Check that no quantile is compared over several epochs, which would wait for ever."""
    if not (experiment.epochs or event.epoch):
        return
    for where, names in (
        ("decision", experiment.decision),
        (
            "guardrails",
            [guardrail.metric for guardrail in experiment.guardrails if guardrail.required],
        ),
    ):
        for name in names:
            metric, view = watched[name]
            if needs_one_epoch(without_groups(metric.empty), view):
                section.problem(
                    f"[experiment] {where}",
                    "metrics that can be compared over epochs, since epochs are declared",
                    name,
                    "the always-valid interval of a quantile is of one epoch: watch the rate of "
                    "rows above a limit instead, or remove the epochs",
                )


def _read_decision(section: Section, metrics: Sequence[MetricConfig]) -> tuple[str, ...]:
    names = section.raw("decision")
    if (
        not isinstance(names, list)
        or not 0 < len(names) <= MAX_WATCHED
        or len(set(map(str, names))) < len(names)
    ):
        hint = 'name the metrics that decide, such as ["ctr"]'
        section.bad("decision", f"a list of 1 to {MAX_WATCHED} different metrics", hint)
        return ()
    return tuple(
        name
        for i, name in enumerate(names)
        if _is_metric(section, f"[experiment] decision[{i}]", name, metrics)
    )


def _is_metric(section: Section, where: str, name: object, metrics: Sequence[MetricConfig]) -> bool:
    figure = metric_of(name, metrics) if isinstance(name, str) else None
    if figure is None:
        names = [metric.name for metric in metrics]
        section.unknown(where, "a metric of [metrics], or metric.view", name, names)
        return False
    metric, view = figure
    if metric.name == UNITS:
        hint = "rename it; the units of the experiment have this name"
        section.problem(where, f"a metric with a name other than {UNITS!r}", name, hint)
        return False
    if isinstance(metric.empty, Paired):
        hint = "name a metric of one model; the difference of two has its interval in results"
        section.problem(where, "a metric without models", name, hint)
        return False
    state = without_groups(metric.empty)
    views = list(views_of(state.compute()))
    if view is None or view in views:
        return True
    expected, hint = f"a view of {metric.name}", did_you_mean(view, views)
    if "(" in view:  # with arguments
        try:
            state.confidence_interval(view=view)
            return True
        except InputError as error:
            expected = expected if error.where == "view" else f"{expected} with {error.expected}"
            hint = error.hint
    section.problem(where, expected, name, hint)
    return False


def _read_guardrails(
    section: Section, metrics: Sequence[MetricConfig]
) -> tuple[GuardrailConfig, ...]:
    tables = section.raw("guardrails")
    if tables is None:
        return ()
    if not isinstance(tables, list) or len(tables) > MAX_WATCHED:
        hint = 'write [{ metric = "auc", margin = 0.01 }]'
        section.bad("guardrails", f"a list of at most {MAX_WATCHED} tables", hint)
        return ()
    guardrails: dict[str, GuardrailConfig] = {}
    for i, table in enumerate(tables):
        where = f"[experiment] guardrails[{i}]"
        if not isinstance(table, dict):
            section.problem(where, "a table", table, 'write { metric = "auc", margin = 0.01 }')
            continue
        entry = where.replace("[experiment] ", "experiment.")
        subsection = Section(entry, table, section.problems)
        name, rail = subsection.raw("metric"), read(subsection, GuardrailConfig)
        subsection.done()
        if not _is_metric(section, f"{where}.metric", name, metrics):
            continue
        if str(name) in guardrails:
            section.problem(f"{where}.metric", "another metric", name, "remove the repetition")
        guardrails[str(name)] = replace(rail, metric=str(name))
    return tuple(guardrails.values())


def _require_droppable(
    section: Section, experiment: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> None:
    """Check that the states of all counted metrics keep the rows of each unit apart."""
    by_name = {
        figure[0].name: figure[0]
        for name in experiment.counted
        if (figure := metric_of(name, metrics))
    }
    undroppable = sorted(
        name for name, metric in by_name.items() if not _is_per_unit(metric, experiment.unit)
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


def _refuse_epochs_of_units(
    section: Section,
    event: EventConfig,
    experiment: ExperimentConfig,
    metrics: Sequence[MetricConfig],
) -> None:
    """Refuse epochs beside means and rates over units: all rows of a unit belong to the epoch of
    its first one, which an event does not know, and by the event's epoch a ramp alone moves
    them."""
    by_name = {
        figure[0].name: figure[0]
        for name in experiment.counted
        if (figure := metric_of(name, metrics))
    }
    of_units = sorted(name for name, metric in by_name.items() if is_of_units(metric.empty))
    if not of_units or not (experiment.epochs or event.epoch):
        return
    kinds = " and ".join(sorted({by_name[name].type for name in of_units}))
    expected = (
        f"no epochs, since {', '.join(of_units)} is a {kinds}: all rows of a unit belong to the "
        "epoch of its first one, which events do not say"
    )
    where = "[experiment] epochs" if experiment.epochs else "[event] epoch"
    got = list(experiment.epoch_names[1:]) if experiment.epochs else event.epoch
    section.problem(where, expected, got, "leave the epochs out, or decide by a metric of rows")


def _is_per_unit(metric: MetricConfig, unit: str | None) -> bool:
    """Whether the states keep the rows of each unit apart, under the unit's own id."""
    groups = metric.inputs.get("groups")
    if groups is None or not keeps_units(metric.empty) or "weights" in metric.inputs:
        return False
    return groups.path == unit and groups.kind in ("hashed_id", "text_id")


def _read_mdes(section: Section, watched: Sequence[str]) -> Mapping[str, float]:
    """The smallest effects that matter, for metrics that declare their own."""
    table = section.raw("mdes")
    if table is None:
        return {}
    if not isinstance(table, dict):
        hint = "write for example { auc = 0.005 }"
        section.bad("mdes", "a table of the smallest effects that matter, by metric", hint)
        return {}
    mdes = {}
    for name, value in table.items():
        where = f"[experiment] mdes.{name}"
        if isinstance(value, dict):
            hint = 'put names with dots in quotes, as in "auc.gini" = 0.01'
            section.problem(where, "a number above 0", value, hint)
        elif not _is_watched(section, "mdes", name, watched):
            continue
        elif not _is_positive(value):
            hint = "give the smallest absolute difference that matters"
            section.problem(where, "a number above 0", value, hint)
        else:
            mdes[name] = float(value)
    return mdes


def _is_watched(section: Section, key: str, name: str, watched: Sequence[str]) -> bool:
    if name not in watched:
        hint = did_you_mean(name, watched) if watched else "name it there too"
        section.problem(f"[experiment] {key}", "a name of decision or guardrails", name, hint)
    return name in watched


def _read_shares(section: Section, variants: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    raw = section.raw("shares")
    if raw is None:
        return ()
    tables = raw if isinstance(raw, list) else [raw]
    shares = []
    for i, table in enumerate(tables):
        where = f"[experiment] shares[{i}]" if isinstance(raw, list) else "[experiment] shares"
        if (
            isinstance(table, dict)
            and set(table) == set(variants)
            and all(map(_is_positive, table.values()))
        ):
            shares.append({name: float(table[name]) for name in variants})
        else:
            expected = "a table with a positive weight for each of variants"
            hint = "write for example { control = 1, new = 1 }"
            section.problem(where, expected, table, hint)
    if not tables:
        section.bad("shares", "at least one table", "leave it out if the shares are equal")
    return tuple(shares)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _directions(
    section: Section,
    watched: Mapping[str, tuple[MetricConfig, str | None]],
    names: Sequence[str],
) -> dict[str, Better]:
    """The declared directions, by name in the decision or the guardrails. watched: the metric and
    view of each name. names: those for which lower is better."""
    directions = {
        name: metric.better for name, (metric, _) in watched.items() if metric.better is not None
    }
    for i, name in enumerate(names):
        where = f"[experiment] lower_is_better[{i}]"
        if name not in watched:
            section.unknown(where, "a name of decision or guardrails", name, list(watched))
        elif directions.get(name, "lower") != "lower":
            expected = f"another metric, since {name} has better = {directions[name]!r}"
            hint = "remove one of the two"
            section.problem(where, expected, name, hint)
        else:
            directions[name] = "lower"
    return directions


def _higher_is_better(
    section: Section,
    where: str,
    higher_is_better: bool | None,
    better: Better | None,
    figure: tuple[MetricConfig, str | None],
) -> bool:
    """The direction of a guardrail: its own, else that of the metric in the config, else that of
    the view; True if none is declared."""
    if higher_is_better is not None:
        if better in ("higher", "lower") and higher_is_better is not (better == "higher"):
            expected = f"{'true' if better == 'higher' else 'false'}, since {better} is better"
            section.problem(
                f"[experiment] {where}higher_is_better",
                expected,
                higher_is_better,
                "remove one of the two",
            )
        return higher_is_better
    direction = direction_of(without_groups(figure[0].empty).compute(), figure[1])
    if isinstance(better, float):
        direction = Direction("target", better)
    elif better is not None:
        return better != "lower"
    if direction.better == "target":
        section.problem(
            f"[experiment] {where}higher_is_better",
            f"true or false, since {figure[0].name} has the target {direction.target:g}",
            None,
            "write false if a rise is harm, else true",
        )
    return direction.better != "lower"


def _read_covariates(
    section: Section, experiment: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> Mapping[str, CovariateConfig]:
    """The covariates, by the name of the metric that they adjust."""
    tables = section.raw("covariates")
    if tables is None:
        return {}
    if not isinstance(tables, dict):
        section.bad("covariates", "a table of covariates, by metric", _COVARIATE)
        return {}
    if tables and experiment.cluster != "groups":
        hint = 'covariates need groups of users: write cluster = "groups"'
        section.bad("covariates", 'nothing, since cluster is "none"', hint)
    read = {}
    for name, table in tables.items():
        where = f"[experiment] covariates.{name}"
        if not _is_watched(section, "covariates", name, experiment.watched):
            continue
        if not isinstance(table, dict):
            section.problem(where, "a table", table, _COVARIATE)
        elif (covariate := _read_covariate(section, name, table, metrics)) is not None:
            read[name] = covariate
    return read


def _read_covariate(
    section: Section,
    name: str,
    table: Mapping[str, object],
    metrics: Sequence[MetricConfig],
) -> CovariateConfig | None:
    where = f"[experiment] covariates.{name}"
    entry = where.removeprefix("[experiment] ")
    subsection = Section(entry, table, section.problems)
    read(subsection, CovariateConfig)
    metric, theta = subsection.raw("metric"), subsection.raw("theta")
    subsection.done()
    good = _is_metric(section, f"{where}.metric", metric, metrics)
    if good and metric == name:
        expected = "another metric than the one that it adjusts"
        hint = "name a metric known before the exposure"
        section.problem(f"{where}.metric", expected, metric, hint)
        good = False
    if isinstance(theta, bool) or not isinstance(theta, int | float) or not math.isfinite(theta):
        hint = "take the slope of an earlier period, from user_slope"
        section.problem(f"{where}.theta", "a finite number, the slope", theta, hint)
        return None
    return CovariateConfig(str(metric), float(theta)) if good else None
