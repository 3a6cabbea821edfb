"""Ranks and bands of quantiles, against worked examples, scipy, and sums over all counts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics.kernels.inference.normal_mixture import as_t, multiplier, tuned
from streammetrics.kernels.inference.proportions import newcombe_bounds
from streammetrics.kernels.inference.quantile_effect import (
    Sided,
    difference_of_quantiles,
    log_e_of_at_most,
    log_e_of_equality,
    rank_evidence,
    share_evidence,
)
from streammetrics.kernels.inference.quantile_ranks import (
    fixed_ranks,
    log_e_of_rank,
    prior_rows,
    rank_of,
    sequence_ranks,
    stitched_band,
    uniform_band,
)
from tests.expected import Noted, examples_of


@pytest.fixture
def examples(data: Path) -> dict[str, list[Noted]]:
    """The worked examples of section 1 by metric."""
    groups: dict[str, list[Noted]] = {}
    for example in examples_of(data, 1):
        groups.setdefault(example["metric"], []).append(example)
    return groups


def near(value: float, expected: float, example: dict[str, Any]) -> bool:
    tolerance: float = example["tolerance"]["relative"]
    return abs(value - expected) <= tolerance * abs(expected)


def test_worked_examples_of_ranks_and_bands(examples: dict[str, list[Noted]]) -> None:
    for example in examples["quantile_interval_ranks"]:
        inputs = example["inputs"]
        assert [*fixed_ranks(inputs["n"], Fraction(inputs["p"]), inputs["level"])] == example[
            "value"
        ]
    for example in examples["quantile_confidence_sequence_ranks"]:
        inputs = example["inputs"]
        prior = prior_rows(inputs["n_opt"], inputs["alpha"])
        ranks = sequence_ranks(inputs["n"], Fraction(inputs["p"]), prior, inputs["alpha"])
        assert [*ranks] == example["value"], example["id"]
    for example in examples["quantile_log_e_value"]:
        inputs = example["inputs"]
        prior = prior_rows(inputs["n_opt"], inputs["alpha"])
        value = log_e_of_rank(inputs["rows_at_or_below"], inputs["n"], Fraction(inputs["p"]), prior)
        assert near(value, example["value"], example), example["id"]
    for example in examples["uniform_cdf_band"]:
        inputs = example["inputs"]
        assert near(
            uniform_band(inputs["t"], inputs["alpha"], inputs["t_min"]), example["value"], example
        )
    for example in examples["quantile_stitched_band"]:
        inputs = example["inputs"]
        assert near(
            stitched_band(inputs["t"], inputs["p"], inputs["alpha"]), example["value"], example
        )


def test_the_difference_of_two_quantiles_combines_their_intervals(
    examples: dict[str, list[Noted]],
) -> None:
    (example,) = examples["quantile_difference_interval"]
    arms = example["inputs"]["control"], example["inputs"]["treatment"]
    (a, of_a), (b, of_b) = ((arm["estimate"], (arm["lower"], arm["upper"])) for arm in arms)
    bounds = newcombe_bounds(a, of_a, b, of_b)
    assert all(near(x, y, example) for x, y in zip(bounds, example["value"], strict=True))


def arm(values: np.ndarray, p: Fraction, prior: float) -> Sided:
    points, counts = np.unique(np.asarray(values, float), return_counts=True)
    return rank_evidence(points, points, counts.cumsum(), p, prior)


def test_the_equality_of_two_quantiles(examples: dict[str, list[Noted]]) -> None:
    (example,) = examples["quantile_equality_p_value"]
    inputs = example["inputs"]
    prior, p = prior_rows(inputs["n_opt"], inputs["alpha_opt"]), Fraction(inputs["p"])
    arms = [arm(np.array(inputs[name]), p, prior) for name in ("control", "treatment")]
    assert near(math.exp(-log_e_of_equality(*arms)), example["value"], example)


def small_arms() -> Iterator[tuple[list[np.ndarray], Fraction, float]]:
    rng = np.random.default_rng(5)
    for seed in range(12):
        values = [rng.integers(0, 6, rng.integers(1, 14)) + seed % 7 * i for i in (0, 1)]
        yield values, Fraction(int(rng.integers(1, 10)), 10), 5.0


def counts_at(values: np.ndarray, x: float) -> range:
    """The counts of rows at or below a point: at x some of the ties may be above it."""
    return range(int((values < x).sum()), int((values <= x).sum()) + 1)


def test_equality_is_the_least_evidence_at_any_value_and_between_any_two() -> None:
    log_e = cache(log_e_of_rank)
    for values, p, prior in small_arms():
        evidence = log_e_of_equality(*(arm(sample, p, prior) for sample in values))

        def brute(apart: float, values: Any = values, p: Any = p, prior: Any = prior) -> float:
            return min(
                log_e(a, len(values[0]), p, prior) + log_e(b, len(values[1]), p, prior)
                for x in np.unique(np.concatenate([values[0], values[1] - apart]))
                for a in counts_at(values[0], x)
                for b in counts_at(values[1], x + apart)
            )

        assert evidence == brute(0)
        # Against a difference of at most 2: the least of all of these.
        at_most = log_e_of_at_most(*(arm(sample, p, prior) for sample in values), 2.0)
        differences = [y - x for x in values[0] for y in values[1] if y - x <= 2]
        least = min(brute(apart) for apart in (*differences, 2, -99))
        assert at_most == pytest.approx(least, rel=1e-12, abs=1e-12)


def test_the_difference_of_two_quantiles_is_that_of_all_counts_with_little_evidence() -> None:
    for values, p, prior in small_arms():
        limit = math.log(3)
        ordered = [np.concatenate([[-math.inf], np.sort(sample), [math.inf]]) for sample in values]
        intervals = [
            (ordered[1][b] - ordered[0][a + 1], ordered[1][b + 1] - ordered[0][a])
            for a in range(len(values[0]) + 1)
            for b in range(len(values[1]) + 1)
            if log_e_of_rank(a, len(values[0]), p, prior)
            + log_e_of_rank(b, len(values[1]), p, prior)
            < limit
        ]
        bounds = difference_of_quantiles(*(arm(sample, p, prior) for sample in values), limit)
        assert bounds == (min(low for low, _ in intervals), max(high for _, high in intervals))


def test_buckets_make_a_difference_wider_and_its_evidence_weaker() -> None:
    rng = np.random.default_rng(8)
    p, exact, coarse = Fraction(3, 4), [], []
    for shift in (0.0, 0.4):
        values = np.sort(rng.normal(shift, 1, 400))
        cells, counts = np.unique(np.floor(8 * values), return_counts=True)
        exact.append(arm(values, p, 40.0))
        coarse.append(rank_evidence(cells / 8, (cells + 1) / 8, counts.cumsum(), p, 40.0))
    low, high = difference_of_quantiles(*exact, math.log(20))
    least, most = difference_of_quantiles(*coarse, math.log(20))
    assert low - 0.5 < least <= low < 0.4 < high <= most < high + 0.5
    assert -9 < log_e_of_equality(*coarse) < log_e_of_equality(*exact)
    # What is outside of the interval has an e-value of 20 or more.
    assert log_e_of_at_most(*exact, low - 1e-9) >= math.log(20) > log_e_of_at_most(*exact, low)


def test_a_share_with_an_error_over_users_maps_to_the_rows_within_its_reach() -> None:
    values = np.arange(1.0, 1001.0)
    p, se, rho = Fraction(9, 10), 0.01, tuned(1e4, 0.05)
    evidence = share_evidence(values, values, np.arange(1, 1001), p, se, 63.0, rho)
    reach = as_t(multiplier(1 / se / se, rho, 0.05), 63.0) * se
    assert evidence.lowest(math.log(20)) == math.floor(1000 * (0.9 - reach)) + 1
    assert -evidence.mirrored().lowest(math.log(20)) == math.ceil(1000 * (0.9 + reach))
    assert evidence.lowest(200.0) == -math.inf  # a level of 0 or less


def binomial_tail(k: int, n: int, p: Fraction) -> Fraction:
    """P(S <= k)."""
    terms = (math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))
    return sum(terms, Fraction(0))


def test_ranks_of_one_look_are_the_last_with_their_tails() -> None:
    tail = Fraction(1, 40)
    for n in (1, 2, 5, 6, 40, 73):
        for p in (Fraction(1, 2), Fraction(1, 100), Fraction(9, 10)):
            lower, upper = fixed_ranks(n, p, 0.95)
            assert binomial_tail(lower - 1, n, p) <= tail
            assert lower == n or binomial_tail(lower, n, p) > tail
            assert 1 - binomial_tail(upper - 1, n, p) <= tail
            assert upper == 0 or 1 - binomial_tail(upper - 2, n, p) > tail, (n, p)


def test_a_tail_that_is_exactly_that_of_the_level_is_inside_it() -> None:
    # One row is below its 0.95-quantile with probability 0.95, and 1 - 0.9 in binary is below 0.1.
    assert fixed_ranks(1, Fraction(19, 20), 0.9) == (1, 2)
    assert fixed_ranks(1, Fraction(1, 20), 0.9) == (0, 1)


def test_ranks_of_all_looks_are_those_with_little_evidence_against_them() -> None:
    for n in (1, 7, 90):
        for p in (Fraction(1, 2), Fraction(1, 100), Fraction(99, 100)):
            prior = prior_rows(200, 0.05)
            inside = [k for k in range(n + 1) if log_e_of_rank(k, n, p, prior) < math.log(20)]
            assert sequence_ranks(n, p, prior, 0.05) == (inside[0], inside[-1] + 1), (n, p)


def test_a_rank_is_that_of_the_decimal() -> None:
    assert rank_of(100, Fraction("0.07")) == 7 and rank_of(5, Fraction(1)) == 5
    assert uniform_band(99, 0.05, 100) == math.inf
