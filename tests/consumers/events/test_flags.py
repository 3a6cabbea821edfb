"""Fields that are true or false, and arrays of them: from JSON, CSV and parquet to one column."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.events.columns import Lists
from streammetrics_consumers.events.decoder import Decoded, Decoder

from tests.consumers.file_sources import From, close_all, drained, source
from tests.consumers.small_config import chunk, config

METRIC = 'm = {{ type = "{0}", measures = ["MRR"], inputs = {{ judged = "known" }} }}'
EVENT = 'time = "ts"\nlist = "query"\nlabel = "grade"\nscore = "score"'
TS = "2024-01-01T00:00:00Z"
ITEMS = Decoder(config(event=EVENT, slices="by = [[]]", metrics=METRIC.format("GroupedScores")))
LISTS = Decoder(config(event=EVENT, slices="by = [[]]", metrics=METRIC.format("RankingMetrics")))


def an_item(known: str) -> bytes:
    return f'{{"ts":"{TS}","query":"q","grade":0,"score":0.5,"known":{known}}}'.encode()


def a_list(known: str, items: int = 2) -> bytes:
    zeros = [0] * items
    return f'{{"ts":"{TS}","grade":{zeros},"score":{zeros},"known":{known}}}'.encode()


def flags(found: Decoded) -> list[bool]:
    column = np.asarray(found.columns["known:flag"])
    assert column.dtype == np.bool_
    return column.tolist()


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        ("true", None),
        ("false", None),
        ("1", "wrong_type"),
        ("0.0", "wrong_type"),
        ('"true"', "wrong_type"),
        ("null", "missing_field"),
        ("[true]", "wrong_type"),
    ],
)
def test_a_flag_is_true_or_false_and_nothing_else(known: str, reason: str | None) -> None:
    found = ITEMS.decode(chunk([an_item("true"), an_item(known), an_item("false")]))
    said = [(entry.offset, entry.reason, entry.field) for entry in found.refused]
    assert said == ([] if reason is None else [(1, reason, "known")])
    assert flags(found) == [True, *([known == "true"] if reason is None else []), False]


@pytest.mark.parametrize("text", ["true", "false", "True", "False", " true "])
def test_csv_says_it_in_words(text: str) -> None:
    fields = ("ts", "query", "grade", "score", "known")
    rows = [f"{TS},q,0,0.5,{value}".encode() for value in (text, "1", "yes", "")]
    found = ITEMS.decode(chunk(rows, fields=fields))
    assert flags(found) == [text.strip().lower() == "true"]
    assert [entry.reason for entry in found.refused] == [
        "wrong_type", "wrong_type", "missing_field",
    ]  # fmt: skip


def test_parquet_has_a_type_for_it(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    columns = {
        "ts": [TS] * 3, "query": ["q"] * 3, "grade": [0] * 3, "score": [0.5] * 3,
        "known": [True, None, False],
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)
    opened = source(path)
    opened.assign(From(0))
    (found,) = (ITEMS.decode(some) for some in drained(opened))
    close_all()
    assert flags(found) == [True, False]
    assert [(entry.offset, entry.reason) for entry in found.refused] == [(1, "missing_field")]


@pytest.mark.parametrize(
    ("known", "field"),
    [("[1,0]", "known"), ('["true",true]', "known"), ("true", "known"), ("[true]", None)],
)
def test_an_array_of_flags_has_one_for_each_label(known: str, field: str | None) -> None:
    values = [a_list("[true,false]"), a_list(known), a_list("[]", items=0), a_list("[false,true]")]
    found = LISTS.decode(chunk(values))
    column = found.columns["known:flag_list"]
    assert isinstance(column, Lists) and column.values.dtype == np.bool_
    assert column.values.tolist() == [True, False, False, True]
    assert column.offsets.tolist() == [0, 2, 2, 4]
    said = [(entry.offset, entry.reason, entry.field) for entry in found.refused]
    assert said == [(1, "wrong_type", field)]


def test_arrays_in_csv_are_those_of_json() -> None:
    fields = ("ts", "grade", "score", "known")
    rows = [f'{TS},"[0,0]","[0,0]","{known}"'.encode() for known in ("[true,false]", "[1,0]")]
    found = LISTS.decode(chunk(rows, fields=fields))
    column = found.columns["known:flag_list"]
    assert isinstance(column, Lists) and column.values.tolist() == [True, False]
    assert [entry.offset for entry in found.refused] == [1]
