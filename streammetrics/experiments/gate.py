"""When an experiment can be judged, said beforehand: from its plan, and from an earlier period.

Before the gates of `evidence` and `compared` are open, nothing is said of a metric, however many
looks are taken. They depend on counts that grow with the rows of the smaller arm: what an earlier
period has of them for each row says how many rows that takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from streammetrics.combine import UserGroupsResult
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.conversion import instance, refused
from streammetrics.core.errors import InputError
from streammetrics.estimators.enough import ENOUGH, GROUPS
from streammetrics.experiments.arm import arm_of, is_effect
from streammetrics.experiments.arms import Arm
from streammetrics.experiments.horizon import number_of_days
from streammetrics.experiments.plan import Plan, Safeguard, known
from streammetrics.experiments.strata import ONE_EPOCH
from streammetrics.kernels.inference.pooled_variance import SKEWNESS
from streammetrics.present.estimand import estimand_of
from streammetrics.present.numerals import plain, rounded_text
from streammetrics.present.views import view_of

_LEAST_DAYS: Final = 1.0  # of an earlier period, before it has a pace: days differ by the hour
# 1 / K of k normal contributions is 6 χ² / k², with one degree of freedom: in 5 % above 23 / k².
_BY_CHANCE: Final = 23.0
_HEAVY: Final = (
    "heavy tails take two to three times as long as a first estimate, so consider a cap on the "
    "values before they are counted"
)
_LEVEL: Final = 0.95

Size = Literal["about", "at least", "at most"]
_EACH: Final = "each arm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """When one treatment can be judged on one metric of a plan.

    watched: the metric, as the plan names it; guardrail: of the plan, None for a decision. needs:
    what each arm must have, in words. arm: the variant that has it last; "" if both have it at the
    same time. rows: how many rows of that arm this takes, counted in `unit`; nan if unknown.
    size: "about" these; "at least", if something that can only add to them is not known; or "at
    most", if the earlier period shows no skewness beyond chance.
    shares: the least and the greatest planned share of that arm in an epoch. days: the least and
    the greatest number of days that it takes at the pace of the earlier period; nan if unknown, and
    infinite for units beyond those of that period, since each day has fewer new ones.
    advice: what shortens it. reason: why it can never be judged, or "".
    """

    watched: str
    treatment: str
    guardrail: Safeguard | None = None
    needs: str = ""
    arm: str = ""
    rows: float = math.nan
    unit: str = "rows"
    size: Size = "about"
    shares: tuple[float, float] = (math.nan, math.nan)
    days: tuple[float, float] = (math.nan, math.nan)
    advice: str = ""
    reason: str = ""

    def sentence(self, planned_days: int | None = None, *, pace: str = "the pace so far") -> str:
        """The gate in words; planned_days: how long the experiment is planned to run; pace: what
        `days` rest on.

        >>> size = {"rows": 4150.0, "shares": (0.05, 0.05), "days": (1.3, 1.3)}
        >>> gate = Gate(watched="ctr", treatment="new", needs="each arm has 10 clicks", **size)
        >>> print(gate.sentence(14))
        ctr can be judged once each arm has 10 clicks: after about 4,200 rows of each arm, 5 % of \
