"""How often a verdict is wrong, by the kind of values and the share of the small arm.

Every look at an arm is computed at once from cumulative sums, the variance of the difference by the
kernel that the product calls. A look whose effect is near to 0 cannot be an alarm (the multiplier
of a sequence is at least 2, or 3 for both sides), so only the others are asked of the sequence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.amounts import Amounts, lognormal, pareto
from benchmarks.coverage.sparse import K, of_groups
from benchmarks.coverage.streams import logarithmic
from benchmarks.coverage.table import Row, Table
from streammetrics.experiments import ConfidenceSequence, Evidence, Guardrail, Horizon
from streammetrics.kernels.inference.dirichlet_multinomial import Successes, log_e_of_successes
from streammetrics.kernels.inference.pooled_variance import (
    EXPECTED,
    SKEWNESS,
    difference_variance,
    expected_counts,
    skewness_number_of_sums,
)
from streammetrics.kernels.inference.t_interval import welch_df

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N: Final = 40_000  # rows of both arms at the end
USERS: Final = 4_000
LOOKS: Final = 100
ALPHA: Final = 0.05
SHARES: Final = (0.02, 0.05, 0.1, 0.5, 0.9, 0.95, 0.98)
MARGIN: Final = 0.1  # of a guardrail, as a share of the mean
ERRORS: Final = 4.2  # of the difference at the end: the effect that is looked for
ROWS: Final = 100  # of a mean, before a verdict
KISH: Final = 20.0  # of the values of an arm by itself
GROUPS: Final = 16


@dataclass(frozen=True, slots=True)
class Side:
    """One arm at each look, all of [looks]: its estimate and variance, its masses, and what says
    whether it has enough rows: sums of its values, or events, or a skewness number.

    share: of the units, exact, where events alone have an e-value.
    """

    value: Floats
    variance: Floats
    masses: tuple[Floats, ...]
    df: Floats | None = None
    sums: tuple[Floats, ...] = ()
    events: Floats | None = None
    deff: Floats | None = None
    number: Floats | None = None

    def times(self, factor: float) -> Side:
        """The arm with values that are all multiplied."""
        return replace(self, value=factor * self.value, variance=factor**2 * self.variance)

    def skewness_number(self, i: int) -> float:
        """That of the values so far."""
        if self.number is not None:
            return float(self.number[i])
        sums = (Fraction(float(series[i])) for series in self.sums)
        return skewness_number_of_sums(int(self.masses[0][i]), *sums)


def of_rows(values: Floats, new: Ints) -> Side:
    """The mean of independent rows; new: rows at each look."""
    powers = [values, values * values]
    powers.append(powers[1] * values)
    starts = np.concatenate([[0], np.cumsum(new)[:-1]])
    indices = np.minimum(starts, max(len(values) - 1, 0))
    sums = [np.where(new > 0, np.add.reduceat(power, indices), 0.0).cumsum() for power in powers]
    n = new.cumsum().astype(np.float64)
    with np.errstate(all="ignore"):
        variance = np.maximum(sums[1] - sums[0] * sums[0] / n, 0.0) / (n - 1) / n
        return Side(sums[0] / n, variance, (n,), sums=tuple(sums))


def of_events(events: Ints, new: Ints) -> Side:
    """A rate of independent rows."""
    n, y = new.cumsum().astype(np.float64), events.cumsum().astype(np.float64)
    with np.errstate(all="ignore"):
        p = y / n
        return Side(p, p * (1 - p) / n, (n,), events=y)


def of_users(y: Ints, rows: Ints, users: Ints) -> Side:
    """A rate over users, from the events and the rows of each group at each look [looks, K], and
    the users at each look."""
    result = of_groups(y.cumsum(axis=0).astype(np.float64), rows.cumsum(axis=0))
    n, events = rows.sum(axis=1).cumsum(), y.sum(axis=1).cumsum().astype(np.float64)
    with np.errstate(all="ignore"):
        row_variance = result.value * (1 - result.value) / n
        deff = np.where(row_variance > 0, result.variance / row_variance, np.nan)
    masses = n.astype(np.float64), users.cumsum().astype(np.float64)
    return Side(result.value, result.variance, masses, result.df, events=events, deff=deff)


@dataclass(frozen=True, slots=True)
class Pair:
    """Both arms at each look. v_opt: the planned information; share: the planned one of the
    treatment."""

    control: Side
    treatment: Side
    v_opt: float
    share: float

    def variance(self) -> Floats:
        """That of the difference, of both arms together."""
        a, b = self.control, self.treatment
        with np.errstate(all="ignore"):
            masses = list(zip(a.masses, b.masses, strict=True))
            return difference_variance(a.variance, b.variance, masses)

    def own_variance(self) -> Floats:
        """The sum of those of the arms, each by itself."""
        return self.control.variance + self.treatment.variance

    def enough(self, i: int) -> bool:
        """Whether both arms have enough rows at this look."""
        a, b = self.control, self.treatment
        if a.df is not None and b.df is not None and min(a.df[i], b.df[i]) + 1 < GROUPS:
            return False
        if a.events is not None and b.events is not None:
            rows = float(a.masses[0][i]), float(b.masses[0][i])
            events = float(a.events[i]), float(b.events[i])
            failures = rows[0] - events[0], rows[1] - events[1]
            deffs = [side.deff[i] for side in (a, b) if side.deff is not None]
            deff = max([1.0, *(float(factor) for factor in deffs if factor > 1)])
            least = min(*expected_counts(events, rows), *expected_counts(failures, rows))
            return least / deff >= EXPECTED
        if min(a.masses[0][i], b.masses[0][i]) < ROWS:
            return False
        varied = [side for side in (a, b) if side.variance[i] > 0]
        return all(side.skewness_number(i) >= SKEWNESS for side in varied)

    def each_enough(self, i: int) -> bool:
        """Whether each arm by itself has enough rows at this look: ten events and ten other rows,
        by the design effect, or values of which Kish's number is at least 20. So it was once."""
        for side in (self.control, self.treatment):
            n = float(side.masses[0][i])
            if side.df is not None and side.df[i] + 1 < GROUPS:
                return False
            if side.events is not None:
                deff = max(1.0, float(side.deff[i])) if side.deff is not None else 1.0
                if not min(side.events[i], n - side.events[i]) / deff >= EXPECTED:
                    return False
            elif n < ROWS or side.sums[0][i] ** 2 < KISH * side.sums[1][i]:
                return False
        return True

    def evidence(self, i: int, variance: Floats, center: float = math.nan) -> Evidence:
        """This look, as a comparison has it. center: the mean of both arms together."""
        a, b = self.control, self.treatment
        df = math.inf
        if a.df is not None and b.df is not None:
            arms = (float(a.variance[i]), float(a.df[i]), float(b.variance[i]), float(b.df[i]))
            df = welch_df(*arms)
        effect, error = float(b.value[i] - a.value[i]), math.sqrt(variance[i])
        return Evidence(effect_size=effect, std_error=error, df=df, least_count=ROWS, center=center)

    def events_alarm(self, i: int) -> bool:
        """Whether the events alone show a difference, which needs no gate."""
        a, b = self.control, self.treatment
        if a.events is None or b.events is None or a.df is not None:
            return False
        counts = int(a.events[i]), int(b.events[i])
        log_e = log_e_of_successes([Successes(*counts, Fraction(str(self.share)))])
        return log_e >= -math.log(ALPHA)

    def rejected(self, variance: Floats, *, enough: Callable[[int], bool] | None = None) -> bool:
        """Whether any look shows a difference; enough: whether there are enough rows at a look,
        None where the events alone may show it."""
        sequence = ConfidenceSequence(alpha=ALPHA, v_opt=self.v_opt)
        with np.errstate(all="ignore"):
            far = np.abs(self.treatment.value - self.control.value) > 3.0 * np.sqrt(variance)
        for i in np.flatnonzero(far & (variance > 0)).tolist():
            if not (enough or self.enough)(i):
                if enough is None and self.events_alarm(i):
                    return True
            elif sequence.at(self.evidence(i, variance)).p_value <= ALPHA:
                return True
        return False

    def excludes_harm(self, margin: float) -> bool:
        """Whether any look excludes harm by the margin."""
        variance, rail = self.variance(), Guardrail(margin=margin, v_opt=self.v_opt, alpha=ALPHA)
        with np.errstate(all="ignore"):
            effect = self.treatment.value - self.control.value
            far = effect + margin > 2.0 * np.sqrt(variance)
        return any(
            self.enough(i) and rail.at(self.evidence(i, variance)).passed
            for i in np.flatnonzero(far & (variance > 0)).tolist()
        )


