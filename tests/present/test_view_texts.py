"""Views by their text: what each form leads to, and what leads nowhere."""

from __future__ import annotations

import pytest

from streammetrics import NDCG, Bounded, InputError, RankingMetrics
from streammetrics.present.views import ViewText, value_of, view_of
from streammetrics.results.list_results import Averages
from streammetrics.results.rates import Rates
from tests.results.test_class_interval import MATRIX, rates


@pytest.mark.parametrize(
    ("text", "name", "arguments", "rest"),
    [
        ("auc", "auc", None, ""),
        (" f_beta( 2 ) ", "f_beta", (2,), ""),
        ("f_beta(.5, 'micro')", "f_beta", (0.5, "micro"), ""),
        ('recall("micro")', "recall", ("micro",), ""),
        ("roc()", "roc", (), ""),
        ("top_k_accuracies[3]", "top_k_accuracies", (3,), ""),
        ("confusion(0.5).f_beta(2)", "confusion", (0.5,), "f_beta(2)"),
        ("curves[1].auc", "curves", (1,), "auc"),
        ("NDCG@10", "", None, ""),
        ("1auc", "", None, ""),
        ("f(g(1))", "", None, ""),
        ("_units", "", None, ""),
        ("", "", None, ""),
        ("a.", "", None, ""),
    ],
)
def test_a_view_is_a_name_arguments_and_what_follows(
    text: str, name: str, arguments: tuple[object, ...] | None, rest: str
) -> None:
    found = ViewText.of(text)
    assert (found.name, found.arguments, found.rest) == (name, arguments, rest)


def test_a_value_is_that_of_the_result() -> None:
    result = rates(MATRIX)
    assert value_of(result, "recall(None)".replace("None", "micro")) == result.recall("micro")
    assert value_of(result, "rates(1).f_beta(2)") == result.rates(1).f_beta(2)
    assert value_of(result) == result.macro_f1


def test_a_measure_is_a_view_and_so_is_its_text() -> None:
    averages = Averages({"RBP(p=0.5)": 0.25, "NDCG@10": 0.5}, lists_kept=1, lists_empty=0, rows=1)
    assert value_of(averages, NDCG @ 10) == 0.5 == value_of(averages, "NDCG @ 10")
    assert value_of(averages, "RBP(p=0.5)") == 0.25 == value_of(averages)
    assert view_of(averages, "RBP(p=0.5)").rest == ""


@pytest.mark.parametrize("view", ["NDCG@5", "lists_kept", "means", "get(1)", "keys()", "x.y", "1"])
def test_what_is_no_number_is_no_view(view: str) -> None:
    with pytest.raises(InputError, match="a view of Averages: NDCG@10"):
        value_of(RankingMetrics(["NDCG@10"]).compute(), view)


@pytest.mark.parametrize("view", ["rates(9).precision", "rates(1).x", "curves[1].auc", "matrix[0]"])
def test_a_part_that_there_is_not_is_refused(view: str) -> None:
    with pytest.raises(InputError):
        value_of(rates(MATRIX), view)


def test_a_bounded_value_stays_one() -> None:
    class Found(Rates):
        @property
        def accuracy(self) -> Bounded:  # type: ignore[override]
            return Bounded(0.5, 0.25, 1.0)

    assert value_of(Found(1, 1, 1, 1), "accuracy") == Bounded(0.5, 0.25, 1.0)
