"""`--where` and `--columns` of `eval`: the values are those of a file that was filtered and derived
beforehand, and an error shows the place."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from streammetrics_consumers.cli.main import main

Capture = pytest.CaptureFixture[str]
N = 3_000
FORMS = ("parquet", "csv", "jsonl")
LONG_SEARCHES = "surface == 'search' and dwell_s >= 30"
GAIN = ("--columns", "gain=reward*weight")
MEANS = ("--values", "gain", "--metrics", "mean,p99,std", "--by", "variant")


def frame() -> pl.DataFrame:
    rng = random.Random(4)
    return pl.DataFrame(
        {
            "surface": [rng.choice(["search", "home"]) for _ in range(N)],
            "dwell_s": [rng.random() * 60 for _ in range(N)],
            "reward": [float(rng.randrange(-2, 5)) for _ in range(N)],
            "weight": [rng.random() for _ in range(N)],
            "click": [rng.randrange(2) for _ in range(N)],
            "score": [rng.random() for _ in range(N)],
            "user": [f"u{rng.randrange(200)}" for _ in range(N)],
            "variant": [rng.choice("ab") for _ in range(N)],
        }
    )


def write(path: Path, rows: pl.DataFrame) -> Path:
    kind = path.suffix.removeprefix(".")
    getattr(rows, f"write_{'ndjson' if kind == 'jsonl' else kind}")(path)
    return path


def printed(capsys: Capture, path: Path, *words: str) -> str:
    capsys.readouterr()
    assert main(["eval", str(path), *words]) == 0
    return capsys.readouterr().out


def refusal(capsys: Capture, path: Path, *words: str) -> str:
    capsys.readouterr()
    assert main(["eval", str(path), *words]) != 0
    out, err = capsys.readouterr()
    assert not out
    return err


@pytest.mark.parametrize("form", FORMS)
def test_values_are_those_of_a_file_that_was_filtered_and_derived_before(
    tmp_path: Path, capsys: Capture, form: str
) -> None:
    rows = frame()
    whole = write(tmp_path / f"whole.{form}", rows)
    is_long = (pl.col("surface") == "search") & (pl.col("dwell_s") >= 30)
    subset = rows.filter(is_long).with_columns(gain=pl.col("reward") * pl.col("weight"))
    before = write(tmp_path / f"before.{form}", subset)
    for words in (MEANS, (*MEANS, "--json"), (*MEANS, "--users", "user")):
        expected = printed(capsys, before, *words)
        assert printed(capsys, whole, *words, *GAIN, "--where", LONG_SEARCHES) == expected
    auc = ("--labels", "click", "--scores", "score", "--metrics", "auc,logloss")
    assert printed(capsys, whole, *auc, "--where", LONG_SEARCHES) == printed(capsys, before, *auc)
    assert printed(capsys, whole, *auc) != printed(capsys, before, *auc)


def test_a_column_may_be_computed_of_others_and_be_called_as_an_argument_is(
    tmp_path: Path, capsys: Capture
) -> None:
    rows = frame()
    whole = write(tmp_path / "whole.parquet", rows)
    labels = (pl.col("dwell_s") * 2 >= 60).cast(pl.Int64)
    before = write(tmp_path / "before.parquet", rows.with_columns(labels=labels))
    words = ("--labels", "labels", "--metrics", "ctr")
    computed = ("--columns", "twice=dwell_s * 2", "--columns", "labels=twice >= 60")
    assert printed(capsys, whole, *words, *computed) == printed(capsys, before, *words)
    path = write(tmp_path / "kept.parquet", rows.with_columns(labels=labels).filter(labels == 1))
    where = ("--where", "labels and twice > 0")
    assert printed(capsys, whole, *words, *computed, *where) == printed(capsys, path, *words)


def test_only_the_rows_that_meet_the_condition_need_values(tmp_path: Path, capsys: Capture) -> None:
    rows = frame().with_columns(
        reward=pl.when(pl.col("surface") == "search").then(pl.col("reward"))
    )
    path = write(tmp_path / "rows.parquet", rows)
    assert "mean" in printed(capsys, path, *MEANS, *GAIN, "--where", "surface == 'search'")
    row = rows["reward"].is_null().arg_max()
    message = refusal(capsys, path, *MEANS, *GAIN)
    assert (
        f"rows.parquet, row {row} (the first is 0), reward, read by --columns gain, column 1"
        in message
    )


def test_a_row_of_a_later_batch_has_its_number_in_the_file(tmp_path: Path, capsys: Capture) -> None:
    n = 200_000
    values: dict[str, Any] = {"dwell_s": [1.0] * n, "click": [0] * n}
    values["dwell_s"][150_000] = None
    path = write(tmp_path / "rows.parquet", pl.DataFrame(values))
    words = ("--labels", "click", "--metrics", "ctr", "--where", "click < 2 and dwell_s > 0")
    message = refusal(capsys, path, *words)
    assert "row 150000 (the first is 0), dwell_s, read by --where, column 15:" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--where", "dwell_s >="), "--where, column 11: expected an expression"),
        (("--where", "dwel_s >= 30"), "--where, column 1: expected a column ("),
        (("--where", "dwel_s >= 30"), "did you mean 'dwell_s'?"),
        (("--where", "dwell_s + 1"), "--where, column 9: expected a condition"),
        (("--where", "open('x')"), "--where, column 1: expected one of the functions min, max"),
        (("--columns", "gain=reward*wight"), "--columns gain, column 8: expected a column ("),
        (("--columns", "gain"), "--columns: expected NAME=EXPRESSION, got 'gain'"),
        (("--columns", "gain==1"), "--columns: expected NAME=EXPRESSION"),
        (("--columns", "a b=reward"), "--columns: expected NAME=EXPRESSION"),
        (("--columns", "reward=weight"), "--columns reward: expected the name of a new column"),
        (("--columns", "a=b", "--columns", "b=a"), "--columns a: expected columns that are"),
        ((*GAIN, *GAIN), "--columns gain: expected it once, got it twice"),
        (("--columns", "values=weight"), "--columns values: expected another name"),
        ((*GAIN, "--by", "gain"), "--by: expected a column of rows.parquet"),
        ((*GAIN, "--users", "gain"), "--users: expected a column of rows.parquet"),
    ],
)
def test_an_error_shows_the_place(
    tmp_path: Path, capsys: Capture, words: tuple[str, ...], message: str
) -> None:
    path = write(tmp_path / "rows.parquet", frame())
    assert message in refusal(capsys, path, "--values", "reward", "--metrics", "mean", *words)


def test_runs_have_no_columns(tmp_path: Path, capsys: Capture) -> None:
    run, qrels = tmp_path / "run.txt", tmp_path / "qrels.txt"
    run.write_text("q1 Q0 d1 1 0.5 a\n", encoding="utf-8")
    qrels.write_text("q1 0 d1 1\n", encoding="utf-8")
    words = ("--qrels", str(qrels), "--metrics", "map", "--where", "a > 1")
    assert "--where: expected a table of rows, got runs" in refusal(capsys, run, *words)
