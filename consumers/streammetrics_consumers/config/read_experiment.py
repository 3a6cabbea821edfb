"""Reading and checking [experiment]."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final, cast

from streammetrics import InputError, Paired
from streammetrics.experiments import keeps_units, needs_one_epoch
from streammetrics.results import Direction, direction_of, views_of
from streammetrics_consumers.config.entries import ENTRIES
from streammetrics_consumers.config.event import EventConfig
from streammetrics_consumers.config.experiment import (
    UNITS,
    Cluster,
    CovariateConfig,
    ExperimentConfig,
    GuardrailConfig,
    OnSeveral,
)
from streammetrics_consumers.config.metrics import Better, MetricConfig, metric_of
from streammetrics_consumers.config.rates import rate_mdes, with_rates
from streammetrics_consumers.config.section import Section, did_you_mean
from streammetrics_consumers.config.users import GROUPS_SALT, is_of_units, without_groups
from streammetrics_consumers.model.times import iso_to_ms

MAX_EPOCHS: Final = 1000
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
    control = section.text("control")
    if control and variants and control not in variants:
        section.bad("control", "one of [event] variants", did_you_mean(control, variants))
    unit = section.path("unit") or event.user
    cluster = section.choice("cluster")
    if cluster == "groups" and unit is None:
        expected = "the field of the unit that is assigned to variants, to group rows by"
        hint = 'name it, or write cluster = "none"'
        section.bad("unit", expected, hint)
    decision, rails = _read_decision(section, metrics), _read_guardrails(section, metrics)
    names = (*decision, *(rail.metric for rail in rails))
    watched = {name: one for name in names if (one := metric_of(name, metrics)) is not None}
    better = _read_directions(section, watched)
    found = ExperimentConfig(
        control=control,
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
        on_several_variants=_read_on_several(section, unit),
        cluster=cast("Cluster", cluster),
        horizon=section.optional_whole("horizon"),
        baseline=section.optional_number("baseline"),
        mde=section.optional_number("mde"),
        level=section.number("level"),
        epochs=_read_epochs(section, event),
        shares=_read_shares(section, variants),
        unit_share=section.number("unit_share"),
        max_units=section.whole("max_units"),
        assignment_salt=section.text("assignment_salt") or None,
        look_every_s=section.number("look_every_s"),
        watch_rates=section.switch("watch_rates") is not False,
        better={name: said for name, said in better.items() if name in decision},
        name=section.text("name"),
        hypothesis=section.text("hypothesis"),
        days=section.optional_whole("days"),
        min_days=section.optional_whole("min_days"),
        sample_ratio_acknowledged=section.text("sample_ratio_acknowledged"),
    )
    found = with_rates(found, metrics) if found.watch_rates else found
    found = replace(
        found,
        mdes={**rate_mdes(found), **_read_mdes(section, found.watched)},
        covariates=_read_covariates(section, found, metrics),
    )
    _require_consistent(section, found)
    _require_comparable_over_epochs(section, found, event, watched)
    _refuse_epochs_of_units(section, event, found, metrics)
    if found.on_several_variants == "drop" and found.unit is not None:
        _require_droppable(section, found, metrics)
    section.done()
    return found


def _require_consistent(section: Section, found: ExperimentConfig) -> None:
    if found.mde is not None and found.horizon is not None:
        section.bad("mde", "nothing, since there is a horizon", "declare one of the two")
    elif found.horizon is not None and section.raw("baseline") is None:
        hint = "add it, or declare an mde instead of both"
        section.bad("baseline", "a rate from an earlier period, since there is a horizon", hint)
    if section.raw("horizon") is None and found.baseline is not None:
        section.bad("baseline", "nothing, since there is no horizon", "remove it, or add a horizon")
    if found.min_days is not None and found.days is not None and found.min_days > found.days:
        section.bad("min_days", f"at most days = {found.days}", "lower it, or plan more days")
    if found.assignment_salt == GROUPS_SALT:
        expected = f"a salt other than {GROUPS_SALT!r}, which hashes units into groups"
        hint = "with the same salt, groups depend on variants; assign with another"
        section.bad("assignment_salt", expected, hint)
    if len(found.shares) > 1 and len(found.shares) != len(found.epochs) + 1:
        section.bad(
            "shares",
            f"one table, or {len(found.epochs) + 1}: one before each of epochs, "
            "and one after the last",
            "add or remove some",
        )


def _require_comparable_over_epochs(
    section: Section,
    found: ExperimentConfig,
    event: EventConfig,
    watched: Mapping[str, tuple[MetricConfig, str | None]],
) -> None:
    """Check that no quantile is compared over several epochs, which would wait for ever."""
    if not (found.epochs or event.epoch):
        return
    for where, names in (
        ("decision", found.decision),
        ("guardrails", [one.metric for one in found.guardrails if one.required]),
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
    found = metric_of(name, metrics) if isinstance(name, str) else None
    if found is None:
        known = [metric.name for metric in metrics]
        section.unknown(where, "a metric of [metrics], or metric.view", name, known)
        return False
    metric, view = found
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
    found: dict[str, GuardrailConfig] = {}
    for i, table in enumerate(tables):
        where = f"[experiment] guardrails[{i}]"
        if not isinstance(table, dict):
            section.problem(where, "a table", table, 'write { metric = "auc", margin = 0.01 }')
            continue
        entry = where.replace("[experiment] ", "experiment.")
        keys = ENTRIES["experiment.guardrails[]"]
        one = Section(entry, table, section.problems, keys=keys)
        name, margin = one.raw("metric"), one.number("margin")
        better, required = one.switch("higher_is_better"), one.switch("required")
        one.done()
        if not _is_metric(section, f"{where}.metric", name, metrics):
            continue
        if str(name) in found:
            section.problem(f"{where}.metric", "another metric", name, "remove the repetition")
        found[str(name)] = GuardrailConfig(str(name), margin, better, required is not False)
    return tuple(found.values())


def _read_on_several(section: Section, unit: str | None) -> OnSeveral:
    word = section.choice("on_several_variants")
    if word != "keep" and unit is None:
        hint = "name the field of the unit"
        section.bad("on_several_variants", '"keep", since there is no unit', hint)
    return cast("OnSeveral", word)


def _require_droppable(
    section: Section, found: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> None:
    """Check that the states of all counted metrics keep the rows of each unit apart."""
    named = {one[0].name: one[0] for name in found.counted if (one := metric_of(name, metrics))}
    others = sorted(name for name, one in named.items() if not _is_per_unit(one, found.unit))
    if others:
        could = [one.name for one in metrics if _is_per_unit(one, found.unit)]
        section.bad(
            "on_several_variants",
            f'"keep" or "error", since {", ".join(others)} adds up rows of many units',
            _COULD.format(", ".join(could)) if could else _COULD_BE.format(found.unit),
        )
    if found.unit_share < 1:
        hint = "remove it, or keep these units"
        section.bad("unit_share", '1, since on_several_variants = "drop" needs each unit', hint)


def _refuse_epochs_of_units(
    section: Section, event: EventConfig, found: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> None:
    """Refuse epochs beside means and rates over units: all rows of a unit belong to the epoch of
    its first one, which an event does not know, and by the event's epoch a ramp alone moves
    them."""
    named = {one[0].name: one[0] for name in found.counted if (one := metric_of(name, metrics))}
    of_units = sorted(name for name, one in named.items() if is_of_units(one.empty))
    if not of_units or not (found.epochs or event.epoch):
        return
    kinds = " and ".join(sorted({named[name].type for name in of_units}))
    expected = (
        f"no epochs, since {', '.join(of_units)} is a {kinds}: all rows of a unit belong to the "
        "epoch of its first one, which events do not say"
    )
    where = "[experiment] epochs" if found.epochs else "[event] epoch"
    got = list(found.epoch_names[1:]) if found.epochs else event.epoch
    section.problem(where, expected, got, "leave the epochs out, or decide by a metric of rows")


def _is_per_unit(metric: MetricConfig, unit: str | None) -> bool:
    """Whether the states keep the rows of each unit apart, under the unit's own id."""
    of = metric.inputs.get("groups")
    if of is None or not keeps_units(metric.empty) or "weights" in metric.inputs:
        return False
    return of.path == unit and of.kind in ("hashed_id", "text_id")


