"""The sample ratio of the units first seen on each day, at hourly looks for 60 days."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.table import Row, Table

Floats = NDArray[np.float64]

DAYS: Final = 60
HOURS: Final = 24
CONCENTRATIONS: Final = (10, 100, 1_000, 10_000)  # those of `SampleRatio`
BAD_DAY: Final = 20  # the 21st
_STIRLING: Final = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_gamma(x: Floats) -> Floats:
    """Ln Γ(x) of x >= 5, by Stirling's series."""
    series = sum(c / x ** (2 * i + 1) for i, c in enumerate(_STIRLING))
    return (x - 0.5) * np.log(x) - x + 0.5 * math.log(2 * math.pi) + series


def log_e(control: Floats, treatment: Floats) -> Floats:
    """The e-value of `SampleRatio` against equal shares, of arrays of counts."""
    n = control + treatment
    terms = [
        log_gamma(k / 2 + control)
        + log_gamma(k / 2 + treatment)
        - 2 * log_gamma(np.array(k / 2))
        + log_gamma(np.array(k))
        - log_gamma(k + n)
        + n * math.log(2)
        for k in CONCENTRATIONS
    ]
    log_mean: Floats = np.logaddexp.reduce(terms, axis=0) - math.log(len(terms))
    return log_mean


def of_looks(control: Floats, treatment: Floats) -> Floats:
    """Ln e at each look, [days, hours], of the new units of each hour, as an experiment has it:
    the mean of the total's e-value and of the days'."""
    shape = control.shape
    total = log_e(control.ravel().cumsum(), treatment.ravel().cumsum()).reshape(shape)
    day = log_e(control.cumsum(axis=1), treatment.cumsum(axis=1))
    d = np.arange(1, shape[0] + 1)
    weighted = day - np.log(d * (d + 1))[:, None]
    before = np.logaddexp.accumulate(np.concatenate([[-np.inf], weighted[:-1, -1]]))
    days = np.logaddexp(np.logaddexp(weighted, before[:, None]), -np.log(d + 1)[:, None])
    log_mean: Floats = np.logaddexp(total, days) - math.log(2)
    return log_mean


def daily(
    units: int, share: float, bad: float, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    """Whether e ever reached 20 and 1,000; whether the bad day is an alarm before it ends, and the
    hours until then. units: of both arms a day; share: of the treatment, `bad` on the bad day."""
    new = rng.multinomial(units, [1 / HOURS] * HOURS, size=DAYS)
    shares = np.full((DAYS, 1), share)
    shares[BAD_DAY] = bad
    treatment = rng.binomial(new, shares)
    evidence = of_looks((new - treatment).astype(float), treatment.astype(float))
    alarms = np.flatnonzero(evidence[BAD_DAY] >= math.log(1000))
    is_bad = bad != share
    return (
        float(evidence.max() >= math.log(20)),
        float(evidence.max() >= math.log(1000)),
        float(len(alarms) > 0) if is_bad else math.nan,
        float(alarms[0] + 1) if is_bad and len(alarms) else math.nan,
    )


DAILY_UNITS: Final = Table(
    "daily-units",
    "units a day, and the treatment's true share of a planned half",
    ("e ≥ 20 at any look", "e ≥ 1,000 at any look", "e ≥ 1,000 on the bad day", "hours into it"),
    (
        Row("10,000: .5 on 60 days", partial(daily, 10_000, 0.5, 0.5), 4000, 4),
        Row("1,000: .5 on 60 days", partial(daily, 1_000, 0.5, 0.5), 4000, 4),
        Row("10,000: .45 on day 21", partial(daily, 10_000, 0.5, 0.45), 1000, 4),
        Row("1,000: .40 on day 21", partial(daily, 1_000, 0.5, 0.40), 1000, 4),
    ),
)
