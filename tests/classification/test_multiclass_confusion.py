from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from streammetrics import InputError, MulticlassConfusion
from tests.oracles import many_classes as brute


def fed(pairs: Sequence[tuple[int, int]], n: int = 3) -> MulticlassConfusion:
    metric = MulticlassConfusion(n)
    metric.update([t for t, _ in pairs], [p for _, p in pairs])
    return metric


def test_macro_f_is_the_mean_of_the_f_of_classes_and_not_the_f_of_means() -> None:
    pairs = [(0, 0), (0, 0), (0, 1), (1, 1), (2, 0)]
    result = fed(pairs).compute()
    of_classes = result.f1(None)
    assert isinstance(of_classes, np.ndarray)
    assert result.f1("macro") == (2 / 3 + 2 / 3 + 0) / 3 == of_classes.mean()
    p, r = (result.precision("macro", zero_division=0), result.recall("macro"))
    assert isinstance(p, float) and isinstance(r, float)
    assert result.f1("macro") != pytest.approx(2 * p * r / (p + r), abs=0.01)


def test_a_class_that_is_0_over_0_leaves_the_mean_or_counts_as_zero_division_says() -> None:
    result = fed([(0, 0), (0, 1), (1, 1)], 3).compute()  # class 2 never occurs
    per_class = result.precision(None)
    assert isinstance(per_class, np.ndarray)
    assert per_class.tolist()[:2] == [1.0, 0.5] and math.isnan(per_class[2])
    assert result.precision("macro") == 0.75
    assert result.precision("macro", zero_division=0) == 0.5
    assert result.precision("macro", zero_division=1) == 2.5 / 3
    assert result.precision(None, zero_division=1).tolist() == [1.0, 0.5, 1.0]  # type: ignore[union-attr]


def test_figures_of_huge_counts_are_rounded_once() -> None:
    """Products of the margins are beyond int64, and n**4 is beyond a float."""
    metric = fed([(0, 0), (1, 1), (0, 1), (2, 2), (2, 1)])
    small = metric.compute()
    for _ in range(60):
        metric = metric + metric
    huge = metric.compute()
    assert (huge.mcc, huge.kappa) == (small.mcc, small.kappa)
    assert huge.weighted_kappa("quadratic") == small.weighted_kappa("quadratic")
    assert huge.f1("weighted") == small.f1("weighted")


def test_scores_predict_the_class_of_the_largest_the_smallest_class_of_equals() -> None:
    by_scores = MulticlassConfusion(3)
    rows = [[0.1, 0.8, 0.1], [0.4, 0.2, 0.4], [-0.0, 0.0, -1.0], [-np.inf, 2.0, np.inf]]
    by_scores.update([1, 2, 1, 2], rows)
    by_class = MulticlassConfusion(3)
    by_class.update([1, 2, 1, 2], [1, 0, 0, 2])
    assert by_scores == by_class


def test_top_k_is_by_score_and_then_by_class_and_says_where_that_mattered() -> None:
    scores = (0.0, 0.5, 1.0)
    metric = MulticlassConfusion(3, top_k=[2, 1, 3])  # type: ignore[arg-type]
    rows = [(t, s) for t in range(3) for s in product(scores, repeat=3)]
    metric.update([t for t, _ in rows], [s for _, s in rows])
    result = metric.compute()
    for k in (1, 2, 3):
        hits = sum(brute.among_first(t, s, k) for t, s in rows)
        assert result.top_k_accuracy(k) == hits / len(rows)
        assert result.top_k_ties(k) == sum(brute.tied_at(t, s, k) for t, s in rows)
    assert result.top_k_accuracy(1) == result.accuracy
    assert result.top_k_accuracy(3) == 1.0
    assert result.top_k_ties(3) == 0
    with pytest.raises(InputError, match="setting top_k: 1, 2, 3"):
        result.top_k_accuracy(4)


def test_a_thousand_classes_of_which_few_occur_cost_little() -> None:
    metric = MulticlassConfusion(10_000, top_k=(1,))
    metric.update([9_999], np.arange(10_000.0)[None])
    assert metric.nbytes < 4096 and len(metric.to_bytes()) < 200
    assert metric.compute().accuracy == 1.0


def test_no_rows_have_no_figures() -> None:
    result = MulticlassConfusion(4, top_k=(1,)).compute()
    figures = (result.accuracy, result.mcc, result.kappa, result.f1("macro"), result.f1("micro"))
    assert all(map(math.isnan, (*figures, result.top_k_accuracy(1), result.balanced_accuracy)))
    assert (result.rows, result.support.tolist()) == (0, [0, 0, 0, 0])
    assert result.recall("weighted", zero_division=0) == 0.0


def test_averages_that_are_none_are_refused() -> None:
    result = fed([(0, 0)]).compute()
    for call in (
        lambda: result.f1("samples"),
        lambda: result.f1("macro", zero_division=0.5),
        lambda: result.f_beta(-1, "macro"),
        lambda: result.f_beta(math.inf, "macro"),
        lambda: result.weighted_kappa("cubic"),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert error.value.where.startswith("ClassRates.")
