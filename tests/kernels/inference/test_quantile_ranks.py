"""Ranks and bands of quantiles, against worked examples, scipy, and sums over all counts."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics.kernels.inference.proportions import newcombe_bounds
from streammetrics.kernels.inference.quantile_ranks import (
    fixed_ranks,
    log_e_of_equality,
    log_e_of_rank,
    prior_rows,
    rank_of,
    sequence_ranks,
    stitched_band,
    uniform_band,
)


@pytest.fixture
def examples(data: Path) -> dict[str, list[dict[str, Any]]]:
    """The worked examples of section 1 by metric."""
    known = json.loads((data / "worked_examples_next.json").read_text(encoding="utf-8"))["examples"]
    found: dict[str, list[dict[str, Any]]] = {}
    for example in known:
        if example["section"] == 1:
            found.setdefault(example["metric"], []).append(example)
    return found


def near(value: float, known: float, example: dict[str, Any]) -> bool:
    tolerance: float = example["tolerance"]["relative"]
    return abs(value - known) <= tolerance * abs(known)


def test_worked_examples_of_ranks_and_bands(examples: dict[str, list[dict[str, Any]]]) -> None:
    for one in examples["quantile_interval_ranks"]:
        given = one["inputs"]
        assert [*fixed_ranks(given["n"], Fraction(given["p"]), given["level"])] == one["value"]
    for one in examples["quantile_confidence_sequence_ranks"]:
        given = one["inputs"]
        prior = prior_rows(given["n_opt"], given["alpha"])
        found = sequence_ranks(given["n"], Fraction(given["p"]), prior, given["alpha"])
        assert [*found] == one["value"], one["id"]
    for one in examples["quantile_log_e_value"]:
        given = one["inputs"]
        prior = prior_rows(given["n_opt"], given["alpha"])
        value = log_e_of_rank(given["rows_at_or_below"], given["n"], Fraction(given["p"]), prior)
        assert near(value, one["value"], one), one["id"]
    for one in examples["uniform_cdf_band"]:
        given = one["inputs"]
        assert near(uniform_band(given["t"], given["alpha"], given["t_min"]), one["value"], one)
    for one in examples["quantile_stitched_band"]:
        given = one["inputs"]
        assert near(stitched_band(given["t"], given["p"], given["alpha"]), one["value"], one)


def test_the_difference_of_two_quantiles_combines_their_intervals(
    examples: dict[str, list[dict[str, Any]]],
) -> None:
    (one,) = examples["quantile_difference_interval"]
    arms = one["inputs"]["control"], one["inputs"]["treatment"]
    (a, of_a), (b, of_b) = ((arm["estimate"], (arm["lower"], arm["upper"])) for arm in arms)
    found = newcombe_bounds(a, of_a, b, of_b)
    assert all(near(x, y, one) for x, y in zip(found, one["value"], strict=True))


def cumulative(values: np.ndarray, at: np.ndarray) -> tuple[list[int], list[int]]:
    """The rows below, and at or below, each of `at`."""
    ordered = np.sort(values)
    sides = (np.searchsorted(ordered, at, side) for side in ("left", "right"))
    below, upto = (found.tolist() for found in sides)
    return below, upto


def test_the_equality_of_two_quantiles(examples: dict[str, list[dict[str, Any]]]) -> None:
    (one,) = examples["quantile_equality_p_value"]
    given = one["inputs"]
    arms = [np.array(given[name]) for name in ("control", "treatment")]
    at = np.unique(np.concatenate(arms))
    (below_a, upto_a), (below_b, upto_b) = (cumulative(arm, at) for arm in arms)
    prior, p = prior_rows(given["n_opt"], given["alpha_opt"]), Fraction(given["p"])
    found = log_e_of_equality((below_a, below_b), (upto_a, upto_b), p, prior)
    assert near(math.exp(-found), one["value"], one)


def test_equality_is_the_least_evidence_at_any_value_and_between_any_two() -> None:
    rng = np.random.default_rng(5)
    for seed in range(12):
        arms = [rng.integers(0, 6, rng.integers(1, 14)) + seed % 7 * i for i in (0, 1)]
        p, prior = Fraction(int(rng.integers(1, 10)), 10), 5.0
        at = np.unique(np.concatenate(arms))
        (below_a, upto_a), (below_b, upto_b) = (cumulative(arm, at) for arm in arms)
        found = log_e_of_equality((below_a, below_b), (upto_a, upto_b), p, prior)
        brute = min(
            log_e_of_rank(a, len(arms[0]), p, prior) + log_e_of_rank(b, len(arms[1]), p, prior)
            for i in range(len(at))
            for a in range(below_a[i], upto_a[i] + 1)
            for b in range(below_b[i], upto_b[i] + 1)
        )
        assert found == brute


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


def test_ranks_of_all_looks_are_those_with_little_evidence_against_them() -> None:
    for n in (1, 7, 90):
        for p in (Fraction(1, 2), Fraction(1, 100), Fraction(99, 100)):
            prior = prior_rows(200, 0.05)
            inside = [k for k in range(n + 1) if log_e_of_rank(k, n, p, prior) < math.log(20)]
            assert sequence_ranks(n, p, prior, 0.05) == (inside[0], inside[-1] + 1), (n, p)


def test_a_rank_is_that_of_the_decimal() -> None:
    assert rank_of(100, Fraction("0.07")) == 7 and rank_of(5, Fraction(1)) == 5
    assert uniform_band(99, 0.05, 100) == math.inf
