"""Two hundred looks at independent units: z-tests, confidence sequences, the burn-in."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.streams import LOOKS, information, linear, logarithmic, rate_looks
from benchmarks.coverage.table import Row, Table
from streammetrics.experiments import ConfidenceSequence, Evidence

N: Final = 100_000  # units of an arm at the end
ALPHA: Final = 0.05
COUNTS: Final = (1, 2, 5, 10, 20, 50, 100, 200)
NAIVE: Final = "z-test, stopped at the first p < 0.05"
SEQUENCE: Final = "confidence sequence"
TUNED: Final = (1.0, 0.5, 0.25, 0.05)
MDE_Z: Final = 2.801585  # standard errors that a fixed test detects with a power of 80 %
Sizes = NDArray[np.int64]


def tuned(
    n: int, p: float, fraction: float, share: float = 0.5, least: int = 10
) -> ConfidenceSequence:
    """A sequence narrowest at a fraction of the final information; n: units of an arm."""
    return ConfidenceSequence(v_opt=fraction * information(n, p, share), min_count=least)


def peek(kind: str, p: float, rng: np.random.Generator) -> list[float]:
    """Whether an A/A test was ever significant, for each number of evenly spaced looks."""
    sequence = tuned(N, p, 0.5)
    crossed = []
    for evidence in rate_looks(rng, linear(N), (p, p)):
        below = evidence.pvalue if kind == NAIVE else sequence.at(evidence).p_value
        crossed.append(below <= ALPHA)
    return [float(any(crossed[LOOKS // k - 1 :: LOOKS // k])) for k in COUNTS]


def stream(p: float, sizes: Sizes, rng: np.random.Generator) -> list[float]:
    """Whether significant: ever by the z-test, at the last look, and ever by sequences tuned at
    TUNED; then the final width of the sequence relative to the interval of one look.

    sizes: new units of an arm at each look.
    """
    sequences = [tuned(int(sizes.sum()), p, share) for share in TUNED]
    naive, crossed, last, width = False, [False] * len(TUNED), 1.0, math.nan
    for evidence in rate_looks(rng, sizes, (p, p)):
        last = evidence.pvalue
        naive |= last <= ALPHA
        results = [sequence.at(evidence) for sequence in sequences]
        crossed = [
            flag or result.p_value <= ALPHA for flag, result in zip(crossed, results, strict=True)
        ]
        fixed = evidence.effect_size_ci_upper - evidence.effect_size_ci_lower
        width = (results[1].upper - results[1].lower) / fixed
    return [float(naive), float(last <= ALPHA), *map(float, crossed), width]


def power(times: float, rng: np.random.Generator) -> list[float]:
    """Whether an effect of `times` the detectable one was found: by one look at the end, by the
    sequence until then, and at which share of the units the sequence found it."""
    p, sequence = 0.05, tuned(N, 0.05, 0.5)
    effect = times * MDE_Z / math.sqrt(information(N, p))
    evidence, stopped = None, math.nan
    for i, evidence in enumerate(rate_looks(rng, linear(N), (p - effect / 2, p + effect / 2)), 1):
        if math.isnan(stopped) and sequence.at(evidence).p_value <= ALPHA:
            stopped = i / LOOKS
    assert evidence is not None
    return [float(evidence.pvalue <= ALPHA), float(not math.isnan(stopped)), stopped]


def burn_in(p: float, share: float, sizes: Sizes, rng: np.random.Generator) -> list[float]:
    """Whether ever significant: by the variance of each arm by itself, from one expected event, and
    by that of both arms together, from each number of expected events and other rows."""
    n = int(sizes.sum())
    leasts = 1, 1, 10, 30
    sequences = [tuned(n, p, 0.25, share, least) for least in leasts]
    crossed = [False] * len(sequences)
    for evidence in rate_looks(rng, sizes, (p, p), share):
        errors = evidence.std_error, *[evidence.anytime_error] * 3
        looks = [
            Evidence(
                effect_size=evidence.effect_size,
                std_error=error,
                least_count=evidence.least_count,
                no_sequence=evidence.no_sequence,
            )
            for error in errors
        ]
        rejections = [
            sequence.at(look).p_value <= ALPHA
            for sequence, look in zip(sequences, looks, strict=True)
        ]
        crossed = [flag or now for flag, now in zip(crossed, rejections, strict=True)]
    return list(map(float, crossed))


PEEKING: Final = Table(
    "peeking",
    "looks",
    tuple(map(str, COUNTS)),
    tuple(Row(kind, partial(peek, kind, 0.3), 1000, 37) for kind in (NAIVE, SEQUENCE)),
)

STREAMS: Final = Table(
    "looks",
    "rate, looks",
    (
        "z-test at every look",
        "z-test at the last look",
        *(f"sequence, tuned at {share:g} of the end" for share in TUNED),
        "width against one look",
    ),
    tuple(
        Row(name, partial(stream, p, sizes), 1000, 40)
        for name, p, sizes in (
            ("5 %, evenly spaced", 0.05, linear(N)),
            ("5 %, dense at the start", 0.05, logarithmic(N)),
            ("30 %, dense at the start", 0.3, logarithmic(N)),
            ("0.5 %, dense at the start", 0.005, logarithmic(N)),
        )
    ),
)

POWER: Final = Table(
    "power",
    "true effect, relative to one that a single look finds in 80 %",
    ("found by one look at the end", "found by the sequence", "units until then"),
    tuple(Row(f"{x:g} times", partial(power, x), 500, 38) for x in (1.0, 1.5, 2.0)),
)

BURN_IN: Final = Table(
    "burn-in",
    "rate, share of the treatment",
    ("each arm by itself, minimum 1", "both arms together, 1", "10 (used)", "30"),
    tuple(
        Row(
            f"{100 * p:g} %, {100 * share:g} %",
            partial(burn_in, p, share, logarithmic(N)),
            300,
            36,
        )
        for p, share in ((0.05, 0.5), (0.05, 0.02), (0.005, 0.1), (0.005, 0.02), (0.0005, 0.1))
    ),
)
