"""`streammetrics eval`: the values of a file's rows, without a config."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import GroupedScores
from tests.requirements import Later

Capture = pytest.CaptureFixture[str]
sk = Later("sklearn.metrics")

rng = np.random.default_rng(2)
N = 600
ROWS = polars.DataFrame({
    "label": rng.integers(0, 2, N),
    "score": rng.random(N),
    "variant": rng.choice(["b", "a\x1b[31m"], N),
    "day": rng.integers(1, 3, N),
    "query": [f"q{i}" for i in rng.integers(0, 40, N)],
    "grade": rng.integers(0, 4, N),
})  # fmt: skip


def write_jsonl(frame: polars.DataFrame, path: Path) -> None:
    frame.write_ndjson(path)


WRITE: dict[str, Callable[[polars.DataFrame, Path], Any]] = {
    ".parquet": polars.DataFrame.write_parquet,
    ".csv": polars.DataFrame.write_csv,
    ".jsonl": write_jsonl,
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "day.parquet"
    ROWS.write_parquet(path, row_group_size=250)
    return path


def values(capsys: Capture, path: Path, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["eval", str(path), "--json", *words]) == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


@pytest.mark.slow
def test_every_format_has_the_values_of_scikit_learn_by_group(
    tmp_path: Path, capsys: Capture
) -> None:
    words = ["--labels", "label", "--scores", "score", "--metrics", "auc,logloss,f1,ctr"]
    for suffix, write in WRITE.items():
        path = tmp_path / f"day{suffix}"
        write(ROWS, path)
        lines = values(capsys, path, *words, "--by", "variant,day")
        assert len(lines) == 16
        for line in lines:
            part = ROWS.filter(
                (polars.col("variant") == line["slice"]["variant"])
                & (polars.col("day") == line["slice"]["day"])
            )
            labels, scores = part["label"].to_numpy(), part["score"].to_numpy()
            expected = {
                "auc": sk.roc_auc_score(labels, scores),
                "log_loss": sk.log_loss(labels, scores),
                "f1": sk.f1_score(labels, scores >= 0.5),
                "ctr": labels.mean(),
            }[line["metric"]]
            assert line["value"] == pytest.approx(expected, rel=1e-12), suffix
            assert line["lower"] < expected < line["upper"]
            assert line["counts"]["rows"] == len(part)


def test_measures_of_lists_are_over_all_rows_of_a_list(file: Path, capsys: Capture) -> None:
    metric = GroupedScores(["NDCG@3", "AP(rel=2)"], ids="exact", score_type="float64")
    metric.update(ROWS["grade"], ROWS["score"], groups=ROWS["query"].to_list())
    words = ["--labels", "grade", "--scores", "score", "--lists", "query"]
    for names in ("ndcg@3,map(rel=2)", "NDCG @ 3,AP(rel=2),ndcg@3"):
        lines = values(capsys, file, *words, "--metrics", names)
        assert {line["metric"]: line["value"] for line in lines} == dict(metric.compute())
        assert lines[0]["slice"] == {}


def test_the_table_names_what_each_value_is_over(file: Path, capsys: Capture) -> None:
    words = "--labels label --scores score --lists query --by variant --metrics gauc,ne,mrr,ks"
    assert main(["eval", str(file), *words.split()]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    head, *lines = out.splitlines()
    assert head.split() == ["variant", "metric", "value", "95", "%", "CI", "over"]
    assert [line.split()[1] for line in lines[:4]] == ["gauc", "normalized_entropy", "MRR", "ks"]
    assert lines[0].endswith(" groups") and lines[2].endswith(" lists") and " to " in lines[2]
    assert lines[3].endswith(" rows")
    assert lines[8] == "intervals assume that rows and lists are independent"


def test_a_threshold_decides_what_a_prediction_is_and_the_table_says_so(
    file: Path, capsys: Capture
) -> None:
    words = ["--labels", "label", "--scores", "score", "--metrics", "recall,auc"]
    labels, scores = ROWS["label"].to_numpy(), ROWS["score"].to_numpy()
    for threshold in ("0.5", "0.3", "0"):
        given = ["--threshold", threshold] * (threshold != "0.5")
        recall, _ = values(capsys, file, *words, *given)
        hits = ((scores >= float(threshold)) & (labels == 1)).sum()
        assert recall["value"] == hits / (labels == 1).sum()
        assert main(["eval", str(file), *words, *given]) == 0
        said = f"recall: a score of {threshold} or more is a prediction of 1"
        assert said in capsys.readouterr().out


@pytest.mark.slow
def test_groups_are_in_the_order_of_their_numbers_and_very_many_are_cut(
    tmp_path: Path, capsys: Capture
) -> None:
    n = 1200
    path = tmp_path / "many.parquet"
    polars.DataFrame({"label": [1] * n, "day": [None, *range(1, n)]}).write_parquet(path)
    assert main(["eval", str(path), "--labels", "label", "--by", "day", "--metrics", "ctr"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:12]] == [str(i) for i in range(1, 13)]
    assert lines[-1] == "200 more lines: use --json"
    assert len(values(capsys, path, "--labels", "label", "--by", "day", "--metrics", "ctr")) == n


def test_words_without_a_meaning_are_exit_2(file: Path, capsys: Capture) -> None:
    for words, said in (
        ("--labels label", "expected --metrics NAMES"),
        ("--metrics ctr", "expected --labels COLUMN"),
        ("--labels lable --metrics ctr", "--labels: expected a column of day.parquet"),
        ("--labels lable --metrics ctr", "did you mean `label`?"),
        ("--labels xyz --metrics ctr", "'xyz'; name one of these"),
        (
            "--labels variant --metrics ctr",
            "a column of numbers, got 'variant', which has texts",
        ),
        (
            "--label label --metrics ctr",
            "--label label; did you mean --labels?",
        ),
        ("--labels label --by day,vriant --metrics ctr", "did you mean `variant`?"),
        ("--labels label --metrics auc", "--metrics auc: expected --scores COLUMN"),
        ("--labels label --scores score --metrics ndcg@5", "expected --lists COLUMN"),
        ("--labels label --scores score --metrics ndgc@5", "did you mean 'NDCG@5'?"),
        ("--labels label --scores score --metrics loglos", "did you mean `log_loss`?"),
    ):
        assert main(["eval", str(file), *words.split()]) == 2, words
        out, err = capsys.readouterr()
        assert out == "" and said in err, words
    assert main(["eval", "day.xlsx", "--labels", "a", "--metrics", "ctr"]) == 2
    assert "ends in .parquet, .csv" in capsys.readouterr().err


def test_bad_rows_and_files_are_named_with_their_place(tmp_path: Path, capsys: Capture) -> None:
    bad = ROWS.with_columns(label=polars.when(polars.arange(0, N) == 555).then(7).otherwise(0))
    bad.write_parquet(tmp_path / "bad.parquet", row_group_size=100)
    ROWS.with_columns(score=polars.lit(None, polars.Float64)).write_parquet(
        tmp_path / "null.parquet"
    )
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    (tmp_path / "torn.csv").write_bytes(b"label,score\n1,2\n1,2,3\n")
    for name, said in (
        ("bad.parquet", "bad.parquet, row 555 (the first is 0), label: expected 0 or 1"),
        ("null.parquet", "row 0 (the first is 0), score: expected"),
        ("torn.parquet", "torn.parquet: expected a .parquet file"),
        ("torn.csv", "torn.csv: expected a .csv file"),
        ("absent.csv", "absent.csv: No such file or directory"),
    ):
        words = ["--labels", "label", "--scores", "score", "--metrics", "auc"]
        assert main(["eval", str(tmp_path / name), *words]) == 1, name
        out, err = capsys.readouterr()
        assert out == "" and said in err and "Traceback" not in err, err
