"""The plan of an experiment: all that is decided before there are data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from streammetrics.core.errors import SettingsError, shown
from streammetrics.experiments.confidence_sequence import check_share
from streammetrics.experiments.covariate import PlannedCovariate
from streammetrics.experiments.horizon import Horizon

Weights = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Safeguard:
    """A metric that must not get worse by `margin` or more; `metric` or `metric.view`."""

    metric: str
    margin: float = 0.0
    higher_is_better: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is compared with what, on which metrics, until when.

    variants: all that users may see, control among them; each other one is a treatment.
    decision: the metrics that decide, `metric` for its headline or `metric.view`. guardrails:
    those that must not get worse. horizon: of every metric but those that `horizons` names as they
    are named there, of all variants' units together; the end planned for a rate does not fit an
    area or a mean, which need one of their own. level: of all decisions together.
    correction: "bonferroni" makes the always-valid intervals hold all together; "none" each alone.
    shares: the planned weight of each variant, equal where none are given; epoch_shares: the same
    by epoch, for those in which it differs. cluster, unit: as they are said to the reader; "groups"
    where the states are UserGroups. on_several_variants: what is done with units that have been
    seen in several variants: they stay, are dropped from the states, which must keep the rows of
    each unit apart, or the experiment is not believed. epochs: in their order, where that is not
    the order of their names. covariates: what is taken out of a metric, as named (CUPED), by a
    slope that was frozen before the data. lower_is_better: decision metrics, as named, of which
    less is better, beside those that are losses by name. Raises SettingsError for what contradicts
    itself.

    >>> Plan(control="random", variants=("random", "bts"), decision=("ctr",)).treatments
    ('bts',)
    """

    control: str
    variants: tuple[str, ...]
    decision: tuple[str, ...]
    name: str = "experiment"
    guardrails: tuple[Safeguard, ...] = ()
    horizon: Horizon = field(default_factory=Horizon)
    horizons: Mapping[str, Horizon] = field(default_factory=dict)
    level: float = 0.95
    correction: Literal["bonferroni", "none"] = "bonferroni"
    shares: Weights = field(default_factory=dict)
    epoch_shares: Mapping[str, Weights] = field(default_factory=dict)
    epochs: tuple[str, ...] = ()
    covariates: Mapping[str, PlannedCovariate] = field(default_factory=dict)
    lower_is_better: tuple[str, ...] = ()
    cluster: Literal["groups", "none"] = "none"
    on_several_variants: Literal["keep", "drop", "error"] = "keep"

    def __post_init__(self) -> None:
        check_share("level", self.level)
        _one_of("correction", self.correction, ("bonferroni", "none"))
        _one_of("cluster", self.cluster, ("groups", "none"))
        _one_of("on_several_variants", self.on_several_variants, ("keep", "drop", "error"))
        if self.control not in self.variants:
            _refuse("control", "one of the variants", self.control, "name it in variants as well")
        if len(set(self.variants)) != len(self.variants):
            _refuse("variants", "each variant once", self.variants, "leave out the repeated one")
        if not self.treatments:
            _refuse("variants", "the control and another", self.variants, "name a treatment")
        if len(set(self.watched)) != len(self.watched):
            todo = "make it a decision metric or a guardrail, once"
            _refuse("decision and guardrails", "each metric once", self.watched, todo)
        strangers = sorted(set(self.horizons) - set(self.watched))
        if strangers:
            todo = "name them as in decision or guardrails"
            _refuse("horizons", "metrics of decision and guardrails", strangers, todo)
        strangers = sorted(set(self.covariates) - set(self.watched))
        if strangers:
            todo = "name them as in decision or guardrails"
            _refuse("covariates", "metrics of decision and guardrails", strangers, todo)
        for where, weights in (("shares", self.shares), *self.epoch_shares.items()):
            unknown = sorted(set(weights) - set(self.variants))
            if unknown:
                _refuse(f"shares ({where})", "weights of variants", unknown, "name variants only")
            if weights and not (
                min(weights.values()) >= 0 and 0 < sum(weights.values()) < math.inf
            ):
                todo = "pass the planned share of units of each variant"
                _refuse(f"shares ({where})", "weights from 0, one above it", dict(weights), todo)

    @property
    def treatments(self) -> tuple[str, ...]:
        """All variants but the control."""
        return tuple(one for one in self.variants if one != self.control)

    @property
    def watched(self) -> tuple[str, ...]:
        """The decision metrics and the guardrails, as they were named."""
        return (*self.decision, *(one.metric for one in self.guardrails))

    @property
    def alpha(self) -> float:
        """1 - level, of each decision's interval after the correction."""
        many = max(1, len(self.decision) * len(self.treatments))
        return (1.0 - self.level) / (many if self.correction == "bonferroni" else 1)

    def is_for_rates(self, metric: str) -> bool:
        """Whether the horizon of a metric, as it was named, rests on the baseline of a rate."""
        horizon = self.horizons.get(metric, self.horizon)
        known = horizon.mde is not None or horizon.variance is not None
        return horizon.units is not None and horizon.baseline is not None and not known

    def weights(self, epoch: str) -> dict[str, int | float]:
        """The planned weight of every variant in an epoch."""
        declared = self.epoch_shares.get(epoch, self.shares)
        return {one: declared.get(one, 0) if declared else 1 for one in self.variants}

    def ordered(self, epochs: Iterable[str]) -> list[str]:
        """Epochs in the order in which they began."""
        place = {name: i for i, name in enumerate(self.epochs)}
        return sorted(epochs, key=lambda one: (place.get(one, len(place)), one))

    def horizon_of(self, metric: str, treatment: str) -> Horizon:
        """That of a metric as it was named, with the units of the control and this treatment."""
        horizon = self.horizons.get(metric, self.horizon)
        if horizon.units is None:
            return horizon
        last = self.epochs[-1] if self.epochs else ""
        weights = self.weights(last)
        if len(set(weights.values())) == 1:  # equal shares, or none declared
            return replace(horizon, units=horizon.units * 2 / len(weights))
        both = weights[self.control] + weights[treatment]
        units = horizon.units * both / sum(weights.values())
        return replace(horizon, units=units, treatment_share=weights[treatment] / (both or 1))


def _one_of(where: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        _refuse(where, " or ".join(f'"{one}"' for one in allowed), value, "choose one of these")


def _refuse(where: str, expected: str, came: object, todo: str) -> None:
    raise SettingsError(expected=expected, came=shown(came), where=where, todo=todo)
