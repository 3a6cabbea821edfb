"""Which exposures become known when they are closed. Pure.

An exposure becomes known if its experiment is counted at the offset of JOIN at which it is closed,
and its time is within that of the experiment. So an experiment that is added while others run has
the exposures that are closed from then on; workers and `verify` follow this one rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from streammetrics_consumers.model.commit import JOIN_START
from streammetrics_consumers.model.generation import (
    EXPERIMENT,
    KINDS,
    UNITS,
    Generation,
    Metric,
    experiment_name,
)

Span: TypeAlias = "tuple[int | None, int | None]"  # of times, [from, to)


def exposed_experiments(generation: Generation) -> dict[str, Metric]:
    """The set of exposed units of each experiment whose arms come from exposures, by its name: it
    counts from where the experiment does."""
    return {
        name: metric
        for metric in generation.metrics
        if (name := experiment_name(metric.metric_set))
        and metric.name == f"{metric.metric_set}/{UNITS}"
        and KINDS in metric.description
    }


@dataclass(frozen=True, slots=True)
class Entering:
    """The rule by which exposures become known. head: JOIN, in the store of the generation. ends:
    of experiments that have ended, the offsets at which they did; others of them have none."""

    generation: Generation
    head: int
    ends: Mapping[str, int] = field(default_factory=dict)

    def experiments(self, offset: int) -> dict[str, Span]:
        """The experiments whose exposures become known by a closing from this offset of JOIN on,
        and the times of their exposures."""
        return {
            name: _span(metric)
            for name, metric in exposed_experiments(self.generation).items()
            if metric.counts(self.head, offset)
            and not (metric.ended and offset >= self.ends.get(name, JOIN_START))
        }


def _span(metric: Metric) -> Span:
    plan = cast("Mapping[str, int | None]", metric.description[EXPERIMENT])
    return plan.get("start"), plan.get("end")
