"""The check of the sample ratio at 200 looks."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.streams import linear
from benchmarks.coverage.table import Row, Table
from streammetrics.experiments import SampleRatio

UNITS: Final = 1_000_000  # of both arms at the end


def sample_ratio(
    planned: tuple[float, float], true: float, new: NDArray[np.int64], rng: np.random.Generator
) -> list[float]:
    """Whether ever p < 0.05 and p < 0.001 by chi-square, and e >= 1,000 of all units together with
    one prior, and with the mean of four.

    new: units of both arms at each look. true: the share of units assigned to the treatment.
    """
    weights = {"control": planned[0], "treatment": planned[1]}
    strong, weak = SampleRatio(weights), SampleRatio(weights, k=10_000)
    treated = np.cumsum(rng.binomial(new, true)).tolist()
    alarms = [False] * 4
    for n, b in zip(np.cumsum(new).tolist(), treated, strict=True):
        units = {"control": n - b, "treatment": b}
        strong_result, weak_result = strong.at(units), weak.at(units)
        now = (
            strong_result.pvalue < 0.05,
            strong_result.pvalue < 0.001,
            weak_result.e_value >= 1000,
            strong_result.e_value >= 1000,
        )
        alarms = [flag or alarm for flag, alarm in zip(alarms, now, strict=True)]
    return list(map(float, alarms))


SAMPLE_RATIO: Final = Table(
    "sample-ratio",
    "planned and true share of the treatment",
    (
        "chi-square, p < 0.05 at any look",
        "chi-square, p < 0.001 at any look",
        "e ≥ 1,000, k = 10,000",
        "e ≥ 1,000, mean of four (used)",
    ),
    tuple(
        Row(name, partial(sample_ratio, (1 - planned, planned), true, linear(UNITS)), 400, 43)
        for name, planned, true in (
            ("50 %, 50 %", 0.5, 0.5),
            ("10 %, 10 %", 0.1, 0.1),
            ("50 %, 50.2 %", 0.5, 0.502),
            ("50 %, 50.5 %", 0.5, 0.505),
        )
    ),
)
