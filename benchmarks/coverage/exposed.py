"""Two hundred looks at means and rates of exposed units, whose outcomes come over days.

Units are exposed over two weeks, and what they do follows 1 to 14 days later. *So far* has all
exposed units, each with what it did until the look; *closed* has those whose day of exposure ended
14 days before it, with their final values. All looks at an arm are computed at once, from
cumulative sums, as in `verdicts`; a test compares them with an experiment on states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.skewed import student
from benchmarks.coverage.sparse import K, of_groups
from benchmarks.coverage.table import Row, Table
from benchmarks.coverage.verdicts import ALPHA, Pair, Side, planned
from streammetrics.experiments import ConfidenceSequence

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LOOKS: Final = 200
EXPOSED_DAYS: Final = 14
WINDOW: Final = 14  # days after the exposure in which outcomes count
END: Final = EXPOSED_DAYS + WINDOW + 1
MOST: Final = 500  # the activity of a unit
NEAR: Final = 3.0  # standard errors; a look with a smaller effect is no alarm


@dataclass(frozen=True, slots=True)
class Scene:
    """What units do. zipf: the exponent of their activity, which is 1 if it is None; outcomes: per
    activity, each with a log-normal amount of mean 1. first: whether active units are exposed
    first. delays: of an outcome after the exposure, the least in days; the greatest is 14."""

    units: int = 20_000
    zipf: float | None = None
    outcomes: float = 0.3
    sigma: float = 1.0
    first: bool = False
    delays: float = 1.0

    def activity(self, rng: np.random.Generator, n: int) -> Ints:
        """Of n units."""
        if self.zipf is None:
            return np.ones(n, np.int64)
        return np.minimum(rng.zipf(self.zipf, n), MOST).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Units with the time of their exposure, and outcomes in the order of their units."""

    exposed: Floats
    treated: Bools
    groups: Ints
    counts: Ints  # outcomes of each unit
    unit: Ints  # of each outcome
    time: Floats
    amount: Floats


def drawn(
    scene: Scene, share: float, rng: np.random.Generator, lift: float = 0.0, later: float = 0.0
) -> Drawn:
    """Units and outcomes. lift: of the amounts of the treatment; later: by how many days its
    outcomes come later, as long as they stay within the window."""
    n = scene.units
    activity, u = scene.activity(rng, n), rng.random(n)
    exposed = EXPOSED_DAYS * (1.0 - u ** (1.0 / activity) if scene.first else u)
    treated, groups = rng.random(n) < share, rng.integers(0, K, n)
    counts = rng.poisson(scene.outcomes * activity)
    unit = np.repeat(np.arange(n), counts)
    delay = rng.uniform(scene.delays, WINDOW, len(unit))
    delay = np.where(treated[unit], np.minimum(delay + later, WINDOW - 1e-6), delay)
    amount = rng.lognormal(-(scene.sigma**2) / 2, scene.sigma, len(unit))
    amount = np.where(treated[unit], (1.0 + lift) * amount, amount)
    return Drawn(exposed, treated, groups, counts, unit, exposed[unit] + delay, amount)


@dataclass(frozen=True, slots=True)
class Seen:
    """At which look each unit is counted, each outcome is, and the first outcome of a unit."""

    units: Ints
    outcomes: Ints
    first: Ints


def so_far(rows: Drawn, looks: Floats) -> Seen:
    """All exposed units, with what they did until each look."""
    first = np.full(len(rows.counts), np.inf)
    has = rows.counts > 0
    starts = np.cumsum(rows.counts) - rows.counts
    if has.any():
        first[has] = np.minimum.reduceat(rows.time, starts[has])
    return Seen(*(np.searchsorted(looks, times) for times in (rows.exposed, rows.time, first)))


def closed(rows: Drawn, looks: Floats) -> Seen:
    """The units whose day of exposure ended a window ago, with their final values."""
    units = np.searchsorted(looks, np.ceil(rows.exposed) + WINDOW)
    first = np.where(rows.counts > 0, units, len(looks))
    return Seen(units, units[rows.unit], first)


def sides(rows: Drawn, entries: Seen, arm: Bools, looks: int) -> tuple[Side, Side]:
    """The mean of the amounts of an arm's units, and the rate of those with an outcome."""

    def cells(look: Ints, groups: Ints, weights: Floats | None = None) -> NDArray[np.float64]:
        is_seen = look < looks
        indices = look[is_seen] * K + groups[is_seen]
        weighed = None if weights is None else weights[is_seen]
        sums = np.bincount(indices, weighed, minlength=looks * K).reshape(-1, K)
        total: NDArray[np.float64] = sums.cumsum(axis=0).astype(np.float64)
        return total

    of_arm = arm[rows.unit]
    units = cells(entries.units[arm], rows.groups[arm])
    amounts = cells(entries.outcomes[of_arm], rows.groups[rows.unit[of_arm]], rows.amount[of_arm])
    means, n = of_groups(amounts, units.astype(np.int64)), units.sum(axis=1)
    first = entries.first[arm]
    events = np.bincount(first[first < looks], minlength=looks).cumsum().astype(np.float64)
    with np.errstate(all="ignore"):
        p = events / n
        rate = Side(p, p * (1 - p) / n, (n,), events=events)
    return Side(means.value, means.variance, (n,), means.df, number=means.number), rate


def pairs(
    rows: Drawn, entries: Seen, looks: int, plans: tuple[float, float], share: float
) -> tuple[Pair, Pair]:
    """Both arms of the mean and of the rate; plans: the planned information of each."""
    control, treatment = (sides(rows, entries, arm, looks) for arm in (~rows.treated, rows.treated))
    mean, rate = (
        Pair(a, b, plan, share) for a, b, plan in zip(control, treatment, plans, strict=True)
    )
    return mean, rate


