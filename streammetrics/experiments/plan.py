"""The plan of an experiment: everything that is decided before there are data."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal, NoReturn, get_args

from streammetrics.core.conversion import among, flag, numeric, whole
from streammetrics.core.errors import SettingsError, nearest, shown
from streammetrics.experiments.horizon import (
    Horizon,
    check_horizon,
    check_share,
    exact_number,
    settle,
)
from streammetrics.experiments.one_look import ENDINGS
from streammetrics.present.view import HIGHER, LOWER, NONE, Direction

_WORDS: Final = {"higher": HIGHER, "lower": LOWER, "none": NONE}


def check_plan(plan: Plan) -> None:
    """Raise SettingsError for the first error in a plan."""
    check_share("level", plan.level)
    _one_of("correction", plan.correction, ("bonferroni", "none"))
    _one_of("cluster", plan.cluster, ("groups", "none"))
    _one_of("on_several_variants", plan.on_several_variants, ("keep", "drop", "error"))
    _one_of("unit_view", plan.unit_view, get_args(UnitView))
    for where in ("variants", "decision", "epochs", "lower_is_better"):
        _names(where, getattr(plan, where))
    for where in ("better", "horizons", "covariates", "shares", "epoch_shares"):
        _require_mapping(where, getattr(plan, where))
    for epoch, epoch_weights in plan.epoch_shares.items():
        _require_mapping(f"epoch_shares ({epoch})", epoch_weights)
    _check_classes(plan)
    if not plan.watched:
        refuse("decision", "a metric, or a guardrail", plan.decision, 'pass decision=("ctr",)')
    if not among(plan.control, plan.variants):
        hint = f"{nearest(plan.control, plan.variants)}, or add it to variants"
        refuse("control", "one of the variants", plan.control, hint)
    if len(set(plan.variants)) != len(plan.variants):
        refuse("variants", "each variant once", plan.variants, "leave out the repeated one")
    for variant in plan.variants:
        if variant.endswith(ENDINGS):
            expected = f"names that do not end in{','.join(ENDINGS[:-1])} or{ENDINGS[-1]}"
            refuse("variants", expected, variant, "the looks use these names; rename it")
    if not plan.treatments:
        refuse("variants", "the control and another variant", plan.variants, "name a treatment")
    rails = tuple(rail.metric for rail in plan.guardrails)
    for where, names in (("decision", plan.decision), ("guardrails", rails)):
        if len(set(names)) != len(names):
            refuse(where, "each metric once", names, "leave out the repeated one")
    if plan.min_days is not None and (whole(plan.min_days) or 0) < 1:
        expected = "a whole number of days, at least 1"
        refuse("min_days", expected, plan.min_days, "leave it out for none")
    for where in ("horizons", "covariates"):
        known(getattr(plan, where), plan.watched, where, "metrics of decision and guardrails")
    _check_directions(plan)
    for where, weights in (("shares", plan.shares), *plan.epoch_shares.items()):
        label = "shares" if where == "shares" else f"epoch_shares ({where})"
        known(weights, plan.variants, label, "weights of variants")
        numbers = list(map(numeric, weights.values()))
        if weights and not (min(numbers) >= 0 and 0 < sum(numbers) < math.inf):
            hint = "pass the planned share of units of each variant"
            refuse(label, "weights of at least 0, one of them positive", dict(weights), hint)


def known(names: Iterable[str], expected: Collection[str], where: str, subject: str) -> None:
    """Raise SettingsError for the first name that is not among the expected ones."""
    for name in names:
        if name not in expected:
            refuse(where, f"{subject}: {', '.join(expected)}", name, nearest(name, expected))


def refuse(where: str, expected: str, got: object, hint: str) -> NoReturn:
    """Raise a SettingsError with these four parts."""
    raise SettingsError(expected=expected, got=shown(got), where=where, hint=hint)


def _names(where: str, names: object) -> None:
    if isinstance(names, str):
        refuse(where, "a tuple of names", names, f"write ({names!r},)")
    if not (isinstance(names, (tuple, list)) and all(isinstance(name, str) for name in names)):
        refuse(where, "a tuple of names", names, 'write them as in ("ctr", "auc")')


def _require_mapping(where: str, value: object) -> None:
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        is_better = where == "better"
        expected = "directions by metric" if is_better else "a mapping from names"
        hint = 'write {"bounce": "lower"}' if is_better else 'write a dict, as in {"ctr": ...}'
        refuse(where, expected, value, hint)


def _check_classes(plan: Plan) -> None:
    """Check that guardrails, horizons and covariates are of their classes."""
    hint = 'write guardrails=(Safeguard("auc", margin=0.01),)'
    rails: object = plan.guardrails
    if not isinstance(rails, (tuple, list)):
        refuse("guardrails", "a tuple of Safeguard", rails, hint)
    for rail in rails:
        if not isinstance(rail, Safeguard):
            refuse("guardrails", "a tuple of Safeguard", rail, hint)
    for where, horizon in (
        ("horizon", plan.horizon),
        *((f"horizons ({name})", horizon) for name, horizon in plan.horizons.items()),
    ):
        if horizon is None:
            refuse(where, "a Horizon", None, "leave it out for none")
        check_horizon(horizon, where)
    covariates: Mapping[str, object] = plan.covariates
    for name, covariate in covariates.items():
        if not isinstance(covariate, PlannedCovariate):
            hint = 'write PlannedCovariate("revenue_before", theta=0.4)'
            refuse(f"covariates ({name})", "a PlannedCovariate", covariate, hint)


def _check_metric(metric: object, where: str) -> None:
    if not isinstance(metric, str):
        refuse(where, "the name of a metric", metric, 'write "ctr", or "ctr.ratio" for a view')


def _settled(weights: Weights) -> Weights:
    return {variant: exact_number(weight) for variant, weight in weights.items()}


def _check_directions(plan: Plan) -> None:
    """Check the directions; a name is a metric of the plan, its view, or the metric of its view."""
    for where, names in (("lower_is_better", plan.lower_is_better), ("better", plan.better)):
        strangers = [name for name in names if not _is_of(name, plan.watched)]
        known(strangers, plan.watched, where, "metrics of decision and guardrails")
    for name, direction in plan.better.items():
        is_number = math.isfinite(numeric(direction))
        if not (direction in _WORDS if isinstance(direction, str) else is_number):
            expected = '"higher", "lower", "none", or a number as its target'
            hint = (
                nearest(direction, _WORDS) if isinstance(direction, str) else "choose one of these"
            )
            refuse(f"better ({name})", expected, direction, hint)
        if name in plan.lower_is_better and direction != "lower":
            hint = "remove it from one of the two"
            refuse(f"better ({name})", '"lower", as in lower_is_better', direction, hint)
    for rail in plan.guardrails:
        if rail.higher_is_better and rail.metric in plan.lower_is_better:
            hint = "remove it from lower_is_better, or pass higher_is_better=False"
            refuse(f"guardrails ({rail.metric})", "one direction", "two", hint)


def _is_of(name: str, watched: Collection[str]) -> bool:
    return any(
        name == metric or name.startswith(f"{metric}.") or metric.startswith(f"{name}.")
        for metric in watched
    )


def _one_of(where: str, value: str, allowed: tuple[str, ...]) -> None:
    if not among(value, allowed):
        refuse(
            where, " or ".join(f'"{option}"' for option in allowed), value, nearest(value, allowed)
        )


Weights = Mapping[str, int | float]
UnitView = Literal["seen", "so_far", "closed"]


@dataclass(frozen=True, slots=True)
class Safeguard:
    """A metric that must not get worse by `margin` or more; `metric` or `metric.view`.

    higher_is_better: None: as the plan or the view declares, True if neither does. required:
    whether it must be shown to be kept before anything is shipped; else it is only watched: it
    stops what is shown to be worse, and shares the level of the decisions. SettingsError for a
    negative margin.
    """

    metric: str
    margin: float = 0.0
    higher_is_better: bool | None = None
    required: bool = True

    def __post_init__(self) -> None:
        _check_metric(self.metric, "Safeguard.metric")
        if not 0 <= numeric(self.margin) < math.inf:
            hint = "pass the greatest harm that you can accept, without a sign"
            refuse(f"Safeguard({self.metric!r}).margin", "a number, at least 0", self.margin, hint)
        if self.higher_is_better is not None:
            flag(self.higher_is_better, "Safeguard.higher_is_better", SettingsError)
        flag(self.required, "Safeguard.required", SettingsError)
        settle(self, "margin")


@dataclass(frozen=True, slots=True)
class PlannedCovariate:
    """The planned covariate of a metric: another metric, `metric` or `metric.view`, of the same
    users in the same groups, and the slope, frozen before the data (`user_slope`)."""

    metric: str
    theta: float

    def __post_init__(self) -> None:
        _check_metric(self.metric, "PlannedCovariate.metric")
        check_slope(self.theta, "PlannedCovariate.theta")
        settle(self, "theta")


def check_slope(value: object, where: str) -> None:
    """Raise SettingsError for a slope that is not a finite number."""
    if not math.isfinite(numeric(value)):
        raise SettingsError(
            expected="a finite number",
            got=shown(value),
            where=where,
            hint="pass the slope of an earlier period, from user_slope",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The variants to compare, the metrics to compare them on, and the planned end.

    variants: all variants that users may see, with the control; each other one is a treatment.
    decision: the metrics that decide, `metric` for its headline or `metric.view`. guardrails:
    the metrics that must not get worse. horizon: of every metric that `horizons` does not name, in
    units of all variants together; the horizon of a rate does not fit an area or a mean, which
    need their own. level: of all decisions together.
    correction: "bonferroni" makes all always-valid intervals hold together; "none" each alone.
    shares: the planned weight of each variant, equal by default; epoch_shares: the same for epochs
    with other shares. cluster: as reports show it; "groups" if the states are UserGroups.
    on_several_variants: the handling of units seen in several variants: "keep" them; "drop" them
    from the states, which must keep the rows of each unit apart; or "error": do not believe the
    experiment. epochs: in their order, if that is not the order of their names. covariates: the
    CUPED covariate of each metric, as named, with a slope frozen before the data. better: the
    direction in which a metric of the plan is better, if its view declares none or another one:
    "higher", "lower", "none", or a target value; lower_is_better: metrics with "lower".
    sample_ratio_acknowledged: why the experiment is believed in spite of its sample-ratio alarm;
    every report says so. min_days: nothing is shipped before the experiment ran this long.
    unit_view: of which units the means and rates of units are: "seen", those with a row; "so_far",
    all that were exposed, each with what it did until now; "closed", those whose window after the
    exposure is over. Raises SettingsError for contradictions, and for names that are not in the
    plan.

    A click rate decides, an area must not fall by 0.01, and a tenth of the users get the new model:

    >>> plan = Plan(
    ...     control="old",
    ...     variants=("old", "new"),
    ...     decision=("ctr",),
    ...     guardrails=(Safeguard("auc", margin=0.01),),
    ...     horizon=Horizon(mde=0.002),
    ...     horizons={"auc": Horizon(mde=0.01)},
    ...     shares={"old": 90, "new": 10},
    ...     better={"ctr": "higher"},
    ...     min_days=14,
    ... )
    >>> plan.treatments, plan.watched, plan.weights("")
    (('new',), ('ctr', 'auc'), {'old': 90, 'new': 10})
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
    sample_ratio_acknowledged: str = ""
    min_days: int | None = None
    unit_view: UnitView = "seen"

    def __post_init__(self) -> None:
        check_plan(self)
        settle(self, "level", "min_days")
        shares = {epoch: _settled(weights) for epoch, weights in self.epoch_shares.items()}
        object.__setattr__(self, "epoch_shares", shares)
        object.__setattr__(self, "shares", _settled(self.shares))

    @property
    def treatments(self) -> tuple[str, ...]:
        """All variants but the control."""
        return tuple(variant for variant in self.variants if variant != self.control)

    @property
    def watched(self) -> tuple[str, ...]:
        """The decision metrics and the guardrails, as named in the plan."""
        return (*self.decision, *(rail.metric for rail in self.guardrails))

    @property
    def alpha(self) -> float:
        """The alpha of the interval of each decision, and of each guardrail that is only watched:
        1 - level, after the correction."""
        watched = sum(not rail.required for rail in self.guardrails)
        many = max(1, (len(self.decision) + watched) * len(self.treatments))
        return (1.0 - self.level) / (many if self.correction == "bonferroni" else 1)

    def alpha_of(self, safeguard: Safeguard | None) -> float:
        """The alpha of a guardrail, None for a decision: guardrails that must all be kept need no
        correction among themselves."""
        required = safeguard is not None and safeguard.required
        return 1.0 - self.level if required else self.alpha

    def direction_of(self, watched: str, metric: str, view: str, own: Direction) -> Direction:
        """The direction in which a metric, as named, is better; own: as its view declares it.

        SettingsError for a guardrail on a metric with a target, unless the plan declares which
        side is harm.
        """
        rail = next(
            (safeguard for safeguard in self.guardrails if safeguard.metric == watched), None
        )
        if rail is not None and rail.higher_is_better is not None:
            return HIGHER if rail.higher_is_better else LOWER
        direction = self.direction_of_decision(watched, metric, view, own)
        if rail is not None and direction.better == "target":
            refuse(
                f"guardrails ({watched})",
                "higher_is_better, because the metric has a target",
                None,
                "pass higher_is_better=False if a rise of the metric is harm, else True",
            )
        return direction

    def direction_of_decision(
        self, watched: str, metric: str, view: str, own: Direction
    ) -> Direction:
        """The same of a metric that decides, and may be a guardrail as well."""
        direction = own
        for name in (metric, f"{metric}.{view}", watched):  # the last one takes precedence
            declared = self.better.get(name)
            if declared is not None:
                direction = (
                    _WORDS[declared]
                    if isinstance(declared, str)
                    else Direction("target", float(declared))
                )
            direction = LOWER if name in self.lower_is_better else direction
        return direction

    def is_for_rates(self, metric: str) -> bool:
        """Whether the horizon of a metric, as named, is derived from the baseline of a rate."""
        horizon = self.horizons.get(metric, self.horizon)
        is_declared = horizon.mde is not None or horizon.variance is not None
        return horizon.units is not None and horizon.baseline is not None and not is_declared

    def weights(self, epoch: str) -> dict[str, int | float]:
        """The planned weight of every variant in an epoch."""
        declared = self.epoch_shares.get(epoch, self.shares)
        return {variant: declared.get(variant, 0) if declared else 1 for variant in self.variants}

    def ordered(self, epochs: Iterable[str]) -> list[str]:
        """The epochs in order: those of the plan, then the others by name."""
        place = {name: i for i, name in enumerate(self.epochs)}
        return sorted(epochs, key=lambda epoch: (place.get(epoch, len(place)), epoch))

    def horizon_of(self, metric: str, treatment: str) -> Horizon:
        """The horizon of a metric, as named, with the units of the control and this treatment: none
        if one of them is planned to get no unit."""
        horizon = self.horizons.get(metric, self.horizon)
        if horizon.units is None:
            return horizon
        last = self.epochs[-1] if self.epochs else ""
        weights = self.weights(last)
        if len(set(weights.values())) == 1:  # equal shares, or none declared
            return replace(horizon, units=horizon.units * 2 / len(weights))
        weight = weights[self.control] + weights[treatment]
        share = weights[treatment] / weight if weight else 0.0
        if not 0 < share < 1:
            return replace(horizon, units=0.0)
        units = horizon.units * weight / math.fsum(weights.values())
        return replace(horizon, units=units, treatment_share=share)
