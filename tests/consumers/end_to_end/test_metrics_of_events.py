"""Metrics of every shape of event in a config: the states are those of the library fed with the
good events, and each bad one goes to quarantine alone, with its field and what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    CatalogMetrics,
    ExactAUC,
    GroupedAUC,
    GroupedInterleaving,
    GroupedScores,
    HistogramAUC,
    Interleaving,
    IntraListSimilarity,
    ItemExposure,
    Moments,
    MulticlassAUC,
    MulticlassConfusion,
    MultilabelConfusion,
    Paired,
    RankingMetrics,
    Ratio,
    Regression,
    UserGroups,
    load,
)
from streammetrics.results import views_of
from tests.consumers.memory_run import ONE, Run
from tests.consumers.memory_source import Log
from tests.consumers.small_config import config

Row = Mapping[str, Any]
Columns = Mapping[str, list[Any]]
Bad = tuple[dict[str, Any], str, str | None, str]  # changes, reason, field, a part of the detail


@dataclass(frozen=True)
class Case:
    """good: events; bad: what makes the first of them bad; fed: the library with their columns."""

    roles: str
    metrics: str
    good: Sequence[Row]
    bad: Sequence[Bad]
    fed: Callable[[Columns], Mapping[str, Accumulator]]


def rows(names: str, *values: tuple[Any, ...]) -> list[Row]:
    return [dict(zip(names.split(), cells, strict=True)) for cells in values]


def updated(metric: Accumulator, *columns: Sequence[Any], **more: Sequence[Any]) -> Accumulator:
    metric.update(*columns, **more)  # type: ignore[attr-defined]
    return metric


def of_either(columns: Columns) -> dict[str, Accumulator]:
    """Labels that are a class or an array of labels come apart: no one array is both."""
    areas = MulticlassAUC(3, exact=True, score_type="float64", max_rows=3_333_333)
    for truth, probs in zip(columns["truth"], columns["probs"], strict=True):
        areas.update([truth], [probs])
    return {"auc": areas}


def weighted(columns: Columns) -> dict[str, Accumulator]:
    inputs = {"labels": columns["label"], "scores": columns["score"], "weights": columns["w"]}
    gauc = GroupedAUC(score_type="float32", weight_unit="1/10", ids="hashed", max_rows=10**7)
    halves = {**inputs, "weights": columns["half"]}
    return {
        "rates": updated(BinaryConfusion(weight_unit="1/10"), **inputs),
        "auc": updated(
            ExactAUC(score_type="float64", weight_unit="1/10", max_rows=10**7), **inputs
        ),
        "near": updated(HistogramAUC(weight_unit="1/10"), **inputs),
        "gauc": updated(gauc, **inputs, groups=columns["user"]),
        "other": updated(BinaryConfusion(weight_unit="1/2"), **halves),
        "ctr": updated(Ratio(), columns["label"]),
    }


def two_models(columns: Columns) -> dict[str, Accumulator]:
    labels, groups = {"labels": columns["y"]}, {"groups": columns["user"]}
    new = {key: [row[key] for row in columns["new"]] for key in ("p", "k")}
    scores = {"scores_a": columns["p"], "scores_b": new["p"]}
    kinds = {"predictions_a": columns["k"], "predictions_b": new["k"]}
    spent = {"numerators_a": columns["p"], "numerators_b": new["p"]}
    gauc = GroupedAUC(ids="hashed", max_rows=10**7, score_type="float32")
    metrics = {
        "auc": (UserGroups(HistogramAUC()), {**labels, **scores}),
        "gauc": (gauc, {**labels, **scores}),
        "kinds": (UserGroups(MulticlassConfusion(3)), {**labels, **kinds}),
        "spent": (UserGroups(Ratio()), {**spent, "denominators": columns["k"]}),
    }
    return {
        name: updated(Paired(metric), **inputs, **groups)
        for name, (metric, inputs) in metrics.items()
    }


AN_ARRAY = "expected an array of 3 numbers"
PROBS = [[0.5, 0.25, 0.25], [0, 1, 0], [0.1, 0.7, 0.2], [1, 0, 0]]
WEIGHTS = (0.1, 1.2, 3, 0, 0.0, 12345.6, 2**33)
VECTORS = [[1, 0], [1, 0], [0, 1]]
CASES = {
    "scores of classes": Case(
        'label = "truth"\nscore = "probs"',
        'kinds = { type = "MulticlassConfusion", n_classes = 3, top_k = [2] }\n'
        'auc = { type = "MulticlassAUC", n_classes = 3, exact = true }',
        rows("truth probs", *zip((0, 2, 1.0, 0), PROBS, strict=True)),
        [
            *(
                ({"probs": probs}, reason, "probs", detail)
                for probs, reason, detail in (
                    ([0.5, 0.5], "wrong_type", f"{AN_ARRAY}, got an array of 2"),
                    ([], "wrong_type", f"{AN_ARRAY}, got an array of 0"),
                    ([0.1, 0.2, 0.3, 0.4], "wrong_type", "got an array of 4; send one for each"),
                    (0.5, "wrong_type", "got 0.5"),
                    (None, "missing_field", ""),
                    ("x", "wrong_type", "got 'x'"),
                    ([0.5, None, 0.5], "wrong_type", "an array holds None"),
                    ([0.5, "0.5", 0.5], "wrong_type", "an array holds '0.5'"),
                    ([0.5, True, 0.5], "wrong_type", "an array holds True"),
                    ([[0.5], [0.5], [0.5]], "wrong_type", "an array holds an array"),
                    ([0.5, 0.5, 10**400], "out_of_range", "bits"),
                )
            ),
            ({"truth": 3}, "metric", None, "class number from 0 to 2, got 3.0"),
            ({"truth": -1}, "metric", None, "class number from 0 to 2"),
            ({"truth": 0.5}, "metric", None, "class number from 0 to 2, got 0.5"),
            ({"truth": None}, "missing_field", "truth", ""),
        ],
        lambda table: {
            "kinds": updated(MulticlassConfusion(3, top_k=(2,)), table["truth"], table["probs"]),
            "auc": updated(
                MulticlassAUC(3, exact=True, score_type="float64", max_rows=3_333_333),
                table["truth"], table["probs"],
            ),
        },
    ),
    "labels": Case(
        'label = "truth"\nscore = "probs"',
        'labels = { type = "MultilabelConfusion", n_labels = 3 }\n'
        'near = { type = "MulticlassAUC", n_classes = 3 }',
        rows(
            "truth probs",
            *((truth, [0.5, 0.25, 0.75]) for truth in ([0, 1, 1], [False] * 3, [True, 0, 1.0])),
        ),
        [
            ({"truth": [0, 1]}, "wrong_type", "truth", ""),
            ({"truth": [0, 1, 2]}, "metric", None, "labels[0, 2]: expected 0 or 1"),
            ({"truth": [0, 1, 0.5]}, "metric", None, "expected 0 or 1"),
            ({"truth": 1}, "wrong_type", "truth", ""),
            ({"truth": [0, None, 1]}, "wrong_type", "truth", ""),
            ({"probs": [0.5, 0.5, 1.5]}, "metric", None, "numbers in [0, 1], got 1.5"),
        ],
        lambda table: {
            "labels": updated(MultilabelConfusion(3), table["truth"], table["probs"]),
            "near": updated(MulticlassAUC(3), table["truth"], table["probs"]),
        },
    ),
    "a class or an array of labels": Case(
        'label = "truth"\nscore = "probs"',
        'auc = { type = "MulticlassAUC", n_classes = 3, exact = true }',
        rows("truth probs", *zip((1, [1, 0, 1], 2, [0, 0, 0]), PROBS, strict=True)) * 3,
        [
            ({"truth": [1]}, "wrong_type", "truth", ""),
            ({"truth": 7}, "metric", None, "class number"),
            ({"truth": [0, 0, 7]}, "metric", None, "expected 0 or 1"),
        ],
        of_either,
    ),
    "a predicted class": Case(
        'label = "kind"',
        'kinds = { type = "MulticlassConfusion", n_classes = 3, '
        'inputs = { predictions = "guess" } }',
        rows("kind guess", (0, 0), (0, 1), (1, 1), (2, 2), (2, 2), (2, 0)),
        [
            ({"kind": 3}, "metric", None, "class number"),
            ({"guess": -1}, "metric", None, "class number"),
            ({"kind": "cat"}, "wrong_type", "kind", ""),
            ({"guess": None}, "missing_field", "guess", ""),
        ],
        lambda table: {"kinds": updated(MulticlassConfusion(3), table["kind"], table["guess"])},
    ),
    "weights of a metric": Case(
        'label = "click"\nscore = "p"',
        'spent = { type = "Regression", inputs = { labels = "spent", scores = "guess" } }\n'
        'fit = { type = "Calibration", bins = 3, clip = 0.001, weight_unit = "1/10", '
        'inputs = { weights = "w" } }',
        rows(
            "click p w spent guess", (1, 0.5, 0.1, 3.5, 3), (0, 0.25, 1.2, 0.0, 0.5),
            (0, 0.0, 0.0, 1.0, 1), (1, 0.9, 7.0, 2, 8),
        ),
        [
            ({"p": 1.5}, "metric", None, "got 1.5"),
            ({"w": -1.0}, "metric", None, "weights of at least 0"),
            ({"click": 2}, "metric", None, "0 or 1"),
        ],
        lambda table: {
            "spent": updated(Regression(), table["spent"], table["guess"]),
            "fit": updated(
                Calibration(bins=3, clip=0.001, weight_unit="1/10"),
                table["click"], table["p"], weights=table["w"],
            ),
        },
    ),
    "the role weight": Case(
        'user = "user"\nlabel = "label"\nscore = "score"\nweight = "w"',
        'rates = { type = "BinaryConfusion", weight_unit = "1/10" }\n'
        'auc = { type = "ExactAUC", weight_unit = "1/10" }\n'
        'near = { type = "HistogramAUC", weight_unit = "0.1" }\n'
        'gauc = { type = "GroupedAUC", weight_unit = "1/10", weight = "impressions" }\n'
        'other = { type = "BinaryConfusion", weight_unit = "1/2", inputs = { weights = "half" } }\n'
        'ctr = { type = "Ratio" }',
        rows(
            "user label score half w",
            *(
                (f"u{i % 3}", i % 2, (i * 7 % 10) / 10, i / 2, weight)
                for i, weight in enumerate((*WEIGHTS, *WEIGHTS[::-1], *WEIGHTS))
            ),
        ),
        [
            ({"w": -1}, "metric", None, "weights[0]: expected weights of at least 0, got -1"),
            ({"w": 0.25}, "metric", None, 'pass weight_unit="1/100"'),
            ({"w": 1e300}, "metric", None, ""),
            ({"w": "x"}, "wrong_type", "w", ""),
            ({"w": None}, "missing_field", "w", ""),
            ({"w": 10**30}, "out_of_range", "w", ""),
        ],
        weighted,
    ),
    "two models": Case(
        'user = "user"\nlabel = "y"',
        'auc = { type = "HistogramAUC", models = ["p", "new.p"] }\n'
        'gauc = { type = "GroupedAUC", models = ["p", "new.p"] }\n'
        'kinds = { type = "MulticlassConfusion", n_classes = 3, models = ["k", "new.k"] }\n'
        'spent = { type = "Ratio", models = ["p", "new.p"], inputs = { denominators = "k" } }',
        rows(
            "user y p k new",
            *((f"u{i % 3}", i % 2, i / 20, i % 3, {"p": i % 5 / 5, "k": i % 2}) for i in range(20)),
        ),
        [
            ({"new": {"p": None, "k": 1}}, "missing_field", "new.p", ""),
            ({"new": {"p": 0.5, "k": 7}}, "metric", None, "model b"),
            ({"user": None}, "missing_field", "user", ""),
        ],
        two_models,
    ),
    "lists of items": Case(
        'list = "shown"',
        'catalog = { type = "CatalogMetrics", n_items = 3, k = 2 }\n'
        f'ils = {{ type = "IntraListSimilarity", vectors = {json.dumps(VECTORS)} }}',
        rows("shown", ([0, 1],), ([],), ([2],), ([1, 2],)),
        [
            ({"shown": [0, 34]}, "metric", None, "expected item numbers from 0 to 2, got 34"),
            ({"shown": [1, 1]}, "metric", None, "each item once in a list"),
            ({"shown": [-1]}, "metric", None, "item numbers"),
            ({"shown": [1.5]}, "wrong_type", "shown", ""),
            ({"shown": None}, "missing_field", "shown", ""),
        ],
        lambda table: {
            "catalog": updated(CatalogMetrics(3, 2), table["shown"]),
            "ils": updated(IntraListSimilarity(VECTORS), table["shown"]),
        },
    ),
    "a ranked list an event": Case(
        'label = "clicks"\nscore = "scores"',
        'r = { type = "RankingMetrics", measures = ["MRR@3"] }\n'
        'n = { type = "Ratio", inputs = { numerators = "n" } }',
        rows("clicks scores n", ([0, 1], [0.9, 0.8], 2), ([1], [0.1], 1)),
        [({"clicks": [99, 0]}, "metric", None, "labels")],
        lambda table: {
            "r": updated(
                RankingMetrics(["MRR@3"]), [0, 1, 1], [0.9, 0.8, 0.1], offsets=[0, 2, 3]
            ),
            "n": updated(Ratio(), table["n"]),
        },
    ),
    "interleaved lists and items, and numbers": Case(
        'user = "user"\nlabel = "click"',
        'lists = { type = "Interleaving", inputs = { clicks_a = "won.a", clicks_b = "won.b" } }\n'
        'items = { type = "GroupedInterleaving", inputs = { teams = "team", groups = "s" } }\n'
        'users = { type = "GroupedInterleaving", inputs = { teams = "team" } }\n'
        'spent = { type = "Moments", inputs = { values = "spent" } }',
        rows(
            "user click s team won spent",
            ("u1", 1, 7, 1, {"a": 0, "b": 2}, 0.25), ("u1", 1, 8, True, {"a": 0, "b": 0}, -3),
            ("u2", 0, 7, 0, {"a": 1.5, "b": 1.5}, 1e200), ("u2", 1, 7, 0, {"a": 1, "b": 0}, 0),
        ),
        [
            ({"team": 2}, "metric", None, "expected 0 or 1"),
            ({"won": {"a": -1, "b": 0}}, "metric", None, "numbers of at least 0, got -1.0"),
            ({"won": {"a": 1}}, "missing_field", "won.b", ""),
            ({"s": None}, "missing_field", "s", ""),
            ({"spent": "3"}, "wrong_type", "spent", ""),
        ],
        lambda table: {
            "lists": updated(
                Interleaving(), *([clicks[side] for clicks in table["won"]] for side in ("a", "b"))
            ),
            **{
                name: updated(
                    GroupedInterleaving(ids="hashed", max_rows=10**7),
                    table["click"], table["team"], groups=table[groups],
                )
                for name, groups in (("items", "s"), ("users", "user"))
            },
            "spent": updated(Moments(), table["spent"]),
        },
    ),
    "a list of items with subtopics an event": Case(
        'label = "clicks"\nscore = "scores"\nsubtopics = "genres"',
        'r = { type = "RankingMetrics", measures = ["AlphaNDCG@2", "StRecall"] }\n'
        'w = { type = "RankingMetrics", measures = ["MRR"], examination = [1.0, 0.5], '
        'inputs = { positions = "at" } }\n'
        'e = { type = "ItemExposure", n_items = 9, k = 2, examination = [1.0, 0.5], '
        'inputs = { lists = "shown" } }',
        rows(
            "clicks scores genres at shown",
            ([1, 0, 1], [3, 2, 1], [["a"], ["b"], ["a", 7]], 2, [4, 5]),
            ([0, 1], [0.5, 0.5], [[], ["b"]], 1, [5, 6]),
        ),
        [
            ({"genres": [["a"]]}, "wrong_type", None, "1 subtopics"),
            ({"genres": ["a", "b", "c"]}, "wrong_type", "genres", ""),
            ({"genres": [["a", "a"], [], []]}, "metric", None, "each subtopic once"),
            ({"genres": None}, "missing_field", "genres", ""),
            ({"at": 3}, "metric", None, "ranks from 1 to 2"),
            ({"at": 0}, "metric", None, "ranks from 1 to 2"),
        ],
        lambda table: {
            "r": updated(
                RankingMetrics(["AlphaNDCG@2", "StRecall"]), [1, 0, 1, 0, 1], [3, 2, 1, 0.5, 0.5],
                offsets=[0, 3, 5], subtopics=[["a"], ["b"], ["a", 7], [], ["b"]],
            ),
            "w": updated(
                RankingMetrics(["MRR"], examination=(1, 0.5)), [1, 0, 1, 0, 1],
                [3, 2, 1, 0.5, 0.5], offsets=[0, 3, 5], positions=table["at"],
            ),
            "e": updated(ItemExposure(9, 2, (1, 0.5)), table["shown"]),
        },
    ),
    "an item with subtopics an event": Case(
        'list = "q"\nlabel = "grade"\nscore = "score"\nsubtopics = "genres"',
        'm = { type = "GroupedScores", measures = ["AlphaNDCG@2", "StRecall@1"] }\n'
        'n = { type = "GroupedScores", measures = ["MRR"] }',
        rows(
            "q grade score genres", (7, 1, 0.5, ["a", 3]), (7, 2, 0.5, ["b"]), (7, 0, 0.9, ["b"]),
            (7, 1, 0.1, []), ("x", 1, 0.5, ["a"]), ("x", 1, 0.25, ["a"]),
        ),
        [
            ({"genres": "a"}, "wrong_type", "genres", "got 'a'"),
            ({"genres": [["a"]]}, "wrong_type", "genres", ""),
            ({"genres": [True]}, "wrong_type", "genres", "an array holds True"),
            ({"genres": [2**63]}, "out_of_range", "genres", "64 bits"),
            ({"genres": None}, "missing_field", "genres", ""),
            ({"genres": ["a", "a"]}, "metric", None, "each subtopic once"),
        ],
        lambda table: {
            name: updated(
                GroupedScores(
                    measures, score_type="float32", ids="hashed", item_ids="hashed",
                    duplicates="conflict", max_rows=10_000_000,
                ),
                table["grade"], table["score"], groups=table["q"], subtopics=table["genres"],
            )
            for name, measures in (("m", ["AlphaNDCG@2", "StRecall@1"]), ("n", ["MRR"]))
        },
    ),
    "an impression an event": Case(
        'list = "q"\nitem = "doc"\nlabel = "grade"\nscore = "score"',
        'm = { type = "GroupedScores", measures = ["MRR", "R@3"], inputs = { shown = "seen" } }',
        rows(
            "q doc grade score seen", (7, 5, 1, 0.5, True), (7, 6, 0, 0.75, True),
            (-8, 5, 1, 0, False), (-8, 2**53 + 1, 0, 0.1, True),
        ),
        [
            ({"seen": 1}, "wrong_type", "seen", ""),
            ({"seen": "true"}, "wrong_type", "seen", ""),
            ({"seen": None}, "missing_field", "seen", ""),
        ],
        lambda table: {
            "m": updated(
                GroupedScores(
                    ["MRR", "R@3"], score_type="float32",
                    ids="hashed", item_ids="hashed", duplicates="conflict",
                    max_rows=10_000_000,
                ),
                table["grade"], table["score"],
                groups=table["q"], items=table["doc"], shown=table["seen"],
            )
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_good_events_give_the_states_of_the_library_and_bad_ones_cost_themselves_alone(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    # A bad one before each good one, and the rest at the end.
    mixed: list[tuple[Row, Bad | None]] = [({**case.good[0], **bad[0]}, bad) for bad in case.bad]
    for i, good in enumerate(case.good):
        mixed.insert(2 * i + 1, (good, None))
    lines = [json.dumps({"ts": "2026-01-01T00:00:00Z", **row}).encode() for row, _ in mixed]
    run = Run(
        tmp_path, {ONE: Log([*lines])}, event=f'time = "ts"\n{case.roles}', slices="by = [[]]",
        windows="size_s = 3600", metrics=case.metrics,
    )  # fmt: skip
    run()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        entries = ledger.quarantine()
        results = read_results(ledger, Query())
    wrong = [(offset, *bad) for offset, (_, bad) in enumerate(mixed) if bad is not None]
    for entry, (offset, _, reason, field, detail) in zip(entries, wrong, strict=True):
        assert (entry.offset, entry.reason, entry.field) == (offset, reason, field)
        assert detail in entry.detail
    states = case.fed({key: [row[key] for row in case.good] for key in case.good[0]})
    assert {(row.metric, row.digest) for row in results.rows} == {
        (key, state.digest()) for key, state in states.items()
    }
    for key, state in states.items():
        shown = {row.view: repr(row.value) for row in results.rows if row.metric == key}
        views = views_of(state.compute()).items()
        assert shown == {view: repr(float(value)) for view, value in views}
    assert (results.rows_read, results.quarantined) == (len(mixed), len(case.bad))


def test_what_a_metric_lacks_is_an_error_of_the_config() -> None:
    of_label = 'time = "ts"\nlabel = "kind"'
    for roles, metric, where in (
        (of_label, 'type = "MulticlassConfusion", n_classes = 3', "predictions"),
        (of_label, 'type = "MulticlassConfusion", n_classes = 1', r"m\.n_classes"),
        (
            f'{of_label}\nscore = "p"',
            'type = "BinaryConfusion", weight_unit = 0.5',
            r"m\.weight_unit.*pass weight_unit=.1/2",
        ),
        (
            f'{of_label}\nscore = "p"\nlist = "q"',
            'type = "GroupedScores", measures = ["MRR", "StRecall"]',
            "name .event. subtopics",
        ),
    ):
        with pytest.raises(ConfigError, match=where):
            config(event=roles, slices="by = [[]]", metrics=f"m = {{ {metric} }}")


def test_a_state_file_is_shown_and_added_up_without_the_vectors_of_its_items(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ({"arm": "ab"[i % 2], "shown": [i % 3, (i + 1) % 3]} for i in range(10))
    lines = [json.dumps({"ts": "2026-01-01T00:00:00Z", **row}).encode() for row in rows]
    run = Run(
        tmp_path,
        {ONE: Log([*lines])},
        event='time = "ts"\nlist = "shown"',
        slices='by = [[], ["arm"]]',
        windows="size_s = 3600",
        metrics=CASES["lists of items"].metrics,
    )
    run()
    store, parts = run.config.store.url, [str(tmp_path / f"{arm}.state") for arm in "ab"]
    for arm, part in zip("ab", parts, strict=True):
        words = ["--metric", "ils", "--where", f"arm={arm}"]
        assert main(["export", store, "-o", part, *words]) == 0
    whole, merged = str(tmp_path / "all.state"), str(tmp_path / "merged.state")
    assert main(["export", store, "-o", whole, "--metric", "ils"]) == 0
    assert main(["merge", *parts, "-o", merged]) == 0
    assert load(merged) == load(whole)
    capsys.readouterr()
    assert main(["show", merged]) == 0
    text = capsys.readouterr().out
    assert "cosine" in text and "lists short" in text and "sha256:" in text
