"""Intervals of averages over classes and labels, and of agreement, against numeric deltas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest import approx

from streammetrics import MulticlassConfusion, MultilabelConfusion
from streammetrics.results.class_rates import ClassRates

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


@pytest.mark.parametrize(
    "view",
    [
        "macro_f1", "balanced_accuracy", "mcc", "kappa", "weighted_kappa(linear)",
        "weighted_kappa(quadratic)", "precision(macro)", "recall(weighted)", "f1(weighted)",
        "specificity(macro)", "specificity(weighted)", "specificity(micro)", "jaccard(micro)",
        "jaccard(weighted)", "f_beta(2)", "f_alpha(0.25,weighted)", "precision(weighted)",
    ],
)  # fmt: skip
def test_a_view_of_many_classes_has_its_multinomial_variance(view: str) -> None:
    found = rates(MATRIX).interval(view)
    assert found.se == approx(math.sqrt(numeric(view)), rel=1e-6)
    assert found.lower < found.estimate < found.upper and found.n == 140


@pytest.mark.parametrize(
    "view", ["precision(micro)", "recall(micro)", "f1(micro)", "f_beta(3,micro)"]
)
def test_what_is_accuracy_under_another_name_has_its_interval(view: str) -> None:
    found, accuracy = rates(MATRIX).interval(view), rates(MATRIX).interval("accuracy")
    assert found == accuracy and found.method == "wilson"


def test_pooled_views_are_wilsons_taken_through_the_function_of_accuracy() -> None:
    accuracy, found = rates(MATRIX).interval("accuracy"), rates(MATRIX).interval("jaccard(micro)")
    assert found.lower == approx(accuracy.lower / (2 - accuracy.lower), rel=1e-15)
    assert found.upper == approx(accuracy.upper / (2 - accuracy.upper), rel=1e-15)
    found = rates(MATRIX).interval("specificity(micro)")
    assert found.upper == approx((1 + accuracy.upper) / 2, rel=1e-15)


def test_a_class_has_the_interval_of_its_own_rates() -> None:
    found = rates(MATRIX).interval("rates(1).precision")
    assert found == rates(MATRIX).rates(1).interval("precision") and found.n == 40


def test_the_first_k_are_a_share() -> None:
    metric = MulticlassConfusion(3, top_k=[2])
    metric.update([0, 1, 2, 0], np.eye(3)[[0, 1, 1, 2]])
    found = metric.confidence_interval(view="top_k_accuracies[2]")
    assert (found.estimate, found.n, found.method) == (0.75, 4, "wilson")
    assert found == metric.confidence_interval(view="top_k_accuracy(2)")


def labels() -> MultilabelConfusion:
    metric = MultilabelConfusion(3)
    random = np.random.default_rng(5)
    metric.update(random.integers(0, 2, (200, 3)), random.random((200, 3)))
    return metric


def test_views_over_the_labels_of_rows_take_a_row_as_one() -> None:
    random = np.random.default_rng(5)
    truth, predicted = random.integers(0, 2, (200, 3)), random.random((200, 3)) >= 0.5
    wrong = (truth != predicted).mean(axis=1)
    found = labels().confidence_interval(view="hamming_loss")
    assert found.se == approx(wrong.std(ddof=1) / math.sqrt(200), rel=1e-12)
    assert (found.df, found.n) == (199, 200)
    both, said = (truth & predicted).sum(axis=1), predicted.sum(axis=1)
    share = both.sum() / said.sum()
    residuals = (both - share * said) / said.sum()
    found = labels().confidence_interval(view="precision(micro)")
    assert found.se == approx(math.sqrt(200 / 199 * (residuals**2).sum()), rel=1e-12)
    each = both[said > 0] / said[said > 0]
    found = labels().confidence_interval(view="precision(samples)")
    assert found.se == approx(each.std(ddof=1) / math.sqrt(len(each)), rel=1e-12)
    assert found.n == len(each)
    assert labels().confidence_interval(view="subset_accuracy").method == "wilson"


def test_averages_over_labels_say_why_they_have_none() -> None:
    for view in ("macro_f1", "recall(weighted)", "mcc", "balanced_accuracy"):
        found = labels().confidence_interval(view=view)
        assert not found.defined and "UserGroups" in found.reason and found.n == 200
