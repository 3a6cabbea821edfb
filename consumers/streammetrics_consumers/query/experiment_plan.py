"""The experiments of a generation, read from the ledger: their plans and the states of their arms.

The ledger holds all that is needed, so that a reader needs only the store. The description of each
metric of an experiment contains the plan; its keys are (grouping, epoch, value). The value is that
in the events; several values may be one arm of the plan, and states are merged when they are read.
Metrics of units of an exposed experiment have more keys, by cohort: see exposed_states.py.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

import streammetrics as sm
from streammetrics import experiments, results
from streammetrics_consumers.ledger.descriptions import plan_that_stays
from streammetrics_consumers.model.generation import (
    ACTIVE,
    BETTER,
    FIRST_EPOCH,
    SHOWN,
    UNITS,
    Generation,
    Metric,
    Pane,
    experiment_name,
    experiment_set,
    is_unit_sums,
)
from streammetrics_consumers.query.exposed_states import (
    ALL_UNITS,
    COHORTS,
    CohortStates,
    arms_of,
    closed_units,
    cohort_panes,
    last_day_over,
)
from streammetrics_consumers.query.query import QueryError
from streammetrics_consumers.query.slices import States, own_result

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment, Plan
    from streammetrics_consumers.config.metric_entry import Better

EXPERIMENT: Final = "experiment"
EXPOSURES: Final = "exposures"  # a key of a description: where the exposures are read
ORDER: Final = "order"  # under SHOWN: the place of the experiment in the config


@dataclass(frozen=True, slots=True)
class DeclaredExperiment:
    """An experiment as it was declared.

    fingerprint: of the plan without its epochs and their shares, and of its name; looks are stored
    under it. metrics: those that are counted for it, by their names in the ledger; unit_sums: of
    their values by unit, for interactions. name: in the config, "" of [experiment]. title,
    hypothesis: texts of the last config, or ""; days: the planned duration in it. start_ms, end_ms:
    its events are those from the start to just before the end; None where it has none. archived:
    whether the config hides it; ended: whether it was taken out of the config. layers: the groups
    of experiments that exclude each other which it belongs to. arms: by each value in the events,
    the arm of the plan. is_exposed: whether the arms are those of exposures; window_ms: how long
    after an exposure events count, None: for ever.
    """

    fingerprint: str
    plan: Plan
    metrics: Mapping[str, Metric]
    unit_sums: Mapping[str, Metric] = field(default_factory=dict)
    name: str = ""
    title: str = ""
    hypothesis: str = ""
    days: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    archived: bool = False
    ended: bool = False
    layers: tuple[str, ...] = ()
    arms: Mapping[str, str] = field(default_factory=dict)
    is_exposed: bool = False
    window_ms: int | None = None

    @property
    def is_of_closed_units(self) -> bool:
        """Whether the plan decides by the units whose window is over."""
        return self.plan.unit_view == "closed"

    @property
    def unit_metrics(self) -> tuple[str, ...]:
        """The means and rates of units whose states are also kept by cohort."""
        return tuple(
            name.removeprefix(self.prefix)
            for name, metric in self.metrics.items()
            if len(cast("Sequence[object]", metric.description.get("slices", ()))) > COHORTS
        )

    @property
    def prefix(self) -> str:
        """What stands before a metric's name in the ledger."""
        return f"{experiment_set(self.name)}/"

    @property
    def unit(self) -> str | None:
        """The field of its units; None if units are not counted."""
        metric = self.metrics.get(self.prefix + UNITS)
        if metric is None:
            return None
        inputs = cast("Mapping[str, str]", metric.description["inputs"])
        return inputs["units"].rpartition(":")[0]

    def arm_of(self, value: str | None) -> str | None:
        """The arm of a value in an event; None if it is not declared."""
        return None if value is None else self.arms.get(value)

    def panes(self, panes: Iterable[Pane]) -> list[Pane]:
        """The panes that hold its states, by arm and by cohort."""
        return [pane for pane in panes if pane.metric in self.metrics]

    def total_panes(self, panes: Iterable[Pane]) -> list[Pane]:
        """The panes since the start of the states that its comparisons need."""
        own_panes = self.panes(panes)
        return window_panes(own_panes, None, None) + (
            cohort_panes(own_panes) if self.is_of_closed_units else []
        )

    def closed_days(self, closed_ms: int | None) -> int | None:
        """The last day of exposures whose window is over, in days since 1970; None before there is
        one, and where the plan does not decide by these units. closed_ms: as `closed_by`."""
        if not self.is_of_closed_units or self.window_ms is None:
            return None
        return last_day_over(closed_ms, self.window_ms)

    def closed_by(self, closed_ms: int | None, panes: Iterable[Pane] = ()) -> int | None:
        """The time up to which all of its events are counted, given the one of the store: no event
        after its end is one of it. panes: of an experiment that was taken out of the config, which
        counted no events after the start of the last."""
        times = [closed_ms, self.end_ms]
        if self.ended:
            starts = [pane.start_ms for pane in self.panes(panes) if pane.start_ms is not None]
            times.append(max(starts, default=None))
        return None if closed_ms is None else min(ms for ms in times if ms is not None)

    def watched_of(self, metric: str) -> tuple[str, ...]:
        """The names in the plan that refer to this metric: its own, or with a view after a dot."""
        return tuple(name for name in self.plan.watched if self.metric_of(name) == metric)

    def needed_for(self, metric: str) -> set[str]:
        """The metrics whose states the comparisons of this one need: itself and its covariates."""
        planned = (self.plan.covariates.get(name) for name in self.watched_of(metric))
        return {
            metric,
            *(self.metric_of(covariate.metric) for covariate in planned if covariate is not None),
        }

    def metric_of(self, planned_name: str) -> str:
        """The metric that a name in the plan refers to; the longest if several match."""
        names = (name.removeprefix(self.prefix) for name in self.metrics)
        matches = (
            metric
            for metric in names
            if planned_name == metric or planned_name.startswith(f"{metric}.")
        )
        return max(matches, key=len, default=planned_name)


