"""The experiment of a generation, read from the ledger: its plan and the states of its variants.

The ledger holds all that is needed, so that a reader needs only the store. The description of each
of the experiment's metrics contains the plan; its keys are (grouping, epoch, variant).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import streammetrics as sm
from streammetrics import experiments
from streammetrics_consumers.ledger.descriptions import plan_that_stays
from streammetrics_consumers.model.generation import (
    BETTER,
    FIRST_EPOCH,
    SHOWN,
    Generation,
    Metric,
    Pane,
)

if TYPE_CHECKING:
    from streammetrics.experiments import Experiment, Plan
    from streammetrics_consumers.config.metric_entry import Better

EXPERIMENT: Final = "experiment"
UNITS: Final = "units"


@dataclass(frozen=True, slots=True)
class DeclaredExperiment:
    """An experiment as it was declared.

    fingerprint: of the plan without its epochs and their shares; looks are stored under it.
    metrics: those that are counted for it, by their names in the ledger. name, hypothesis: texts of
    the last config, or ""; days: the planned duration in it.
    """

    fingerprint: str
    plan: Plan
    metrics: Mapping[str, Metric]
    name: str = ""
    hypothesis: str = ""
    days: int | None = None

    def panes(self, panes: Iterable[Pane]) -> list[Pane]:
        """The panes that hold its states."""
        return [pane for pane in panes if pane.metric in self.metrics]

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
        names = (name.removeprefix(f"{EXPERIMENT}/") for name in self.metrics)
        matches = (metric for metric in names if named == metric or named.startswith(f"{metric}."))
        return max(matches, key=len, default=named)


def variants_of(generation: Generation) -> tuple[tuple[str, ...], str]:
    """The variants, the control first and then as declared, and the control; "" without one."""
    # Those of [event]; an experiment with a name has its own.
    named = f"{EXPERIMENT}/"
    plain = (m.variants for m in generation.metrics if not m.metric_set.startswith(named))
    names = next(filter(None, plain), ())
    design = declared(generation)
    control = "" if design is None else design.plan.control
    return tuple(sorted(names, key=lambda name: name != control)), control


def declared(generation: Generation) -> DeclaredExperiment | None:
    """The experiment of a generation; None if it has none."""
    metrics = {
        metric.name: metric
        for metric in generation.metrics
        if metric.metric_set == EXPERIMENT and not metric.ended and EXPERIMENT in metric.description
    }
    if not metrics:
        return None
    first = next(iter(metrics.values()))
    values = cast("Mapping[str, object]", first.description[EXPERIMENT])
    stays = plan_that_stays(values)
    text = json.dumps(stays, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    shown = cast("Mapping[str, object]", first.description.get(SHOWN, {}))
    days = cast("int | None", shown.get("days"))
    plan = replace(
        plan_of(values, _variants(first), _better(first)),
        sample_ratio_acknowledged=str(shown.get("sample_ratio_acknowledged", "")),
        min_days=cast("int | None", shown.get("min_days", days)),
    )
    return DeclaredExperiment(
        hashlib.sha256(text.encode()).hexdigest(),
        plan,
        metrics,
        str(shown.get("name", "")),
        str(shown.get("hypothesis", "")),
        days,
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
    sums: dict[str, sm.PerKey] = {}
    for pane, state in states:
        if pane.metric in sums:
            sums[pane.metric].merge(state)
        else:
            sums[pane.metric] = state.copy()
    variants = frozenset(of.plan.variants)
    metric_states: dict[str, dict[str, dict[str, sm.Accumulator]]] = {}
    units: dict[str, dict[str, sm.Units]] = {}
    for name, state in sums.items():
        metric = name.removeprefix(f"{EXPERIMENT}/")
        for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
            epoch, variant = _place(key)
            if variant not in variants:
                continue
            key_state = state.state(key)
            if metric == UNITS and isinstance(key_state, sm.Units):
                units.setdefault(epoch, {})[variant] = key_state
            else:
                metric_states.setdefault(epoch, {}).setdefault(variant, {})[metric] = key_state
    counted = {name.removeprefix(f"{EXPERIMENT}/") for name in of.metrics}
    return experiments.Experiment(of.plan, metric_states, units, counted)


UnitsByEpoch: TypeAlias = "dict[str, dict[str, sm.Units]]"  # not evaluated: it would import them


def add_units(known: UnitsByEpoch, state: sm.PerKey) -> None:
    """Add the units of a state by epoch and variant."""
    for key in state.keys():  # noqa: SIM118 - it is a method of a state, not of a dict
        epoch, variant = _place(key)
        units, arms = state.state(key), known.setdefault(epoch, {})
        if isinstance(units, sm.Units):
            arms[variant] = arms[variant] + units if variant in arms else units


def within(panes: Collection[Pane], start_ms: int | None, end_ms: int | None) -> list[Pane]:
    """The panes of a window; those of the total if it has no start."""
    if start_ms is None or end_ms is None:
        return [pane for pane in panes if pane.is_total]
    return [p for p in panes if p.start_ms is not None and start_ms <= p.start_ms < end_ms]


def _place(key: object) -> tuple[str, str]:
    """The epoch and the variant of a key; an event may have neither."""
    assert isinstance(key, tuple)
    _, epoch, variant = key
    return "" if epoch is None else str(epoch), "" if variant is None else str(variant)


def _better(metric: Metric) -> Mapping[str, Better]:
    """The directions in the current config; none if the store is older than that setting."""
    shown = cast("Mapping[str, object]", metric.description.get(SHOWN, {}))
    return cast("Mapping[str, Better]", shown.get(BETTER, {}))


def _variants(metric: Metric) -> tuple[str, ...]:
    """The declared variants, in the order of the config if that is known."""
    if metric.variants:
        return metric.variants
    names = cast("tuple[str, list[str] | None]", metric.description["variant"])[1]
    return tuple(names or ())
