"""Arrays that are rows of tables: JSON, CSV and parquet give one column, and refuse the same."""

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

TS = "2024-01-01T00:00:00Z"
METRICS = {
    "real_row": 'm = { type = "MulticlassConfusion", n_classes = 3, top_k = [1], '
    'inputs = { labels = "y", predictions = "x" } }',
    "real_or_row": 'm = { type = "MulticlassConfusion", n_classes = 3, '
    'inputs = { labels = "y", predictions = "x" } }',
    "label_row": 'm = { type = "MultilabelConfusion", n_labels = 3, '
    'inputs = { labels = "x", scores = "z" } }',
    "label_or_row": 'm = { type = "MulticlassAUC", n_classes = 3, '
    'inputs = { labels = "x", scores = "z" } }',
}
# A text; whether it is good as an array of three numbers, as a number, and with true and false.
TEXTS = [
    ("[0.5,1,2e0]", "row"),
    ("[1,0,1]", "row"),
    ("[true,0,false]", "flags"),
    ("2", "one"),
    ("0.5", "one"),
    ("[2]", ""),
    ("[]", ""),
    ("[1,2]", ""),
    ("[1,2,3,4]", ""),
    ("[1,null,3]", ""),
    ('[1,"2",3]', ""),
    ("[[1,2,3]]", ""),
    ("[[1],2,3]", ""),
    ("{}", ""),
    ('"x"', ""),
    ("[1,2," + "9" * 400 + "]", ""),
    ("[0,0,1]", "row"),
]


def decoder(kind: str) -> Decoder:
    return Decoder(config(event='time = "ts"', slices="by = [[]]", metrics=METRICS[kind]))


def good(kind: str) -> list[int]:
    means = {"row"} | ({"one"} if "_or_" in kind else set())
    means |= {"flags"} if kind.startswith("label") else set()
    return [i for i, (_, what) in enumerate(TEXTS) if what in means]


def rows(found: Decoded, kind: str) -> list[list[float]]:
    column = found.columns[f"x:{kind}"]
    assert isinstance(column, Lists) and column.values.dtype == np.float64
    return [part.tolist() for part in np.split(column.values, column.offsets[1:-1])]


@pytest.mark.parametrize("kind", METRICS)
def test_json_and_csv_give_the_same_rows_and_refuse_the_same(kind: str) -> None:
    json_lines = [f'{{"ts":"{TS}","y":0,"z":[1,1,1],"x":{text}}}'.encode() for text, _ in TEXTS]
    cells = [text.replace('"', '""') for text, _ in TEXTS]
    csv_lines = [f'{TS},0,"[1,1,1]","{cell}"'.encode() for cell in cells]
    by_json = decoder(kind).decode(chunk(json_lines))
    by_csv = decoder(kind).decode(chunk(csv_lines, fields=("ts", "y", "z", "x")))
    for found in (by_json, by_csv):
        assert found.at.tolist() == good(kind)
        assert {entry.field for entry in found.refused} == {"x"}
        assert {entry.reason for entry in found.refused} == {"wrong_type", "out_of_range"}
    assert rows(by_json, kind) == rows(by_csv, kind)
    assert rows(by_json, kind)[:2] == [[0.5, 1, 2], [1, 0, 1]]
    assert ([2.0] in rows(by_json, kind)) == ("_or_" in kind)


@pytest.mark.parametrize("cell", ["", "0.5;0.5;0.5", "[1,2", "[1,2,3]]", "(1,2,3)", "[NaN,1,2]"])
def test_a_cell_that_is_no_json_array_is_refused(cell: str) -> None:
    fields = ("ts", "y", "z", "x")
    lines = [f'{TS},0,"[1,1,1]","{text}"'.encode() for text in ("[1,2,3]", cell, " [3,2,1] ")]
    for kind in ("real_row", "real_or_row"):
        found = decoder(kind).decode(chunk(lines, fields=fields))
        assert [entry.offset for entry in found.refused] == [1]
        assert rows(found, kind) == [[1, 2, 3], [3, 2, 1]]


@pytest.mark.parametrize(
    "type_", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.int64(), 3)]
)
def test_every_list_of_parquet_is_an_array(tmp_path: Path, type_: pa.DataType) -> None:
    x = pa.array([[1, 0, 2], None, [3, None, 1], [0, 1, 0]], type_)
    columns = {"ts": [TS] * 4, "y": [0] * 4, "x": x}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    opened = source(tmp_path / "a.parquet")
    opened.assign(From(0))
    (one,) = drained(opened)
    found = decoder("real_or_row").decode(one)
    close_all()
    assert rows(found, "real_or_row") == [[1, 0, 2], [0, 1, 0]]
    assert [(entry.offset, entry.reason) for entry in found.refused] == [
        (1, "missing_field"),
        (2, "wrong_type"),
    ]


def test_one_field_may_be_either_for_two_metrics() -> None:
    both = METRICS["label_or_row"] + "\n" + METRICS["real_or_row"].replace("m = ", "n = ")
    lines = [f'{{"ts":"{TS}","y":0,"z":[1,1,1],"x":{text}}}'.encode() for text, _ in TEXTS]
    made = config(event='time = "ts"', slices="by = [[]]", metrics=both)
    found = Decoder(made).decode(chunk(lines))
    assert found.at.tolist() == good("real_or_row")
    assert rows(found, "label_or_row") == rows(found, "real_or_row")
