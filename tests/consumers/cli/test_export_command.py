"""`export`: rows of results as files, and what is asked in a wrong way."""

from __future__ import annotations

import csv
import json
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli import export_command
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.export.files import GrowingFile
from streammetrics_consumers.ledger.failures import StoreUnavailable

Capture = pytest.CaptureFixture[str]


def lines(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_rows_are_those_of_the_json_of_results(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "results.csv"
    assert main(["results", str(store), "--json", "--window", "all"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert main(["export", str(store), "--results", str(path)]) == 0
    output = capsys.readouterr()
    assert output.out == "" and output.err == f"{path}: {len(results)} rows\n"
    assert [(row["metric"], json.loads(row["slice"])) for row in lines(path)] == [
        (row["metric"], row["slice"]) for row in results
    ]


def test_rows_are_those_that_the_flags_choose(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    words = ["export", str(store), "--results", str(path), "--metric", "ctr"]
    assert main([*words, "--window", "total", "--by", "variant", "--where", "variant=a"]) == 0
    [row] = lines(path)
    assert (row["variant"], row["view"], row["window_start_ms"]) == ("a", "ratio", "")
    assert main([*words, "--views", "all"]) == 0
    assert {row["view"] for row in lines(path)} > {"ratio"}


def test_every_0_appends_once_and_ends(store: Path, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "results.jsonl"
    words = ["export", str(store), "--results", str(path), "--follow", "--every", "0"]
    assert main(words) == 0
    assert capsys.readouterr().err.endswith(" rows are appended\n")
    size = path.stat().st_size
    assert size and main(words) == 0
    assert (capsys.readouterr().err, path.stat().st_size) == ("", size)


def test_a_file_that_another_process_follows_is_refused(
    store: Path, tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "results.jsonl"
    with closing(GrowingFile(path)):
        assert main(["export", str(store), "--results", str(path), "--follow"]) == 1
    assert "expected a file that no other process appends to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "expected -o FILE, for a state, or --results FILE, for rows, got neither"),
        (("-o", "a", "--results", "b.csv"), "for rows, got both; name one file"),
        (("-o", "a", "--follow"), "--follow: expected --results FILE beside it, got -o"),
        (("-o", "a", "--every", "1"), "--every: expected --results FILE beside it, got -o"),
        (("-o", "a", "--by", "variant"), "--by: expected --results FILE beside it, got -o"),
        (("-o", "a", "--views", "all"), "--views: expected --results FILE beside it, got -o"),
        (("--results", "b.txt"), "expected a name that ends with .parquet, .csv or .jsonl"),
        (("--results", "b.csv", "--every", "-1"), "expected 0, or 0.1 to 86400 seconds, got -1"),
        (("--results", "b.csv", "--every", "nan"), "expected 0, or 0.1 to 86400 seconds, got nan"),
    ],
)
def test_what_is_asked_in_a_wrong_way_is_refused(
    store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    flags: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", str(store), *flags]) == 2
    assert words in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


def test_an_unavailable_store_is_asked_again() -> None:
    answers: list[int | Exception] = [3, StoreUnavailable("locked"), 0, KeyboardInterrupt()]  # type: ignore[list-item]
    waits: list[float] = []

    def append() -> int:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with pytest.raises(KeyboardInterrupt):
        export_command.follow(append, "file", 5.0, waits.append)
    assert waits == [5.0, 5.0, 5.0]
    with pytest.raises(StoreUnavailable):
        answers = [StoreUnavailable("locked")]
        export_command.follow(append, "file", 0.0, waits.append)