def variants_of(generation: Generation, name: str | None = None) -> tuple[tuple[str, ...], str]:
    """The variants, the control first and then as declared, and the control; "" without one. name:
    of an experiment, for its arms."""
    design = declared(generation, name)
    if design is not None and name is not None:
        names: Iterable[str] = design.plan.variants
    else:
        of_events = (metric for metric in generation.metrics if not experiment_of_metric(metric))
        names = next((metric.variants for metric in of_events if metric.variants), ())
    control = "" if design is None else design.plan.control
    return tuple(sorted(names, key=lambda name: name != control)), control


def experiment_of_metric(metric: Metric) -> str | None:
    """The name of the experiment that a metric is counted for; None of any other metric."""
    return experiment_name(metric.metric_set) if EXPERIMENT in metric.description else None


def experiments_of(generation: Generation) -> tuple[str, ...]:
    """The names of all experiments in the order of the config, then of those that have ended."""
    places: dict[str, tuple[bool, int]] = {}
    for metric in generation.metrics:
        name = experiment_of_metric(metric)
        if name is not None:
            place = metric.ended, cast("int", _shown(metric).get(ORDER, 0))
            places[name] = min(place, places.get(name, place))
    return tuple(sorted(places, key=lambda name: (places[name], name)))


def declared(generation: Generation, name: str | None = None) -> DeclaredExperiment | None:
    """The experiment of this name, even if it has ended. None: [experiment], unless it has ended.

    Raises QueryError for a name that the generation does not have.
    """
    metrics = {
        metric.name: metric
        for metric in generation.metrics
        if experiment_of_metric(metric) == (name or "")
    }
    running = {key: metric for key, metric in metrics.items() if not metric.ended}
    if name is None and not running:
        return None
    if not metrics:
        names = [
            known_name or "'' for the one without a name"
            for known_name in experiments_of(generation)
        ]
        raise QueryError(
            expected=f"an experiment of this store ({', '.join(names) or 'it has none'})",
            got=repr(str(name)[:80]),
            where="--experiment",
            hint="correct the name, or leave it out for all",
        )
    return _declared(name or "", running or metrics, ended=not running)


