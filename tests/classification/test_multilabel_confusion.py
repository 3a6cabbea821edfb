from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from streammetrics import (
    BinaryConfusion,
    InputError,
    MultilabelConfusion,
    PerKey,
    SettingsError,
    StateError,
)
from tests.classification.test_multiclass_confusion import averaged, same
from tests.oracles import many_classes as brute

Row = tuple[tuple[int, ...], tuple[int, ...]]  # truth and prediction of each label


def fed(rows: Sequence[Row], n: int = 2) -> MultilabelConfusion:
    metric = MultilabelConfusion(n)
    truth = np.array([t for t, _ in rows], np.int64).reshape(-1, n)
    metric.update(truth, np.array([p for _, p in rows], np.float64).reshape(-1, n))
    return metric


def hits(pairs: Sequence[tuple[int, int]]) -> brute.Hits:
    return pairs.count((1, 1)), pairs.count((0, 1)), pairs.count((1, 0))


@pytest.mark.slow
def test_every_small_sample_is_counted_as_row_by_row() -> None:
    kinds = list(product(product((0, 1), repeat=2), repeat=2))
    for n in range(4):
        for rows in combinations_with_replacement(kinds, n):
            result = fed(rows).compute()
            of_labels = [hits([(t[j], p[j]) for t, p in rows]) for j in range(2)]
            of_rows = [hits(list(zip(t, p, strict=True))) for t, p in rows]
            wrong = sum(fp + fn for _, fp, fn in of_labels)
            assert same(result.hamming_loss, brute.over(wrong, 2 * n))
            assert same(result.accuracy, brute.over(2 * n - wrong, 2 * n))
            assert same(result.subset_accuracy, brute.over(sum(t == p for t, p in rows), n))
            for zero in (math.nan, 0.0, 1.0):
                for (name, average), exact in brute.averages(of_labels, zero).items():
                    assert same(averaged(result, name, average, zero), exact), (rows, name, average)
                for name, term in brute.TERMS.items():
                    values = [term(*h) for h in of_rows]
                    exact = brute.mean(values, [1] * n, zero)
                    assert same(averaged(result, name, "samples", zero), exact), (rows, name, zero)


def test_the_mean_over_rows_is_rounded_once_where_adding_floats_is_not() -> None:
    """1/3 eleven times: floats add up to something else."""
    rows = [((1, 1, 1), (1, 0, 0))] * 11
    metric = MultilabelConfusion(3)
    for t, p in rows:
        metric.update([t], [p])
    assert sum([1 / 3] * 11) / 11 != 1 / 3
    assert metric.compute().recall("samples") == 1 / 3


