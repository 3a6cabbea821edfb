"""Guardrails that are declared by default: the rate of units with a value above 0, beside a mean.

A treatment that ends most purchases changes the mean of revenue late, because few units spend much;
the rate of units that buy shows it at once. So it is watched beside each mean over units: harm to
it stops the treatment, and without harm nothing waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from streammetrics import UnitMean, UnitRate
from streammetrics_consumers.config.experiment import ExperimentConfig, GuardrailConfig
from streammetrics_consumers.config.metrics import MetricConfig, metric_of

MDE: Final = 0.01  # the effect on a rate for which its interval is the narrowest
_RATE: Final = "rate"  # the view of a UnitMean


def with_rates(found: ExperimentConfig, metrics: Sequence[MetricConfig]) -> ExperimentConfig:
    """The experiment, with the rate beside each of its means over units as a guardrail.

    A mean whose better direction is not declared has none, because harm is unknown; nor has one
    whose rate the config watches itself.
    """
    named = {name: of for name in found.watched if (of := metric_of(name, metrics)) is not None}
    ways: dict[str, object] = {name: found.better.get(name) for name in found.decision}
    ways |= {one.metric: _WAYS[one.higher_is_better is not False] for one in found.guardrails}
    watched = {_values(metric) for metric, view in named.values() if _is_rate(metric, view)}
    rates: dict[str, GuardrailConfig] = {}
    for name, (metric, view) in named.items():
        mean = isinstance(metric.empty, UnitMean) and view in (None, "mean")
        if mean and ways[name] in _WAYS.values() and _values(metric) not in watched:
            rate = f"{metric.name}.{_RATE}"
            rates[rate] = GuardrailConfig(rate, 0.0, ways[name] == "higher", required=False)
    return replace(found, guardrails=(*found.guardrails, *rates.values()))


def rate_mdes(found: ExperimentConfig) -> Mapping[str, float]:
    """The effects for which the intervals of such rates are the narrowest."""
    return {one.metric: MDE for one in found.guardrails if not one.required}


_WAYS: Final = {True: "higher", False: "lower"}


def _is_rate(metric: MetricConfig, view: str | None) -> bool:
    of_mean = isinstance(metric.empty, UnitMean) and view == _RATE
    return of_mean or isinstance(metric.empty, UnitRate)


def _values(metric: MetricConfig) -> str:
    """The field of the values."""
    return metric.inputs["values"].path if "values" in metric.inputs else ""