all rows, on day 2 of 14 at the pace so far.
        """
        name = self.watched if self.guardrail is None else f"the guardrail {self.watched}"
        if self.reason:
            return f"{name} of {self.treatment} cannot be judged: {self.reason}."
        text = f"{name} can be judged once {self.needs}"
        if not math.isnan(self.rows):
            rows = f"{self.size} {rounded_text(self.rows)} {self.unit}"
            text += f": after {rows} of {self.arm or _EACH}, {self._all_text()}"
            when = self._when(planned_days)
            text += f", {when} at {pace}" if when else ""
        return f"{text}; {self.advice}." if self.advice else f"{text}."

    def _all_text(self) -> str:
        least, most = (plain(100.0 * share) for share in self.shares)
        share = f"{least} %" if least == most else f"{least} to {most} %"
        return f"{share} of all {self.unit}{', by epoch' * (least != most)}"

    def _when(self, planned: int | None) -> str:
        if not self.days[0] < math.inf:
            return ""
        first, last = (max(1.0, math.ceil(day)) if day < math.inf else day for day in self.days)
        bounded = self.size != "at least" and last < math.inf
        if not bounded and first == 1:
            return ""
        when = f"not before day {first:,.0f}"
        if bounded:
            sooner = self.size == "at most" or self.unit == "units"
            when = f"{'by' if sooner else 'on'} day {last:,.0f}"
            if last > first:
                when = f"between day {first:,.0f} and day {last:,.0f}"
        plan = "" if planned is None else f" of {planned:,}"
        if planned is not None and (last if bounded else first) > planned:
            plan = f" ({planned:,} are planned)"
        return f"{when}{plan}"


def gates(
    plan: Plan,
    earlier: Mapping[str, Accumulator],
    *,
    days: Mapping[str, float] | float | None = None,
) -> tuple[Gate, ...]:
    """When each metric of a plan can be judged, decisions first, of each treatment.

    earlier: for each metric its state over an earlier period, all arms together, or over the
    experiment so far; an empty metric if there is none, whose gate is then said in words alone.
    days: how many days of rows they hold, of all or by metric. It is an estimate: rates change,
    and the skewness number of a mean grows with the rows only roughly. SettingsError for a metric
    of the plan that is not among `earlier`, InputError for a view that it does not have.

    >>> from streammetrics import Ratio
    >>> from streammetrics.experiments import Horizon
    >>> shares = {"shares": {"old": 95, "new": 5}, "horizon": Horizon(mde=0.01)}
    >>> plan = Plan(control="old", variants=("old", "new"), decision=("ctr",), **shares)
    >>> clicks = Ratio()
    >>> clicks.update([1] * 24 + [0] * 9_976)
    >>> (gate,) = gates(plan, {"ctr": clicks}, days=2)
    >>> gate.arm, round(gate.rows), gate.days == (gate.rows / 0.05 / 5_000,) * 2
    ('new', 4167, True)
    """
    instance(plan, Plan, "gates(plan)", "a Plan", "see Plan of streammetrics.experiments")
    states: object = earlier
    if not isinstance(states, Mapping) or not all(isinstance(name, str) for name in states):
        expected = "a state for each metric, by its name"
        raise refused("gates(earlier)", expected, states, 'pass {"ctr": Ratio()} if it has no rows')
    rails = [(rail.metric, rail) for rail in plan.guardrails]
    watched = [*((name, None) for name in plan.decision), *rails]
    return tuple(
        gate for name, rail in watched for gate in _gates_of(plan, name, rail, earlier, days)
    )


def _gates_of(
    plan: Plan,
    watched: str,
    rail: Safeguard | None,
    earlier: Mapping[str, Accumulator],
    days: Mapping[str, float] | float | None,
) -> Iterator[Gate]:
    metric, view = _named(watched, earlier)
    arm = arm_of(earlier[metric], view, plan.level)
    of_metric = days.get(metric) if isinstance(days, Mapping) else days
    span = number_of_days(of_metric, "gates(days)")
    pace = math.nan
    if arm.counts.rows and span is not None and span >= _LEAST_DAYS:
        pace = arm.counts.rows / span
    figures = figures_of(earlier[metric])
    for treatment in plan.treatments:
        gate = gate_of(plan, watched, treatment, arm, figures, pace)
        yield replace(gate, guardrail=rail)


def figures_of(state: Accumulator) -> object:
    """The result of the metric of a state, also over users."""
    result = state.compute()
    return result.value if isinstance(result, UserGroupsResult) else result


def gate_of(
    plan: Plan, watched: str, treatment: str, arm: Arm, figures: object, pace: float
) -> Gate:
    """When one treatment can be judged on a metric. arm: of both variants together over an earlier
    period, the result of which is `figures`; pace: its rows a day, nan if unknown."""
    by_users = plan.cluster == "groups" and arm.counts.unit != "units"
    needed = _needed(arm, figures, by_users or arm.without.replicates is not None)
    may_need_more = (by_users and arm.without.replicates is None) or (
        arm.counts.kind == "mean" and (len(plan.epochs) > 1 or math.isnan(arm.counts.skewness))
    )
    variants = (treatment,) if arm.sides is not None else (plan.control, treatment)
    gate = Gate(watched=watched, treatment=treatment, unit=arm.counts.unit)
    last = _last(plan, variants)
    why = _never(plan, watched, treatment, arm)
    if why or last is None:
        absent = f"no {arm.counts.unit} are planned for {' and '.join(variants)} together"
        return replace(gate, reason=why or absent)
    first, longest = (needed.rows / share / pace for share in reversed(last[1]))
    if arm.counts.unit == "units" and needed.rows > arm.counts.rows * last[1][0]:
        longest = math.inf
    return replace(
        gate,
        needs=needed.words.format(_EACH if len(variants) > 1 else treatment),
        arm=last[0],
        rows=needed.rows,
        size=_size(needed.is_most, may_need_more),
        shares=last[1],
        days=(first, longest),
        advice=needed.advice,
    )


def _last(plan: Plan, arms: tuple[str, ...]) -> tuple[str, tuple[float, float]] | None:
    """The arm that has its rows last, "" if all have them at once, and its least and greatest share
    of the epochs that are compared, in which each arm has some; None if there is none."""
    epochs = [_shares(plan, epoch) for epoch in plan.epochs or ("",)]
    compared = [shares for shares in epochs if all(shares[name] for name in arms)]
    if not compared:
        return None
    used = {name: sorted(shares[name] for shares in compared) for name in arms}
    last = min(arms, key=lambda name: used[name])
    alike = len(arms) > 1 and all(used[name] == used[last] for name in arms)
    return "" if alike else last, (used[last][0], used[last][-1])


def _shares(plan: Plan, epoch: str) -> dict[str, float]:
    weights = plan.weights(epoch)
    total = math.fsum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _named(watched: str, earlier: Mapping[str, Accumulator]) -> tuple[str, str | None]:
    """The metric and the view; the longest metric name if several match."""
    for name in sorted(earlier, key=len, reverse=True):
        if watched == name:
            return name, None
        if watched.startswith(f"{name}."):
            return name, watched[len(name) + 1 :]
    known([watched], sorted(earlier), f"the plan's {watched!r}", "a metric of `earlier`")
    raise AssertionError(watched)


def _never(plan: Plan, watched: str, treatment: str, arm: Arm) -> str:
    """Why no number of rows would be enough, or ""."""
    horizon = plan.horizon_of(watched, treatment)
    if arm.traits.never:
        return arm.traits.never
    if arm.quantile is not None or arm.counts.kind == "quantile":
        if len(plan.epochs) > 1:
            return ONE_EPOCH
        return "" if horizon.planned_rows is not None else horizon.reason
    has_value = arm.counts.rows > 1 and math.isfinite(arm.value)
    if has_value and arm.without.replicates is None and math.isnan(arm.precision.variance):
        return arm.precision.reason
    return horizon.reason


@dataclass(frozen=True, slots=True)
class _Needed:
    """What an arm must have, in words with a place for its name, and the rows that this takes at
    the rates of an earlier period, nan if unknown. is_most: whether fewer may do, since groups of
    users show no skewness beyond chance. advice: what shortens it."""

    words: str
    rows: float = math.nan
    is_most: bool = False
    advice: str = ""


def _size(is_most: bool, is_least: bool) -> Size:
    if is_most == is_least:
        return "about"
    return "at most" if is_most else "at least"


def _needed(arm: Arm, figures: object, grouped: bool) -> _Needed:
    bounded = all(map(math.isfinite, arm.traits.limits))
    if not arm.counts.rows:
        kind = "rate" if _may_be_share(figures, arm.view) else arm.counts.kind
        grouped = grouped and not (kind == "rate" and arm.counts.unit == "units")
        words = ENOUGH[kind].words(arm.counts.unit, grouped)
        if kind == "rate" and not (bounded or view_of(figures, arm.view).rest):
            words += f", if its {arm.counts.unit} are all 0 or 1"
        return _Needed(words, advice="" if kind != "mean" or bounded else _HEAVY)
    words, rows = ENOUGH[arm.counts.kind].words(arm.counts.unit, grouped), _rows_for_counts(arm)
    if not (arm.is_skew and arm.precision.variance > 0):
        return _Needed(words, rows)
    by_skewness = _rows_for(arm.counts.rows, arm.counts.skewness, SKEWNESS)
    if math.isnan(by_skewness) or by_skewness <= rows:
        return _Needed(words, max(rows, by_skewness))
    groups = arm.groups
    is_most = groups is not None and arm.counts.skewness > groups * groups / _BY_CHANCE
    return _Needed(words, by_skewness, is_most, "" if bounded or is_most else _HEAVY)


def _rows_for(rows: int, count: float, need: float) -> float:
    """The rows that have `need`, if `rows` have `count`; nan if they have none."""
    needed = rows * need / count if count > 0 else math.inf
    return needed if needed < math.inf else math.nan


def _rows_for_counts(arm: Arm) -> float:
    deff = (
        arm.precision.deff
        if 1.0 < arm.precision.deff < math.inf and arm.counts.kind != "area"
        else 1.0
    )
    needs = [
        _rows_for(arm.counts.rows, count / deff, ENOUGH[arm.counts.kind].need)
        for count in arm.counts.counted
    ]
    groups, buckets = arm.groups or 0, len(arm.without.replicates or ())
    if buckets > GROUPS and 0 < groups < buckets:  # a user falls into any of them
        needs.append(
            arm.counts.rows * math.log1p(-GROUPS / buckets) / math.log1p(-groups / buckets)
        )
    return math.nan if any(map(math.isnan, needs)) else max(needs)


def _may_be_share(figures: object, view: str) -> bool:
    """Whether a view of a result without rows has the interval of a share."""
    if is_effect(figures, view):
        return False
    estimand = estimand_of(figures, view)
    try:
        request = estimand.request(_LEVEL, "wilson")
        return estimand.estimator.interval(estimand.rows, request) is not None
    except InputError:  # it has another one
        return False
