"""drift of exact states: the distances of all values, by their definitions, and their laws; and
what groups of users know of these."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import ExactAUC, ExactQuantiles, HistogramAUC, UserGroups, drift
from streammetrics.results import doubts_of

values = st.lists(
    st.sampled_from((-9.0, -2.0, -1.5, 0.0, 0.25, 0.5, 1.0, 1.25, 1.75, 2.0, 3.0, 7.0)),
    min_size=1,
    max_size=12,
)


def exact_of(x: Sequence[float]) -> ExactQuantiles:
    state = ExactQuantiles()
    state.update(np.asarray(x, float))
    return state


@given(values, values)
def test_distances_of_exact_states_are_those_of_all_values_to_the_last_digits(
    a: list[float], b: list[float]
) -> None:
    """By the definitions: in fractions, and with 40 digits where there are roots and logarithms."""
    result = drift(exact_of(a), exact_of(b))
    shares = [
        [Fraction(sum(x == v for x in side), len(side)) for v in sorted({*a, *b})]
        for side in (a, b)
    ]
    pairs = [*zip(*shares, strict=True)]
    assert result.total_variation == float(sum(abs(p - q) for p, q in pairs) / 2)
    with localcontext(prec=40):
        p_q = [[Decimal(x.numerator) / x.denominator for x in pair] for pair in pairs]
        roots = sum((p.sqrt() - q.sqrt()) ** 2 for p, q in p_q)
        bits = sum(
            x * (2 * x / (p + q)).ln() / Decimal(2).ln() for p, q in p_q for x in (p, q) if x
        )
        expected = {
            "hellinger": (roots / 2).sqrt(),
            "js_divergence": max(bits / 2, Decimal(0)),
            "js_distance": max(bits / 2, Decimal(0)).sqrt(),
        }
    for view, value in expected.items():
        distance = getattr(result, view)
        assert type(distance) is float, view
        assert distance == pytest.approx(float(value), rel=1e-14, abs=1e-18), view
        assert distance == getattr(drift(exact_of(b), exact_of(a)), view), view


@given(values, values)
def test_distances_of_exact_states_do_not_depend_on_the_scale_of_the_scores(
    a: list[float], b: list[float]
) -> None:
    """A strictly increasing function of the values changes no distance of shares, and equal states
    have the distance 0; that of values, Wasserstein, has their unit."""
    plain = drift(exact_of(a), exact_of(b))
    scaled = drift(exact_of(np.exp(a) * 100), exact_of(np.exp(b) * 100))
    scores = [ExactAUC(), ExactAUC()]
    for state, x in zip(scores, (a, b), strict=True):
        state.update([0] * len(x), np.sinh(x))
    for view in ("ks", "psi", "total_variation", "js_divergence", "js_distance", "hellinger"):
        expected = getattr(plain, view)
        assert getattr(scaled, view) == expected == getattr(drift(*scores), view), view
        assert getattr(drift(exact_of(a), exact_of(a * 3)), view) == 0 or view == "psi", view


def test_exact_distances_of_values_that_all_differ_say_that_chance_makes_them_large() -> None:
    random = np.random.default_rng(7)
    a, b = (exact_of(random.normal(size=200)) for _ in "ab")
    result = drift(a, b)
    assert result.total_variation == result.hellinger == result.js_distance == 1.0
    doubt = "100 % of the rows have a value that only one side has"
    for view in ("total_variation", "hellinger", "js_distance", "js_divergence"):
        assert doubts_of(result, view)[0].startswith(doubt), view
    assert not doubts_of(result, "psi") and not doubts_of(result, "ks")
    assert doubt in repr(result)
    few = drift(exact_of([1.0, 2.0, 2.0]), exact_of([1.0, 1.0, 2.0]))
    assert few.total_variation == 1 / 3 and not few.note


def test_a_distance_of_values_one_by_one_has_an_interval_over_users_of_few_values_only() -> None:
    random = np.random.default_rng(9)
    states: list[UserGroups[Any]] = []
    many: list[UserGroups[Any]] = []
    scores: list[UserGroups[Any]] = []
    for shift in (0.0, 0.8):
        who, x = random.integers(0, 400, 4000), random.normal(size=4000) + shift
        for group, y in ((states, np.clip(np.round(x), -2, 2)), (many, x)):
            group.append(UserGroups(ExactQuantiles()))
            group[-1].update(who, values=y)
        scores.append(UserGroups(ExactAUC()))
        scores[-1].update(who, labels=x > 0, scores=np.clip(np.round(x), -2, 2))
    stars = drift(*states).interval("total_variation")
    assert 0 < stars.lower < stars.estimate < stars.upper < 1
    assert stars.estimate == drift(*(s.metric_state() for s in states)).total_variation
    none = drift(*many).interval("total_variation")
    assert not none.defined and "one by one" in none.reason
    assert drift(*many).interval("ks").defined
    coarse = drift(*scores)
    assert not coarse.interval("hellinger").defined
    assert "in buckets" in coarse.interval("hellinger").reason
    assert coarse.interval("psi").defined


@pytest.mark.parametrize("metric", [HistogramAUC(), ExactAUC()], ids=["grid", "exact"])
def test_groups_that_hold_the_order_of_scores_have_no_interval_of_a_distance_in_their_units(
    metric: HistogramAUC | ExactAUC,
) -> None:
    random, states = np.random.default_rng(6), []
    for moved in (1.0, 1.2):
        state: UserGroups[Any] = UserGroups(metric)
        scores = random.beta(2, 60, 2000) * moved
        state.update(random.integers(0, 300, 2000), labels=scores > 0.05, scores=scores)
        states.append(state)
    result = drift(*states)
    interval = result.interval("wasserstein")
    assert not interval.defined and "UserGroups(Quantiles" in interval.reason
    assert result.interval("psi").lower > 0 and result.interval("ks").lower > 0
