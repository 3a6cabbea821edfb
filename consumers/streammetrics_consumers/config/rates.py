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
from streammetrics_consumers.config.metrics import MetricConfig, metric_of
from streammetrics_consumers.config.users import is_of_units, without_groups

MDE: Final = 0.01  # the effect on a rate for which its interval is the narrowest


def with_rates(found: ExperimentConfig, metrics: Sequence[MetricConfig]) -> ExperimentConfig:
    """The experiment, with the rate of values above 0 beside each of its means as a guardrail.

    A mean whose better direction is not declared has none, because harm is unknown; nor has one
    for whose values the config watches a rate itself, or one per row beside a mean over units of
    the same values.
    """
    figures = {
        name: figure for name in found.watched if (figure := metric_of(name, metrics)) is not None
    }
    ways: dict[str, object] = {name: found.better.get(name) for name in found.decision}
    ways |= {
        guardrail.metric: _WAYS[guardrail.higher_is_better is not False]
        for guardrail in found.guardrails
    }
    watched = {_values(metric) for metric, view in figures.values() if _is_rate(metric, view)}
    rates: dict[str, GuardrailConfig] = {}
    for units in (True, False):
        means = {
            name: (metric, rate_view)
            for name, (metric, view) in figures.items()
            if is_of_units(metric.empty) == units
            and (rate_view := rate_beside(without_groups(metric.empty), view)) is not None
            and ways[name] in _WAYS.values()
            and _values(metric) not in watched
        }
        for name, (metric, rate_view) in means.items():
            rate = f"{metric.name}.{rate_view}"
            rates[rate] = GuardrailConfig(rate, 0.0, ways[name] == "higher", required=False)
            watched.add(_values(metric))
    return replace(found, guardrails=(*found.guardrails, *rates.values()))


def rate_mdes(found: ExperimentConfig) -> Mapping[str, float]:
    """The effects for which the intervals of such rates are the narrowest."""
    return {guardrail.metric: MDE for guardrail in found.guardrails if not guardrail.required}


_WAYS: Final = {True: "higher", False: "lower"}


def _is_rate(metric: MetricConfig, view: str | None) -> bool:
    """Whether a view is the rate beside a mean of the same metric."""
    empty = without_groups(metric.empty)
    mean = None if view is None else rate_beside(empty)
    return isinstance(empty, UnitRate) or (mean is not None and mean == view)


def _values(metric: MetricConfig) -> str:
    """The field of the values."""
    return metric.inputs["values"].path if "values" in metric.inputs else ""
