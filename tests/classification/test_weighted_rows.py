"""Weights of BinaryConfusion, HistogramAUC and ExactAUC: real ones, small ones, and huge ones."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics.classification import BinaryConfusion, ExactAUC, HistogramAUC
from streammetrics.combine import Panel, PerKey
from streammetrics.core.bounded import Bounded
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.present.views import counts_of
from tests.expected import cases_of
from tests.oracles import binary, weighted

Case = Mapping[str, Any]
HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
METRICS = [BinaryConfusion(), HistogramAUC(), ExactAUC()]
any_metric = pytest.mark.parametrize("empty", METRICS, ids=lambda m: type(m).__name__)


@pytest.fixture(scope="module")
def higgs(data: Path) -> tuple[dict[str, list[float]], list[Case]]:
    with (data / "higgs500.csv").open() as file:
        rows = list(csv.DictReader(file))
    columns = {f"{name}s": [float(row[name]) for row in rows] for name in ("label", "score")}
    columns["weights"] = [float(row["weight"]) for row in rows]
    cases = cases_of(data, "higgs500")
    return columns, [case for case in cases if "_weighted" in case["id"]]


def test_every_weighted_rate_of_higgs(higgs: tuple[dict[str, list[float]], list[Case]]) -> None:
    columns, cases = higgs
    found = [c for c in cases if c["metric"] in ("accuracy", "precision", "recall")]
    assert len(found) >= 6
    for case in found:
        metric = BinaryConfusion(threshold=case["params"]["threshold"], weight_unit="1/10")
        metric.update(**columns)
        assert getattr(metric.compute(), case["metric"]) == case["value"], case["id"]


def test_the_weighted_areas_of_higgs(higgs: tuple[dict[str, list[float]], list[Case]]) -> None:
    columns, cases = higgs
    (auc,) = (c["value"] for c in cases if c["metric"] == "auc")
    (ap,) = (c["value"] for c in cases if c["metric"] == "ap")
    exact, histogram = ExactAUC(weight_unit=TENTH), HistogramAUC(weight_unit=TENTH)
    for metric in (exact, histogram):
        metric.update(**columns)
    curve = exact.compute()
    assert curve.auc == auc
    assert curve.ap == pytest.approx(ap, rel=4e-16)
    assert (curve.rows, curve.weight) == (500, sum(Fraction(str(w)) for w in columns["weights"]))
    between = histogram.compute()
    assert isinstance(between.auc, Bounded) and isinstance(between.ap, Bounded)
    assert between.auc.low <= auc <= between.auc.high
    assert between.ap.low <= ap <= between.ap.high


@pytest.mark.slow
@pytest.mark.parametrize("unit", [Fraction(1, 2), Fraction(1, 6)])
def test_every_small_multiset_of_weighted_rows(unit: Fraction) -> None:
    every = list(product((0, 1), (0.25, 0.5), (0, HALF, 1, 2)))
    for n in range(4):
        for rows in combinations_with_replacement(every, n):
            labels, scores, weights = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
            there = [(y, s, int(w / unit)) for y, s, w in rows if w]
            exact = weighted.area(there)
            repeated = [(y, s) for y, s, w in there for _ in range(w)]
            metrics = [type(m)(weight_unit=unit) for m in METRICS]
            for metric in metrics:
                metric.update(labels, scores, weights=[float(w) for w in weights])
            rates, between, curve = (metric.compute() for metric in metrics)
            cells = [rates.tn, rates.fp, rates.fn, rates.tp]
            assert cells == list(binary.confusion(repeated, 0.5))
            for result in (rates, between, curve):
                assert result.rows == len(there)
                assert result.weight == sum((w for *_, w in rows), Fraction(0))
            if exact is None:
                assert np.isnan(curve.auc)
            else:
                assert curve.auc == float(exact) and exact == binary.area(repeated)
                assert between.auc.low <= exact <= between.auc.high


@any_metric
def test_weights_of_one_are_no_weights(empty: Any) -> None:
    rng = np.random.default_rng(3)
    labels, scores = rng.integers(0, 2, 300).astype(np.uint8), rng.random(300).astype(np.float32)
    plain, ones, tenths = empty.empty(), empty.empty(), type(empty)(weight_unit=TENTH)
    plain.update(labels, scores)
    for i in range(0, 300, 50):  # small batches of both kinds wait for each other
        some = slice(i, i + 50)
        ones.update(labels[some], scores[some], weights=None if i % 100 else np.ones(50))
    assert ones == plain
    tenths.update(labels[:100], scores[:100])
    tenths.update(labels[100:], scores[100:], weights=np.ones(200, np.int8))
    one, other = plain.compute(), tenths.compute()
    assert (one.rows, one.weight, one.weight_units) == (300, 300, None)
    assert (other.rows, other.weight, other.weight_units) == (300, 300, 3000)
    assert counts_of(other)["weight_units"] == 3000 and "weight_units" not in counts_of(one)
    twos = type(empty)(weight_unit=2)
    twos.update(labels, scores, weights=np.full(300, 2))
    two = twos.compute()
    assert (two.rows, two.weight, two.weight_units) == (300, 600, 300)
    name = "accuracy" if isinstance(empty, BinaryConfusion) else "auc"
    assert getattr(one, name) == getattr(other, name)


@any_metric
def test_a_row_of_weight_zero_is_as_if_absent(empty: Any) -> None:
    with_zeros, without = empty.empty(), empty.empty()
    with_zeros.update([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], weights=[2, 0, 3, 0])
    without.update([0, 1], [0.1, 0.3], weights=[2, 3])
    assert with_zeros == without
    with_zeros.update([1], [0.7], weights=[0])
    assert with_zeros == without
    only = empty.empty()
    only.update([0, 1], [0.1, 0.2], weights=[0.0, 0.0])
    assert only == empty


@any_metric
def test_a_refused_weight_changes_nothing(empty: Any) -> None:
    state = empty.empty()
    state.update([0, 1], [0.1, 0.2], weights=[1, 2])
    before = state.to_bytes()
    for weights in ([1, 0.5], [1, -1], [1, float("nan")], [1], ["a", "b"]):
        with pytest.raises(InputError, match="weights"):
            state.update([0, 1], [0.1, 0.2], weights=weights)
    assert state.to_bytes() == before


@any_metric
def test_all_weights_of_a_state_together_stay_below_two_to_the_63(empty: Any) -> None:
    state = empty.empty()
    state.update([0], [0.25], weights=[2**62])
    state.update([1], [0.75], weights=[2**62 - 1])
    before = state.to_bytes()
    with pytest.raises(StateError, match="units of weight"):
        state.update([1], [0.75], weights=[1])
    with pytest.raises(StateError, match="units of weight"):
        state.update([1, 0], [0.75, 0.25], weights=[2**62, 2**62])
    with pytest.raises(StateError, match="units of weight"):
        state.merge(state.copy())
    assert state.to_bytes() == before
    back = type(empty).from_bytes(before)
    assert back == state and back.compute().weight_units == 2**63 - 1
    with pytest.raises(StateError, match="units of weight"):
        back.update([1], [0.75], weights=[1])
    if not isinstance(empty, BinaryConfusion):
        assert float(back.compute().auc) == 1.0


@any_metric
def test_settings_of_weights(empty: Any) -> None:
    made = type(empty)
    assert made(weight_unit="1/10") == made(weight_unit=TENTH)
    assert made(weight_unit=1) == made() != made(weight_unit=2)
    with pytest.raises(SettingsError, match=r"Fraction\(1, 10\)"):
        made(weight_unit=0.1)
    with pytest.raises(SettingsError, match="weight_unit"):
        made().merge(made(weight_unit=2))


def test_weights_reach_every_metric_of_a_panel_and_every_key() -> None:
    panel = Panel({"rates": BinaryConfusion(weight_unit="1/2"), "auc": ExactAUC()})
    keyed = PerKey(panel, max_keys=5)
    keyed.update(
        keys=["a", "b", "a", "a"],
        labels=[0, 1, 1, 1],
        scores=[0.1, 0.2, 0.3, 0.05],
        weights=[2, 3, 0, 5],
    )
    result = keyed.compute()["a"]
    assert (result["rates"].rows, result["rates"].weight) == (2, 7)
    assert (result["auc"].rows, result["auc"].auc) == (2, 0.0)
    with pytest.raises(InputError, match="metric 'auc', weights"):
        panel.update(labels=[1], scores=[0.5], weights=[0.5])


@pytest.mark.parametrize("empty", [HistogramAUC(), ExactAUC(), HistogramAUC(grid="equal")], ids=str)
def test_many_weighted_rows_are_those_rows_repeated(empty: Any) -> None:
    rng = np.random.default_rng(8)
    n = 80_000  # more than a chunk of the kernels at once
    labels, scores = rng.integers(0, 2, n), np.round(rng.random(n), 4)
    weights = rng.integers(0, 4, n)
    state, repeated = empty.empty(), empty.empty()
    for some in np.array_split(np.arange(n), [10, 50, 9000, 9001]):
        state.update(labels[some], scores[some], weights=weights[some])
    repeated.update(np.repeat(labels, weights), np.repeat(scores, weights))
    assert state.compute().auc == repeated.compute().auc
    assert state.compute().rows == np.count_nonzero(weights)
    assert np.array_equal(state.compute().counts, repeated.compute().counts)
    assert np.array_equal(state.compute().scores, repeated.compute().scores)