def _read_mdes(section: Section, watched: Sequence[str]) -> Mapping[str, float]:
    """The smallest effects that matter, for metrics that declare their own."""
    table = section.raw("mdes")
    if table is None:
        return {}
    if not isinstance(table, dict):
        hint = "write for example { auc = 0.005 }"
        section.bad("mdes", "a table of the smallest effects that matter, by metric", hint)
        return {}
    found = {}
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
            found[name] = float(value)
    return found


def _is_watched(section: Section, key: str, name: str, watched: Sequence[str]) -> bool:
    if name not in watched:
        hint = did_you_mean(name, watched) if watched else "name it there too"
        section.problem(f"[experiment] {key}", "a name of decision or guardrails", name, hint)
    return name in watched


def _read_epochs(section: Section, event: EventConfig) -> tuple[int, ...]:
    texts = section.raw("epochs")
    if texts is None:
        return ()
    if (
        not isinstance(texts, list)
        or len(texts) > MAX_EPOCHS
        or not all(isinstance(text, str) for text in texts)
    ):
        hint = 'write for example ["2026-01-31T00:00:00Z"]'
        section.bad("epochs", f"a list of at most {MAX_EPOCHS} ISO times in quotes", hint)
        return ()
    if texts and event.epoch is not None:
        hint = "declare one of the two"
        section.bad("epochs", "nothing, since [event] epoch names the field of the epoch", hint)
    times, good = iso_to_ms(texts)
    for i, text in enumerate(texts):
        if not good[i]:
            hint = 'write for example "2026-01-31T00:00:00Z"'
            section.problem(f"[experiment] epochs[{i}]", "an ISO time with a zone", text, hint)
    if good.all() and any(before >= after for before, after in pairwise(times.tolist())):
        section.bad("epochs", "ascending times", "sort them, each once")
    return tuple(times.tolist())


