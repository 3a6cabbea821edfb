"""Files that rows are appended to: what is torn is cut off, and what is not ours is refused."""

from __future__ import annotations

import csv
import json
import logging
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.export.columns import NAMES
from streammetrics_consumers.export.files import FORMS, GrowingFile, write_text, write_whole

from streammetrics import InputError, StateError
from tests.consumers.export.exported import HOSTILE, row, rows_in

TEXTS = tuple(FORMS)
ROWS = [row(1, metric="a"), row(1, metric=HOSTILE, slice=HOSTILE), row(2, metric="b", view=None)]


@pytest.fixture(params=TEXTS)
def path(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    return tmp_path / f"file{request.param}"


def written(path: Path) -> bytes:
    """The bytes of a file with the rows."""
    write_text(FORMS[path.suffix], path, ROWS)
    return path.read_bytes()


def test_what_is_read_is_what_was_written(path: Path) -> None:
    written(path)
    assert rows_in(path) == ROWS


def test_other_programs_read_the_same(tmp_path: Path) -> None:
    for suffix in TEXTS:
        written(tmp_path / f"file{suffix}")
    with (tmp_path / "file.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    objects = [json.loads(line) for line in (tmp_path / "file.jsonl").read_text().splitlines()]
    for name in NAMES:
        for line, value in zip(lines, objects, strict=True):
            cell = value[name]
            plain = (
                "" if cell is None else str(cell).lower() if isinstance(cell, bool) else str(cell)
            )
            assert line[name] == plain, name


def test_a_file_that_ends_anywhere_is_cut_after_its_last_whole_row(path: Path) -> None:
    data = written(path)
    form = FORMS[path.suffix]
    ends = [len(form.head)]
    for cells in ROWS:
        ends.append(ends[-1] + len(form.line(cells)))
    for size in range(len(data)):
        path.write_bytes(data[:size])
        whole = sum(end <= size for end in ends) - 1
        with closing(GrowingFile(path)) as file:
            assert list(file.rows()) == ROWS[: max(whole, 0)], size
            assert file.append(ROWS[max(whole, 0) :]) == len(ROWS) - max(whole, 0)
        assert path.read_bytes() == data, size


def test_what_is_cut_off_is_said(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_bytes(written(path)[:-1])
    with caplog.at_level(logging.WARNING):
        rows_in(path)
    assert "the last line is torn" in caplog.text


def test_parts_go_on_where_the_file_ends(path: Path) -> None:
    with closing(GrowingFile(path)) as file:
        assert (list(file.rows()), file.next_part) == ([], 1)
        assert file.append([]) == 0
        assert file.next_part == 1
        assert path.read_bytes() == b""
        file.append(ROWS[:1])
        assert file.next_part == 2
    path.write_bytes(written(path))
    with closing(GrowingFile(path)) as file:
        list(file.rows())
        assert file.next_part == 3


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".csv", b"a,b\n1,2\n"),
        (".csv", b"a,b"),
        (".csv", FORMS[".csv"].head + b"1,2\n"),
        (".csv", FORMS[".csv"].head + b'1,"s"x\n'),
        (".csv", FORMS[".csv"].head + b"\xff\n"),
        (".csv", FORMS[".csv"].line(ROWS[0])),
        (".csv", FORMS[".csv"].head + FORMS[".csv"].line(ROWS[0]).replace(b"1,s", b"one,s", 1)),
        (".jsonl", b'{"a": 1}'),
        (".jsonl", b'{"a": 1}\n'),
        (".jsonl", b"[]\n"),
        (".jsonl", b"not json\n"),
        (".jsonl", b"\xff\n"),
        (".jsonl", b"[" * 100_000 + b"\n"),
        (".jsonl", FORMS[".jsonl"].line(ROWS[0]).replace(b'"s"', b"7", 1)),
    ],
)
def test_a_file_of_something_else_is_refused_and_stays(
    tmp_path: Path, suffix: str, data: bytes
) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(data)
    with closing(GrowingFile(path)) as file, pytest.raises(StateError) as caught:
        list(file.rows())
    error = caught.value
    assert error.where.startswith(f"{path}, line ") and error.expected and error.hint
    assert path.read_bytes() == data


def test_one_process_appends_at_a_time(path: Path) -> None:
    with closing(GrowingFile(path)), pytest.raises(InputError, match="another export follows"):
        GrowingFile(path)
    GrowingFile(path).close()


def test_a_cell_that_no_reader_of_csv_takes_is_refused() -> None:
    large = row(sentence="x" * 131_072)
    with pytest.raises(InputError, match="column sentence: expected cells of less than 131,072"):
        FORMS[".csv"].line(large)
    assert FORMS[".jsonl"].line(large)


def test_a_whole_file_is_there_or_not(path: Path) -> None:
    path.write_bytes(b"before")

    def fails(unfinished: Path) -> int:
        unfinished.write_bytes(b"half")
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_whole(path, fails)
    assert (path.read_bytes(), [*path.parent.iterdir()]) == (b"before", [path])
    assert write_whole(path, lambda unfinished: unfinished.write_bytes(b"after!")) == 6
    assert (path.read_bytes(), [*path.parent.iterdir()]) == (b"after!", [path])
