"""Weights of rows of many classes and of many labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from streammetrics.classification import MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from streammetrics.combine import Panel, PerKey
from streammetrics.core.bounded import Bounded
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.present.views import counts_of
from tests.classification.test_multiclass_confusion import averaged, same
from tests.oracles import many_classes as brute
from tests.oracles import weighted_classes

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)
METRICS = [
    MulticlassConfusion(2, top_k=(1, 2)),
    MultilabelConfusion(2),
    MulticlassAUC(2),
    MulticlassAUC(2, exact=True),
]
Make = Callable[[Any], Any]
any_metric = pytest.mark.parametrize(
    "empty", METRICS, ids=["MulticlassConfusion", "MultilabelConfusion", "MulticlassAUC", "exact"]
)


def columns(empty: Any, n: int, seed: int = 3) -> dict[str, Any]:
    """Rows of two classes, of which each metric here takes some form."""
    rng = np.random.default_rng(seed)
    scores = rng.random((n, 2), np.float32).round(2)
    if isinstance(empty, MulticlassConfusion):
        return {"labels": rng.integers(0, 2, n), "predictions": scores}
    return {"labels": rng.integers(0, 2, (n, 2)), "scores": scores}


def taken(rows: Mapping[str, Any], at: Any) -> dict[str, Any]:
    return {name: column[at] for name, column in rows.items()}


def with_unit(empty: Any, unit: object) -> Any:
    return type(empty)(**{**empty.settings(), "weight_unit": unit})


@pytest.mark.slow
def test_every_small_multiset_of_classes() -> None:
    kinds = list(product(range(3), range(3), (0, HALF, 1, 3)))
    for n in range(3):
        for rows in combinations_with_replacement(kinds, n):
            metric = MulticlassConfusion(3, weight_unit="1/2")
            labels, said, weights = map(list, zip(*rows, strict=True)) if rows else ([], [], [])
            metric.update(labels, said, weights=weights)
            result, there = metric.compute(), [(t, p, int(2 * w)) for t, p, w in rows if w]
            assert (result.rows, result.weight) == (len(there), sum(w for *_, w in rows))
            support = [sum(w for t, _, w in there if t == k) for k in range(3)]
            assert result.support.tolist() == support
            for power, name in ((1, "linear"), (2, "quadratic")):
                cost = [abs(i - j) ** power for i in range(3) for j in range(3)]
                exact = weighted_classes.kappa(there, lambda i, j, c=cost: c[3 * i + j])  # type: ignore[misc]
                assert same(result.weighted_kappa(name), exact)
            found = weighted_classes.hits(there, 3)
            for (name, average), exact in brute.averages(found).items():
                assert same(averaged(result, name, average), exact), (rows, name, average)
            rates = result.rates(1)
            assert (rates.rows, rates.weight) == (result.rows, result.weight)
            assert (rates.tp, rates.fp, rates.fn) == found[1]


@pytest.mark.slow
def test_every_small_multiset_of_labels_and_the_mean_over_rows() -> None:
    kinds = list(product(product((0, 1), repeat=2), product((0, 1), repeat=2), (0, HALF, 2)))
    for n in range(3):
        for rows in combinations_with_replacement(kinds, n):
            metric = MultilabelConfusion(2, weight_unit=HALF)
            if rows:
                truth, said, weights = zip(*rows, strict=True)
                metric.update(truth, said, weights=[float(w) for w in weights])
            result, there = metric.compute(), [(t, p, int(2 * w)) for t, p, w in rows if w]
            exact = weighted_classes.labels(there, 2)
            for name in ("hamming_loss", "accuracy", "subset_accuracy", "macro_f1"):
                assert same(getattr(result, name), exact[name]), (rows, name)
            assert (result.rows, result.positives) == (exact["rows"], exact["positives"])
            assert result.weight == sum((w for *_, w in rows), Fraction(0))
            for term, zero in product(brute.TERMS, (math.nan, 0.0, 1.0)):
                mean = weighted_classes.samples(there, term, zero)
                assert same(averaged(result, term, "samples", zero), mean), (rows, term, zero)


def test_averages_of_areas_are_weighted_by_units_of_the_class() -> None:
    rng = np.random.default_rng(5)
    truth, units = rng.integers(0, 3, 60), rng.integers(0, 50, 60)
    scores = np.round(rng.random((60, 3)) * 8) / 8
    rows = list(zip(truth.tolist(), scores.tolist(), units.tolist(), strict=True))
    areas, precisions, support = weighted_classes.areas([row for row in rows if row[2]])
    for exact in (True, False):
        metric = MulticlassAUC(3, exact=exact, weight_unit=TENTH)
        metric.update(truth, scores, weights=units / 10)
        result = metric.compute()
        assert result.support == tuple(support)
        assert (result.weight, result.weight_units) == (sum(support) * TENTH, sum(support))
        assert result.rows == np.count_nonzero(units)
        for found, each in ((result.auc, areas), (result.ap, precisions)):
            for average, weights in (("macro", [1] * 3), ("weighted", support)):
                value, mean = found(average), brute.mean(each, weights, math.nan)
                assert mean is not None
                if exact:
                    assert value == float(mean)
                else:
                    assert isinstance(value, Bounded) and value.low <= mean <= value.high


def test_the_micro_average_pools_the_weighted_scores_of_all_classes() -> None:
    for exact in (True, False):
        pooled = MulticlassAUC(2, exact=exact)
        pooled.update([0, 1, 1], [[0.5, 0.25], [0.5, 0.75], [0.25, 0.5]], weights=[2, 0, 3])
        by_hand = [(1, 0.5, 2), (0, 0.25, 2), (0, 0.25, 3), (1, 0.5, 3)]
        expected = weighted_classes.average_precision(by_hand)
        assert expected == 1 and float(pooled.compute().ap("micro")) == 1.0  # type: ignore[arg-type]
        assert float(pooled.compute().auc("micro")) == 1.0  # type: ignore[arg-type]
        assert pooled.compute()._pooled.rows == 4


@any_metric
def test_weighted_rows_are_those_rows_repeated(empty: Any) -> None:
    n = 20_000  # more than a chunk of the kernels at once
    rows, weights = columns(empty, n), np.random.default_rng(9).integers(0, 4, n)
    state, repeated = empty.empty(), empty.empty()
    for some in np.array_split(np.arange(n), [10, 50, 9000, 9001]):
        state.update(**taken(rows, some), weights=weights[some])
    repeated.update(**taken(rows, np.repeat(np.arange(n), weights)))
    found, expected = state.compute(), repeated.compute()
    assert found.rows == np.count_nonzero(weights) < expected.rows == found.weight_units
    assert np.array_equal(found.support, expected.support)
    if isinstance(empty, MulticlassAUC):
        for average in ("macro", "weighted", "micro", None):
            assert found.auc(average) == expected.auc(average)
            assert found.ap(average) == expected.ap(average)
        return
    assert np.array_equal(found.matrix, expected.matrix)
    assert (found.accuracy, found.kappa) == (expected.accuracy, expected.kappa)
    if isinstance(empty, MulticlassConfusion):
        assert found.top_k_accuracy(1) == expected.top_k_accuracy(1)
        assert found.top_k_ties(1) == expected.top_k_ties(1)
    else:
        assert found.f1("samples") == expected.f1("samples")
        assert found.subset_accuracy == expected.subset_accuracy


@any_metric
def test_weights_of_one_are_no_weights(empty: Any) -> None:
    rows = columns(empty, 300)
    plain, ones, tenths = empty.empty(), empty.empty(), with_unit(empty, "1/10")
    plain.update(**rows)
    for i in range(0, 300, 50):  # small batches of both kinds wait for each other
        some = taken(rows, slice(i, i + 50))
        ones.update(**some, weights=None if i % 100 else np.ones(50))
    assert ones == plain
    tenths.update(**taken(rows, slice(100)))
    tenths.update(**taken(rows, slice(100, 300)), weights=np.ones(200, np.int8))
    one, other = plain.compute(), tenths.compute()
    assert (one.rows, one.weight, one.weight_units) == (300, 300, None)
    assert (other.rows, other.weight, other.weight_units) == (300, 300, 3000)
    assert counts_of(other)["weight_units"] == 3000 and "weight_units" not in counts_of(one)
    assert one != other and other == tenths.copy().compute()
    name = "macro_auc" if isinstance(empty, MulticlassAUC) else "macro_f1"
    assert getattr(one, name) == getattr(other, name)


@any_metric
def test_a_row_of_weight_zero_is_as_if_absent(empty: Any) -> None:
    rows = columns(empty, 6)
    with_zeros, without = empty.empty(), empty.empty()
    with_zeros.update(**rows, weights=[2, 0, 3, 0, 0, 1])
    without.update(**taken(rows, [0, 2, 5]), weights=[2, 3, 1])
    assert with_zeros == without
    only = empty.empty()
    only.update(**rows, weights=np.zeros(6))
    assert only == empty
    for metric in (empty.empty(), with_unit(empty, HALF)):
        none = metric.empty()
        none.update(**taken(rows, slice(0)))
        assert none == metric


@any_metric
def test_a_refused_weight_changes_nothing(empty: Any) -> None:
    state, rows = empty.empty(), columns(empty, 2)
    state.update(**rows, weights=[1, 2])
    before = state.to_bytes()
    bad: Sequence[object] = ([1, 0.5], [1, -1], [1, math.nan], [1], ["a", "b"], [[1, 1]])
    for weights in bad:
        with pytest.raises(InputError, match="weights"):
            state.update(**rows, weights=weights)
    assert state.to_bytes() == before


@any_metric
def test_all_weights_of_a_state_together_stay_below_two_to_the_63(empty: Any) -> None:
    """A row is counted for each of two labels, or for each k."""
    state, rows = empty.empty(), columns(empty, 2)
    state.update(**taken(rows, [0]), weights=[2**61])
    state.update(**taken(rows, [1]), weights=[2**61 - 1])
    before = state.to_bytes()
    for weights in ([2**61, 1], [2**62, 2**62]):
        with pytest.raises(StateError, match="units of weight"):
            state.update(**rows, weights=weights)
    with pytest.raises(StateError, match="units of weight"):
        state.merge(state.copy())
    assert state.to_bytes() == before
    back = type(empty).from_bytes(before)
    assert back == state and back.compute().weight_units == 2**62 - 1
    assert back.compute() == state.compute()


@any_metric
def test_settings_of_weights(empty: Any) -> None:
    assert with_unit(empty, "1/10") == with_unit(empty, TENTH)
    assert with_unit(empty, 1) == empty != with_unit(empty, 2)
    with pytest.raises(SettingsError, match=r"Fraction\(1, 10\)"):
        with_unit(empty, 0.1)
    with pytest.raises(SettingsError, match="weight_unit"):
        empty.empty().merge(with_unit(empty, 2))
    with pytest.raises(InputError, match="no multiple of 2"):
        with_unit(empty, 2).update(**columns(empty, 2))


def test_top_k_and_its_ties_are_in_units() -> None:
    metric = MulticlassConfusion(3, top_k=(1, 2), weight_unit="0.5")
    scores = [[0.5, 0.5, 0.1], [0.2, 0.3, 0.4], [0.2, 0.2, 0.2]]
    metric.update([1, 1, 2], scores, weights=[1.5, 4, 0.5])
    result = metric.compute()
    assert (result.top_k_accuracy(1), result.top_k_accuracy(2)) == (0.0, 11 / 12)
    assert (result.top_k_ties(1), result.top_k_ties(2)) == (4, 1)
    assert (result.rows, result.weight) == (3, 6)


def test_weights_reach_every_key_and_past_max_rows_nothing_is_said() -> None:
    panel = Panel(
        {
            "areas": MulticlassAUC(2, exact=True, max_rows=2),
            "buckets": MulticlassAUC(2, weight_unit=HALF),
            "labels": MultilabelConfusion(2),
        }
    )
    keyed = PerKey(panel, max_keys=5)
    labels = np.array([[1, 0], [0, 1], [1, 1], [0, 1]])
    scores = np.array([[0.9, 0.1], [0.8, 0.2], [0.7, 0.6], [0.1, 0.3]])
    keyed.update(keys=["a", "b", "a", "a"], labels=labels, scores=scores, weights=[2, 3, 0, 5])
    a, b = keyed.compute()["a"], keyed.compute()["b"]
    assert (a["areas"].rows, a["buckets"].rows, a["labels"].rows) == (2, 2, 2)
    assert (a["areas"].weight, a["buckets"].weight_units, a["labels"].weight) == (7, 14, 7)
    assert (b["areas"].support, b["labels"].support.tolist()) == ((0, 3), [0, 3])
    keyed.update(keys=["a"], labels=[[1, 1]], scores=[[0.5, 0.5]], weights=[1])
    past = keyed.compute()["a"]["areas"]
    assert (past.rows, past.weight, past.weight_units, past.support) == (3, None, None, (None,) * 2)
    assert keyed.compute()["a"]["buckets"].support == (6, 12)
