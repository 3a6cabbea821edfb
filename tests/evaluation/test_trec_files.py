"""Files of TREC: what is read, and what strangers may not put into them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import InputError, StreamMetricsError
from streammetrics.evaluation import trec_files
from streammetrics.evaluation.trec_files import MAX_LINE, read_qrels, read_run


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


def test_lines_are_read_whatever_their_spaces_order_and_comments(tmp_path: Path) -> None:
    qrels = b"\xef\xbb\xbf# topic\n301\t0 \xc3\xa9 -2\r\n\n302 x b +3\n301 0 a 1"
    assert read_qrels(written(tmp_path, qrels)) == {"301": {"é": -2, "a": 1}, "302": {"b": 3}}
    assert read_qrels(written(tmp_path, gzip.compress(qrels))) == {
        "301": {"é": -2, "a": 1},
        "302": {"b": 3},
    }
    run = b"1 Q0 a 9 -1e-3 my tag\n2 Q0 a 1 inf t\n1 Q0 b 9 7. t\n1 Q0 c 1 .5 t\n1 Q0 d 1 -INF t\n"
    assert read_run(written(tmp_path, run)) == {
        "1": {"a": -0.001, "b": 7.0, "c": 0.5, "d": -float("inf")},
        "2": {"a": float("inf")},
    }


BAD_QRELS = {
    b"1 0 a 1\n1 0 a 0\n": (2, "'a' twice for query '1'"),
    b"1 0 a 1\n2 0 a 1\n1 0 a 0\n": (3, "twice"),
    b"1 0 a\n": (1, "3 column(s)"),
    b"query-id\tcorpus-id\tscore\n": (1, "polars or pandas"),
    b"qid,docid,rel\n": (1, "polars or pandas"),
    b"\n1 Q0 a 1 0.5 t\n": (2, "this looks like a run"),
    b"1 0 a 1.0\n": (1, "whole number"),
    b"1 0 a 1_0\n": (1, "whole number"),
    b"1 0 a \xd9\xa1\n": (1, "whole number"),
    b"1 0 a 9999999999\n": (1, "whole number"),
    b"1 0 \xff 1\n": (1, "0xff"),
    b"1 0 a 1\n" + b"x" * (MAX_LINE + 1): (2, "at most 4096 bytes"),
}
BAD_RUNS = {
    b"1 Q0 a 1\n": (1, "this looks like qrels"),
    b"1 0.5\n": (1, "2 column(s)"),
    b"0.5\n": (1, "need judgments by row: a file of LETOR or LightGBM"),
    b"1 Q0 a 1 nan t\n": (1, "not nan"),
    b"1 Q0 a 1 1_0 t\n": (1, "a number"),
    b"1 Q0 a 1 0x10 t\n": (1, "a number"),
    b"1 Q0 a 1 1e t\n": (1, "a number"),
    b"1 Q0 a 1 1 t\n1 Q0 a 2 2 t\n": (2, "twice"),
}
NO_LINES = {
    b"": "at least one line",
    b"\n# x\n": "at least one line",
    b"\x1f\x8bxx": "a whole file",
    b"PK\x03\x04": "decompress",
    b"PAR1xx": "polars",
    b' {"q": {}}': "json.load",
}


def test_other_lines_are_refused_with_their_number(tmp_path: Path) -> None:
    for read, refused in ((read_qrels, BAD_QRELS), (read_run, BAD_RUNS)):
        for data, (line, part) in refused.items():
            path = written(tmp_path, data)
            with pytest.raises(InputError) as raised:
                read(path)
            assert raised.value.where == f"{path}, line {line}", data
            assert part in str(raised.value) and len(str(raised.value)) < 500, data
    for data, part in NO_LINES.items():
        with pytest.raises(InputError, match=part):
            read_run(written(tmp_path, data))
    for path in (tmp_path, tmp_path / "absent", "a\0", "\ud800", "q1 0 a 1\n" * 1000):
        with pytest.raises(InputError, match="check the path"):
            read_qrels(path)


def test_a_file_that_does_not_end_is_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 1: expected at most 4096 bytes"):
        read_run("/dev/zero")
    bomb = written(tmp_path, gzip.compress(b"x" * 9_000))
    with pytest.raises(InputError, match="line 1: expected at most 4096 bytes"):
        read_run(bomb)
    monkeypatch.setattr(trec_files, "MAX_BYTES", 20)
    with pytest.raises(InputError, match="a file of at most 20 bytes"):
        read_qrels(written(tmp_path, b"1 0 a 1\n1 0 b 1\n1 0 c 1\n"))
    monkeypatch.undo()
    lines = gzip.compress(b"1 0 a 1\n" * 2)
    for cut in (lines[:-9], lines[:-20], lines[:12] + b"xxxx" + lines[16:]):
        with pytest.raises(InputError, match=r"whole file of gzip|twice"):
            read_qrels(written(tmp_path, cut))


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_parse_or_refuse(data: bytes) -> None:
    for read in (read_qrels, read_run):
        try:
            result = read(_file(data))
        except StreamMetricsError as error:
            assert error.hint
        else:
            assert result and all(result.values())


def _file(data: bytes) -> str:
    """The path of an open pipe that holds these bytes."""
    import os

    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    return f"/dev/fd/{reader}"
