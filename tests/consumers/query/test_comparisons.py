"""Of an experiment the windows that got rows are read again for an answer, and no others."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from streammetrics_consumers.ledger.delta_metadata import DeltaMetadata
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query import comparisons, experiment_totals
from streammetrics_consumers.query.answers import ResultsAnswer
from streammetrics_consumers.query.comparisons import (
    experiment_answer,
    read_at_same_offsets,
    verdict,
)
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment, declared
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.rows import WindowFinding
from streammetrics_consumers.query.turns import Queue, TooHeavy, Turn

from streammetrics.experiments import Verdict
from tests.consumers.answer_rows import altered
from tests.consumers.experiment_run import run, write
from tests.consumers.render.corpus import results
from tests.consumers.stores import make_store


def test_windows_without_new_rows_are_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path)
    store = run(config)
    starts: list[int | None] = []
    real = experiment_totals.experiment_over

    def counted(now: object, declaration: object, rows: list[DeltaMetadata]) -> object:
        starts.append(rows[0].pane.start_ms)
        return real(now, declaration, rows)  # type: ignore[arg-type]

    monkeypatch.setattr(experiment_totals, "experiment_over", counted)
    with closing(Ledger.open(str(store))) as ledger:
        answers, query = QueryCache(ledger), Query("all")
        first = answers.results(query)
        assert sorted(starts, key=str) == [0, 3_600_000, None]
        assert len(first.comparisons) == 3
        answers.results(query)
        assert len(starts) == 3
        lines = (tmp_path / "clicks.jsonl").read_text(encoding="utf-8").splitlines()
        late = {**json.loads(lines[-1]), "ts": "1970-01-01T01:29:59.000Z"}
        with (tmp_path / "clicks.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(late) + "\n")
        run(config)
        starts.clear()
        second = answers.results(query)
        assert sorted(starts, key=str) == [3_600_000, None]
        assert to_json(second) == to_json(read_results(ledger, query)) != to_json(first)
        assert len(answers.results(Query("all", metric="ctr")).comparisons) == 3
        metric_query = Query("all", metric="other")
        assert (
            not comparisons.ComparisonReader(ledger, metric_query)
            .with_experiment(lambda: first)
            .comparisons
        )


def test_asked_for_one_metric_it_says_the_same_of_it_and_reads_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write(tmp_path)
    text = config.read_text(encoding="utf-8")
    text = text.replace("[metrics]\n", '[metrics]\nctr2 = { type = "Ratio" }\n')
    config.write_text(text.replace('["ctr"]', '["ctr", "ctr2.ratio"]'), encoding="utf-8")
    read: list[set[str]] = []
    real = experiment_totals.experiment_over

    def noted(now: object, declaration: object, rows: list[DeltaMetadata]) -> object:
        read.append({row.pane.metric for row in rows})
        return real(now, declaration, rows)  # type: ignore[arg-type]

    with closing(Ledger.open(str(run(config)))) as ledger:
        whole = json.loads(to_json(read_results(ledger, Query("all"))))
        monkeypatch.setattr(experiment_totals, "experiment_over", noted)
        answers = QueryCache(ledger)
        for metric in ("ctr", "ctr2"):
            answer = json.loads(to_json(answers.experiment(Query("all", metric=metric))))
            assert answer["comparisons"] == [
                row for row in whole["comparisons"] if row["metric"] == metric
            ]
            assert (answer["srm"], answer["notes"]) == (whole["srm"], whole["notes"])
    every = {"experiment/ctr", "experiment/ctr2", "experiment/units"}
    # The total is read once and kept for both.
    assert read == [every, *[every - {"experiment/ctr2"}] * 2, *[every - {"experiment/ctr"}] * 2]


def test_the_interval_of_a_variant_knows_which_rows_are_of_one_user(tmp_path: Path) -> None:
    config = write(tmp_path)
    lines = (tmp_path / "clicks.jsonl").read_text(encoding="utf-8")
    (tmp_path / "clicks.jsonl").write_text(lines + lines, encoding="utf-8")  # each user twice
    with closing(Ledger.open(str(run(config)))) as ledger:
        for query, n in ((Query(), 2), (Query("all", where=(("variant", "new"),)), 3)):
            all_rows = read_results(ledger, query).rows
            assert {row.view: row.interval is not None for row in all_rows} == {
                "ratio": True, "numerator": False, "denominator": False,
            }  # fmt: skip
            rows = [row for row in all_rows if row.view == "ratio"]
            assert len(rows) == n
            for row in rows:
                assert row.interval is not None
                assert row.interval.method == "jackknife, wilson"
                assert 1.2 < row.interval.deff < 3.5  # 2, as far as 64 groups can tell


def test_a_view_of_a_variant_has_the_interval_of_its_users(tmp_path: Path) -> None:
    config, path = write(tmp_path, rows=800), tmp_path / "clicks.jsonl"
    chosen = {"p": 0.5, "q": 0.5, "m": 0.3}
    events = [json.loads(line) | chosen for line in path.read_text(encoding="utf-8").splitlines()]
    path.write_text("".join(json.dumps(event) + "\n" for event in events), encoding="utf-8")
    inputs = 'logged = "p", target = "q", rewards = "label", predicted_logged = "m"'
    policy = f'policy = {{ type = "OffPolicy", inputs = {{ {inputs}, predicted_target = "m" }} }}'
    text = config.read_text(encoding="utf-8").replace("[metrics]\n", f"[metrics]\n{policy}\n")
    text = text.replace('["ctr"]', '["ctr", "policy"]')
    text = text.replace('by = [["variant"]]', 'by = [["variant"], []]')
    config.write_text(text, encoding="utf-8")
    with closing(Ledger.open(str(run(config)))) as ledger:
        rows = read_results(ledger, Query()).rows
    of_variants = {
        (row.view, None if row.interval is None else row.interval.method)
        for row in rows
        if row.metric == "policy" and row.slice
    }
    assert {("snips", "jackknife"), ("sndr", "jackknife")} < of_variants
    assert {("largest_weight", None), ("effective_sample_size", None)} < of_variants
    (whole,) = (row for row in rows if (row.view, *row.slice) == ("sndr",))
    # The experiment has its users by variant, so rows of all are taken as independent.
    assert whole.interval is not None and whole.interval.method == "t"


def test_rows_that_the_experiment_has_not_counted_are_taken_as_independent(tmp_path: Path) -> None:
    config = write(tmp_path)
    text = config.read_text(encoding="utf-8")
    config.write_text(text.partition("[experiment]")[0], encoding="utf-8")
    run(config)
    config.write_text(text, encoding="utf-8")
    path = tmp_path / "clicks.jsonl"
    (last,) = path.read_text(encoding="utf-8").splitlines()[-1:]
    with path.open("a", encoding="utf-8") as file:
        file.write(last + "\n")
    with closing(Ledger.open(str(run(config)))) as ledger:
        answer = read_results(ledger, Query())
    assert answer.comparisons
    assert {row.interval.method for row in answer.rows if row.interval} == {"wilson"}


# -- how it stands, in one sentence ----------------------------------------------------------------


@pytest.fixture(scope="module")
def decision(tmp_path_factory: pytest.TempPathFactory) -> tuple[DeclaredExperiment, WindowFinding]:
    """A small experiment that has decided."""
    config = write(tmp_path_factory.mktemp("verdict"))
    with closing(Ledger.open(str(run(config)))) as ledger:
        experiment = declared(ledger.generation())
        [row] = read_results(ledger, Query()).comparisons
    assert experiment is not None
    return experiment, row


def judged(row: WindowFinding, verdict: Verdict, sentence: str = "said.") -> WindowFinding:
    """The same with another verdict."""
    return altered(row, verdict=verdict, sentence=sentence)


def guardrail(row: WindowFinding, verdict: Verdict, sentence: str) -> WindowFinding:
    """The same as a guardrail, with a margin of 0.1."""
    return altered(judged(row, verdict, sentence), guardrail=True)


def test_what_is_decided_is_the_sentence_of_the_comparison(
    decision: tuple[DeclaredExperiment, WindowFinding],
) -> None:
    experiment, row = decision
    assert verdict(experiment, [row]) == ("decided", row.finding.sentence)
    assert row.finding.sentence.startswith("new is better")
    assert verdict(None, ()) == ("none", "No experiment is declared.")
    assert verdict(experiment, ())[0] == "waiting"


def test_several_comparisons_are_counted(
    decision: tuple[DeclaredExperiment, WindowFinding],
) -> None:
    experiment, row = decision
    open_, won = judged(row, "no_difference_yet"), judged(row, "better", "new is better.")
    assert verdict(experiment, [open_]) == ("undecided", "said.")
    assert verdict(experiment, [open_, open_]) == (
        "undecided", "No difference shown yet in any of 2 comparisons.",
    )  # fmt: skip
    assert verdict(experiment, [won, open_]) == (
        "decided", "new is better. 1 of 2 comparisons show no difference yet.",
    )  # fmt: skip


def test_a_comparison_that_faded_is_not_one_without_a_difference(
    decision: tuple[DeclaredExperiment, WindowFinding],
) -> None:
    experiment, row = decision
    open_, won = judged(row, "no_difference_yet"), judged(row, "better", "new is better.")
    faded = judged(row, "faded", "It faded.")
    sentences = "In 1 of 2 comparisons the effect has changed since the decision. It faded."
    assert verdict(experiment, [faded]) == ("undecided", "It faded.")
    assert verdict(experiment, [won, faded]) == ("decided", f"new is better. {sentences}")
    assert verdict(experiment, [open_, faded]) == (
        "undecided", f"1 of 2 comparisons show no difference yet. {sentences}",
    )  # fmt: skip
    assert verdict(experiment, [faded, faded]) == (
        "undecided",
        "In 2 of 2 comparisons the effect has changed since the decision. It faded. It faded.",
    )


def test_doubt_and_a_broken_guardrail_are_said_first(
    decision: tuple[DeclaredExperiment, WindowFinding],
) -> None:
    experiment, row = decision
    doubt = judged(row, "disbelieved", "Units fall as they should not.")
    assert verdict(experiment, [row, doubt]) == ("distrusted", doubt.finding.sentence)
    broken, intact = guardrail(row, "broken", "It breaks."), guardrail(row, "kept", "It keeps.")
    assert verdict(experiment, [row, broken]) == ("decided", f"It breaks. {row.finding.sentence}")
    assert verdict(experiment, [row, intact])[1] == row.finding.sentence
    answer = experiment_answer(replace(results(), comparisons=(row,)), experiment, 3)
    assert answer.plan is not None
    assert (answer.looks, answer.plan.control, answer.state) == (3, "old", "decided")


def test_an_answer_is_computed_once_although_others_commit_meanwhile(tmp_path: Path) -> None:
    commits = 0
    with closing(Ledger.open(str(make_store(tmp_path)))) as ledger:
        whole = read_results(ledger, Query())

        def read() -> ResultsAnswer:
            nonlocal commits
            commits += 1  # after the store was read, while the answer is computed
            return replace(whole, offsets={"log/0": commits - 1})

        def read_other() -> tuple[int, dict[str, int]]:
            return commits, {"log/0": commits}

        answer, commit = read_at_same_offsets(ledger, Query(), read, read_other)
    assert (answer.offsets, commit, commits) == ({"log/0": 0}, 0, 1)


def test_after_an_answer_that_did_not_end_the_experiment_is_of_the_same_rows(
    tmp_path: Path,
) -> None:
    store, config = run(write(tmp_path, rows=200)), tmp_path / "clicks.toml"
    with closing(Ledger.open(str(store))) as ledger:
        answers = QueryCache(ledger)
        answers.results(Query())
        path = tmp_path / "clicks.jsonl"
        lines = path.read_text(encoding="utf-8").replace('"user": "', '"user": "new-')
        with path.open("a", encoding="utf-8") as file:
            file.write(lines)
        run(config)
        with pytest.raises(TooHeavy):
            Turn(Queue(), light=1).run(lambda: answers.results(Query()))
        answer = Turn(Queue()).run(lambda: answers.results(Query()))
        assert to_json(answer) == to_json(read_results(ledger, Query()))
        assert answer.srm is not None and dict(answer.srm.counts) == {"new": 200, "old": 200}
