"""Metrics of lists, of tables and of items in a config: what they read, and settings in files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.event import Field
from streammetrics_consumers.config.metrics import MetricConfig
from streammetrics_consumers.config.section import ConfigError

from streammetrics import CatalogMetrics, GroupedScores, IntraListSimilarity
from streammetrics.registry import metric
from tests.consumers.small_config import config, problems, toml

RANKED = 'time = "ts"\nlist = "query"\nitem = "doc"\nlabel = "grade"\nscore = "score"'


def ranked(type_: str, settings: str = "", event: str = RANKED) -> MetricConfig:
    metrics = f'm = {{ type = "{type_}", measures = ["MRR"]{settings} }}'
    (metric_config,) = config(event=event, slices="by = [[]]", metrics=metrics).metrics
    return metric_config


def test_an_event_is_an_impression_of_a_ranked_list_or_a_whole_one() -> None:
    metric_config = ranked("GroupedScores", ', inputs = { judged = "known" }')
    assert not metric_config.has_lists
    assert metric_config.inputs == {
        "labels": Field("grade", "label"),
        "scores": Field("score", "real"),
        "groups": Field("query", "hashed_id"),
        "items": Field("doc", "hashed_id"),
        "judged": Field("known", "flag"),
    }
    assert metric_config.empty == GroupedScores(
        ["MRR"],
        score_type="float32",  # as in the stores of older versions
        ids="hashed",
        item_ids="hashed",
        duplicates="conflict",
        max_rows=10_000_000,
    )
    whole = ranked("RankingMetrics", ', inputs = { judged = "known" }')
    assert whole.has_lists
    assert whole.inputs["judged"] == Field("known", "flag_list")
    assert whole.columns["offsets"] == "grade:offsets"


def test_a_recall_of_lists_needs_a_field_or_the_word_that_lists_are_complete() -> None:
    recall = 'm = {{ type = "RankingMetrics", measures = ["MRR", "R@5"]{} }}'.format
    with pytest.raises(ConfigError) as raised:
        config(event=RANKED, slices="by = [[]]", metrics=recall(""))
    for text in ("`n_relevant`, which R@5 needs", "n_relevant = ", "complete_lists = true"):
        assert text in str(raised.value)
    users = RANKED + '\nuser = "user"'
    for settings in (
        ', inputs = { n_relevant = "known" }',
        ', inputs = { judged = "known" }',
        ", complete_lists = true",
        ', complete_lists = true, cluster = "groups"',
    ):
        config(event=users, slices="by = [[]]", metrics=recall(settings))
    map_ = 'm = {{ type = "RankingMetrics", measures = ["map"]{} }}'.format
    plain, complete = (
        config(event=RANKED, slices="by = [[]]", metrics=map_(setting))
        for setting in ("", ", complete_lists = true")
    )
    assert plain.fingerprints() == complete.fingerprints()  # so its store continues


def test_lists_and_items_may_be_of_different_kinds_and_only_lists_are_needed() -> None:
    for settings, lists, items in (
        (', ids = "integer"', "int_id", "hashed_id"),
        (', item_ids = "integer", ids = "exact"', "text_id", "int_id"),
    ):
        inputs = ranked("GroupedScores", settings).inputs
        assert (inputs["groups"].kind, inputs["items"].kind) == (lists, items)
    without = RANKED.replace('item = "doc"\n', "")
    assert set(ranked("GroupedScores", event=without).inputs) == {"labels", "scores", "groups"}
    with pytest.raises(ConfigError, match="groups"):
        ranked("GroupedScores", event=RANKED.replace('list = "query"\n', ""))


def test_what_one_update_refuses_is_no_setting_of_a_log() -> None:
    with pytest.raises(ConfigError, match=r"m\.duplicates.*conflict.*refuse"):
        ranked("GroupedScores", ', duplicates = "refuse"')
    assert ranked("GroupedScores", ', duplicates = "conflict"').settings["duplicates"] == "conflict"


# -- tables: an event has a row, an array of so many numbers

CLASSES = 'time = "ts"\nlabel = "kind"\nscore = "probs"'
KINDS = 'type = "MulticlassConfusion", n_classes = 3'
AREAS = 'type = "MulticlassAUC", n_classes = 3'
LABELS = 'type = "MultilabelConfusion", n_labels = 3'
GUESS = 'inputs = { predictions = "guess" }'


def table(*metrics: str, slices: str = "by = [[]]") -> Config:
    entries = (f"m{i} = {{ {metric} }}" for i, metric in enumerate(metrics))
    return config(event=CLASSES, slices=slices, metrics="\n".join(entries))


def test_an_argument_that_takes_a_table_reads_rows_of_its_width() -> None:
    kind = Field("kind", "label")
    for entry, inputs in (
        (KINDS, {"labels": kind, "predictions": Field("probs", "real_row", 3)}),
        (f"{KINDS}, {GUESS}", {"labels": kind, "predictions": Field("guess", "real_or_row", 3)}),
        (
            f"{KINDS}, {GUESS}, top_k = [2, 1]",
            {"labels": kind, "predictions": Field("guess", "real_row", 3)},
        ),
        (
            AREAS,
            {"labels": Field("kind", "label_or_row", 3), "scores": Field("probs", "real_row", 3)},
        ),
        (
            f'{LABELS}, inputs = {{ scores = "a.b" }}',
            {"labels": Field("kind", "label_row", 3), "scores": Field("a.b", "real_row", 3)},
        ),
    ):
        (metric_config,) = table(entry).metrics
        assert (metric_config.has_lists, metric_config.inputs) == (False, inputs), entry


def test_the_rows_of_an_exact_state_are_bounded_by_its_scores() -> None:
    run_config = table(f"{AREAS}, exact = true", f"{AREAS}, exact = true, max_rows = 7", AREAS)
    rows = [metric_config.settings.get("max_rows") for metric_config in run_config.metrics]
    assert rows == [3_333_333, 7, None]


def test_a_label_may_be_read_as_a_class_by_one_metric_and_as_either_by_another() -> None:
    run_config = table(KINDS, AREAS, 'type = "Ratio"')
    labels = [metric_config.inputs.get("labels") for metric_config in run_config.metrics]
    assert labels == [Field("kind", "label"), Field("kind", "label_or_row", 3), None]
    table(LABELS, AREAS)


def test_what_does_not_fit_together_is_said_before_any_event_is_read() -> None:
    for metrics, message in (
        ((KINDS, LABELS), "a field with a list, got 'kind'; .*m0, labels reads it as one value"),
        ((KINDS, 'type = "MulticlassAUC", n_classes = 4'), "an array of 4 values, got 'probs'"),
        ((KINDS, 'type = "HistogramAUC"'), "one value, got 'probs'; .*reads it as a list"),
        ((f"{KINDS}, top_k = [4]",), r"m0\.top_k: expected whole numbers from 1 to 3"),
        ((f"{AREAS}, max_rows = 5",), r"m0\.max_rows: expected none without exact=True"),
        ((f'{KINDS}, inputs = {{ scores = "probs" }}',), "an argument of MulticlassConfusion"),
        ((KINDS, 'type = "Ratio", inputs = { numerators = "probs.x" }'), "a field of an object"),
    ):
        with pytest.raises(ConfigError, match=message):
            table(*metrics)
    with pytest.raises(ConfigError, match="reads it as one value"):
        table(KINDS, slices='by = [["probs"]]')


# -- items: vectors in the config, and in files beside it

CSV = "item,colour,brand,x,y\n0,red,A,1,0\n1,blue,A,3,4\n2,red,7,0,2e0\n"


def of_items(folder: Path, settings: str) -> Config:
    path = folder / "c.toml"
    inputs = 'inputs = { lists = "shown" }'
    metrics = f'i = {{ type = "IntraListSimilarity", {inputs}, {settings} }}'
    path.write_text(toml(event='time = "ts"', slices="by = [[]]", metrics=metrics))
    return load_config(path)


def items(folder: Path, settings: str) -> MetricConfig:
    return of_items(folder, settings).metrics[0]


def test_vectors_may_stand_in_the_config(tmp_path: Path) -> None:
    metric_config = items(tmp_path, "vectors = [[1, 0], [3, 4.0]], k = 5")
    assert metric_config.empty == IntraListSimilarity([[1, 0], [3, 4]], k=5)
    assert metric_config.inputs["lists"].kind == "int_list"
    assert metric_config.has_lists
    # Texts are only texts, and no fractions.
    features = '[["1/2", "a"], ["2/4", "a"]]'
    metric_config = items(tmp_path, f'similarity = "share_equal", vectors = {features}')
    metric_config.empty.update([[0, 1]])
    assert metric_config.empty.compute().ils == 0.5  # type: ignore[attr-defined]


def test_vectors_may_stand_in_a_file_beside_the_config(tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text(CSV)
    vectors = np.array([[1, 0], [3, 4], [0, 2]], np.float32)
    np.save(tmp_path / "items.npy", vectors)
    by_name = 'vectors = { path = "items.csv", columns = ["x", "y"] }'
    for text in (by_name, 'vectors = { path = "items.npy" }'):
        assert items(tmp_path, text).empty == IntraListSimilarity(vectors)
    features = '{ path = "items.csv", columns = ["brand", "colour"] }'
    shop = items(tmp_path, f'similarity = "share_equal", vectors = {features}')
    expected = (("A", "red"), ("A", "blue"), ("7", "red"))
    settings = {"vectors": expected, "similarity": "share_equal"}
    assert shop.empty == metric("IntraListSimilarity", settings)
    prints = []
    for last in ("2e0", "2.0", "3"):
        (tmp_path / "items.csv").write_text(CSV.replace("2e0", last))
        prints.append(of_items(tmp_path, by_name).fingerprints()["i"])
    assert prints[0] == prints[1] != prints[2]


def test_what_is_wrong_with_vectors_is_said_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "items.csv").write_text(CSV)
    (tmp_path / "short.csv").write_text("x,y\n1,2\n3\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (tmp_path / "void.npy").write_bytes(b"")
    np.save(tmp_path / "objects.npy", np.array([["a", None]], object))
    with (tmp_path / "several.npy").open("wb") as file:
        np.savez(file, a=np.ones(1))

    def refused(settings: str, where: str, hint: str) -> None:
        with pytest.raises(ConfigError) as caught:
            items(tmp_path, settings)
        (problem,) = caught.value.problems
        assert problem.where == f"[metrics] i.{where}", settings
        assert hint in str(problem), settings

    for vectors, where, hint in (
        ("[[1, 0], [0, 0]]", "vectors", "a zero vector"),
        ("[[[1]]]", "vectors", "shape [1, 1, 1]"),
        ('[["a"]]', "vectors", "share_equal"),
        ("[[1]], k = 0", "k", "from 1"),
        ('{ path = "none.csv" }', "vectors.path", "No such file"),
        ('{ path = "items.txt" }', "vectors.path", ".csv or .npy"),
        ("{ path = 3 }", "vectors.path", ".csv or .npy"),
        ('{ path = "items.csv", colums = ["x"] }', "vectors.colums", "columns"),
        ('{ path = "items.csv", columns = ["z"] }', "vectors.path", "0 columns 'z'"),
        ('{ path = "items.csv", columns = [] }', "vectors.columns", "names"),
        ('{ path = "items.csv" }', "vectors", "numbers"),
        ('{ path = "short.csv" }', "vectors.path", "1 values in row 3, 2"),
        ('{ path = "empty.csv" }', "vectors", "at least one item"),
        ('{ path = "broken.npy" }', "vectors.path", "a table"),
        ('{ path = "objects.npy" }', "vectors.path", "a table"),
        ('{ path = "several.npy" }', "vectors.path", "several arrays"),
        ('{ path = "void.npy" }', "vectors.path", "a table"),
        ('{ path = "x.npy", columns = ["x"] }', "vectors.columns", "of a .csv"),
    ):
        refused(f"vectors = {vectors}", where, hint)
    monkeypatch.setattr("streammetrics_consumers.config.setting_files.MAX_SETTING_BYTES", 20)
    refused('vectors = { path = "items.csv" }', "vectors.path", "more than 20 bytes")


def test_a_list_of_items_has_a_role_or_a_field_of_its_own() -> None:
    catalog = 'c = { type = "CatalogMetrics", n_items = 9, k = 2 }'
    parts = {"event": 'time = "ts"', "slices": "by = [[]]"}
    (metric_config,) = config(
        **parts | {"event": 'time = "ts"\nlist = "a.b"'}, metrics=catalog
    ).metrics
    assert metric_config.empty == CatalogMetrics(9, 2)
    assert metric_config.columns == {"lists": "a.b:int_list", "offsets": "a.b:offsets"}
    assert "a field for `lists`" in str(problems(**parts, metrics=catalog))
    phase_catalog = catalog.replace("k = 2", 'k = 2, inputs = { lists = "phase" }')
    errors = problems(event='time = "ts"', slices='by = [["phase"]]', metrics=phase_catalog)
    assert "reads it as one value" in str(errors)
