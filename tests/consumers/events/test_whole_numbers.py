"""Whole numbers that no double holds: refused alike, whatever the format, and their neighbours
counted as they are."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.events.decoder import Decoded, Decoder

from tests.consumers.file_sources import From, close_all, drained, source
from tests.consumers.messages import arrow, of_format
from tests.consumers.small_config import chunk, config

TS = "2024-01-01T00:00:00Z"
ONE = {
    "event": 'time = "ts"\nlabel = "y"\nscore = "s"',
    "slices": "by = [[]]",
    "metrics": 'r = { type = "Regression" }',
}
LISTS = {**ONE, "metrics": 'r = { type = "RankingMetrics", measures = ["MRR@3"] }'}
NUMBERS = [
    2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1, 2**62, 2**62 + 1, 2**63 - 1,
    -(2**63), -(2**63) + 1, 0,
]  # fmt: skip
KEPT = [number for number in NUMBERS if int(float(number)) == number]
BAD = [i for i, number in enumerate(NUMBERS) if int(float(number)) != number]
FORMATS = ["json", "ndjson", "array", "csv", "arrow", "nullable", "parquet"]


def events(score: object) -> dict[str, object]:
    return {"ts": TS, "y": 0, "s": score}


def decoded(format: str, scores: list[object], parts: dict[str, str], folder: Path) -> Decoded:
    """Events with these scores, in one chunk of a format."""
    rows = [events(score) for score in scores]
    if any(isinstance(score, list) for score in scores):
        rows = [{**row, "y": [0] * len(row["s"])} for row in rows]  # type: ignore[arg-type]
    lines = [json.dumps(row).encode() for row in rows]
    if format == "csv":
        names = ("ts", "y", "s")
        quoted = [
            f'{TS},"{json.dumps(row["y"])}","{json.dumps(row["s"])}"'.encode() for row in rows
        ]
        return Decoder(config(**parts)).decode(chunk(quoted, fields=names))
    if format == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), folder / "a.parquet")
        opened = source(folder / "a.parquet")
        opened.assign(From(0))
        (found,) = (Decoder(config(**parts)).decode(some) for some in drained(opened))
        close_all()
        return found
    if format == "json":
        return Decoder(config(**parts)).decode(chunk(lines))
    if format == "nullable":  # a column with a null is read one value at a time
        format, rows = "arrow", [*rows, {**events(None), "y": rows[0]["y"]}]
    whole = {"ndjson": b"\n".join(lines), "array": b"[" + b",".join(lines) + b"]"}
    value = arrow(rows) if format == "arrow" else whole[format]
    (found,) = Decoder(of_format(format, **parts)).pieces(chunk([value]))
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_a_whole_number_that_no_double_holds_is_refused_in_every_format(
    format: str, tmp_path: Path
) -> None:
    found = decoded(format, list(NUMBERS), ONE, tmp_path)
    assert list(map(int, found.columns["s:real"])) == KEPT  # type: ignore[call-overload]
    said = [(max(e.offset, e.index), e.reason, e.field) for e in found.refused]
    assert said[: len(BAD)] == [(i, "out_of_range", "s") for i in BAD]
    assert found.refused[0].detail == (
        "no double holds 9007199254740993; send a smaller number, or 9007199254740992.0"
    )


@pytest.mark.parametrize("format", FORMATS)
def test_one_such_number_in_an_array_costs_its_event(format: str, tmp_path: Path) -> None:
    scores: list[object] = [[1, 2**53], [2**53 + 1, 2], [-(2**53) - 2, 3]]
    found = decoded(format, scores, LISTS, tmp_path)
    assert found.at.tolist() == [0, 2]
    assert [(e.reason, e.field) for e in found.refused][:1] == [("out_of_range", "s")]


@pytest.mark.parametrize("format", ["json", "ndjson", "array", "csv"])
def test_larger_numbers_are_held_or_refused_by_the_same_rule(format: str, tmp_path: Path) -> None:
    """Where numbers are texts they may be as large as they like."""
    numbers = [10**22, 10**23, 2**1023, 2**1023 + 1, 10**400, 10**4000, 1]
    found = decoded(format, list(numbers), ONE, tmp_path)
    assert list(map(int, found.columns["s:real"])) == [10**22, 2**1023, 1]  # type: ignore[call-overload]
    reasons = [e.reason for e in found.refused]
    # Of 400 and more characters a cell of CSV is no number.
    assert reasons[:2] == ["out_of_range"] * 2
    assert set(reasons[2:]) <= {"out_of_range", "wrong_type"} and len(reasons) == 4


def test_a_number_with_a_point_or_an_exponent_is_the_nearest_double_as_ever() -> None:
    texts = ["9007199254740993.0", "9007199254740993e0", "1e300", "0.1"]
    lines = [f'{{"ts":"{TS}","y":0,"s":{text}}}'.encode() for text in texts]
    rows = [f"{TS},0,{text}".encode() for text in texts]
    decoder = Decoder(config(**ONE))
    for found in (
        decoder.decode(chunk(lines)),
        decoder.decode(chunk(rows, fields=("ts", "y", "s"))),
    ):
        assert found.columns["s:real"].tolist() == [2.0**53, 2.0**53, 1e300, 0.1]  # type: ignore[union-attr]
        assert not found.refused


def test_ids_are_whole_numbers_of_64_bits_as_ever() -> None:
    parts = {
        **ONE,
        "metrics": 'g = { type = "GroupedAUC", ids = "integer", inputs = { groups = "u" } }',
    }
    line = json.dumps({**events(0.5), "u": 2**53 + 1}).encode()
    found = Decoder(config(**parts)).decode(chunk([line]))
    assert not found.refused
    assert found.columns["u:int_id"].tolist() == [2**53 + 1]  # type: ignore[union-attr]