def _declared(name: str, metrics: Mapping[str, Metric], *, ended: bool) -> DeclaredExperiment:
    unit_sums = {key: metric for key, metric in metrics.items() if is_unit_sums(key)}
    metrics = {key: metric for key, metric in metrics.items() if key not in unit_sums}
    first = next(iter(metrics.values()))
    values = cast("Mapping[str, object]", first.description[EXPERIMENT])
    stays = plan_that_stays(values)
    if name:
        stays = {**stays, "name": name}
    text = json.dumps(stays, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    shown = _shown(first)
    days = cast("int | None", shown.get("days"))
    variants = _variants(first, name)
    plan = replace(
        plan_of(values, variants, _better(first)),
        sample_ratio_acknowledged=str(shown.get("sample_ratio_acknowledged", "")),
        min_days=cast("int | None", shown.get("min_days", days)),
    )
    merged = cast("Mapping[str, Sequence[str]]", values.get("arms", {}))
    exposures = _exposures(first)
    if exposures is not None:
        unit_view = "closed" if values.get("units") == "closed" else "so_far"
        plan = replace(plan, unit_view=unit_view)  # type: ignore[arg-type]
    window_s = None if exposures is None else cast("int | None", exposures.get("window_s"))
    return DeclaredExperiment(
        hashlib.sha256(text.encode()).hexdigest(),
        plan,
        metrics,
        unit_sums,
        name,
        str(shown.get("name", "")),
        str(shown.get("hypothesis", "")),
        days,
        cast("int | None", values.get("start")),
        cast("int | None", values.get("end")),
        shown.get("archived") is True,
        ended,
        tuple(map(str, cast("Sequence[object]", shown.get("layers", ())))),
        {value: arm for arm in variants for value in merged.get(arm, (arm,))},
        exposures is not None,
        None if window_s is None else window_s * 1000,
    )


def plan_of(
    stored: Mapping[str, object],
    variants: tuple[str, ...],
    better: Mapping[str, Better] | None = None,
) -> Plan:
    """The plan from the plain values of `ExperimentConfig.plan`; better: its directions."""
    starts = tuple(cast("list[str]", stored["epochs"]))
    epochs = (FIRST_EPOCH, *starts) if starts else ()
    shares = cast("list[dict[str, float]]", stored["shares"])
    by_epoch = dict(zip(epochs, shares, strict=True)) if len(shares) > 1 else {}
    level = float(cast("float", stored["level"]))
    mdes = cast("Mapping[str, float]", stored.get("mdes", {}))
    covariates = cast("Mapping[str, tuple[str, float]]", stored.get("covariates", {}))
    return experiments.Plan(
        control=str(stored["control"]),
        variants=variants,
        decision=tuple(cast("list[str]", stored["decision"])),
        guardrails=tuple(
            experiments.Safeguard(*fields)
            for fields in cast("list[tuple[str, float, bool]]", stored["guardrails"])
        ),
        horizon=experiments.Horizon(
            units=cast("float | None", stored["horizon"]),
            baseline=cast("float | None", stored["baseline"]),
            mde=cast("float | None", stored["mde"]),
            alpha=1 - level,
        ),
        horizons={
            name: experiments.Horizon(mde=mde, alpha=1 - level) for name, mde in mdes.items()
        },
        covariates={
            name: experiments.PlannedCovariate(*fields) for name, fields in covariates.items()
        },
        level=level,
        shares=shares[0] if len(shares) == 1 else {},
        epoch_shares=by_epoch,
        epochs=epochs,
        better=better or {},
        cluster="groups" if stored["cluster"] == "groups" else "none",
        on_several_variants={"drop": "drop", "error": "error"}.get(  # type: ignore[arg-type]
            str(stored["on_several_variants"]), "keep"
        ),
    )


def experiment_of(
    design: DeclaredExperiment,
    states: Iterable[tuple[Pane, sm.PerKey]],
    closed_ms: int | None = None,
) -> Experiment:
    """The experiment over the sum of these states, which may be of any panes."""
    return counted_experiment(design, states, closed_ms)[0]


def counted_experiment(
    design: DeclaredExperiment,
    states: Iterable[tuple[Pane, sm.PerKey]],
    closed_ms: int | None = None,
) -> tuple[Experiment, int]:
    """The experiment over the sum of these states, and the rows of arms that are not declared: the
    most that a metric has. closed_ms: the time up to which all of its events are counted; where
    there are states of cohorts, its means and rates of units are of those whose window is over."""
    sums = summed(states)
    metric_states: dict[str, dict[str, dict[str, sm.Accumulator]]] = {}
    units: dict[str, dict[str, sm.Units]] = {}
    undeclared: dict[str, int] = defaultdict(int)
    cohorts: dict[str, CohortStates] = {}
    by_cohort = {metric for metric, grouping in sums if grouping == COHORTS}
    for (name, grouping), state in sums.items():
        metric = name.removeprefix(design.prefix)
        if grouping == COHORTS and design.window_ms is not None:
            closed = closed_units(state, closed_ms, design.window_ms)
            cohorts |= {} if closed is None else {metric: closed}
        # The active units of an exposed experiment are no metric.
        is_active = design.is_exposed and metric == ACTIVE
        if grouping == COHORTS or name in by_cohort or is_active:
            continue
        for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
            epoch, value = _place(key)
            arm, key_state = design.arm_of(value), state.state(key)
            if arm is None:
                undeclared[metric] += _rows(key_state) if design.name and value is None else 0
            elif metric == UNITS and isinstance(key_state, sm.Units):
                _add(units.setdefault(epoch, {}), arm, key_state)
            else:
                epoch_states = metric_states.setdefault(epoch, {})
                _add(epoch_states.setdefault(arm, {}), metric, key_state)
    for epoch, arms in (arms_of(cohorts, design.arms) if cohorts else {}).items():
        for arm, of_arm in arms.items():
            metric_states.setdefault(epoch, {}).setdefault(arm, {}).update(of_arm)
    counted = {name.removeprefix(design.prefix) for name in design.metrics}
    counted -= {ACTIVE} if design.is_exposed else set()
    experiment = experiments.Experiment(design.plan, metric_states, units, counted)
    return experiment, max(undeclared.values(), default=0)


def summed(states: Iterable[tuple[Pane, sm.PerKey]]) -> dict[tuple[str, int], sm.PerKey]:
    """The sums of states by metric and grouping."""
    sums: dict[tuple[str, int], sm.PerKey] = {}
    for pane, state in states:
        place = pane.metric, pane.grouping
        if place in sums:
            sums[place].merge(state)
        else:
            sums[place] = state.copy()
    return sums


State = TypeVar("State", bound="sm.Accumulator")


def _add(states: dict[str, State], key: str, state: State) -> None:
    """Add a state that nothing else holds to that of a key."""
    if key in states:
        states[key].merge(state)
    else:
        states[key] = state


def _rows(state: sm.Accumulator) -> int:
    """The rows that a state has counted; 0 where its result does not say."""
    return int(results.counts_of(own_result(state, state.compute())).get("rows", 0))


def arm_states(design: DeclaredExperiment, states: States) -> sm.PerKey:
    """The states of a metric by arm, summed over the epochs: keys are (0, arm)."""
    arms = {key: design.arm_of(_place(key)[1]) for key in states.keys()}  # noqa: SIM118 - of a state
    chosen = states.chosen(key for key, arm in arms.items() if arm is not None)
    return chosen.rekeyed(lambda key: (0, arms[key]))


def sum_of_arms(design: DeclaredExperiment, state: sm.PerKey) -> sm.Accumulator | None:
    """The sum of a state over the epochs and the arms that are declared; None if it has none."""
    total: sm.Accumulator | None = None
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        if design.arm_of(_place(key)[1]) is not None:
            total = state.state(key) if total is None else total + state.state(key)
    return total


UnitsByEpoch: TypeAlias = "dict[str, dict[str, sm.Units]]"  # not evaluated: it would import them


def add_units(design: DeclaredExperiment, counted: UnitsByEpoch, state: sm.PerKey) -> None:
    """Add the units of a state by epoch and arm."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        epoch, value = _place(key)
        units, arm, arms = state.state(key), design.arm_of(value), counted.setdefault(epoch, {})
        if isinstance(units, sm.Units) and arm is not None:
            _add(arms, arm, units)


def window_panes(panes: Collection[Pane], start_ms: int | None, end_ms: int | None) -> list[Pane]:
    """The panes of a window by epoch and arm; those of the total if it has no start."""
    all_units = [pane for pane in panes if pane.grouping == ALL_UNITS]
    if start_ms is None or end_ms is None:
        return [pane for pane in all_units if pane.is_total]
    return [p for p in all_units if p.start_ms is not None and start_ms <= p.start_ms < end_ms]


def _place(key: object) -> tuple[str, str | None]:
    """The epoch and the value of a key; an event may have neither, and an arm that is not declared
    has no value."""
    assert isinstance(key, tuple)
    _, epoch, value = key
    return "" if epoch is None else str(epoch), None if value is None else str(value)


def _exposures(metric: Metric) -> Mapping[str, object] | None:
    """The exposures of a store if the arms of this metric's experiment are those of exposures,
    which no field of an event has; else None."""
    path = cast("Sequence[object]", metric.description["variant"])[0]
    exposures = cast("Mapping[str, object] | None", metric.description.get(EXPOSURES))
    return None if path else exposures


def _shown(metric: Metric) -> Mapping[str, object]:
    """The values of a metric for display."""
    return cast("Mapping[str, object]", metric.description.get(SHOWN, {}))


def _better(metric: Metric) -> Mapping[str, Better]:
    """The directions in the current config; none if the store is older than that setting."""
    return cast("Mapping[str, Better]", _shown(metric).get(BETTER, {}))


def _variants(metric: Metric, name: str) -> tuple[str, ...]:
    """The declared variants, in the order of the config if that is known; of a named experiment,
    its arms."""
    if name:
        plan = cast("Mapping[str, Sequence[str]]", metric.description[EXPERIMENT])
        order = {arm: i for i, arm in enumerate(metric.variants)}
        return tuple(sorted(plan["variants"], key=lambda arm: order.get(arm, len(order))))
    if metric.variants:
        return metric.variants
    names = cast("tuple[str, list[str] | None]", metric.description["variant"])[1]
    return tuple(names or ())