def _read_shares(section: Section, variants: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    given = section.raw("shares")
    if given is None:
        return ()
    tables = given if isinstance(given, list) else [given]
    found = []
    for i, table in enumerate(tables):
        where = f"[experiment] shares[{i}]" if isinstance(given, list) else "[experiment] shares"
        if (
            isinstance(table, dict)
            and set(table) == set(variants)
            and all(map(_is_positive, table.values()))
        ):
            found.append({name: float(table[name]) for name in variants})
        else:
            expected = "a table with a positive weight for each of variants"
            hint = "write for example { control = 1, new = 1 }"
            section.problem(where, expected, table, hint)
    if not tables:
        section.bad("shares", "at least one table", "leave it out if the shares are equal")
    return tuple(found)


def _is_positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _read_directions(
    section: Section, watched: Mapping[str, tuple[MetricConfig, str | None]]
) -> dict[str, Better]:
    """The declared directions, by name in the decision or the guardrails. watched: the metric and
    view of each name."""
    found = {name: one.better for name, (one, _) in watched.items() if one.better is not None}
    names = section.raw("lower_is_better")
    if names is None:
        return found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        hint = 'write for example ["bounce"]'
        section.bad("lower_is_better", "a list of metrics of decision or guardrails", hint)
        return found
    for i, name in enumerate(names):
        where = f"[experiment] lower_is_better[{i}]"
        if name not in watched:
            section.unknown(where, "a name of decision or guardrails", name, list(watched))
        elif found.get(name, "lower") != "lower":
            expected = f"another metric, since {name} has better = {found[name]!r}"
            hint = "remove one of the two"
            section.problem(where, expected, name, hint)
        else:
            found[name] = "lower"
    return found


def _higher_is_better(
    section: Section,
    where: str,
    given: bool | None,
    said: Better | None,
    of: tuple[MetricConfig, str | None],
) -> bool:
    """The direction of a guardrail: its own, else that of the metric in the config, else that of
    the view; True if none is declared."""
    if given is not None:
        if said in ("higher", "lower") and given is not (said == "higher"):
            expected = f"{'true' if said == 'higher' else 'false'}, since {said} is better"
            section.problem(
                f"[experiment] {where}higher_is_better", expected, given, "remove one of the two"
            )
        return given
    own = direction_of(without_groups(of[0].empty).compute(), of[1])
    if isinstance(said, float):
        own = Direction("target", said)
    elif said is not None:
        return said != "lower"
    if own.better == "target":
        section.problem(
            f"[experiment] {where}higher_is_better",
            f"true or false, since {of[0].name} has the target {own.target:g}",
            None,
            "write false if a rise is harm, else true",
        )
    return own.better != "lower"


def _read_covariates(
    section: Section, found: ExperimentConfig, metrics: Sequence[MetricConfig]
) -> Mapping[str, CovariateConfig]:
    """The covariates, by the name of the metric that they adjust."""
    tables = section.raw("covariates")
    if tables is None:
        return {}
    if not isinstance(tables, dict):
        section.bad("covariates", "a table of covariates, by metric", _COVARIATE)
        return {}
    if tables and found.cluster != "groups":
        hint = 'covariates need groups of users: write cluster = "groups"'
        section.bad("covariates", 'nothing, since cluster is "none"', hint)
    read = {}
    for name, table in tables.items():
        where = f"[experiment] covariates.{name}"
        if not _is_watched(section, "covariates", name, found.watched):
            continue
        if not isinstance(table, dict):
            section.problem(where, "a table", table, _COVARIATE)
        elif (one := _read_covariate(section, name, table, metrics)) is not None:
            read[name] = one
    return read


def _read_covariate(
    section: Section,
    name: str,
    table: Mapping[str, object],
    metrics: Sequence[MetricConfig],
) -> CovariateConfig | None:
    where = f"[experiment] covariates.{name}"
    entry = where.removeprefix("[experiment] ")
    one = Section(entry, table, section.problems, keys=ENTRIES["experiment.covariates.NAME"])
    metric, theta = one.raw("metric"), one.raw("theta")
    one.done()
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
