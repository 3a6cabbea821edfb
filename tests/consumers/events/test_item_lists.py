"""Arrays of item numbers: from JSON, CSV and parquet to one column, and bad ones to quarantine."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.events.columns import Lists
from streammetrics_consumers.events.decoder import Decoded, Decoder

from tests.consumers.file_sources import From, close_all, drained, source
from tests.consumers.small_config import chunk, config

PARTS = {
    "event": 'time = "ts"',
    "slices": "by = [[]]",
    "metrics": 'c = { type = "CatalogMetrics", n_items = 9, k = 2, inputs = { lists = "shown" } }',
}
CATALOG = config(**PARTS)
TS = "2024-01-01T00:00:00Z"


def lists_of(found: Decoded) -> list[list[int]]:
    column = found.columns["shown:int_list"]
    assert isinstance(column, Lists)
    assert column.values.dtype == "int64"
    ends = column.offsets.tolist()
    return [column.values[a:b].tolist() for a, b in pairwise(ends)]


def reasons(found: Decoded) -> list[tuple[int, str, str | None]]:
    return [(entry.offset, entry.reason, entry.field) for entry in found.refused]


TEXTS = [
    ("[3,1]", None),
    ("[]", None),
    ("[1.5]", "wrong_type"),
    ("[1.0]", "wrong_type"),
    ("[0,true]", "wrong_type"),
    ('["1"]', "wrong_type"),
    ("[null]", "wrong_type"),
    ("[[1]]", "wrong_type"),
    ("{}", "wrong_type"),
    ("7", "wrong_type"),
    ('"x"', "wrong_type"),
    ("null", "missing_field"),
    ("[1,9223372036854775808]", "out_of_range"),
    ("[" + "9" * 4000 + "]", "out_of_range"),
    ("[-1,99]", None),  # for the metric to refuse
    ("[5]", None),
]
GOOD = [[3, 1], [], [-1, 99], [5]]
BAD = [(i, reason, "shown") for i, (_, reason) in enumerate(TEXTS) if reason]


def test_json_arrays_of_whole_numbers_are_lists() -> None:
    values = [f'{{"ts":"{TS}","shown":{text}}}'.encode() for text, _ in TEXTS]
    found = Decoder(CATALOG).decode(chunk(values))
    assert lists_of(found) == GOOD
    assert reasons(found) == BAD


def test_csv_texts_say_the_same_as_json() -> None:
    quoted = [text.replace('"', '""') for text, _ in TEXTS]
    values = [f'{TS},"{text}"'.encode() for text in quoted]
    found = Decoder(CATALOG).decode(chunk(values, fields=("ts", "shown")))
    assert lists_of(found) == GOOD
    assert reasons(found) == BAD
    broken = Decoder(CATALOG).decode(
        chunk([f'{TS},"[1,"'.encode(), f"{TS},".encode()], fields=("ts", "shown"))
    )
    assert reasons(broken) == [(0, "wrong_type", "shown"), (1, "missing_field", "shown")]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64()), pa.list_(pa.uint8()), pa.list_(pa.int32())])
def test_parquet_lists_are_lists(tmp_path: Path, kind: pa.DataType) -> None:
    shown = pa.array([[3, 1], [], None, [5, None], [7]], kind)
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"ts": [TS] * 5, "shown": shown}), path)
    opened = source(path)
    opened.assign(From(0))
    (one,) = drained(opened)
    found = Decoder(CATALOG).decode(one)
    close_all()
    assert lists_of(found) == [[3, 1], [], [7]]
    assert reasons(found) == [(2, "missing_field", "shown"), (3, "wrong_type", "shown")]


def test_one_field_may_be_labels_of_one_metric_and_items_of_another() -> None:
    both = config(
        event=PARTS["event"],
        slices=PARTS["slices"],
        metrics=PARTS["metrics"]
        + '\nr = { type = "RankingMetrics", measures = ["MRR"], inputs = { labels = "shown" } }',
    )
    values = [f'{{"ts":"{TS}","shown":{text}}}'.encode() for text in ("[1,0]", "[true]", "[2]")]
    found = Decoder(both).decode(chunk(values))
    assert lists_of(found) == [[1, 0], [2]]
    labels = found.columns["shown:label_list"]
    assert isinstance(labels, Lists) and labels.values.tolist() == [1, 0, 2]
    assert reasons(found) == [(1, "wrong_type", "shown")]
