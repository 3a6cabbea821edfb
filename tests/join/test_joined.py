"""Joined and LabelDelays: a metric of impressions with the labels that came, and when."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from streammetrics import ExactAUC, InputError, Joined, LabelDelays, PerKey, Ratio, Windows


def clicks(**settings: Any) -> Joined:
    defaults: dict[str, Any] = {"columns": {}, "outcomes": {"click": "once"}, "label_window_ms": 10}
    return Joined(Ratio(), **{**defaults, **settings})


def test_before_its_window_closes_an_impression_is_pending_and_no_negative() -> None:
    state = clicks()
    state.update("impression", [1, 2], [0, 1])
    result = state.compute()
    assert (result.closed, result.pending, result.share_pending) == (0, 2, 1.0)
    assert math.isnan(result.result.ratio)  # type: ignore[attr-defined]
    state.update(["click", "impression"], [1, 3], [9, 11])
    result = state.compute()
    assert (result.closed, result.pending, result.closed_before_ms) == (1, 2, 1)
    assert result.result.ratio == 1.0  # type: ignore[attr-defined]
    assert state + state == state


def test_what_comes_after_its_time_was_closed_is_late() -> None:
    state = clicks()
    state.update("impression", [1, 2], [0, 50])
    state.close(20)
    state.update(["impression", "click", "click"], [9, 1, 2], [19, 5, 51])
    result = state.compute()
    assert (result.late_impressions, result.late_outcomes) == (1, 1)
    assert (result.closed, result.pending) == (1, 1)
    state.close(100)
    assert state.compute().result.ratio == 0.5  # type: ignore[attr-defined]
    assert state.compute().delays["click"].attributed == 1


def test_closing_in_steps_and_in_shards_counts_what_one_state_counts() -> None:
    random = np.random.default_rng(7)
    n = 3_000
    shown = random.permutation(n)
    shown_at = np.sort(random.integers(0, 1000, n))
    clicked = random.choice(n, 500, replace=False)
    kinds = np.array(["impression"] * n + ["click"] * 500)
    ids = np.concatenate([shown, shown[clicked]])
    times = np.concatenate([shown_at, shown_at[clicked] + random.integers(0, 20, 500)])
    scores = random.random(n + 500)
    metric = Windows(PerKey(ExactAUC(), 5), 0.1)
    columns = {"scores": "float64", "keys": "int64"}
    whole = Joined(metric, columns, {"click": "once"}, 10)
    shards = [whole.empty() for _ in range(3)]
    order = np.argsort(times, kind="stable")
    for number, indexes in enumerate(np.array_split(order, 30)):
        for i, shard in enumerate(shards):
            shard_indexes = indexes[ids[indexes] % 3 == i]
            shard.update(
                kinds[shard_indexes],
                ids[shard_indexes],
                times[shard_indexes],
                scores=scores[shard_indexes],
                keys=ids[shard_indexes] % 2,
            )
            if number % (i + 2) == 0:
                shard.close(int(times[indexes].min()) - 10)
    whole.update(kinds, ids, times, scores=scores, keys=ids % 2)
    joined = sum(shards[1:], start=shards[0])
    for state in (whole, joined):
        state.close(2_000)
    assert joined == whole
    assert whole.compute().result.total.results.keys() == {0, 1}  # type: ignore[attr-defined]


def test_what_the_metric_would_refuse_is_refused_when_it_comes() -> None:
    state = Joined(ExactAUC(), {"scores": "float64"}, {"click": "once"}, 10)
    state.update("impression", [1], [0], scores=[0.5])
    before = state.digest()
    with pytest.raises(InputError, match="scores"):
        state.update("impression", [2], [0], scores=[math.nan])
    assert state.digest() == before


def test_an_outcome_of_several_is_named_as_the_label() -> None:
    outcomes = {"click": "once", "sale": "sum"}
    state = clicks(outcomes=outcomes, inputs={"numerators": "sale", "denominators": "click"})
    state.update(["impression", "sale", "click"], [1, 1, 1], [0, 1, 2], values=[0, 7.5, 0])
    state.close(100)
    assert state.compute().result.ratio == 7.5  # type: ignore[attr-defined]


def test_a_window_that_cuts_shows_in_the_share_of_its_last_tenth() -> None:
    delays = LabelDelays(("click",), 10_000)
    delays.update(["click"] * 4, [0, 8_999, 9_000, 9_999])
    assert delays.compute()["click"].share_cut == 0.5
    nothing = delays.empty().compute()["click"]
    assert math.isnan(nothing.share_cut)
    assert math.isnan(nothing.share_unattributed)
