"""The index says of each experiment what its own page says, and reads what changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import UNSET
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import look, look_reading
from streammetrics_consumers.model.times import DAY_MS
from streammetrics_consumers.process.experiment_looks import look_now
from streammetrics_consumers.query import experiment_totals
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.experiment_index import ExperimentIndex
from streammetrics_consumers.query.experiment_plan import declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query, QueryError
from streammetrics_consumers.query.reader import read_json, read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.render.experiment_index_text import entry_text
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import table

from tests.consumers import experiment_run, experiments_run
from tests.consumers.stores import filled_once


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"

    def fill() -> None:
        experiments_run.make(tmp_path)

    filled_once(path, ("experiments",), fill)
    return path


@pytest.fixture
def ledger(store: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(store), create=True)) as ledger:
        yield ledger


def forget(ledger: Ledger, name: str) -> None:
    """Delete the looks at an experiment."""
    experiment = declared(ledger.generation(), name)
    assert experiment is not None
    ids = (
        look.select()
        .with_only_columns(look.c.id)
        .where(look.c.experiment == experiment.fingerprint)
    )
    with ledger.store.engine.begin() as connection:
        numbers = connection.scalars(ids).all()
        connection.execute(look_reading.delete().where(look_reading.c.look.in_(numbers)))
        connection.execute(look.delete().where(look.c.id.in_(numbers)))


def test_each_entry_is_what_its_own_answer_says(ledger: Ledger) -> None:
    answers = QueryCache(ledger)
    index = answers.index()
    assert [entry.name for entry in index.experiments] == ["", *experiments_run.NAMES]
    assert index.offsets == {"clicks.jsonl/0": 2000} and index.generation == 1
    for entry in index.experiments:
        answer = answers.experiment(Query(experiment=entry.name))
        assert (entry.recommendation, entry.srm) == (answer.recommendation, answer.srm)
        assert (entry.state, entry.archived, entry.looks) == ("running", False, 1)
        row, effect = answer.comparisons[0], entry.effect
        assert effect is not None
        assert (effect.metric, effect.view) == ("ctr", "ratio")
        assert (effect.estimate, effect.verdict) == (
            row.comparison.effect_size, row.finding.verdict,
        )  # fmt: skip
        assert (effect.lower, effect.upper) == (
            row.finding.anytime_lower,
            row.finding.anytime_upper,
        )
        assert effect.course == (effect.estimate,)
        assert entry.srm is not None and entry.progress is not None
        assert entry.progress.units == sum(n for _, n in entry.srm.counts)
        assert row.finding.sentence in entry.sentence
    plain, ranker, pricing = index.experiments
    assert (ranker.title, ranker.hypothesis) == ("The ranker", "More clicks.")
    assert ranker.progress is not None and ranker.progress.planned_days == 14
    assert (ranker.guardrails.broken, ranker.guardrails.kept) == ((), 1)
    assert (plain.start_ms, pricing.start_ms, pricing.end_ms) == (0, 1_800_000, None)
    assert pricing.progress is not None and pricing.progress.days == round(3_597_300 / DAY_MS, 2)


def test_results_of_one_are_its_arms_as_it_counts_them(ledger: Ledger) -> None:
    whole, ranker = read_results(ledger, Query()), read_results(ledger, Query(experiment="ranker"))
    assert ranker.experiments is UNSET
    rates = {(row.metric, row.slice["variant"]): row for row in ranker.rows if row.view == "ratio"}
    assert list(rates) == [(m, v) for v in ("new", "old") for m in ("ctr", "slow")]
    assert {row.counts["rows"] for row in rates.values()} == {473, 491}
    assert all(row.type == "Ratio" for row in rates.values())
    for row in rates.values():  # over users, whose rows are correlated
        assert row.interval is not None and row.interval.method == "jackknife, wilson"
    slices = [row for row in whole.rows if row.view == "ratio" and row.metric == "ctr"]
    assert {row.counts["rows"] for row in slices} == {1000}
    pricing = read_results(ledger, Query("all", experiment="pricing"))
    assert {row.slice["variant"] for row in pricing.rows} == {"full", "cheap"}
    assert [row.window.start_ms for row in pricing.comparisons] == [None, 0, 3_600_000]
    assert "66 events name an arm that is not declared; no comparison has them." in pricing.notes
    cheap = [row for row in pricing.rows if row.slice == {"variant": "cheap"}]
    parts = {row.window.start_ms: row.value for row in cheap if row.view == "numerator"}
    assert parts[None] == parts[0] + parts[3_600_000]


def test_views_that_are_kept_up_to_date_have_the_same_rows(ledger: Ledger) -> None:
    answers = QueryCache(ledger)
    for query in (
        Query(experiment="pricing"),
        Query("all", experiment="ranker", where=(("variant", "new"),)),
        Query("latest", metric="slow", experiment="ranker"),
    ):
        assert to_json(answers.results(query)) == to_json(read_results(ledger, query))
        assert b"".join(read_json(ledger, query)) == to_json(read_results(ledger, query))


def test_results_without_a_name_have_the_index(ledger: Ledger) -> None:
    whole = read_results(ledger, Query())
    assert whole.experiments == ExperimentIndex(ledger).answer()
    assert json.loads(to_json(whole))["experiments"] == json.loads(dumps(whole.experiments))
    assert b"".join(read_json(ledger, Query())) == to_json(whole)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (Query(experiment="rankr"), "expected an experiment of this store"),
        (Query(experiment="ranker", metric="auc"), r"a metric of this experiment \(ctr, slow\)"),
        (Query(experiment="pricing", where=(("variant", "low"),)), "(full, cheap)"),
        (Query(experiment="ranker", by=frozenset({"phase"})), r"this store \(variant\)"),
    ],
)
def test_what_one_experiment_does_not_have_is_refused(
    ledger: Ledger, query: Query, says: str
) -> None:
    with pytest.raises(QueryError, match=says):
        read_results(ledger, query)


def test_a_changed_text_is_shown_and_an_ended_one_stays_readable(
    tmp_path: Path, store: Path
) -> None:
    config = experiments_run.write(tmp_path)
    text = experiments_run.EXPERIMENTS.replace("The ranker", "Ranker v7")
    ranker = text[text.index("[experiments.ranker]") : text.index("[experiments.pricing]")]
    pricing = text[text.index("[experiments.pricing]") :]
    experiments_run.configure(tmp_path, f"{ranker}archived = true\n{pricing}")
    drop = ["--drop-metric", "experiment"]
    assert main(["run", str(config), "--until-end", "--no-serve", *drop]) == 0
    with closing(Ledger.open(str(store))) as ledger:
        index = ExperimentIndex(ledger).answer()
        states = {entry.name: (entry.state, entry.archived) for entry in index.experiments}
        assert states == {
            "ranker": ("running", True), "pricing": ("running", False), "": ("ended", False),
        }  # fmt: skip
        assert index.experiments[0].title == "Ranker v7"
        assert read_results(ledger, Query()).comparisons == ()
        assert read_results(ledger, Query(experiment="")).comparisons
        text = table(read_results(ledger, Query()), Style(), title="clicks")
        assert "1 archived experiment is left out" in text and "pricing" in text
        assert "ranker" not in text


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

    def noted(now: object, declaration: object, rows: object) -> object:
        read.append(declaration.name)  # type: ignore[attr-defined]
        return real(now, declaration, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment_totals, "experiment_over", noted)
    forget(ledger, "pricing")
    index = ExperimentIndex(ledger)
    first = index.answer()
    assert read == ["", "ranker", "pricing"]
    assert index.answer() is first
    assert look_now(ledger, 1, name="pricing")
    second = index.answer()
    assert read == ["", "ranker", "pricing"]  # a look changes no states
    assert second is not first
    assert second.experiments[1] is first.experiments[1]
    assert second.experiments[2].looks == 1


def test_an_experiment_that_was_taken_out_of_the_config_has_no_more_days(tmp_path: Path) -> None:
    store, log = experiments_run.make(tmp_path), tmp_path / "clicks.jsonl"
    last = log.read_text(encoding="utf-8").splitlines()[-1]
    drop = ["--until-end", "--no-serve", "--drop-metric", "experiment"]
    named = experiments_run.EXPERIMENTS
    config = experiments_run.configure(tmp_path, named[named.index("[experiments.") :])
    assert main(["run", str(config), *drop]) == 0
    with log.open("a", encoding="utf-8") as stream:
        stream.write(last.replace("1970-01-01", "1970-01-05") + "\n")
    assert main(["run", str(config), *drop[:2]]) == 0
    with closing(Ledger.open(str(store))) as ledger:
        answers = QueryCache(ledger)
        for name, days in (("", 0.04), ("ranker", 4.02)):
            _, progress = answers.experiment_so_far(Query(experiment=name))
            (entry,) = (e for e in answers.index().experiments if e.name == name)
            assert progress.days is not None and entry.progress is not None
            assert round(progress.days, 2) == entry.progress.days == days


def test_a_generation_that_the_store_does_not_have_is_refused(ledger: Ledger) -> None:
    assert ExperimentIndex(ledger).answer(1).generation == 1
    with pytest.raises(QueryError, match="a generation of this store"):
        ExperimentIndex(ledger).answer(7)


def test_an_end_that_the_watermark_has_passed_is_the_end(tmp_path: Path) -> None:
    pricing = experiments_run.EXPERIMENTS
    pricing = pricing[pricing.index("[experiments.pricing]") :]
    tables = ""
    for name, time in (
        ("over", "end = 1970-01-01T00:30:00Z"),
        ("open", "end = 1970-01-01T01:29:30Z"),  # late events of it may still come
        ("later", "start = 1970-01-02T00:00:00Z"),
    ):
        entry = pricing.replace("start = 1970-01-01T00:30:00Z", time)
        tables += entry.replace("pricing]", f'{name}]\nvariant = "exps.pricing"')
    store = experiment_run.run(experiments_run.write(tmp_path, tables))
    with closing(Ledger.open(str(store))) as ledger:
        over, open_, later = ExperimentIndex(ledger).answer().experiments
        assert (over.state, open_.state, later.state) == ("ended", "running", "waiting")
        assert (over.end_ms, later.start_ms) == (1_800_000, 86_400_000)
        assert over.progress is not None and over.progress.days == 0.0  # at least
        assert later.effect is None and later.progress is not None
        assert later.progress.units is None
        assert (over.looks, later.looks) == (1, 0)
        notes = [read_results(ledger, Query(experiment=name)).notes for name in ("over", "open")]
        assert ["The experiment has ended without a decision." in texts for texts in notes] == [
            True, False,
        ]  # fmt: skip
        assert entry_text(over).advice == "not decided" and entry_text(open_).advice == "wait"


@pytest.mark.parametrize("name", experiments_run.NAMES)
def test_one_of_many_is_answered_as_one_that_is_alone(
    ledger: Ledger, tmp_path: Path, name: str
) -> None:
    text = experiments_run.EXPERIMENTS
    (tmp_path / "alone").mkdir()
    section = text[text.index(f"[experiments.{name}]") :].partition("\n[experiments.")[0] + "\n"
    store = experiment_run.run(experiments_run.write(tmp_path / "alone", section))
    queries = (Query("all", experiment=name), Query(experiment=name, metric="ctr"))
    with closing(Ledger.open(str(store))) as single_ledger:
        for query in queries:
            assert to_json(read_results(single_ledger, query)) == to_json(
                read_results(ledger, query)
            )
        [entry] = ExperimentIndex(single_ledger).answer().experiments
    [same] = [
        candidate
        for candidate in ExperimentIndex(ledger).answer().experiments
        if candidate.name == name
    ]
    assert dumps(entry) == dumps(same)


def test_layers_are_those_of_the_config(tmp_path: Path) -> None:
    text = experiments_run.EXPERIMENTS + '[layers]\nsearch = ["pricing", "ranker"]\n'
    store = experiment_run.run(experiments_run.write(tmp_path, text, rows=20))
    with closing(Ledger.open(str(store))) as ledger:
        [layer] = ExperimentIndex(ledger).answer().layers
    assert (layer.name, layer.experiments) == ("search", experiments_run.NAMES)
