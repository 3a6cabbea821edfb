"""Every view declares in which direction it is better."""

from __future__ import annotations

import pytest

from streammetrics import InputError, MulticlassAUC, MulticlassConfusion, RankingMetrics, Ratio
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.present.direction import NONE, Direction, declared_of, direction_of
from streammetrics.present.views import views_of
from streammetrics.results.join_results import JoinedResult
from streammetrics.results.rates import BoundedRates, Rates
from tests.cases import CASES

RATES = Rates(tp=1, fp=1, fn=0, tn=1)
# What they show of themselves is no view of a metric that an experiment could compare.
OTHERS = ("UnitsResult", "UserGroupsResult")


def test_every_view_of_every_metric_says_its_direction() -> None:
    seen = set()
    for case in CASES:
        result = case.empty.compute()
        if isinstance(result, (UserGroupsResult, JoinedResult)):
            result = getattr(result, "value", getattr(result, "result", None))
        if type(result).__name__ in OTHERS:
            continue
        for view in views_of(result):
            assert declared_of(result, view) is not None, (type(result).__name__, view)
            seen.add((type(result).__name__, view))
    assert len(seen) > 80


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("f1", "higher"), ("f_beta(2)", "higher"), ("f_alpha(0.3)", "higher"), ("fpr", "lower"),
        ("error_rate", "lower"), (None, "higher"),
    ],
)  # fmt: skip
def test_arguments_do_not_turn_a_view_round(view: str | None, said: str) -> None:
    assert str(direction_of(RATES, view)) == said


def test_views_of_many_classes_have_that_of_their_name() -> None:
    many = MulticlassConfusion(3).compute()
    for view in ("precision(micro)", "rates(1).recall", "weighted_kappa(linear)"):
        assert direction_of(many, view).better == "higher", view
    assert direction_of(many, "rates(1).fnr").better == "lower"
    assert direction_of(MulticlassAUC(3).compute(), "curves[0].auc").better == "higher"


def test_rates_at_a_bucket_have_the_direction_of_rates() -> None:
    between = BoundedRates(RATES, RATES, RATES)
    assert direction_of(between, "fnr").better == "lower"
    assert declared_of(between, "tp") == NONE


def test_measures_of_lists_are_better_when_they_are_higher() -> None:
    lists = RankingMetrics(["NDCG@10", "MRR"]).compute()
    assert [direction_of(lists, view).better for view in lists] == ["higher", "higher"]


def test_what_declares_nothing_has_none_and_what_is_no_view_is_an_error() -> None:
    assert direction_of(Ratio().compute()) == NONE
    assert declared_of(object(), "auc") is None and direction_of(object(), "auc") == NONE
    with pytest.raises(InputError):
        direction_of(MulticlassConfusion(3).compute(), "rates(7).recall")


def test_a_direction_says_itself() -> None:
    found = [str(one) for one in (Direction("higher"), NONE, Direction("target", 0.25))]
    assert found == ["higher", "none", "target 0.25"]
