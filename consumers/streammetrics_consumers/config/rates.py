"""Guardrails that are declared by default: the rate of values above 0, beside a mean.

A treatment that ends most purchases changes the mean of revenue late, because few units or rows
have much of it; the rate of those with any shows it at once. So it is watched beside each mean:
harm to it stops the treatment, and without harm nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streammetrics import UnitRate
from streammetrics.experiments import rate_beside
from streammetrics_consumers.config.experiment import ExperimentConfig, GuardrailConfig
from streammetrics_consumers.config.metric_entry import is_of_units
from streammetrics_consumers.config.metrics import MetricConfig, find_watched

_HIGHER: Final[Mapping[object, bool]] = {"higher": True, "lower": False}
MDE: Final = 0.01  # the effect on a rate for which its interval is the narrowest


def with_rates(experiment: ExperimentConfig, metrics: Sequence[MetricConfig]) -> ExperimentConfig:
    """The experiment, with the rate of values above 0 beside each of its means as a guardrail.

    A mean whose better direction is not declared has none, because harm is unknown; nor has one
    for whose values the config watches a rate itself, or one per row beside a mean over units of
    the same values.
    """
    watched = {name: watch for name in experiment.watched if (watch := find_watched(name, metrics))}
    higher_is_better = {
        name: _HIGHER.get(experiment.better.get(name)) for name in experiment.decision
    }
    higher_is_better |= {
        guardrail.metric: guardrail.higher_is_better is not False
        for guardrail in experiment.guardrails
    }
    values = {_values(metric) for metric, view in watched.values() if _is_rate(metric, view)}
    rates: dict[str, GuardrailConfig] = {}
    for units in (True, False):
        means = {
            name: (metric, rate_view)
            for name, (metric, view) in watched.items()
            if is_of_units(metric.empty) == units
            and (rate_view := rate_beside(metric.plain, view)) is not None
            and higher_is_better[name] is not None
            and _values(metric) not in values
        }
        for name, (metric, rate_view) in means.items():
            rate = f"{metric.name}.{rate_view}"
            rates[rate] = GuardrailConfig(rate, 0.0, higher_is_better[name], required=False)
            values.add(_values(metric))
    return replace(experiment, guardrails=(*experiment.guardrails, *rates.values()))


def rate_mdes(experiment: ExperimentConfig) -> Mapping[str, float]:
    """The effects for which the intervals of such rates are the narrowest."""
    return {rail.metric: MDE for rail in experiment.guardrails if not rail.required}


def _is_rate(metric: MetricConfig, view: str | None) -> bool:
    """Whether a view is the rate beside a mean of the same metric."""
    is_beside = view is not None and rate_beside(metric.plain) == view
    return is_beside or isinstance(metric.plain, UnitRate)


def _values(metric: MetricConfig) -> str:
    """The field of the values."""
    return metric.inputs["values"].path if "values" in metric.inputs else ""
