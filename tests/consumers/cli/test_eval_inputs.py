"""The files of `streammetrics eval`: several as one, standard input, and rows of users."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from streammetrics_consumers.cli.main import main

from streammetrics import BinaryConfusion, ExactAUC, GroupedAUC, UserGroups

Capture = pytest.CaptureFixture[str]

rng = np.random.default_rng(4)
N = 900
ROWS = polars.DataFrame({
    "label": rng.integers(0, 2, N),
    "score": rng.random(N),
    "variant": rng.choice(["a", "b"], N),
    "query": [f"q{i // 6}" for i in range(N)],
    "user": [f"u{i // 18}" for i in range(N)],
})  # fmt: skip
WORDS = ["--labels", "label", "--scores", "score"]


def printed(capsys: Capture, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["eval", *words, "--json"]) == 0, capsys.readouterr().err
    lines: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return lines


def test_several_files_of_the_same_columns_count_as_one(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ROWS.write_parquet("whole.parquet")
    arguments = [
        *WORDS,
        "--lists",
        "query",
        "--by",
        "variant",
        "--metrics",
        "auc,gauc,logloss,ndcg@3",
    ]
    expected = printed(capsys, "whole.parquet", *arguments)
    # A list that lies in two files is one list, and a variant may be missing in a file.
    parts = {"day-1.csv": ROWS[:101], "day-2.parquet": ROWS[101:500], "day-3.jsonl": ROWS[500:]}
    for name, part in parts.items():
        columns = part.select(reversed(part.columns))
        write = {"v": columns.write_csv, "t": columns.write_parquet, "l": columns.write_ndjson}
        write[name[-1]](name)  # type: ignore[operator]
    for words in (parts, ["day-*"], ["day-3.jsonl", "day-[12]*"]):
        assert printed(capsys, *words, *arguments) == expected
    subset = ROWS.filter(polars.col("variant") == "a")
    subset.write_csv("only-a.csv")
    ROWS.filter(polars.col("variant") == "b").write_csv("only-b.csv")
    assert printed(capsys, "only-*.csv", *arguments) == expected


def test_an_error_names_the_file_and_its_row(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("label,score,day\n1,0.5,1\n0,0.25,1\n")
    (tmp_path / "b.csv").write_text("label,score,day\n1,0.5,1\n7,0.25,1\n")
    (tmp_path / "c.csv").write_text("label,points,day\n1,0.5,1\n")
    (tmp_path / "d.csv").write_text("label,score,day\n1,0.5,x\n")
    for file, message, code in (
        ("b.csv", "b.csv, row 1 (the first is 0), label: expected", 1),
        ("c.csv", "c.csv: expected the columns of a.csv, got others or fewer (points, score)", 2),
        ("d.csv", "d.csv: expected integers as day, as in a.csv, got texts; convert them", 2),
        ("absent.csv", "absent.csv", 1),
        ("b.txt", "expected a file that ends in .parquet, .csv", 2),
    ):
        words = ["a.csv", file, *WORDS, "--by", "day", "--metrics", "auc"]
        assert main(["eval", *words]) == code, file
        assert message in capsys.readouterr().err, file


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_rows_come_from_standard_input(
    kind: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"rows.{kind}"
    write = {"csv": ROWS.write_csv, "jsonl": ROWS.write_ndjson, "parquet": ROWS.write_parquet}
    write[kind](path)  # type: ignore[operator]
    stream = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stream)
    arguments = [*WORDS, "--metrics", "auc,f1"]
    assert printed(capsys, "-", *arguments) == printed(capsys, str(path), *arguments)
    stream = io.TextIOWrapper(io.BytesIO(b"label,score\n7,0.5\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["eval", "-", *arguments]) == 1
    assert "standard input, row 0 (the first is 0), label" in capsys.readouterr().err


def test_intervals_over_users_are_those_of_user_groups(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.parquet"
    ROWS.write_parquet(path)
    users, columns = ROWS["user"].to_list(), {"labels": ROWS["label"], "scores": ROWS["score"]}
    area, groups = UserGroups(ExactAUC()), UserGroups(GroupedAUC(ids="hashed"))
    rates = UserGroups(BinaryConfusion(threshold=0.5))
    area.update(users, **columns)
    rates.update(users, **columns)
    groups.update(users=users, **columns, groups=ROWS["query"].to_list())
    arguments = [*WORDS, "--lists", "query", "--users", "user", "--metrics", "auc,gauc,f1,best_f1"]
    lines = printed(capsys, str(path), *arguments)
    plain = printed(capsys, str(path), *arguments[:6], "--metrics", "auc,gauc,f1,best_f1")
    expected = [area.compute(), groups.compute(), rates.compute()]
    for line, result, view in zip(lines, expected, ("auc", "gauc", "f1"), strict=False):
        interval = result.interval(view)
        assert (line["lower"], line["upper"]) == (interval.lower, interval.upper), view
    for line, plain_line in zip(lines, plain, strict=True):
        assert (line["value"], line["counts"]) == (plain_line["value"], plain_line["counts"])
        assert (
            line.get("threshold") == plain_line.get("threshold")
            and line["upper"] != plain_line["upper"]
        )
    sliced = printed(capsys, str(path), *arguments, "--by", "variant")
    of_a, part = UserGroups(ExactAUC()), ROWS.filter(polars.col("variant") == "a")
    of_a.update(part["user"].to_list(), labels=part["label"], scores=part["score"])
    assert sliced[0]["upper"] == of_a.compute().interval("auc").upper
    assert main(["eval", str(path), *arguments]) == 0
    text = capsys.readouterr().out
    assert "intervals assume that users are independent" in text
    assert "rows and lists are independent" not in text
    assert main(["eval", str(path), *WORDS, "--users", "usr", "--metrics", "auc"]) == 2
    assert "--users: expected a column of rows.parquet" in capsys.readouterr().err


def test_rows_are_written_in_other_forms(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "rows.csv"
    ROWS.write_csv(path)
    arguments = [str(path), *WORDS, "--by", "variant", "--metrics", "auc,ctr"]
    assert main(["eval", *arguments, "--format", "md"]) == 0
    head, alignment, *lines = capsys.readouterr().out.splitlines()
    assert head == "| variant | metric | value | 95 % CI | over |"
    assert alignment == "|:---|:---|---:|---:|---:|" and len(lines) == 4
    assert main(["eval", *arguments, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == printed(capsys, *arguments)
