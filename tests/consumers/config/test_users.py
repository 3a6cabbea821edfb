"""`cluster` and `models` of a metric in a config: groups of users, both models of one event, and
what is refused."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from streammetrics_consumers.config.event import Field
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import GroupedAUC, HistogramAUC, Paired, RankingMetrics, Ratio, UserGroups
from tests.consumers.experiment_run import run, write
from tests.consumers.small_config import EVENT, METRICS, config, problems, refused

TWO = 'two = { type = "HistogramAUC", models = ["score", "new.score"] }'


def test_both_models_are_read_from_one_event_in_groups_of_its_users() -> None:
    (models,) = config(metrics=TWO).metrics
    assert models.empty == Paired(UserGroups(HistogramAUC()))
    assert models.inputs == {
        "labels": Field("label", "label"),
        "scores_a": Field("score", "real"),
        "scores_b": Field("new.score", "real"),
        "groups": Field("user", "hashed_id"),
    }
    (metric,) = config(metrics=TWO, event=EVENT.replace('user = "user"', "")).metrics
    assert metric.empty == Paired(HistogramAUC())
    lists = 'lists = { type = "RankingMetrics", measures = ["MRR"], models = ["a", "b"] }'
    (ranked,) = config(metrics=lists, event=EVENT.replace('user = "user"', "")).metrics
    assert ranked.empty == Paired(RankingMetrics(["MRR"])) and ranked.has_lists
    assert ranked.inputs["scores_b"] == Field("b", "real_list")


def test_models_are_two_fields_of_a_metric_of_one_model() -> None:
    for models in ('["score"]', '["score", "score"]', '"score"', '["a", "b", "c"]', '["a", 2]'):
        errors = problems(metrics=f'two = {{ type = "HistogramAUC", models = {models} }}')
        assert "expected the fields of two models" in errors["[metrics] two.models"]
    errors = problems(
        metrics='two = { type = "CatalogMetrics", n_items = 3, k = 2, models = ["a", "b"] }'
    )
    assert "columns that each model has of its own" in errors["[metrics] two.models"]
    errors = problems(metrics='two = { type = "Paired" }')
    assert 'models = ["score", "score_of_the_other"]' in errors["[metrics] two.type"]


def test_an_experiment_compares_variants_and_not_models() -> None:
    experiment = '[experiment]\ncontrol = "a"\nunit = "user"\ndecision = ["two"]'
    errors = problems(metrics=f"{METRICS}\n{TWO}", rest=experiment)
    assert "a metric without models" in errors["[experiment] decision[0]"]


def test_a_metric_is_counted_in_groups_of_its_users_if_it_says_so() -> None:
    (of_users,) = config(metrics='auc = { type = "HistogramAUC", cluster = "groups" }').metrics
    assert of_users.empty == UserGroups(HistogramAUC())
    assert of_users.inputs["groups"] == Field("user", "hashed_id")
    plain, fingerprint = (
        config(metrics=f'auc = {{ type = "HistogramAUC"{setting} }}').fingerprints()["auc"]
        for setting in ("", ', cluster = "none"')
    )
    assert plain == fingerprint
    # Lists of a query, in groups of users; and sessions in place of users.
    text = 'gauc = { type = "GroupedAUC", cluster = "groups", inputs = { groups = "query" } }'
    (lists,) = config(metrics=text).metrics
    assert isinstance(lists.empty, UserGroups) and isinstance(lists.empty.metric, GroupedAUC)
    paths = {name: field.path for name, field in lists.inputs.items()}
    assert (paths["users"], paths["groups"]) == ("user", "query")
    text = 'ctr = { type = "Ratio", cluster = "groups", inputs = { groups = "session" } }'
    (ctr,) = config(metrics=text, event=EVENT.replace('user = "user"', "")).metrics
    assert ctr.inputs["groups"] == Field("session", "hashed_id")


def test_the_models_of_one_event_may_have_independent_rows() -> None:
    (metric,) = config(metrics=TWO.replace("}", ', cluster = "none" }')).metrics
    assert metric.empty == Paired(HistogramAUC())


def test_groups_of_users_need_a_user_and_one_of_two_words() -> None:
    text = 'auc = { type = "HistogramAUC", cluster = "groups" }'
    refused(
        "[metrics] auc",
        "a field for `groups`",
        metrics=text,
        event=EVENT.replace('user = "user"', ""),
    )
    for word, message in (('"group"', "did you mean `groups`?"), ("true", "put it in quotes")):
        refused("[metrics] auc.cluster", message, metrics=text.replace('"groups"', word))


def test_an_experiment_counts_a_metric_of_users_by_its_own_unit() -> None:
    metrics = 'ctr = { type = "Ratio", cluster = "groups" }'
    experiment = '[experiment]\ncontrol = "a"\nunit = "session"\ndecision = ["ctr.ratio"]'
    for setting, empty in (("", UserGroups(Ratio())), ('\ncluster = "none"', Ratio())):
        experiment_metrics = config(metrics=metrics, rest=experiment + setting).experiment_metrics[
            ""
        ]
        (ctr,) = (metric for metric in experiment_metrics if metric.name == "experiment/ctr")
        assert ctr.empty == empty
        assert {"session" if name == "groups" else "label" for name in ctr.inputs} == {
            field.path for field in ctr.inputs.values()
        }


def test_a_metric_that_does_not_use_the_named_users_says_which_key_changes_that(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, rows=400)
    plain = 'ctr = { type = "Ratio", better = "higher" }'
    text = path.read_text(encoding="utf-8").partition("[experiment]")[0]
    text = text.replace(plain, f'{plain}\nrate = {{ type = "Ratio", cluster = "groups" }}')

    def reasons(name: str, text: str) -> dict[str, str]:
        path.write_text(text.replace("store.db", name), encoding="utf-8")
        run(path)
        with closing(Ledger.open(str(tmp_path / name))) as ledger:
            rows = read_results(ledger, Query("total")).rows
        return {row.metric: row.interval.reason for row in rows if row.interval is not None}

    metric_reasons = reasons("named.db", text)
    assert metric_reasons["ctr"] == (
        "rows of one user are taken as independent although users are named; "
        'cluster = "groups" of the metric changes it'
    )
    assert "independent" not in metric_reasons["rate"]
    nobody = text.replace('user = "user"\n', "").replace(', cluster = "groups"', "")
    unnamed = reasons("unnamed.db", nobody)
    assert unnamed["ctr"] == "rows are taken as independent because no users are known"
