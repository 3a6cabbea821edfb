"""Whether planned tests find the planned effect as often as planned, looked at every day."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from benchmarks.coverage.draws import add_rows
from benchmarks.coverage.table import Row, Table
from streammetrics import ExactAUC, Moments, Ratio, UserGroups
from streammetrics.authoring import Accumulator
from streammetrics.experiments import ConfidenceSequence, PlannedTest, compare, plan_test

Draw = Callable[[np.random.Generator, int, float], Accumulator]
PILOT: Final = 200_000  # rows of an earlier period
OF_USER: Final = 5  # rows


def clicks(rate: float, rng: np.random.Generator, n: int, effect: float) -> Accumulator:
    """Independent rows of 0 and 1."""
    state = Ratio()
    add_rows(state, int(rng.binomial(n, rate + effect)), n)
    return state


def amounts(sigma: float, rng: np.random.Generator, n: int, effect: float) -> Accumulator:
    """Log-normal amounts with mean 1, and the effect added to each; sigma 0: normal ones."""
    state = Moments()
    drawn = rng.lognormal(-sigma * sigma / 2, sigma, n) if sigma else rng.standard_normal(n) + 1.0
    state.update(drawn + effect)
    return state


def scores(
    area: float, positives: float, rng: np.random.Generator, n: int, effect: float
) -> Accumulator:
    """Rows whose scores are exponential in both classes, with this area."""
    state = ExactAUC()
    labels = rng.random(n) < positives
    times = (area + effect) / (1.0 - area - effect)
    state.update(labels=labels, scores=rng.exponential(np.where(labels, times, 1.0)))
    return state


def clicks_of_users(rate: float, rng: np.random.Generator, n: int, effect: float) -> Accumulator:
    """Rows of users with rates of their own, about n rows."""
    state, users, mean = UserGroups(Ratio()), math.ceil(n / OF_USER), rate + effect
    rates = rng.beta(4 * mean, 4 * (1 - mean), users)
    who = rng.integers(2**62) + np.arange(users)
    clicked = rng.random(users * OF_USER) < np.repeat(rates, OF_USER)
    state.update(np.repeat(who, OF_USER), numerators=clicked)
    return state


def first_found(planned: PlannedTest, draw: Draw, effect: float, rng: np.random.Generator) -> float:
    """The share of the planned units at the first look that shows a difference on the side of the
    planned effect; nan if none does. The last day is a part of one."""
    sequence = ConfidenceSequence(horizon=planned.horizon, alpha=1.0 - planned.level)
    days, size = planned.size.days, planned.size
    control, treatment = draw(rng, 1, 0.0), draw(rng, 0, effect)  # equal counts are warned about
    before = 0.0
    for end in [*range(1, math.ceil(days)), days]:
        new = [round(n * end / days) - round(n * before / days)
               for n in (size.control, size.treatment)]  # fmt: skip
        control += draw(rng, new[0], 0.0)
        treatment += draw(rng, new[1], effect)
        before = end
        look = sequence.at(compare(control, treatment))
        if (look.lower if planned.effect > 0 else -look.upper) > 0:
            return float(end / days)
    return math.nan


def with_effect(
    planned: PlannedTest, draw: Draw, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Whether daily looks have found the planned effect when the planned units are there, and at
    which share of them; and whether one look has, with its own number."""
    share = first_found(planned, draw, planned.effect, rng)
    once = planned.one_look
    single = compare(draw(rng, once.control + 1, 0.0), draw(rng, once.treatment, planned.effect))
    is_shown = single.pvalue <= 1.0 - planned.level and single.effect_size * planned.effect > 0
    return float(not math.isnan(share)), share, float(is_shown)


def outcomes(
    planned: PlannedTest, draw: Draw, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """The same, and whether daily looks find one on that side where there is none."""
    effect = with_effect(planned, draw, rng)
    alarm = first_found(planned, draw, 0.0, rng)
    return *effect, float(not math.isnan(alarm))


def of_clicks(rate: float, lift: float, share: float, power: float, days: int) -> PlannedTest:
    """The plan for a rate, whose one look takes about so many days."""
    design = {"rate": rate, "lift": lift, "share": share, "power": power}
    return paced(partial(plan_test, **design), days)  # type: ignore[arg-type]


def paced(plan: Callable[..., PlannedTest], days: int) -> PlannedTest:
    """The plan with so many units a day that its one look takes so many days."""
    return plan(units_per_day=plan().one_look.units / days)


_AREA: Final = partial(plan_test, auc=0.75, positives=0.2, effect=0.03)
_MEAN: Final = partial(plan_test, mean=1.0, lift=0.1)


def _of_users() -> PlannedTest:
    earlier = clicks_of_users(0.1, np.random.default_rng(1), PILOT, 0.0)
    return paced(partial(plan_test, earlier, lift=0.15), 7)


def _of_amounts() -> PlannedTest:
    earlier = amounts(1.0, np.random.default_rng(1), PILOT, 0.0)
    return paced(partial(plan_test, earlier, lift=0.1, share=0.2), 7)


PLANS: Final[dict[str, tuple[Callable[[], PlannedTest], Draw]]] = {
    "rate 5 %, +10 %, power .8": (
        partial(of_clicks, 0.05, 0.1, 0.5, 0.8, 7), partial(clicks, 0.05)),
    "rate 5 %, −10 %, power .9": (
        partial(of_clicks, 0.05, -0.1, 0.5, 0.9, 7), partial(clicks, 0.05)),
    "rate 30 %, +10 %, treatment 10 %, power .8": (
        partial(of_clicks, 0.3, 0.1, 0.1, 0.8, 14), partial(clicks, 0.3)),
    "mean, normal, +10 %, power .8": (
        partial(paced, partial(_MEAN, std=1.0), 7), partial(amounts, 0.0)),
    "mean, normal, +10 %, power .95": (
        partial(paced, partial(_MEAN, std=1.0, power=0.95), 7), partial(amounts, 0.0)),
    "mean, log-normal, treatment 20 %, from a state": (_of_amounts, partial(amounts, 1.0)),
    "AUC .75, +.03, 20 % positives": (
        partial(paced, _AREA, 7), partial(scores, 0.75, 0.2)),
    "AUC .75, −.03, 20 % positives": (
        partial(paced, partial(_AREA, effect=-0.03), 7), partial(scores, 0.75, 0.2)),
    "click rate over users, from a state": (_of_users, partial(clicks_of_users, 0.1)),
}  # fmt: skip


def row(name: str, ms: float) -> Row:
    """The row of one of the plans, which is made when it is first needed."""
    plan, draw = PLANS[name]
    cache: list[PlannedTest] = []

    def once(rng: np.random.Generator) -> tuple[float, float, float, float]:
        cache[:] = cache or [plan()]
        return outcomes(cache[0], draw, rng)

    return Row(name, once, 600, ms)


PLANNED: Final = Table(
    "planned",
    "planned test",
    (
        "found, looked at daily",
        "share of the units until then",
        "found by one look, with its number",
        "without an effect, found on that side",
    ),
    tuple(row(name, 60) for name in PLANS),
)
