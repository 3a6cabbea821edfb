"""`models` of a metric in a config: both models of one event, their users, and what is refused."""

from __future__ import annotations

from streammetrics_consumers.config.event import Field

from streammetrics import HistogramAUC, Paired, RankingMetrics, UserGroups
from tests.consumers.small_config import EVENT, METRICS, config, problems

TWO = 'two = { type = "HistogramAUC", models = ["score", "new.score"] }'


def test_both_models_are_read_from_one_event_in_groups_of_its_users() -> None:
    (two,) = config(metrics=TWO).metrics
    assert two.empty == Paired(UserGroups(HistogramAUC()))
    assert two.inputs == {
        "labels": Field("label", "label"),
        "scores_a": Field("score", "real"),
        "scores_b": Field("new.score", "real"),
        "groups": Field("user", "hashed_id"),
    }
    (alone,) = config(metrics=TWO, event=EVENT.replace('user = "user"', "")).metrics
    assert alone.empty == Paired(HistogramAUC())
    lists = 'lists = { type = "RankingMetrics", measures = ["MRR"], models = ["a", "b"] }'
    (ranked,) = config(metrics=lists, event=EVENT.replace('user = "user"', "")).metrics
    assert ranked.empty == Paired(RankingMetrics(["MRR"])) and ranked.of_lists
    assert ranked.inputs["scores_b"] == Field("b", "real_list")


def test_models_are_two_fields_of_a_metric_of_one_model() -> None:
    for models in ('["score"]', '["score", "score"]', '"score"', '["a", "b", "c"]', '["a", 2]'):
        found = problems(metrics=f'two = {{ type = "HistogramAUC", models = {models} }}')
        assert "expected the fields of two models" in found["[metrics] two.models"]
    found = problems(
        metrics='two = { type = "CatalogMetrics", n_items = 3, k = 2, models = ["a", "b"] }'
    )
    assert "columns that each model has of its own" in found["[metrics] two.models"]
    found = problems(metrics='two = { type = "Paired" }')
    assert 'models = ["score", "score_of_the_other"]' in found["[metrics] two.type"]


def test_an_experiment_compares_variants_and_not_models() -> None:
    experiment = '[experiment]\ncontrol = "a"\nunit = "user"\ndecision = ["two"]'
    found = problems(metrics=f"{METRICS}\n{TWO}", rest=experiment)
    assert "a metric without models" in found["[experiment] decision[0]"]
