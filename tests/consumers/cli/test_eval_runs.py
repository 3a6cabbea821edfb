"""`streammetrics eval` of runs and of logs: one of them, or several compared with the first."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import compare_runs, evaluate
from streammetrics.evaluation import compare_samples, evaluate_samples

Capture = pytest.CaptureFixture[str]

QRELS = "q1 0 a 1\nq1 0 b 2\nq2 0 c 1\nq3 0 d 1\nq3 0 e 0\nq4 0 f 1\nq6 0 g 0\n"
RUNS = {
    "a.run": "q1 Q0 b 1 .9 my tag\nq1 Q0 z 2 .8 t\nq2 Q0 z 1 .9 t\nq2 Q0 c 2 .8 t\nq3 Q0 e 1 .9 t\n"
    "q3 Q0 d 2 .9 t\nq5 Q0 d 2 .3 t\n",
    "b.run": "q1 Q0 b 1 .9 t\nq1 Q0 a 2 .8 t\nq2 Q0 c 1 .9 t\nq3 Q0 d 1 .9 t\nq4 Q0 f 2 .3 t\n",
    "c.run": "q1 Q0 x 1 .9 t\nq1 Q0 a 2 .8 t\nq2 Q0 c 1 .9 t\nq3 Q0 d 1 .9 t\nq4 Q0 y 2 .3 t\n",
}
SLICES = {"q1": "short", "q2": "short", "q3": "long", "q4": "long", "q6": "long"}
MEASURES = ["ndcg@10", "map"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {"qrels": QRELS, **RUNS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    lines = "".join(f"{query}\t{part}\n" for query, part in SLICES.items())
    (tmp_path / "slices.tsv").write_text(lines, encoding="utf-8")
    users = dict(zip(SLICES, (1, 1, 2, 2, 3), strict=True))
    (tmp_path / "users.json").write_text(json.dumps(users), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def shown(capsys: Capture, *words: str) -> str:
    capsys.readouterr()
    assert main(["eval", *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def printed(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = json.loads(shown(capsys, *words, "--json"))
    return lines


OF_RUNS = ["--qrels", "qrels", "--metrics", ",".join(MEASURES)]


def test_several_runs_are_compared_with_the_first_one_as_the_library_does(
    folder: Path, capsys: Capture
) -> None:
    runs = {name.removesuffix(".run"): folder / name for name in RUNS}
    result = compare_runs(folder / "qrels", runs, MEASURES)
    lines = printed(capsys, *RUNS, *OF_RUNS)
    assert [(line["metric"], line["run"]) for line in lines] == [
        (measure, run) for measure in result.runs["a"].means for run in runs
    ]
    for line in lines:
        assert line["value"] == result.runs[line["run"]][line["metric"]]
        if line["run"] == "a":
            assert "difference" not in line
            continue
        entry = result.difference(line["run"], line["metric"])
        for name in ("lower", "upper", "pvalue", "pvalue_holm", "better", "worse", "baseline"):
            assert line["difference"][name] == getattr(entry, name)
        assert line["difference"]["value"] == entry.difference
    text = shown(capsys, "*.run", *OF_RUNS)
    assert [line.split()[:2] for line in text.splitlines()[1:4]] == [
        ["NDCG@10", "a"],
        ["NDCG@10", "b"],
        ["NDCG@10", "c"],
    ]
    assert "5 queries, paired; differences from a" in text
    assert "1 query with nothing relevant: left out" in text
    assert "a: 2 queries of the judgments that the run lacks: counted as 0" in text


def test_a_file_of_queries_gives_slices_and_another_one_users(
    folder: Path, capsys: Capture
) -> None:
    users = json.loads((folder / "users.json").read_text())
    runs = {"a": folder / "a.run", "b": folder / "b.run"}
    result = compare_runs(folder / "qrels", runs, MEASURES, by=SLICES, users=users)
    flags = ["--by", "slices.tsv", "--users", "users.json"]
    lines = printed(capsys, "a.run", "b.run", *OF_RUNS, *flags)
    differences = [line for line in lines if line["run"] == "b"]
    assert [line["slice"] for line in differences] == [
        {},
        {"slice": "long"},
        {"slice": "short"},
    ] * 2
    entry = result.difference("b", MEASURES[0])
    assert differences[0]["difference"]["pvalue_holm"] == entry.pvalue_holm
    assert differences[0]["difference"]["upper"] == entry.upper
    assert differences[4]["difference"]["value"] == (
        result.slices["long"].difference("b", "map").difference
    )
    whole = evaluate(folder / "qrels", runs["a"], MEASURES, by=SLICES)
    single_lines = printed(capsys, "a.run", *OF_RUNS, "--by", "slices.tsv")
    assert [(line["slice"]["slice"], line["value"]) for line in single_lines] == [
        (key, value) for key, part in whole.slices.items() for value in part.values()
    ]
    text = shown(capsys, "a.run", "b.run", *OF_RUNS, *flags)
    assert "intervals assume that users are independent" in text
    assert "no interval of " in text and " (long b)" in text
    assert "intervals assume that users" in shown(capsys, "a.run", *OF_RUNS, *flags[2:])


def test_the_rules_of_another_program_are_named_and_used(folder: Path, capsys: Capture) -> None:
    expected = evaluate(folder / "qrels", folder / "a.run", MEASURES, like="trec_eval")
    lines = printed(capsys, "a.run", *OF_RUNS, "--like", "trec_eval")
    assert {line["metric"]: line["value"] for line in lines} == dict(expected)
    text = shown(capsys, "a.run", *OF_RUNS, "--like", "trec_eval")
    assert "measured by the rules of trec_eval" in text
    assert "2 queries of the judgments that the run lacks: left out" in text
    # What a name says is kept: the parameters of a measure are not those of the other program.
    flags = ["--metrics", "NDCG(gain='exponential')@10", "--like", "trec_eval"]
    [line] = printed(capsys, "a.run", "--qrels", "qrels", *flags)
    exponential = evaluate(folder / "qrels", folder / "a.run", flags[1], like="trec_eval")
    assert line["value"] == exponential["ndcg@10"] != expected["NDCG(gain='linear')@10"]


def test_each_query_has_a_line_with_a_column_for_each_run(folder: Path, capsys: Capture) -> None:
    expected = {
        run: evaluate("qrels", f"{run}.run", MEASURES).by_query["NDCG@10"] for run in ("a", "b")
    }
    lines = printed(capsys, "a.run", "b.run", *OF_RUNS, "--per-query")
    entries = [line for line in lines if line["metric"] == "NDCG@10" and line["query"] != "q6"]
    assert [line["value"] for line in entries] == np.stack([*expected.values()])[
        :, :4
    ].T.ravel().tolist()
    assert [line["run"] for line in entries] == ["a", "b"] * 4
    text = shown(capsys, "a.run", "b.run", *OF_RUNS, "--per-query")
    assert [line.split() for line in text.splitlines()[:2]] == [
        ["query", "metric", "a", "b"],
        ["q1", "NDCG@10", "0.8262", "1.0000"],
    ]
    assert "q6     NDCG@10  undefined  undefined" in text
    table = shown(capsys, "a.run", *OF_RUNS, "--per-query", "--format", "csv")
    assert table.splitlines()[:2] == ["query,metric,value", "q1,NDCG@10,0.8262"]
    assert set(printed(capsys, "a.run", *OF_RUNS, "--per-query")[0]) == {"query", "metric", "value"}


def test_a_table_is_written_in_other_forms(folder: Path, capsys: Capture) -> None:
    runs = ["a.run", "b.run"]
    text = shown(capsys, *runs, *OF_RUNS)
    n = 1 + len(MEASURES) * len(runs)
    markdown = shown(capsys, *runs, *OF_RUNS, "--format", "md").splitlines()
    assert len(markdown) == n + 1 and markdown[1].startswith("|:---|:---|---:|")
    latex = shown(capsys, *runs, *OF_RUNS, "--format", "latex")
    assert latex.startswith(r"\begin{tabular}{llrrrrrr}") and latex.count(r" \\") == n
    rows = [*csv.reader(io.StringIO(shown(capsys, *runs, *OF_RUNS, "--format", "csv")))]
    assert len(rows) == n and rows[2][:3] == ["NDCG@10", "b", "1.0000"]
    assert rows[2][4] in text
    as_json = shown(capsys, *runs, *OF_RUNS, "--format", "json")
    assert as_json == shown(capsys, *runs, *OF_RUNS, "--json")
    table = shown(capsys, "a.run", *OF_RUNS, "--format", "csv").splitlines()
    assert table[0] == "metric,value,95 % CI,over"


def test_a_run_comes_from_standard_input(
    folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.run", "qrels"):
        stream = io.TextIOWrapper(io.BytesIO((folder / name).read_bytes()))
        monkeypatch.setattr(sys, "stdin", stream)
        words = ["-" if word == name else word for word in ["a.run", *OF_RUNS]]
        assert shown(capsys, *words) == shown(capsys, "a.run", *OF_RUNS)


def test_runs_of_one_name_are_told_apart_by_their_folders(folder: Path, capsys: Capture) -> None:
    for name in ("old", "new"):
        (folder / name).mkdir()
        (folder / name / "x.run").write_text(RUNS["a.run"])
    lines = printed(capsys, "new/x.run", "old/x.run", "b.run", *OF_RUNS)
    assert [line["run"] for line in lines[:3]] == ["new/x", "old/x", str(Path(folder.name) / "b")]
    (folder / "x.txt").write_text(RUNS["b.run"])
    (folder / "x.run").write_text(RUNS["b.run"])
    lines = printed(capsys, "x.txt", "x.run", *OF_RUNS)
    assert [line["run"] for line in lines[:2]] == ["x.txt", "x.run"]


def test_rows_of_learning_to_rank_are_judgments_of_the_scores_of_models(
    folder: Path, capsys: Capture
) -> None:
    rows = "2 qid:1 1:.5\n0 qid:1 1:.4 # x\n1 qid:2 1:.1\n0 qid:2 1:.1\n"
    (folder / "test.txt").write_text(rows)
    (folder / "a.pred").write_text("0.9\n0.1\n0.2\n0.3\n")
    (folder / "b.pred").write_text("1\t0\t0.2\n1\t1\t0.3\n2\t0\t0.9\n2\t1\t0.3\n")
    truth = {"1": {0: 2, 1: 0}, "2": {2: 1, 3: 0}}
    runs = {"a": {"1": {0: 0.9, 1: 0.1}, "2": {2: 0.2, 3: 0.3}},
            "b": {"1": {0: 0.2, 1: 0.3}, "2": {2: 0.9, 3: 0.3}}}  # fmt: skip
    result = compare_runs(truth, runs, "mrr")
    lines = printed(capsys, "a.pred", "b.pred", "--qrels", "test.txt", "--metrics", "mrr")
    assert [line["value"] for line in lines] == [run["mrr"] for run in result.runs.values()]
    (folder / "rank.test").write_text("2 1:.5\n0 1:.4\n1 1:.1\n0 1:.1\n")
    (folder / "rank.test.query").write_text("2\n2\n")
    same = printed(capsys, "a.pred", "--qrels", "rank.test", "--metrics", "mrr")
    assert same[0]["value"] == lines[0]["value"]


def write_log(path: Path, model: str, values: Sequence[float]) -> None:
    """A log of inspect_ai, made by hand after its schema."""
    samples = [
        {"id": i, "epoch": 1, "metadata": {"passage": f"p{i // 3}", "kind": "xy"[i % 2]},
         "scores": {"match": {"value": "CI"[value < 0.5]}, "points": {"value": value}}}
        for i, value in enumerate(values)
    ]  # fmt: skip
    log = {"version": 2, "status": "success", "eval": {"model": model}, "samples": samples}
    path.write_text(json.dumps(log, indent=2))


def test_logs_are_evaluated_by_sample_and_compared_by_model(folder: Path, capsys: Capture) -> None:
    values = np.random.default_rng(3).random((2, 30)).round(3)
    for name, column in zip(("a", "b"), values.tolist(), strict=True):
        write_log(folder / f"{name}.json", f"org/{name}", column)
    result = evaluate_samples("a.json", users="passage")
    lines = printed(capsys, "a.json", "--users", "passage")
    for line in lines:
        interval = result.interval(line["metric"])
        assert (line["value"], line["upper"]) == (result[line["metric"]], interval.upper)
        assert line["counts"] == {"samples": 30}
    text = shown(capsys, "a.json", "--metrics", "points", "--by", "kind")
    assert [line.split()[:2] for line in text.splitlines()[1:3]] == [
        ["x", "points"],
        ["y", "points"],
    ]
    assert "15 samples" in text and "intervals assume that samples are independent" in text
    expected = compare_samples({"org/a": "a.json", "org/b": "b.json"}, users="passage", by="kind")
    (folder / "passages.csv").write_text("".join(f"{i},p{i // 3}\n" for i in range(30)))
    for users in ("passage", "passages.csv"):
        lines = printed(capsys, "a.json", "b.json", "--users", users, "--by", "kind")
        entries = [line["difference"]["pvalue_holm"] for line in lines if line["run"] == "org/b"]
        assert entries == [
            part.difference("org/b", name).pvalue_holm
            for name in ("match", "points") for part in (expected, *expected.slices.values())
        ]  # fmt: skip
    text = shown(capsys, "?.json")
    assert "30 samples, paired; differences from org/a" in text
    per_sample = printed(capsys, "a.json", "--per-query", "--metrics", "points")
    assert [line["value"] for line in per_sample] == values[0].tolist()


def test_words_that_runs_and_logs_do_not_take_are_exit_2(folder: Path, capsys: Capture) -> None:
    write_log(folder / "log.json", "m", [0.1, 0.9])
    (folder / "one.tsv").write_text("q1\n")
    (folder / "bad.json").write_text("{")
    (folder / "deep.json").write_text('{"q1": [1]}')
    (folder / "empty").write_text("# q1 x\n\n")
    (folder / "rows.csv").write_text("label,score\n1,0.5\n")
    of_run = "a.run --qrels qrels --metrics map"
    for words, message, code in (
        (f"{of_run} --by absent", "--by: expected a file of queries and their values", 2),
        (f"{of_run} --users one.tsv", "one.tsv: expected a query and its value in line 1", 1),
        (f"{of_run} --users bad.json", "bad.json: expected JSON", 1),
        (f"{of_run} --users deep.json", "a text or a whole number for each query, got [1]", 1),
        (f"{of_run} --users empty", "empty: expected at least one query, got none", 1),
        (f"{of_run} --like x", "invalid choice: 'x'", 2),
        (f"{of_run} --format x", "invalid choice: 'x'", 2),
        (f"{of_run} --json --format md", "--json: expected none with --format, got both", 2),
        ("a.run a.run --qrels qrels --metrics map", "expected different files, got one twice", 2),
        ("- - --qrels qrels --metrics map", "expected standard input once, got - twice", 2),
        ("*.nothing --qrels qrels --metrics map", "which none matches", 2),
        ("a.run --qrels q* --metrics map", "q*: expected a qrels file, got No such file", 1),
        ("log.json --metrics map", "a score of the log, 'match', 'points', got 'map'", 1),
        ("log.json --users pasage", "users: expected a field of the samples", 1),
        ("log.json --like trec_eval", "--like: expected none for logs", 2),
        ("rows.csv --labels label --metrics ctr --per-query", "--per-query: expected runs with", 2),
        ("rows.csv --labels label --metrics ctr --like trec_eval", "--like: expected runs with", 2),
        ("rows.csv --metrics ctr", "--metrics ctr: expected --labels COLUMN", 2),
    ):
        assert main(["eval", *words.split()]) == code, words
        out, err = capsys.readouterr()
        assert out == "" and message in err, (words, err)
