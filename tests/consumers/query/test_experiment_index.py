"""The index says of each experiment what its own page says, and reads what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import UNSET
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process.experiment_looks import look_now
from streammetrics_consumers.query import experiment_totals
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_index import ExperimentIndex
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json

from tests.consumers import experiment_run, experiments_run
from tests.consumers.stores import filled_once


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    filled_once(path, ("experiments",), lambda: experiments_run.make(tmp_path))
    return path


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store), create=True)) as ledger:
        yield ledger


def test_each_entry_is_what_its_own_answer_says(ledger: Ledger) -> None:
    look_now(ledger, 1, name="ranker")
    answers = QueryCache(ledger)
    index = answers.index()
    assert [entry.name for entry in index.experiments] == ["", "ranker", "pricing"]
    assert index.offsets == {"clicks.jsonl/0": 2000} and index.generation == 1
    for entry in index.experiments:
        own = answers.experiment(Query(experiment=entry.name))
        assert (entry.recommendation, entry.srm) == (own.recommendation, own.srm)
        assert (entry.state, entry.archived) == ("running", False)
        assert entry.looks == (0 if entry.name == "pricing" else 1)
        [row] = own.comparisons
        effect = entry.effect
        assert effect is not None
        assert (effect.metric, effect.view, effect.variant) == ("ctr", "ratio", "new")
        assert (effect.estimate, effect.verdict) == (0.25, row.finding.verdict)
        assert (effect.lower, effect.upper) == (
            row.finding.anytime_lower,
            row.finding.anytime_upper,
        )
        assert effect.course == (() if entry.name == "pricing" else (0.25,))
        assert entry.progress is not None and entry.progress.units == 2000
        assert row.finding.sentence in entry.sentence


def test_results_without_a_name_have_the_index_and_with_one_the_arms(ledger: Ledger) -> None:
    whole, one = read_results(ledger, Query()), read_results(ledger, Query(experiment="ranker"))
    assert whole.experiments is not UNSET
    assert whole.experiments == ExperimentIndex(ledger).answer()
    assert json.loads(to_json(whole))["experiments"] == json.loads(dumps(whole.experiments))
    assert one.experiments is UNSET
    assert {(row.metric, row.slice["variant"]) for row in one.rows} == {
        ("ctr", "new"), ("ctr", "old"),
    }  # fmt: skip
    # An experiment counts the rows of the slices by variant, here in groups of users.
    by_variant = {
        (row.view, row.slice["variant"]): row for row in whole.rows if "variant" in row.slice
    }
    for row in one.rows:
        other = by_variant[row.view, row.slice["variant"]]
        assert (row.value, row.counts) == (other.value, other.counts)
        assert row.view != "ratio" or (row.interval == other.interval != None)  # noqa: E711


def test_a_store_without_names_answers_as_before(tmp_path: Path) -> None:
    with closing(Ledger.open(str(experiment_run.run(experiment_run.write(tmp_path))))) as ledger:
        results = read_results(ledger, Query())
        assert results.experiments is UNSET and b'"experiments"' not in to_json(results)
        assert [entry.name for entry in ExperimentIndex(ledger).answer().experiments] == [""]


def test_what_has_not_changed_is_not_read_again(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    real = experiment_totals.experiment_over

    def noted(now: object, of: object, rows: object) -> object:
        read.append(of.name)  # type: ignore[attr-defined]
        return real(now, of, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment_totals, "experiment_over", noted)
    index = ExperimentIndex(ledger)
    first = index.answer()
    assert read == ["", "ranker", "pricing"]
    assert index.answer() is first
    look_now(ledger, 1, name="pricing")
    second = index.answer()
    assert read == ["", "ranker", "pricing"]  # a look changes no states
    assert second is not first
    assert second.experiments[1] is first.experiments[1]
    assert second.experiments[2].looks == 1


def test_a_generation_that_the_store_does_not_have_is_refused(ledger: Ledger) -> None:
    assert ExperimentIndex(ledger).answer(1).generation == 1
    with pytest.raises(QueryError, match="a generation of this store"):
        ExperimentIndex(ledger).answer(7)
