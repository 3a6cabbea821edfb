"""The plan of an experiment: all that is decided before there are data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from streammetrics.experiments.covariate import PlannedCovariate
from streammetrics.experiments.horizon import Horizon
from streammetrics.experiments.plan_checks import check_plan, direction_from, refuse
from streammetrics.results.direction import HIGHER, LOWER, Direction

Weights = Mapping[str, int | float]


@dataclass(frozen=True, slots=True)
class Safeguard:
    """A metric that must not get worse by `margin` or more; `metric` or `metric.view`.

    higher_is_better: None for what the plan or the view declares, and True where neither does.
    SettingsError for a negative margin.
    """

    metric: str
    margin: float = 0.0
    higher_is_better: bool | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.margin < math.inf:
            todo = "pass the size of the change for the worse that you can accept, without a sign"
            refuse(f"Safeguard({self.metric!r}).margin", "a number from 0", self.margin, todo)


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
    slope that was frozen before the data. better: in which direction a metric of the plan is
    better, where its view does not declare it or declares another: "higher", "lower", "none", or a
    number that it should be near to; lower_is_better: the same as "lower" for each of these. Raises
    SettingsError for what contradicts itself, and for names that are not in the plan.

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
    better: Mapping[str, str | float] = field(default_factory=dict)
    cluster: Literal["groups", "none"] = "none"
    on_several_variants: Literal["keep", "drop", "error"] = "keep"

    def __post_init__(self) -> None:
        check_plan(self)

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

    def direction_of(self, watched: str, metric: str, view: str, own: Direction) -> Direction:
        """In which direction a metric, as it was named, is better; own: as its view declares it.

        SettingsError for a guardrail of a metric with a target, of which the plan does not say
        which side is harm.
        """
        rail = next((one for one in self.guardrails if one.metric == watched), None)
        if rail is not None and rail.higher_is_better is not None:
            return HIGHER if rail.higher_is_better else LOWER
        found = own
        for name in (metric, f"{metric}.{view}", watched):  # the last one is the most exact
            found = direction_from(self.better[name]) if name in self.better else found
            found = LOWER if name in self.lower_is_better else found
        if rail is not None and found.better == "target":
            refuse(
                f"guardrails ({watched})",
                "higher_is_better, since the metric should be near to a target",
                None,
                "pass higher_is_better=False where it is harm that the metric rises, else True",
            )
        return found

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