def center(pair: Pair) -> Floats:
    """The mean of both arms together."""
    a, b = pair.control, pair.treatment
    with np.errstate(all="ignore"):
        total = a.value * a.masses[0] + b.value * b.masses[0]
        mean: Floats = total / (a.masses[0] + b.masses[0])
    return mean


def grown(pair: Pair) -> bool:
    """Whether any look shows a difference on the clock of the lift."""
    sequence, variance, means = ConfidenceSequence(kind="growing"), pair.variance(), center(pair)
    with np.errstate(all="ignore"):
        far = np.abs(pair.treatment.value - pair.control.value) > NEAR * np.sqrt(variance)
    for i in np.flatnonzero(far & (variance > 0)).tolist():
        if not pair.enough(i):
            if pair.events_alarm(i):
                return True
            continue
        look = pair.evidence(i, variance, float(means[i]))
        if sequence.at(look).p_value <= ALPHA:
            return True
    return False


def contains(pair: Pair, truth: float) -> bool:
    """Whether the interval of one look at the end holds the true effect."""
    a, b, end = pair.control, pair.treatment, len(pair.control.value) - 1
    variance = pair.own_variance()
    q = student(pair.evidence(end, variance).df)
    apart = abs(float(b.value[end] - a.value[end]) - truth)
    return apart <= q * math.sqrt(float(variance[end]))


@cache
def truths(scene: Scene) -> tuple[float, float, float]:
    """The mean amount of a unit, its variance, and the share of units with an outcome."""
    rng = np.random.default_rng(1)
    rows = drawn(Scene(2_000_000, scene.zipf, scene.outcomes, scene.sigma), 0.0, rng)
    activity = rows.counts.mean() if scene.zipf else scene.outcomes
    totals = np.bincount(rows.unit, rows.amount, minlength=len(rows.counts))
    return float(activity), float(totals.var()), float((rows.counts > 0).mean())


def plans_of(scene: Scene, share: float) -> tuple[float, float]:
    """The planned information of the mean and of the rate."""
    _, variance, rate = truths(scene)
    return planned(scene.units, variance, share), planned(scene.units, rate * (1 - rate), share)


def watched(
    kind: Literal["mean", "rate"], scene: Scene, share: float, rng: np.random.Generator
) -> list[float]:
    """Whether an A/A test ever rejects: so far, on the clock 1/V and on that of the lift, and
    closed; whether one look at the end holds the final effect, in all and where it is judged; and
    whether it is judged."""
    looks = np.linspace(0.0, END, LOOKS + 1)[1:]
    rows, plans, side = drawn(scene, share, rng), plans_of(scene, share), kind == "rate"
    early = pairs(rows, so_far(rows, looks), LOOKS, plans, share)[side]
    final = pairs(rows, closed(rows, looks), LOOKS, plans, share)[side]
    judged, holds = final.enough(LOOKS - 1), float(contains(final, 0.0))
    return [
        float(early.rejected(early.variance())),
        float(grown(early)),
        float(final.rejected(final.variance())),
        holds,
        holds if judged else math.nan,
        float(judged),
    ]


def delayed(later: float, share: float, rng: np.random.Generator) -> list[float]:
    """A treatment that only delays outcomes: its mean so far over the control's on days 7, 14 and
    21 and at the end; whether so far and closed ever show a difference."""
    looks, scene = np.linspace(0.0, END, LOOKS + 1)[1:], Scene()
    rows, plans = drawn(scene, share, rng, later=later), plans_of(scene, share)
    (early, _), (final, _) = (
        pairs(rows, view(rows, looks), LOOKS, plans, share) for view in (so_far, closed)
    )
    days = [int(np.searchsorted(looks, day)) for day in (7, 14, 21)]
    with np.errstate(all="ignore"):
        times = early.treatment.value / early.control.value
    shown = [float(times[day]) for day in (*days, LOOKS - 1)]
    return [*shown, float(grown(early)), float(final.rejected(final.variance()))]


SCENES: Final[dict[str, Scene]] = {
    "units are alike, 26 % act": Scene(),
    "units are alike, 63 % act": Scene(outcomes=1.0, delays=0.0, sigma=0.5),
    "units are alike, 86 % act": Scene(outcomes=2.0, delays=0.0, sigma=0.5),
    "Zipf 3": Scene(zipf=3.0),
    "Zipf 2.5": Scene(zipf=2.5),
    "Zipf 2.5, active units first": Scene(zipf=2.5, first=True),
    "Zipf 2, active units first": Scene(zipf=2.0, first=True, delays=0.0),
}

KINDS: Final[tuple[Literal["mean", "rate"], ...]] = ("mean", "rate")

EXPOSED: Final = Table(
    "exposed",
    "units, 20,000 of both arms; share of the treatment",
    (
        "so far, on the clock 1/V",
        "so far, on the clock of the lift (used)",
        "closed",
        "one look at the end holds the effect",
        "the same, where it is judged",
        "judged at the end",
    ),
    tuple(
        Row(f"{kind}: {name}; {100 * share:g} %", partial(watched, kind, scene, share), 1000, 13)
        for kind in KINDS
        for name, scene in SCENES.items()
        for share in (0.05, 0.5)
    ),
)

EXPOSED_LATER: Final = Table(
    "exposed-later",
    "the treatment's outcomes come later by; its share",
    (
        "mean so far, of the control's, day 7",
        "day 14",
        "day 21",
        "at the end",
        "so far shows a difference",
        "closed shows one",
    ),
    tuple(
        Row(
            f"{later:g} {'day' if later == 1 else 'days'}; {100 * share:g} %",
            partial(delayed, later, share),
            400,
            16,
        )
        for later in (0.0, 1.0, 3.0)
        for share in (0.05, 0.5)
    ),
)