@pytest.mark.parametrize("doublings", [24, 31, 53, 60])
def test_counts_go_on_past_what_floats_and_int32_can_count(doublings: int) -> None:
    metric = fed([((1, 0), (1, 1))])
    for _ in range(doublings):
        metric = metric + metric
    result = (metric + fed([((1, 1), (1, 1))])).compute()
    each = 2**doublings
    assert result.matrix.tolist() == [[[0, 0], [0, each + 1]], [[0, each], [0, 1]]]
    assert result.rows == each + 1
    assert result.subset_accuracy == 1 / (each + 1)
    assert result.precision("samples") == (each // 2 + 1) / (each + 1)


def test_no_more_is_counted_than_all_labels_together_can_be_summed() -> None:
    metric = MultilabelConfusion(4)
    metric.update([[1, 0, 0, 1]], [[1, 0, 0, 1]])
    for _ in range(60):
        metric = metric + metric
    assert metric.compute().accuracy == 1.0
    with pytest.raises(StateError):
        metric + metric


def test_one_label_is_a_binary_confusion_with_its_threshold() -> None:
    labels, scores = [[1], [0], [1], [0]], np.array([[0.3], [0.3], [0.2], [0.1]], np.float32)
    metric, binary = MultilabelConfusion(1, threshold=0.3), BinaryConfusion(threshold=0.3)
    metric.update(labels, scores)
    binary.update([1, 0, 1, 0], scores[:, 0])
    assert metric.compute().rates(0) == binary.compute()
    assert metric.compute().mcc == binary.compute().mcc
    assert metric.compute().rates(0).table("positive_first").tolist() == [[1, 1], [1, 1]]


def test_large_batches_are_counted_in_pieces() -> None:
    rng = np.random.default_rng(3)
    truth, scores = rng.random((9_000, 7)) < 0.3, rng.random((9_000, 7), np.float32)
    at_once, bit_by_bit = MultilabelConfusion(7), MultilabelConfusion(7)
    at_once.update(truth, scores)
    for i in range(0, 9_000, 70):
        bit_by_bit.update(truth[i : i + 70].astype(np.uint8), scores[i : i + 70])
    assert at_once == bit_by_bit
    right = (truth == (scores >= 0.5)).mean(axis=0)
    result = at_once.compute()
    assert [result.rates(j).accuracy for j in range(7)] == right.tolist()


def test_no_rows_have_no_figures() -> None:
    result = MultilabelConfusion(2).compute()
    for figure in (result.hamming_loss, result.subset_accuracy, result.f1("samples"), result.mcc):
        assert math.isnan(figure)  # type: ignore[arg-type]
    assert (result.rows, result.positives, result.support.tolist()) == (0, 0, [0, 0])
    assert result.f1("samples", zero_division=1) == 1.0


def test_rows_of_keys_are_counted_at_their_slots() -> None:
    metric = PerKey(MultilabelConfusion(2), max_keys=4)
    labels = np.array([[1, 0], [1, 1], [0, 0]])
    metric.update(["a", "b", "a"], labels=labels, scores=labels * 0.9)
    result = metric.compute()
    assert (result["a"].rows, result["a"].positives, result["b"].positives) == (2, 1, 2)
    assert result["a"].subset_accuracy == result["b"].subset_accuracy == 1.0


@pytest.mark.parametrize(
    ("labels", "scores", "where"),
    [
        ([[0, 2]], [[0.1, 0.2]], r"labels\[0, 1\]: expected 0 or 1"),
        ([[0, 1], [0.73, 1]], [[0, 0], [0, 0]], r"labels\[1, 0\].*swapped"),
        ([[0, 1]], [[0.1, math.nan]], r"scores\[0, 1\]"),
        ([[0, 1]], [[0.1, 0.2], [0.3, 0.4]], "scores: expected 1 values"),
        ([[0, 1, 1]], [[0.1, 0.2]], r"labels: expected an array \[n, 2\], got shape \[1, 3\]"),
        ([0, 1], [0.1, 0.2], r"got shape \[2\]"),
        ([[0, 1]], [["a", "b"]], "numbers"),
        ([[0, 1], [1]], [[0, 0], [0, 0]], "of one length"),
    ],
)
def test_bad_rows_are_refused_and_nothing_changes(
    labels: list[object], scores: list[object], where: str
) -> None:
    metric = fed([((0, 1), (1, 1))])
    before = metric.digest()
    with pytest.raises(InputError, match=where):
        metric.update(labels, scores)  # type: ignore[arg-type]
    assert metric.digest() == before


@pytest.mark.parametrize(
    "settings",
    [
        *({"n_labels": n} for n in (0, 2.0, True, "3", 1 << 16)),
        *({"n_labels": 3, "threshold": t} for t in ("0.5", math.nan, True, None)),
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=list(settings)[-1]):
        MultilabelConfusion(**settings)  # type: ignore[arg-type]


def test_averages_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match='"samples" or None, got'):
        fed([]).compute().f1("mean")


def test_results_are_equal_where_their_counts_are() -> None:
    one, other = fed([((0, 1), (1, 1))]), fed([((1, 1), (0, 1))])
    assert one.compute() == one.copy().compute() != other.compute()
