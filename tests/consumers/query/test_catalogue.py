"""What a store can be asked for is read from it: names, views, groupings, windows, variants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.store_view import view
from streammetrics_consumers.query import catalogue as module
from streammetrics_consumers.query.catalogue import Catalogue, StoreMetric, watched_by
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.query import QueryError

from tests.consumers import experiment_run
from tests.consumers.stores import EVENTS, make_store, write_events


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store))) as opened:
        yield opened


def test_a_metric_is_known_by_its_class_its_views_and_its_figures(ledger: Ledger) -> None:
    metric = Catalogue(ledger, "a.db").known("auc")
    assert (metric.type, metric.headlines, metric.figures[0]) == ("HistogramAUC", ("auc",), "roc")
    assert metric.view(None) == "auc" and metric.view("ks") == "ks"


def test_a_view_or_metric_that_is_not_there_is_refused_with_those_that_are(ledger: Ledger) -> None:
    catalogue = Catalogue(ledger, "a.db")
    with pytest.raises(QueryError, match=r"a view of this metric \(ratio, .*got 'auc'"):
        catalogue.known("ctr").view("auc")
    with pytest.raises(QueryError, match=r"a metric of this store \(auc, ctr\)"):
        catalogue.known("clicks")
    with pytest.raises(QueryError, match="no rows are counted yet"):
        StoreMetric("ctr", "", (), (), (), {}).view(None)


def test_the_smallest_grouping_with_these_names_is_taken(ledger: Ledger) -> None:
    catalogue = Catalogue(ledger, "a.db")
    assert catalogue.grouping(frozenset({"variant"})) == {"variant"}
    assert catalogue.grouping(frozenset({"phase"})) == {"variant", "phase"}
    assert catalogue.grouping(frozenset({"country"})) == frozenset()  # refused by who reads it


def test_it_lists_windows_groupings_and_variants(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = json.loads(Catalogue(ledger, "a.db").to_json())
    assert catalogue["groupings"] == [[], ["variant"], ["variant", "phase"]]
    assert [span["start_ms"] for span in catalogue["windows"]["spans"]] == [0, 3_600_000]
    assert (catalogue["name"], catalogue["control"], catalogue["experiment"]) == (
        "a.db",
        None,
        False,
    )
    monkeypatch.setattr(module, "MAX_SPANS", 1)
    few = json.loads(Catalogue(ledger, "a.db").to_json())["windows"]
    assert (len(few["spans"]), few["more"]) == (1, 1)


def test_its_outline_changes_with_what_may_be_asked_and_not_with_each_event(
    tmp_path: Path,
) -> None:
    outlines: list[str] = []
    for count in (3, 4, 6):  # the last ones lie in another window
        store = (
            make_store(tmp_path, EVENTS[:count]) if not outlines else _grown_store(tmp_path, count)
        )
        with closing(Ledger.open(str(store))) as ledger:
            outlines.append(json.loads(Catalogue(ledger, "a.db").to_json())["outline"])
    assert outlines[0] == outlines[1] != outlines[2]


def test_of_an_experiment_it_names_the_control_and_what_is_compared(tmp_path: Path) -> None:
    store = experiment_run.run(experiment_run.write(tmp_path))
    with closing(Ledger.open(str(store))) as ledger:
        catalogue = json.loads(Catalogue(ledger, "a.db").to_json())
        experiment = declared(ledger.generation())
    assert experiment is not None and watched_by(experiment) == {"ctr"}
    assert experiment.watched_of("ctr") == ("ctr",) and experiment.watched_of("ct") == ()
    assert (catalogue["control"], catalogue["variants"]) == ("old", ["old", "new"])
    assert catalogue["metrics"][0]["figures"] == ["values", "history", "effect"]


def test_its_generations_are_those_of_its_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path, EVENTS[:3])
    with closing(Ledger.open(str(store))) as ledger:

        def late(*arguments: Any, **keywords: Any) -> object:
            ledger.begin({"ctr": "f"}, {"ctr": {}}, new_generation=True)
            return view(*arguments, **keywords)

        monkeypatch.setattr(module, "view", late)
        catalogue = json.loads(Catalogue(ledger, "a.db").to_json(generation=1))
        assert (catalogue["generation"], catalogue["generations"]) == (1, [1, 2])


def _grown_store(folder: Path, count: int) -> Path:
    from streammetrics_consumers.cli.main import main

    write_events(folder, EVENTS[:count])
    assert main(["run", str(folder / "clicks.toml"), "--until-end", "--no-serve"]) == 0
    return folder / "store.db"
