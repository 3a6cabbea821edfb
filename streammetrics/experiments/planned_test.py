"""plan_test: how many units a test needs, how many days that takes, and when it can be judged."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NoReturn

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import numeric
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.experiments.arm import arm_of
from streammetrics.experiments.arms import Arm
from streammetrics.experiments.assumed_arm import (
    Assumed,
    area_variance,
    assumed_arm,
    check_assumed,
)
from streammetrics.experiments.daily_looks import information_of_looks
from streammetrics.experiments.gate import Gate, figures_of, gate_of
from streammetrics.experiments.horizon import Horizon, check_share, for_effect
from streammetrics.experiments.more_units import information_of_size
from streammetrics.experiments.plan import Plan, Safeguard
from streammetrics.experiments.rates_beside import rate_beside, why_no_rate
from streammetrics.kernels.inference.area_interval import COARSE
from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.pooled_variance import difference_variance
from streammetrics.kernels.inference.t_interval import welch_df
from streammetrics.present.notebook import Shown
from streammetrics.present.numerals import declared, plain
from streammetrics.present.row_table import RowTable
from streammetrics.present.value_rows import ValueRow

CONTROL: Final = "control"
TREATMENT: Final = "treatment"
_REST: Final = "rest"  # of the traffic, in neither arm
_DAILY: Final = "looked at daily"
_ALWAYS: Final = "always valid"  # of which days, and so looks, are not known
_NOT_KNOWN: Final = "the units of a day are not known"
_SLOWER: Final = "It takes at least these days: each day has fewer units that were not seen before."
_MOST_LOOKS: Final = 365  # more of them hardly change the units
_LEAST_POWER: Final = 0.5
_EXACT_SHARE: Final = 1e-9
_FAR: Final = 1e50  # beyond it the information is beyond the floats


@dataclass(frozen=True, slots=True)
class PlannedUnits:
    """The units of both arms, and the days until they have arrived; nan if that is not known."""

    control: int
    treatment: int
    days: float = math.nan

    @property
    def units(self) -> int:
        """Of both arms together."""
        return self.control + self.treatment


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PlannedTest(Shown):
    """The size of a test, and when it can be judged.

    watched: the quantity or view. baseline: its value without an effect. effect: treatment -
    control, absolute; lift: the same, relative to the baseline, of an area to what it is above 1/2.
    size: the units of each arm after which a test that is looked at each day has found the effect
    with probability `power`, then or before; one_look: those of a test with one look at its end,
    the classical number. unit: what is counted. shares: of control and treatment in all units.
    units_per_day: all units of a day, nan if unknown. days_are_least: whether more days may be
    needed, since the units of an earlier period return. horizon: what to declare in the `Plan` or
    the `ConfidenceSequence`, for which the units are computed. gates: when it can be judged.
    """

    estimates: ClassVar[bool] = True
    watched: str
    baseline: float
    effect: float
    lift: float
    size: PlannedUnits
    one_look: PlannedUnits
    gates: tuple[Gate, ...]
    horizon: Horizon
    unit: str
    shares: tuple[float, float]
    units_per_day: float
    power: float
    level: float
    days_are_least: bool = False

    def sentences(self) -> tuple[str, ...]:
        """What to know of the days, and when each gate opens, in words."""
        planned = None if math.isnan(self.size.days) else math.ceil(self.size.days)
        days = (_SLOWER,) if self.days_are_least else ()
        return (*days, *(gate.sentence(planned, pace="this pace") for gate in self.gates))

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        assumptions = {
            "baseline": self.baseline,
            "effect": self.effect,
            "lift": self.lift,
            "power": self.power,
            "level": self.level,
            "unit": self.unit,
        }
        for name, size in (("", self.size), ("one_look.", self.one_look)):
            figures = {CONTROL: size.control, TREATMENT: size.treatment, "days": size.days}
            for figure, value in figures.items():
                why = _NOT_KNOWN if math.isnan(value) else ""
                yield ValueRow(f"{name}{figure}", float(value), None, assumptions, why, exact=False)
        for gate in self.gates:
            for figure, value in ((gate.unit, gate.rows), ("days", gate.days[-1])):
                why = "" if math.isfinite(value) else _NOT_KNOWN
                name = f"gate.{gate.watched}.{figure}"
                yield ValueRow(name, value, None, assumptions, why, exact=False)

    def _table(self, most: int) -> RowTable:
        has_days = math.isfinite(self.size.days)
        rows = (_DAILY if has_days else _ALWAYS, self.size), ("one look", self.one_look)
        lines = tuple(
            (name, f"{size.control:,}", f"{size.treatment:,}", _days_text(size.days))
            for name, size in rows
        )
        effect = f"effect {plain(self.effect, 6, signed=True)}"
        if not math.isnan(self.lift):
            effect += f" ({plain(100.0 * self.lift, 4, signed=True)} %)"
        about = [
            f"{self.watched} {plain(self.baseline, 6)}",
            effect,
            f"power {declared(100.0 * self.power)} %",
            f"level {declared(100.0 * self.level)} %",
        ]
        titles = (self.unit, CONTROL, TREATMENT, "days")
        used = 4 if has_days else 3
        cells = tuple(line[:used] for line in lines)
        title = type(self).__name__
        return RowTable(title, ", ".join(about), titles[:used], cells, self.sentences())


def _days_text(days: float) -> str:
    return "" if math.isnan(days) else f"{math.ceil(days):,}"


def plan_test(
    state: Accumulator | None = None,
    view: str | None = None,
    *,
    rate: float | None = None,
    mean: float | None = None,
    ratio: float | None = None,
    auc: float | None = None,
    std: float | None = None,
    denominator: float | None = None,
    positives: float | None = None,
    deff: float | None = None,
    skewness: float | None = None,
    effect: float | None = None,
    lift: float | None = None,
    power: float = 0.8,
    level: float = 0.95,
    share: float | tuple[float, float] = 0.5,
    units_per_day: float | None = None,
    days: float | None = None,
) -> PlannedTest:
    """How many units of each arm a test needs that is looked at every day, and how many days.

    What is measured is one of these: state, of an earlier period, all units together, and a view of
    it (None: the first), from which baseline, variance, design effect and skewness follow; or rate,
    a share of units; or mean, with std, the standard deviation of a unit; or ratio, of the sums of
    two numbers of a unit, with std, that of numerator - ratio · denominator, and the mean
    denominator; or auc, with positives, the share of rows that are positive (Hanley and McNeil
    1982, Radiology 143, 29-36). deff: the design effect, of numbers that are counted by row.
    skewness: of the values of a unit, for the gate of a mean.

    effect: the difference to find, or lift: the same relative to the baseline; of an area relative
    to what it is above 1/2. Its sign is that of the difference, which matters for a rate. power:
    the probability to find it, at least 0.5. level: of the decision; with k decisions, metrics
    times treatments, 1 - 0.05 / k. share: of the treatment in all units, the control has the rest;
    or of control and treatment. units_per_day: all units that arrive on a day, for a state those
    that it counts (rows, lists or units); days: instead, the days that the state holds. Without
    either, the units are those of one look at the end, which daily looks before it only shorten.

    The sequence is that of `ConfidenceSequence` with the `horizon` of the result: an estimate is
    found on the first day on which its interval excludes 0, after the gate has opened. The variance
    of the treatment is that of the control, of rates and areas that of its own value, and both are
    pooled as `compare` does. Estimates are taken as normal, and a test of more than a year as
    looked at 365 times. SettingsError for what contradicts itself, or cannot be planned; InputError
    for a state without rows, or whose view has no variance, as a quantile.

    >>> print(plan_test(rate=0.05, lift=0.1, units_per_day=10_000))
    PlannedTest: rate 0.05, effect +0.005 (+10 %), power 80 %, level 95 %
    units            control  treatment  days
    looked at daily   56,646     56,646    12
    one look          31,231     31,231     7
    rate can be judged once each arm has 10 expected events and 10 expected units
      without one: after about 200 units of each arm, 50 % of all units, by day 1 of
      12 at this pace.
    """
    numbers = {"rate": rate, "mean": mean, "ratio": ratio, "auc": auc}
    name = _one_of({"state": state, **numbers}, "what is measured", "pass rate=, or a state")
    _check_design(power, level, effect, lift)
    shares, pace = _shares(share), _positive("units_per_day", units_per_day)
    span = _positive("days", days)
    assumed = Assumed(std, denominator, positives, skewness, deff)
    figures: object = None
    if state is None:
        if days is not None:
            _refuse("days", "units_per_day, of numbers without a state", days, "divide by the days")
        value = next(number for number in numbers.values() if number is not None)
        arm = assumed_arm(name, value, assumed)
    else:
        check_assumed("state", assumed)
        if pace is not None and span is not None:
            _refuse("days", "units_per_day or days", days, "leave out one of them")
        arm, figures = arm_of(state, view, level), figures_of(state)
        _check_arm(arm)
    if span is not None:
        pace = arm.counts.rows / span
    size = _effect(arm, effect, lift)
    horizon = Horizon(mde=abs(size), alpha=1.0 - level, power=power)
    plan = _plan(arm, horizon, shares, level)
    gates = tuple(_gates(plan, arm, figures, state, pace or math.nan))
    variances = [variance * arm.counts.rows for variance in _variances(arm, size)]  # of one unit
    if not all(abs(size) / _FAR < math.sqrt(variance) < abs(size) * _FAR for variance in variances):
        expected = f"an effect of {1 / _FAR:g} to {_FAR:g} standard deviations of a unit"
        hint = "compare it with the standard deviation"
        _refuse("effect" if lift is None else "lift", expected, effect or lift, hint)
    parts = [variance / part for variance, part in zip(variances, shares, strict=True)]
    once = for_effect(size, alpha=1.0 - level, power=power) * math.fsum(parts)
    needed = _needed(arm, plan, parts, pace or math.nan, gates[0])
    base = arm.estimate - arm.traits.origin
    return PlannedTest(
        watched=arm.view,
        baseline=arm.estimate,
        effect=size,
        lift=size / base if base else math.nan,
        size=_size(needed, shares, pace or math.nan),
        one_look=_size(once, shares, pace or math.nan),
        gates=gates,
        horizon=horizon,
        unit=arm.counts.unit,
        shares=shares,
        units_per_day=pace or math.nan,
        power=power,
        level=level,
        days_are_least=arm.counts.unit == "units" and span is not None and needed > arm.counts.rows,
    )


def _plan(arm: Arm, horizon: Horizon, shares: tuple[float, float], level: float) -> Plan:
    remaining_share = 1.0 - math.fsum(shares)
    weights = dict(zip((CONTROL, TREATMENT), shares, strict=True))
    if remaining_share > _EXACT_SHARE:
        weights[_REST] = remaining_share
    return Plan(
        control=CONTROL,
        variants=tuple(weights),
        decision=(arm.view,),
        horizon=horizon,
        level=level,
        correction="none",
        shares=weights,
        cluster="groups" if arm.groups is not None or arm.precision.deff > 1.0 else "none",
    )


def _gates(
    plan: Plan, arm: Arm, figures: object, state: Accumulator | None, pace: float
) -> Iterator[Gate]:
    """That of the view, and that of the rate of values above 0 beside a mean, a guardrail."""
    gate = gate_of(plan, arm.view, TREATMENT, arm, figures, pace)
    if gate.reason:
        _refuse("view", "a view that can be judged", arm.view, gate.reason)
    yield gate
    if state is None or (rate := rate_beside(state, arm.view)) is None:
        return
    if not why_no_rate(state, rate, planned=True):
        rate_arm = arm_of(state, rate, plan.level)
        gate = gate_of(plan, rate, TREATMENT, rate_arm, figures, pace)
        yield replace(gate, guardrail=Safeguard(rate))


def _size(traffic: float, shares: tuple[float, float], pace: float) -> PlannedUnits:
    """The size of a test after this many units of all traffic."""
    control, treatment = (max(math.ceil(round(traffic * share, 6)), 1) for share in shares)
    return PlannedUnits(control, treatment, traffic / pace)


def _needed(arm: Arm, plan: Plan, parts: Sequence[float], pace: float, gate: Gate) -> float:
    """The units of all traffic after which the sequence has found the effect. parts: what control
    and treatment add to the variance of their difference, times these units."""
    horizon, alpha = plan.horizon, plan.alpha
    shares = plan.shares[CONTROL], plan.shares[TREATMENT]
    v_opt, mde = horizon.v_opt, horizon.mde
    assert v_opt is not None and mde is not None
    # V times all units, pooled over the masses of the arms, which grow as their shares do.
    spread = float(difference_variance(parts[0], parts[1], [shares]))
    df = welch_df(parts[0], arm.precision.df, parts[1], arm.precision.df)
    df = df if arm.groups is not None else math.inf
    rho = tuned(v_opt, alpha)

    def reach(v: float) -> float:
        return as_t(multiplier(v, rho, alpha), df)

    size, hidden = mde, 2.0 * arm.precision.resolution
    by_one_look = information_of_size(size, horizon.power, rho, alpha, df)
    if hidden > COARSE / math.sqrt(by_one_look):  # as much as buckets may hide of it
        if hidden >= size:
            hint = f"buckets may hide {plain(hidden)} of it: keep the exact scores"
            _refuse("effect", "an effect that the buckets of the state can show", mde, hint)
        size -= hidden
        by_one_look = information_of_size(size, horizon.power, rho, alpha, df)
    opens = 0.0 if math.isnan(gate.rows) else gate.rows / gate.shares[0] / spread
    daily = by_one_look if math.isnan(pace) else pace / spread
    step = max(daily, by_one_look / _MOST_LOOKS)
    return information_of_looks(size, horizon.power, step, reach, opens) * spread


def _variances(arm: Arm, effect: float) -> tuple[float, float]:
    """Those of control and treatment; of a rate that of its own rate, of an area under the ROC
    curve in proportion to those of exponential scores."""
    variance, value, kind = arm.precision.variance, arm.estimate, arm.counts.kind
    after = value + effect
    if kind == "rate":
        return variance, variance * (after * (1.0 - after)) / (value * (1.0 - value))
    if kind == "area" and arm.traits.origin and 0 < value < 1:
        share = arm.counts.counted[0] / sum(arm.counts.counted)
        return variance, variance * area_variance(after, share) / area_variance(value, share)
    return variance, variance


def _effect(arm: Arm, effect: float | None, lift: float | None) -> float:
    """The absolute effect, which the view can have."""
    origin, name = arm.traits.origin, "effect" if lift is None else "lift"
    if effect is None:
        if arm.estimate == origin:
            expected = f"effect, since the baseline is {plain(origin)}"
            _refuse("lift", expected, lift, "pass the absolute difference")
        effect = numeric(lift) * (arm.estimate - origin)
    low, high = arm.traits.limits
    after = arm.estimate + effect
    if not low < after < high:
        given_value = lift if lift is not None else effect
        within = f"an effect that leaves {arm.view} between {plain(low)} and {plain(high)}"
        _refuse(name, within, given_value, f"it would be {plain(after)}; pass a smaller one")
    return effect


def _check_arm(arm: Arm) -> None:
    """Raise InputError for an earlier period from which nothing follows."""
    hint = ""
    if not arm.counts.rows:
        hint = "update it with the rows of an earlier period, or pass numbers"
    elif arm.sides is not None:
        hint = "it is itself an effect, and has no second arm: plan the metric of each arm"
    elif arm.quantile is not None or arm.counts.kind == "quantile":
        hint = "the variance of a quantile depends on the effect: plan a mean, or a share above it"
    elif not (
        0 < arm.precision.variance < math.inf
        and math.isfinite(arm.estimate)
        and arm.precision.df > 0
    ):
        hint = (
            arm.traits.never
            or arm.precision.reason
            or arm.without.no_jackknife
            or "its variance is 0 or unknown: pass more rows"
        )
    if hint:
        raise InputError(
            expected="an earlier period with the variance of the view",
            got=f"{arm.counts.rows:,} {arm.counts.unit}",
            where=f"plan_test(state), {arm.view}",
            hint=hint,
        )


def _check_design(power: float, level: float, effect: float | None, lift: float | None) -> None:
    check_share("level", level)
    if not _LEAST_POWER <= numeric(power) < 1:
        _refuse("power", "a probability of at least 0.5, below 1", power, "pass 0.8")
    name = _one_of({"effect": effect, "lift": lift}, "the effect", "pass effect=, or lift=")
    size = effect if lift is None else lift
    if not 0 < abs(numeric(size)) < math.inf:
        _refuse(name, "a finite number other than 0", size, "pass the least one that matters")


def _one_of(arguments: dict[str, object], quantity: str, hint: str) -> str:
    names = [name for name, value in arguments.items() if value is not None]
    if len(names) != 1:
        raise SettingsError(
            expected=f"{quantity}, by one of {', '.join(arguments)}",
            got=" and ".join(names) or "none",
            where="plan_test",
            hint=hint if not names else "leave out the others",
        )
    return names[0]


def _shares(share: float | tuple[float, float]) -> tuple[float, float]:
    hint = "pass that of the treatment, such as 0.5, or those of control and treatment"
    parts = [*share] if isinstance(share, (tuple, list)) else [1.0 - numeric(share), share]
    shares = [numeric(part) for part in parts]
    are_parts = len(shares) == 2 and all(0 < value < 1 for value in shares)
    if not are_parts or math.fsum(shares) > 1 + _EXACT_SHARE:
        _refuse("share", "shares above 0, together at most 1", share, hint)
    return shares[0], shares[1]


def _positive(name: str, value: float | None) -> float | None:
    if value is not None and not 0 < numeric(value) < math.inf:
        _refuse(name, "a finite number above 0", value, "leave it out if it is not known")
    return value


def _refuse(where: str, expected: str, got: object, hint: str) -> NoReturn:
    raise SettingsError(expected=expected, got=shown(got), where=f"plan_test({where})", hint=hint)
