"""Views of results: which attributes they are, their texts, and their directions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from streammetrics import (
    NDCG,
    BinaryConfusion,
    Bounded,
    Calibration,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    Regression,
    UserGroups,
    Windows,
)
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.present.view import NONE, Direction, View
from streammetrics.present.views import (
    declared_of,
    direction_of,
    has_parts,
    parsed_view,
    range_of,
    value_of,
    view_of,
    views_of,
)
from streammetrics.results import counts_of, headlines_of, texts_of
from streammetrics.results.join_results import JoinedResult
from streammetrics.results.list_results import Averages
from streammetrics.results.rates import BoundedRates, Rates
from tests.cases import CASES
from tests.results.test_class_rates import MATRIX, rates


@dataclass(frozen=True)
class Made:
    """A result with one attribute of each kind."""

    held: float
    curve: list[float]
    rows: int
    exact: bool
    reason: str = ""
    _hidden: float = field(default=9.0)

    @property
    def area(self) -> Bounded:
        return Bounded(0.5, low=0.25, high=0.75)

    @property
    def positives(self) -> int | None:
        return None

    @property
    def ratio(self) -> float:
        return math.nan

    def f_beta(self, b: float) -> float:
        return b


MADE = Made(held=2.0, curve=[1.0], rows=3, exact=True)


def test_floats_and_bounds_are_views_and_what_is_concluded_comes_before_what_is_held() -> None:
    assert list(views_of(MADE)) == ["area", "ratio", "held"]
    assert views_of(MADE)["area"] == Bounded(0.5, low=0.25, high=0.75)


def test_whole_numbers_are_counts_and_the_first_view_is_the_headline() -> None:
    assert counts_of(MADE) == {"rows": 3}
    assert headlines_of(MADE) == ("area",)
    assert views_of(MADE, headlines=True) == {"area": MADE.area}

    @dataclass(frozen=True)
    class Declared(Made):
        held: float = field(metadata=View(headline=1))

        @property
        @View(headline=2)
        def ratio(self) -> float:
            return 1.0

        @property
        def area(self) -> Bounded:
            raise AssertionError("no other view is computed")

    declared = Declared(held=2.0, curve=[1.0], rows=3, exact=True)
    assert headlines_of(declared) == ("held", "ratio")
    assert texts_of(MADE) == {}
    assert texts_of(Made(1.0, [], 1, True, reason="over max_rows")) == {"reason": "over max_rows"}


def test_a_count_is_found_without_computing_what_says_that_it_is_a_float() -> None:
    class Slow(Made):
        @property
        def area(self) -> Bounded:
            raise AssertionError

    assert counts_of(Slow(held=2.0, curve=[1.0], rows=3, exact=True)) == {"rows": 3}


def test_every_measure_of_a_mapping_is_a_headline_and_nothing_else_is() -> None:
    result = Averages({"NDCG@10": 0.25, "MRR@10": 0.5}, lists_kept=2, lists_empty=1, rows=3)
    assert headlines_of(result) == ("NDCG@10", "MRR@10")
    assert views_of(result) == {"NDCG@10": 0.25, "MRR@10": 0.5}
    assert counts_of(result) == {"rows": 3, "lists_kept": 2, "lists_empty": 1, "conflicting": 0}


def test_numbers_of_numpy_become_those_of_python() -> None:
    @dataclass(frozen=True)
    class Numpy:
        value: np.float64
        rows: np.int64

    result = Numpy(np.float64(0.5), np.int64(2))
    assert type(views_of(result)["value"]) is float
    assert type(counts_of(result)["rows"]) is int


def test_each_value_of_a_mapping_by_whole_numbers_is_a_view() -> None:
    @dataclass(frozen=True)
    class OfEach:
        first: float
        shares: dict[int, float]
        named: dict[str, float]

    result = OfEach(0.5, {2: 0.75, 3: 1.0}, {"a": 0.25})
    assert views_of(result) == {"first": 0.5, "shares[2]": 0.75, "shares[3]": 1.0}
    assert headlines_of(result) == ("first",)


def test_a_view_is_a_name_arguments_and_what_follows() -> None:
    for text, name, arguments, rest in (
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
    ):
        view = parsed_view(text)
        assert (view.name, view.arguments, view.rest) == (name, arguments, rest), text


def test_a_value_is_that_of_the_result() -> None:
    result = rates(MATRIX)
    assert value_of(result, "recall(micro)") == result.recall("micro")
    assert value_of(result, "rates(1).f_beta(2)") == result.rates(1).f_beta(2)
    assert value_of(result) == result.macro_f1


def test_a_measure_is_a_view_and_so_is_its_text() -> None:
    averages = Averages({"RBP(p=0.5)": 0.25, "NDCG@10": 0.5}, lists_kept=1, lists_empty=0, rows=1)
    assert value_of(averages, NDCG @ 10) == 0.5 == value_of(averages, "NDCG @ 10")
    assert value_of(averages, "RBP(p=0.5)") == 0.25 == value_of(averages)
    assert view_of(averages, "RBP(p=0.5)").rest == ""


def test_what_is_no_number_is_no_view_nor_is_a_part_that_there_is_not() -> None:
    for view in ("NDCG@5", "lists_kept", "means", "get(1)", "keys()", "x.y", "1"):
        with pytest.raises(InputError, match="a view of Averages: NDCG@10"):
            value_of(RankingMetrics(["NDCG@10"]).compute(), view)
    for view in ("rates(9).precision", "rates(1).x", "curves[1].auc", "matrix[0]"):
        with pytest.raises(InputError):
            value_of(rates(MATRIX), view)


RATES = Rates(tp=1, fp=1, fn=0, tn=1)
# What they show of themselves is no view of a metric that an experiment could compare.
OTHERS = ("UserGroupsResult",)


def test_every_view_of_every_metric_says_its_direction() -> None:
    pairs = set()
    for case in CASES:
        result = case.empty.compute()
        if isinstance(result, (UserGroupsResult, JoinedResult)):
            result = getattr(result, "value", getattr(result, "result", None))
        if type(result).__name__ in OTHERS or has_parts(result):
            continue
        for view in views_of(result):
            assert declared_of(result, view) is not None, (type(result).__name__, view)
            pairs.add((type(result).__name__, view))
    assert len(pairs) > 80


def test_every_value_lies_in_the_range_of_its_view() -> None:
    chance = np.random.default_rng(5)
    labels, scores = chance.integers(0, 2, 300), chance.random(300)
    classes, sets = chance.integers(0, 3, 300), chance.integers(0, 2, (300, 3))
    count = 0
    for metric, rows in (
        (BinaryConfusion(), {"scores": scores}),
        (HistogramAUC(), {"scores": scores}),
        (HistogramAUC(), {"scores": 1 - labels * 0.9}),  # as bad as can be
        (GroupedAUC(), {"scores": scores, "groups": classes}),
        (Calibration(), {"scores": scores}),
        (Regression(), {"scores": scores}),
        (MulticlassConfusion(3), {"labels": classes, "predictions": classes[::-1]}),
        (MultilabelConfusion(3), {"labels": sets, "scores": chance.random((300, 3))}),
    ):
        metric.update(**{"labels": labels, **rows})  # type: ignore[arg-type]
        result = metric.compute()
        for view, value in views_of(result).items():
            low, high = range_of(result, view)
            assert low <= float(value) <= high, (type(result).__name__, view)
            count += math.isfinite(low)
    assert count > 40  # most views have a range


def test_a_view_of_a_part_has_the_range_of_that_part() -> None:
    result = Panel({"auc": HistogramAUC(), "hits": BinaryConfusion()}).compute()
    assert range_of(result, "auc.gini") == range_of(result, "hits.mcc") == (-1.0, 1.0)
    assert range_of(result) == range_of(result, "auc.auc") == (0.0, 1.0)
    auc, users = HistogramAUC().compute(), UserGroups(HistogramAUC()).compute()
    for view, limits in (("recall", (0.0, 1.0)), ("mcc", (-1.0, 1.0))):
        assert range_of(auc, f"confusion(0.5).{view}") == limits
        assert range_of(users, f"confusion(0.5).{view}") == limits
        assert range_of(result, f"auc.confusion(0.5).{view}") == limits


def test_a_view_has_the_direction_of_its_name_whatever_its_arguments_and_its_result() -> None:
    many, bucket = MulticlassConfusion(3).compute(), BoundedRates(RATES, RATES, RATES)
    for result, view, direction in (
        *((RATES, view, "higher") for view in ("f1", "f_beta(2)", "f_alpha(0.3)", None)),
        *((RATES, view, "lower") for view in ("fpr", "error_rate")),
        *((many, view, "higher") for view in ("precision(micro)", "weighted_kappa(linear)")),
        *((many, "rates(1).recall", "higher"), (many, "rates(1).fnr", "lower")),
        (MulticlassAUC(3).compute(), "curves[0].auc", "higher"),
        *((bucket, "fnr", "lower"), (bucket, "tp", "none")),
        (RankingMetrics(["NDCG@10", "MRR"]).compute(), "MRR", "higher"),
    ):
        assert str(direction_of(result, view)) == direction, (result, view)
    assert declared_of(bucket, "tp") == NONE


def test_what_declares_nothing_has_none_and_what_is_no_view_is_an_error() -> None:
    assert direction_of(Ratio().compute()) == NONE
    assert declared_of(object(), "auc") is None and direction_of(object(), "auc") == NONE
    with pytest.raises(InputError):
        direction_of(MulticlassConfusion(3).compute(), "rates(7).recall")


def test_a_direction_says_itself() -> None:
    texts = [str(direction) for direction in (Direction("higher"), NONE, Direction("target", 0.25))]
    assert texts == ["higher", "none", "target 0.25"]


def test_views_of_results_by_key_are_named_by_the_key_and_found_again() -> None:
    panel = Panel(
        {"ctr": Ratio(), "v1.2": BinaryConfusion()}, inputs={"ctr": {"numerators": "labels"}}
    )
    keyed = PerKey(panel, max_keys=2)
    columns = {"labels": [1, 0, 1, 1], "scores": [0.5, 0.6, 0.1, 0.7]}
    keyed.update(["a b", "a b", ("a b", 1), "c"], **columns)
    hourly = Windows(PerKey(panel), 3600)
    hourly.update([*[1_763_000_000_000] * 3, 1_763_009_000_000],
                  keys=["a b", "v1", ("v1", 2), "a b"], **columns)  # fmt: skip
    for state in (panel.empty(), keyed, hourly):
        result = state.compute()
        views = views_of(result)
        assert views
        for view, value in views.items():
            assert repr(value_of(result, view)) == repr(value), view
        headlines = views_of(result, headlines=True)
        assert headlines.keys() < views.keys()
        names = {view.rpartition(".")[2] for view in headlines}
        assert names == {"ratio", "accuracy", "precision", "recall"}
    whole = keyed.compute()
    assert views_of(whole)["['a b'].ctr.ratio"] == whole["a b"]["ctr"].ratio
    assert value_of(whole, "['a b'].v1.2.f_beta(2)") == whole["a b"]["v1.2"].f_beta(2)
    assert str(direction_of(whole, "['a b'].v1.2.fpr")) == "lower"
    assert whole.overflow is not None
    assert value_of(whole, "overflow.ctr.ratio") == whole.overflow["ctr"].ratio
    total = hourly.compute().total
    assert views_of(hourly.compute())["total['a b'].ctr.ratio"] == total["a b"]["ctr"].ratio
    with pytest.raises(InputError, match=r"a view of KeyedResult: .* and \d+ more, got 'acc'"):
        value_of(whole, "acc")


def test_a_metric_is_no_result() -> None:
    for read in (views_of, counts_of, texts_of):
        with pytest.raises(InputError, match=r"got the metric itself \(Ratio\); pass metric.comp"):
            read(Ratio())
