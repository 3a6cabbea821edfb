"""What is averaged over classes and labels, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pytest import approx

from streammetrics import MulticlassAUC, MulticlassConfusion, MultilabelConfusion
from streammetrics.core.errors import InputError
from streammetrics.results.class_rates import ClassRates

NAN = math.nan
TRUTH, SAID = [0, 0, 1, 2, 2, 2, 1], [0, 1, 1, 2, 0, 2, 2]
FLAGS = [[1, 0, 1], [0, 1, 0], [0, 0, 0], [1, 1, 1]]
SCORES = [[0.9, 0.6, 0.1], [0.2, 0.8, 0.1], [0.6, 0.1, 0.1], [0.9, 0.2, 0.7]]


def classes() -> Any:
    metric = MulticlassConfusion(3, top_k=(1,))
    metric.update(TRUTH, np.eye(3)[SAID])
    return metric.compute()


def labels() -> Any:
    metric = MultilabelConfusion(3)
    metric.update(FLAGS, SCORES)
    return metric.compute()


RESULTS = [classes(), labels()]
each_result = pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)


@each_result
def test_specificity_and_f_alpha_are_those_of_each_class_and_their_averages(result: Any) -> None:
    class_rates = [result.rates(i) for i in range(3)]
    assert result.specificity(None).tolist() == [rates.specificity for rates in class_rates]
    tn, fp = sum(rates.tn for rates in class_rates), sum(rates.fp for rates in class_rates)
    assert result.specificity("micro") == tn / (tn + fp)
    exact = [Fraction(rates.tn, rates.tn + rates.fp) for rates in class_rates]
    assert result.specificity() == float(sum(exact) / 3)
    support = result.support.tolist()
    weighted = sum(w * x for w, x in zip(support, exact, strict=True)) / sum(support)
    assert result.specificity("weighted") == float(weighted)
    for a in (0, 0.3, 1, Fraction(1, 3)):
        assert result.f_alpha(a, None).tolist() == [rates.f_alpha(a) for rates in class_rates]
    for average in ("macro", "micro", "weighted"):
        assert result.f_alpha(1, average) == result.precision(average)
        assert result.f_alpha(0, average) == result.recall(average)
        assert result.f_alpha(0.5, average) == result.f1(average)
        assert result.f_alpha(0.2, average) == pytest.approx(result.f_beta(2, average), rel=1e-15)


def test_specificity_of_rows_is_the_share_of_labels_rightly_left() -> None:
    assert labels().error_rate == labels().hamming_loss == 4 / 12
    assert labels().specificity("samples") == float((Fraction(0) + 1 + Fraction(2, 3)) / 3)
    assert labels().specificity("samples", zero_division=1) == float(Fraction(8, 3) / 4)


def test_zero_division_comes_back_as_a_float() -> None:
    empty: Any = MulticlassConfusion(2).compute()
    for zero in (0, 1, True, np.float32(0), np.int8(1)):
        for average in ("macro", "micro", "weighted"):
            value = empty.f1(average, zero_division=zero)
            assert type(value) is float and value == float(zero)
        assert empty.f1(None, zero_division=zero).tolist() == [float(zero)] * 2


@each_result
def test_what_is_no_average_and_no_number_is_an_error_in_four_parts(result: Any) -> None:
    bad = {
        "average": ["samplewise", 1, ["macro"], np.array(["macro", "micro"]), True, b"macro"],
        "zero_division": ["warn", None, 0.5, -1, [0], "0", np.array([0, 1]), 1j, math.inf],
    }
    for name, values in bad.items():
        for value in values:
            for call in (result.precision, result.specificity, result.f1):
                with pytest.raises(InputError) as error:
                    call(**{name: value})
                assert error.value.where == f"{type(result).__name__}.{name}"
                assert error.value.got and error.value.expected and error.value.hint
    for call, value in (
        *((result.f_beta, b) for b in (-1, NAN, math.inf, "2", None, [1])),
        *((result.f_alpha, a) for a in (-0.1, 1.1, NAN, "2", None, [1])),
        *((result.rates, i) for i in (3, -1, 1.0, True, "1", None, [1])),
    ):
        with pytest.raises(InputError, match=call.__name__):
            call(value)
    if isinstance(result, ClassRates):
        for k in ([1], 2, "1", None, True, 1.0):
            for call in (result.top_k_accuracy, result.top_k_ties):
                with pytest.raises(InputError, match="a k of the setting top_k: 1"):
                    call(k)
        for kind in ("cubic", None, ["linear"], 1):
            with pytest.raises(InputError, match="weighted_kappa"):
                result.weighted_kappa(kind)


def test_whole_numbers_of_any_type_are_taken_as_they_are() -> None:
    largest = np.array(TRUTH).max() + 1
    metric = MulticlassConfusion(largest, top_k=(np.int64(2), np.uint8(1)))
    assert metric == MulticlassConfusion(3, top_k=(1, 2))
    assert type(metric.n_classes) is int and [type(k) for k in metric.top_k] == [int, int]
    metric.update(TRUTH, np.eye(3)[SAID])
    result = metric.compute()
    assert result.rates(np.int8(1)) == result.rates(1)  # type: ignore[arg-type]
    assert result.top_k_accuracy(np.int64(2)) == result.top_k_accuracy(2)  # type: ignore[arg-type]
    assert MultilabelConfusion(np.int32(3)) == MultilabelConfusion(3)  # type: ignore[arg-type]
    assert MulticlassAUC(largest) == MulticlassAUC(3)
    assert MulticlassAUC(largest).to_bytes() == MulticlassAUC(3).to_bytes()


# Intervals of averages over classes and labels, and of agreement, against numeric deltas.


MATRIX = np.array([[50, 5, 5], [10, 30, 10], [5, 5, 20]])


def rates(matrix: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> ClassRates:
    return ClassRates(3, np.arange(9), matrix.ravel())


FINE = 10**5  # counts are scaled, so that one row more is a small step


def numeric(view: str) -> float:
    """The multinomial variance of a view, by the difference that a row of each cell makes."""
    from streammetrics.present.views import value_of

    counts, total = MATRIX * FINE, [0.0, 0.0]
    for cell in range(9):
        step = np.zeros(9, np.int64)
        step[cell] = 1000
        bounds = [value_of(rates(counts + side * step.reshape(3, 3)), view) for side in (1, -1)]
        psi = (float(bounds[0]) - float(bounds[1])) / (2000 / FINE)
        total[0] += MATRIX.ravel()[cell] * psi
        total[1] += MATRIX.ravel()[cell] * psi**2
    return total[1] - total[0] ** 2 / MATRIX.sum()


def test_a_view_of_many_classes_has_its_multinomial_variance() -> None:
    for view in (
        *("macro_f1", "balanced_accuracy", "g_mean", "mcc", "kappa", "weighted_kappa(linear)"),
        *("weighted_kappa(quadratic)", "precision(macro)", "recall(weighted)", "f1(weighted)"),
        *("specificity(macro)", "specificity(weighted)", "specificity(micro)", "jaccard(micro)"),
        *("jaccard(weighted)", "f_beta(2)", "f_alpha(0.25,weighted)", "precision(weighted)"),
    ):
        interval = rates(MATRIX).interval(view)
        assert interval.se == approx(math.sqrt(numeric(view)), rel=1e-6), view
        assert interval.lower < interval.estimate < interval.upper and interval.n == 140, view


def test_the_geometric_mean_of_recalls_is_0_without_interval_where_a_class_is_never_right() -> None:
    result = rates(np.array([[3, 1, 0], [2, 0, 0], [0, 0, 0]]))
    assert result.g_mean == 0
    assert "without a right prediction" in result.interval("g_mean").reason
    assert rates(np.array([[1, 3, 0], [0, 4, 0], [0, 0, 0]])).g_mean == 0.5  # two classes occur


def test_what_is_accuracy_under_another_name_has_its_interval() -> None:
    accuracy = rates(MATRIX).interval("accuracy")
    assert accuracy.method == "wilson"
    for view in ("precision(micro)", "recall(micro)", "f1(micro)", "f_beta(3,micro)"):
        assert rates(MATRIX).interval(view) == accuracy, view


def test_pooled_views_are_wilsons_taken_through_the_function_of_accuracy() -> None:
    accuracy, interval = (
        rates(MATRIX).interval("accuracy"),
        rates(MATRIX).interval("jaccard(micro)"),
    )
    assert interval.lower == approx(accuracy.lower / (2 - accuracy.lower), rel=1e-15)
    assert interval.upper == approx(accuracy.upper / (2 - accuracy.upper), rel=1e-15)
    interval = rates(MATRIX).interval("specificity(micro)")
    assert interval.upper == approx((1 + accuracy.upper) / 2, rel=1e-15)


def test_a_class_has_the_interval_of_its_own_rates() -> None:
    interval = rates(MATRIX).interval("rates(1).precision")
    assert interval == rates(MATRIX).rates(1).interval("precision") and interval.n == 40


def test_the_first_k_are_a_share() -> None:
    metric = MulticlassConfusion(3, top_k=[2])
    metric.update([0, 1, 2, 0], np.eye(3)[[0, 1, 1, 2]])
    interval = metric.confidence_interval(view="top_k_accuracies[2]")
    assert (interval.estimate, interval.n, interval.method) == (0.75, 4, "wilson")
    assert interval == metric.confidence_interval(view="top_k_accuracy(2)")


def labelled() -> MultilabelConfusion:
    metric = MultilabelConfusion(3)
    random = np.random.default_rng(5)
    metric.update(random.integers(0, 2, (200, 3)), random.random((200, 3)))
    return metric


def test_views_over_the_labels_of_rows_take_a_row_as_one() -> None:
    random = np.random.default_rng(5)
    truth, predicted = random.integers(0, 2, (200, 3)), random.random((200, 3)) >= 0.5
    wrong = (truth != predicted).mean(axis=1)
    interval = labelled().confidence_interval(view="hamming_loss")
    assert interval.se == approx(wrong.std(ddof=1) / math.sqrt(200), rel=1e-12)
    assert (interval.df, interval.n) == (199, 200)
    hits, predictions = (truth & predicted).sum(axis=1), predicted.sum(axis=1)
    share = hits.sum() / predictions.sum()
    residuals = (hits - share * predictions) / predictions.sum()
    interval = labelled().confidence_interval(view="precision(micro)")
    assert interval.se == approx(math.sqrt(200 / 199 * (residuals**2).sum()), rel=1e-12)
    precisions = hits[predictions > 0] / predictions[predictions > 0]
    interval = labelled().confidence_interval(view="precision(samples)")
    assert interval.se == approx(precisions.std(ddof=1) / math.sqrt(len(precisions)), rel=1e-12)
    assert interval.n == len(precisions)
    assert labelled().confidence_interval(view="subset_accuracy").method == "wilson"


def test_averages_over_labels_say_why_they_have_none() -> None:
    for view in ("macro_f1", "recall(weighted)", "mcc", "balanced_accuracy"):
        interval = labelled().confidence_interval(view=view)
        assert not interval.defined and "UserGroups" in interval.reason and interval.n == 200