def watched(pairs: tuple[Pair, Pair, Pair], margin: float) -> list[float]:
    """The figures of one replicate: of two equal arms, of a treatment that is worse by the margin
    of a guardrail, and of one with the effect that is looked for."""
    pair, worse, effect_pair = pairs
    return [
        float(pair.rejected(pair.variance())),
        float(pair.rejected(pair.own_variance(), enough=lambda i: True)),
        float(worse.excludes_harm(margin)),
        float(effect_pair.rejected(effect_pair.variance())),
        float(effect_pair.rejected(effect_pair.own_variance(), enough=effect_pair.each_enough)),
        float(pair.enough(LOOKS - 1)),
    ]


def new_units(rng: np.random.Generator, n: int, share: float) -> tuple[Ints, Ints]:
    """New units of control and treatment at each look."""
    new = logarithmic(n, LOOKS)
    treated = rng.binomial(new, share)
    return new - treated, treated


def planned(units: float, variance: float, share: float) -> float:
    """The information at which the sequence is narrowest: half of that at the end."""
    v_opt = Horizon(units=units, variance=variance, treatment_share=share).v_opt
    assert v_opt is not None
    return v_opt


def looked_for(units: float, variance: float, share: float, mean: float) -> float:
    """The effect, as a share of the mean, of so many standard errors at the end."""
    error = math.sqrt(variance / (units * share * (1 - share)))
    return min(ERRORS * error / mean, 0.95)


