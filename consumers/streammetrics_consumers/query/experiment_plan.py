"""The experiments of a generation, read from the ledger: their plans and the states of their arms.

The ledger holds all that is needed, so that a reader needs only the store. The description of each
metric of an experiment contains the plan; its keys are (grouping, epoch, value). The value is that
in the events; several values may be one arm of the plan, and states are merged when they are read.
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
)
from streammetrics_consumers.query.query import QueryError
from streammetrics_consumers.query.slices import States, own_result

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment, Plan
    from streammetrics_consumers.config.metric_entry import Better

EXPERIMENT: Final = "experiment"
ORDER: Final = "order"  # under SHOWN: the place of the experiment in the config


@dataclass(frozen=True, slots=True)
class DeclaredExperiment:
    """An experiment as it was declared.

    fingerprint: of the plan without its epochs and their shares, and of its name; looks are stored
    under it. metrics: those that are counted for it, by their names in the ledger. name: in the
    config, "" of [experiment]. title, hypothesis: texts of the last config, or ""; days: the
    planned duration in it. start_ms, end_ms: its events are those from the start to just before the
    end; None where it has none. archived: whether the config hides it; ended: whether it was taken
    out of the config. layers: the groups of experiments that exclude each other which it belongs
    to. arms: by each value in the events, the arm of the plan.
    """

    fingerprint: str
    plan: Plan
    metrics: Mapping[str, Metric]
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
        """The panes that hold its states by arm."""
        return [pane for pane in panes if pane.metric in self.metrics and not pane.grouping]

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

    def metric_of(self, named: str) -> str:
        """The metric that a name in the plan refers to; the longest if several match."""
        names = (name.removeprefix(self.prefix) for name in self.metrics)
        matches = (metric for metric in names if named == metric or named.startswith(f"{metric}."))
        return max(matches, key=len, default=named)


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
        names = [known or "'' for the one without a name" for known in experiments_of(generation)]
        raise QueryError(
            expected=f"an experiment of this store ({', '.join(names) or 'it has none'})",
            got=repr(str(name)[:80]),
            where="--experiment",
            hint="correct the name, or leave it out for all",
        )
    return _declared(name or "", running or metrics, ended=not running)


def _declared(name: str, metrics: Mapping[str, Metric], *, ended: bool) -> DeclaredExperiment:
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
    return DeclaredExperiment(
        hashlib.sha256(text.encode()).hexdigest(),
        plan,
        metrics,
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
    )


def plan_of(
    found: Mapping[str, object],
    variants: tuple[str, ...],
    better: Mapping[str, Better] | None = None,
) -> Plan:
    """The plan from the plain values of `ExperimentConfig.plan`; better: its directions."""
    starts = tuple(cast("list[str]", found["epochs"]))
    epochs = (FIRST_EPOCH, *starts) if starts else ()
    shares = cast("list[dict[str, float]]", found["shares"])
    by_epoch = dict(zip(epochs, shares, strict=True)) if len(shares) > 1 else {}
    level = float(cast("float", found["level"]))
    mdes = cast("Mapping[str, float]", found.get("mdes", {}))
    covariates = cast("Mapping[str, tuple[str, float]]", found.get("covariates", {}))
    return experiments.Plan(
        control=str(found["control"]),
        variants=variants,
        decision=tuple(cast("list[str]", found["decision"])),
        guardrails=tuple(
            experiments.Safeguard(*fields)
            for fields in cast("list[tuple[str, float, bool]]", found["guardrails"])
        ),
        horizon=experiments.Horizon(
            units=cast("float | None", found["horizon"]),
            baseline=cast("float | None", found["baseline"]),
            mde=cast("float | None", found["mde"]),
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
        cluster="groups" if found["cluster"] == "groups" else "none",
        on_several_variants={"drop": "drop", "error": "error"}.get(  # type: ignore[arg-type]
            str(found["on_several_variants"]), "keep"
        ),
    )


def experiment_of(of: DeclaredExperiment, states: Iterable[tuple[Pane, sm.PerKey]]) -> Experiment:
    """The experiment over the sum of these states, which may be of any panes."""
    return counted_experiment(of, states)[0]


def counted_experiment(
    of: DeclaredExperiment, states: Iterable[tuple[Pane, sm.PerKey]]
) -> tuple[Experiment, int]:
    """The experiment over the sum of these states, and the rows of arms that are not declared: the
    most that a metric has."""
    sums: dict[str, sm.PerKey] = {}
    for pane, state in states:
        if pane.metric in sums:
            sums[pane.metric].merge(state)
        else:
            sums[pane.metric] = state.copy()
    metric_states: dict[str, dict[str, dict[str, sm.Accumulator]]] = {}
    units: dict[str, dict[str, sm.Units]] = {}
    undeclared: dict[str, int] = defaultdict(int)
    for name, state in sums.items():
        metric = name.removeprefix(of.prefix)
        if metric == ACTIVE:
            continue
        for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
            epoch, value = _place(key)
            arm, key_state = of.arm_of(value), state.state(key)
            if arm is None:
                undeclared[metric] += _rows(key_state) if of.name and value is None else 0
            elif metric == UNITS and isinstance(key_state, sm.Units):
                _add(units.setdefault(epoch, {}), arm, key_state)
            else:
                epoch_states = metric_states.setdefault(epoch, {})
                _add(epoch_states.setdefault(arm, {}), metric, key_state)
    counted = {name.removeprefix(of.prefix) for name in of.metrics} - {ACTIVE}
    experiment = experiments.Experiment(of.plan, metric_states, units, counted)
    return experiment, max(undeclared.values(), default=0)


State = TypeVar("State", bound="sm.Accumulator")


def _add(states: dict[str, State], key: str, state: State) -> None:
    """Add a state to that of a key, which stays as it is."""
    states[key] = states[key] + state if key in states else state


def _rows(state: sm.Accumulator) -> int:
    """The rows that a state has counted; 0 where its result does not say."""
    return int(results.counts_of(own_result(state, state.compute())).get("rows", 0))


def arm_states(of: DeclaredExperiment, states: States) -> sm.PerKey:
    """The states of a metric by arm, summed over the epochs: keys are (0, arm)."""
    arms = {key: of.arm_of(_place(key)[1]) for key in states.keys()}  # noqa: SIM118 - of a state
    chosen = states.chosen(key for key, arm in arms.items() if arm is not None)
    return chosen.rekeyed(lambda key: (0, arms[key]))


UnitsByEpoch: TypeAlias = "dict[str, dict[str, sm.Units]]"  # not evaluated: it would import them


def add_units(of: DeclaredExperiment, known: UnitsByEpoch, state: sm.PerKey) -> None:
    """Add the units of a state by epoch and arm."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        epoch, value = _place(key)
        units, arm, arms = state.state(key), of.arm_of(value), known.setdefault(epoch, {})
        if isinstance(units, sm.Units) and arm is not None:
            _add(arms, arm, units)


def within(panes: Collection[Pane], start_ms: int | None, end_ms: int | None) -> list[Pane]:
    """The panes of a window; those of the total if it has no start."""
    if start_ms is None or end_ms is None:
        return [pane for pane in panes if pane.is_total]
    return [p for p in panes if p.start_ms is not None and start_ms <= p.start_ms < end_ms]


def _place(key: object) -> tuple[str, str | None]:
    """The epoch and the value of a key; an event may have neither, and an arm that is not declared
    has no value."""
    assert isinstance(key, tuple)
    _, epoch, value = key
    return "" if epoch is None else str(epoch), None if value is None else str(value)


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
