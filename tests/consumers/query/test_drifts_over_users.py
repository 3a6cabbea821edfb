"""Metrics with `cluster = "groups"` in answers: the intervals of users, and drifts over users."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.catalogue import Catalogue
from streammetrics_consumers.query.query import Lines, Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.rows import SliceRow
from streammetrics_consumers.render.prometheus import result_gauges

from streammetrics import HistogramAUC, Interval, UserGroups, drift, load
from tests.consumers.stores import event, make_store

RANDOM = np.random.default_rng(22)
OWN = RANDOM.normal(size=90)
EVENTS: list[dict[str, Any]] = [
    event(60 * hour + i % 60, "ab"[who % 2], int(RANDOM.random() < x), x, f"user {who}")
    for hour in range(2)
    for i, who in enumerate(RANDOM.integers(0, 90, 900).tolist())
    for x in [round(1 / (1 + np.exp(2 - OWN[who] - hour - RANDOM.normal() / 2)), 3)]
]
USERS = """
[metrics.users]
type = "HistogramAUC"
cluster = "groups"
inputs = { groups = "phase" }
[drift.before]
metric = "users"
[drift.rows]
metric = "auc"
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_store(tmp_path_factory.mktemp("users"), EVENTS, rest=USERS)


def users(hour: int, variant: str = "ab") -> UserGroups[Any]:
    records = [
        record
        for record in EVENTS
        if int(str(record["ts"])[11:13]) == hour and str(record["variant"]) in variant
    ]
    state: UserGroups[Any] = UserGroups(HistogramAUC())
    columns = {
        "labels": [record["label"] for record in records],
        "scores": [record["score"] for record in records],
    }
    state.update([record["phase"] for record in records], **columns)
    return state


def rows(store: Path, metric: str, query: Query | None = None) -> dict[str, SliceRow]:
    query = query or Query("latest", frozenset({"variant"}), where=(("variant", "b"),))
    with closing(Ledger.open(str(store))) as ledger:
        result_rows = read_results(ledger, query).rows
    return {row.view: row for row in result_rows if row.metric == metric}


def test_a_drift_over_users_has_their_p_value_design_effect_and_intervals(store: Path) -> None:
    expected, views = drift(users(0, "b"), users(1, "b")), rows(store, "before")
    assert (expected.deff or 0) > 2 and "ks_band" not in views
    for view in ("psi", "psi_pvalue", "deff", "ks", "wasserstein", "js_distance"):
        assert views[view].value == float(getattr(expected, view)), view
    off = views["wasserstein"].interval
    assert isinstance(off, Interval) and not off.defined and "order of their scores" in off.reason
    for view in ("psi", "ks"):
        interval, bounds = views[view].interval, expected.interval(view)
        assert isinstance(interval, Interval) and interval.method == "jackknife"
        assert interval.lower == max(bounds.lower, 0) and interval.upper == bounds.upper
    # As independent rows the same drift has the same distances, and another p-value.
    plain = rows(store, "rows")
    assert plain["psi"].value == views["psi"].value and plain["psi"].interval is None
    assert plain["psi_pvalue"].value < views["psi_pvalue"].value and "deff" not in plain


def test_a_metric_of_users_has_the_views_of_the_metric_and_the_intervals_of_users(
    store: Path,
) -> None:
    state, plain, views = users(1, "b"), rows(store, "auc"), rows(store, "users")
    assert views.keys() == plain.keys()
    for view, row in views.items():
        same = (row.value, row.low, row.high, row.counts, row.type)
        plain_row = plain[view]
        assert same == (
            plain_row.value,
            plain_row.low,
            plain_row.high,
            plain_row.counts,
            plain_row.type,
        )
    auc = views["auc"].interval
    assert isinstance(auc, Interval) and auc.method == "jackknife, logit"
    bounds = state.compute().interval("auc")
    assert (auc.lower, auc.upper, views["auc"].digest) == (
        bounds.lower,
        bounds.upper,
        state.digest(),
    )


def test_an_undefined_metric_of_users_says_why_as_the_metric_does(tmp_path: Path) -> None:
    alike = [record | {"label": 0} for record in EVENTS[:40]]
    query = Query("total", frozenset())
    row = rows(make_store(tmp_path, alike, rest=USERS.split("[drift")[0]), "users", query)["auc"]
    assert isinstance(row.interval, Interval) and row.interval.reason == "no positives"


def test_metrics_of_users_are_listed_sorted_and_scraped_like_others(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        catalogue = Catalogue(ledger, "a.db")
        metric, plain = catalogue.known("users"), catalogue.known("auc")
        assert (metric.type, metric.views, metric.headlines) == (
            plain.type,
            plain.views,
            plain.headlines,
        )
        assert metric.figures == plain.figures
        headlines = ("psi", "psi_pvalue", "deff", "ks", "wasserstein")
        assert catalogue.known("before").headlines == headlines
        lines = Lines(1, "value", "b", down=True, view="ks")
        first = Query("all", frozenset({"variant"}), metric="users", lines=lines)
        assert {row.view for row in read_results(ledger, first).rows} == {"ks"}
        query = Query("latest", frozenset(), headlines=True)
        now, total = (
            read_results(ledger, request) for request in (query, Query("total", frozenset()))
        )
    (values,) = (
        family
        for family in result_gauges({"latest": now, "total": total})
        if family.name == "streammetrics_result"
    )
    shown = {(sample.labels["metric"], sample.labels["view"]) for sample in values.samples
             if sample.labels["window"] == "latest"}  # fmt: skip
    assert {("before", "deff"), ("users", "auc"), ("rows", "ks_band")} <= shown


def test_an_exported_state_of_users_is_a_reference_and_one_of_rows_is_not(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {metric: tmp_path / metric for metric in ("users", "auc")}
    for metric, path in paths.items():
        words = ["--window", "1970-01-01T00:00:00Z/1970-01-01T01:00:00Z", "--metric", metric]
        assert main(["export", str(store), *words, "-o", str(path)]) == 0
    assert load(paths["users"]) == users(0)
    config = store.with_name("clicks.toml").read_text(encoding="utf-8")
    path = store.with_name("saved.toml")
    saved = '[drift.saved]\nmetric = "users"\nreference = "{}"\n'
    path.write_text(config + saved.format(paths["auc"]), encoding="utf-8")
    with pytest.raises(Exception, match="expected UserGroups on both sides, or on neither"):
        load_config(path)
    path.write_text(config + saved.format(paths["users"]), encoding="utf-8")
    assert main(["run", str(path), "--until-end", "--no-serve"]) == 0
    views = rows(store, "saved", Query("latest", frozenset()))
    assert views["psi_pvalue"].value == drift(users(0), users(1)).psi_pvalue
    words = [str(paths["users"]), str(paths["users"])]
    capsys.readouterr()
    assert main(["drift", *words]) == 0
    assert "not known, since rows are of users; see the p-value" in capsys.readouterr().out