def amounts_watched(
    amounts: Amounts, share: float, rng: np.random.Generator, heavier: Amounts | None = None
) -> list[float]:
    """Means of independent rows; heavier: of the treatment, with the same mean."""
    first, second = new_units(rng, N, share)
    control = of_rows(amounts.draw(rng, int(first.sum())), first)
    treatment = of_rows((heavier or amounts).draw(rng, int(second.sum())), second)
    variance = amounts.square - amounts.mean**2
    v_opt = planned(N, variance, share)
    pairs = [Pair(control, treatment, v_opt, share)]
    if heavier is not None:
        (pair,) = pairs
        figures = watched((pair, pair, pair), 0.0)
        return [*figures[:2], *[math.nan] * 3, figures[-1]]
    effect = looked_for(N, variance, share, amounts.mean)
    pairs += [Pair(control, treatment.times(1 - x), v_opt, share) for x in (MARGIN, effect)]
    return watched((pairs[0], pairs[1], pairs[2]), MARGIN * amounts.mean)


def rates_watched(rate: float, share: float, rng: np.random.Generator) -> list[float]:
    """Rates of independent rows; with other treatments, events are left out."""
    new = new_units(rng, N, share)
    control, treated = (rng.binomial(n, rate) for n in new)
    v_opt = planned(N, rate * (1 - rate), share)
    effect = looked_for(N, rate * (1 - rate), share, rate)
    keep = 1.0, 1 - MARGIN, 1 - effect
    pairs = [
        Pair(of_events(control, new[0]), of_events(rng.binomial(treated, p), new[1]), v_opt, share)
        for p in keep
    ]
    return watched((pairs[0], pairs[1], pairs[2]), MARGIN * rate)


def users_watched(
    a: float, b: float, rows: int, share: float, rng: np.random.Generator, stops: bool = False
) -> list[float]:
    """Rates over users, each of whom has a rate of their own from Beta(a, b) and so many rows."""
    arms = []
    for new in new_units(rng, USERS, share):
        look = np.repeat(np.arange(LOOKS), new)
        cells = look * K + rng.integers(0, K, len(look))
        events = rng.binomial(rows, rng.beta(a, b, len(look)))
        y = np.bincount(cells, events, minlength=LOOKS * K).astype(np.int64).reshape(-1, K)
        n = rows * np.bincount(cells, minlength=LOOKS * K).reshape(-1, K)
        arms.append((y, n, new))
    mean = a / (a + b)
    variance = mean * (1 - mean) * (1 / (a + b + 1) + 1 / rows)
    v_opt = planned(USERS, variance, share)
    effect = 1.0 if stops else looked_for(USERS, variance, share, mean)
    control, (y, n, new) = of_users(*arms[0]), arms[1]
    pairs = [
        Pair(control, of_users(rng.binomial(y, p), n, new), v_opt, share)
        for p in (1.0, 1 - MARGIN, 1 - effect)
    ]
    return watched((pairs[0], pairs[1], pairs[2]), MARGIN * mean)


def rates_stopped(rate: float, share: float, rng: np.random.Generator) -> list[float]:
    """Rates of independent rows, and a treatment that ends all events."""
    new = new_units(rng, N, share)
    control, treated = (of_events(rng.binomial(n, rate), n) for n in new)
    none = of_events(0 * new[1], new[1])
    v_opt = planned(N, rate * (1 - rate), share)
    equal, stopped = (Pair(control, arm, v_opt, share) for arm in (treated, none))
    figures = watched((equal, stopped, stopped), MARGIN * rate)
    return [*figures[:2], math.nan, *figures[3:]]


def losses() -> Amounts:
    """The log losses of calibrated predictions of a label that 1 % of the rows have."""

    def draw(rng: np.random.Generator, n: int) -> Floats:
        p = 1 / (1 + np.exp(5.08 - rng.normal(0.0, 1.0, n)))
        log_losses: Floats = -np.log(np.where(rng.random(n) < p, p, 1 - p))
        return log_losses

    values = draw(np.random.default_rng(1), 2_000_000)
    return Amounts(draw, float(values.mean()), float((values * values).mean()))


def lighter(sigma: float, mean: float) -> Amounts:
    """Log-normal amounts of this mean."""
    base = lognormal(sigma)
    times = mean / base.mean
    return Amounts(lambda rng, n: times * base.draw(rng, n), mean, times * times * base.square)


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _rows() -> list[Row]:
    entries: list[tuple[str, Callable[[np.random.Generator], list[float]], float]] = []
    values = {
        "lognormal, σ 1": lognormal(1.0),
        "lognormal, σ 1.5": lognormal(1.5),
        "lognormal, σ 2": lognormal(2.0),
        "Pareto, a 1.8": pareto(1.8),
        "Pareto, a 1.5": pareto(1.5),
        "log loss, 1 % positives": losses(),
    }
    for name, amounts in values.items():
        for share in SHARES:
            title = f"rows, {name}; {_percent(share)}"
            entries.append((title, partial(amounts_watched, amounts, share), 2.0))
    for rate in (0.002, 0.01, 0.05, 0.3, 0.97):
        for share in (0.02, 0.05, 0.5, 0.95):
            title = f"rows, a rate of {_percent(rate)}; {_percent(share)}"
            entries.append((title, partial(rates_watched, rate, share), 0.4))
    for a, b, rows in ((0.1, 1.9, 30), (0.2, 9.8, 10)):
        for share in (0.02, 0.05, 0.1, 0.5, 0.9, 0.95):
            title = f"users with {rows} rows, rates Beta({a:g}, {b:g}); {_percent(share)}"
            entries.append((title, partial(users_watched, a, b, rows, share), 3.0))
    for share in (0.05, 0.5):
        title = f"rows, a rate of 5 %, all events end; {_percent(share)}"
        entries.append((title, partial(rates_stopped, 0.05, share), 0.7))
        title = f"users with 30 rows, rates Beta(0.1, 1.9), all events end; {_percent(share)}"
        entries.append((title, partial(users_watched, 0.1, 1.9, 30, share, stops=True), 3.0))
    base = lognormal(1.0)
    for sigma, share in ((1.5, 0.05), (2.0, 0.05), (2.0, 0.5)):
        title = f"equal means, lognormal σ 1 and σ {sigma:g} in the treatment; {_percent(share)}"
        heavy = lighter(sigma, base.mean)
        entries.append((title, partial(amounts_watched, base, share, heavier=heavy), 2.0))
    return [Row(title, once, 1000, ms) for title, once, ms in entries]


VERDICTS: Final = Table(
    "verdicts",
    "values; share of the treatment",
    (
        "without an effect",
        "the same, each arm by its own variance and no gate",
        "guardrail kept, harm at its margin",
        "an effect found",
        "the same, each arm by itself",
        "judged at the end",
    ),
    tuple(_rows()),
)
