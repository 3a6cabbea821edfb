"""Flags, arrays, rows of tables and whole numbers: from every format to one column of the same
values, and the same events to quarantine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streammetrics_consumers.events.columns import Column, ListColumn
from streammetrics_consumers.events.decoder import Decoded, Decoder

from streammetrics import DictionaryColumn
from tests.consumers.file_sources import From, close_all, drained, source
from tests.consumers.messages import arrow, message, of_format
from tests.consumers.small_config import chunk, config

TS = "2024-01-01T00:00:00Z"
NO, LACKS, FAR = "wrong_type", "missing_field", "out_of_range"


class Kind(NamedTuple):
    """A column that a metric reads: its field, the other fields of an event as JSON, and for texts
    of JSON the value that is read, or the reason why the event is refused."""

    column: str
    metric: str
    others: dict[str, str]
    texts: Sequence[tuple[str, object]]

    @property
    def field(self) -> str:
        return self.column.partition(":")[0]

    @property
    def parts(self) -> dict[str, str]:
        event = 'time = "ts"\nlabel = "grade"\nscore = "score"\nlist = "query"'
        metrics = f"m = {{ {self.metric} }}"
        return {"event": event, "slices": "by = [[]]", "metrics": metrics}

    @property
    def good(self) -> list[object]:
        return [value for _, value in self.texts if not isinstance(value, str)]

    @property
    def bad(self) -> list[tuple[int, str]]:
        return [(i, reason) for i, (_, reason) in enumerate(self.texts) if isinstance(reason, str)]


NEVER_ROWS = [
    *[(text, NO) for text in ("[2]", "[]", "[1,2]", "[1,2,3,4]", "[1,null,3]", '[1,"2",3]')],
    *[(text, NO) for text in ("[[1,2,3]]", "[[1],2,3]", "{}", '"x"')],
    ("[1,2," + "9" * 400 + "]", FAR),
]
ROWS = [("[0.5,1,2e0]", [0.5, 1, 2]), ("[1,0,1]", [1, 0, 1]), *NEVER_ROWS, ("[0,0,1]", [0, 0, 1])]
ONES: list[tuple[str, object]] = [("2", [2]), ("0.5", [0.5])]
TRUTHS: list[tuple[str, object]] = [("[true,0,false]", [1, 0, 0])]
NO_ONES = [(text, NO) for text, _ in ONES]
NO_TRUTHS = [(text, NO) for text, _ in TRUTHS]
CLASSES = (
    'type = "MulticlassConfusion", n_classes = 3, inputs = { labels = "y", predictions = "x" }'
)
ITEMS = [
    ("[3,1]", [3, 1]),
    ("[]", []),
    *[(text, NO) for text in ("[1.5]", "[1.0]", "[0,true]", '["1"]', "[null]", "[[1]]", "{}")],
    *[(text, NO) for text in ("7", '"x"')],
    ("null", LACKS),
    ("[1,9223372036854775808]", FAR),
    ("[" + "9" * 4000 + "]", FAR),
    ("[-1,99]", [-1, 99]),  # for the metric to refuse
]
WHOLE = [
    2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, -(2**53), -(2**53) - 1, 2**62, 2**62 + 1, 2**63 - 1,
    -(2**63), -(2**63) + 1, 0,
]  # fmt: skip
NUMBERS = [(str(n), float(n) if int(float(n)) == n else FAR) for n in WHOLE]
POINTS = [("9007199254740993.0", 2.0**53), ("9007199254740993e0", 2.0**53), ("1e300", 1e300)]
LARGE = [
    (str(10**22), 1e22), (str(10**23), FAR), (str(2**1023), 2.0**1023), (str(2**1023 + 1), FAR),
]  # fmt: skip
KINDS = {
    "real": Kind("x:real", 'type = "Regression", inputs = { scores = "x", labels = "y" }',
                 {"y": "0"}, [*NUMBERS, *POINTS, *LARGE]),
    "real_list": Kind("x:real_list", 'type = "RankingMetrics", measures = ["MRR@3"], '
                      'inputs = { scores = "x", labels = "y" }', {"y": "[0,0]"},
                      [("[1,9007199254740992]", [1, 2**53]), ("[9007199254740993,2]", FAR),
                       ("[-9007199254740994,3]", [-(2**53) - 2, 3])]),
    "int_list": Kind("x:int_list", 'type = "CatalogMetrics", n_items = 9, k = 2, '
                     'inputs = { lists = "x" }', {}, ITEMS),
    "ids_list": Kind("x:ids_list", 'type = "RankingMetrics", measures = ["StRecall"], '
                     'inputs = { subtopics = "x" }', {"grade": "[1,1]", "score": "[2,1]"},
                     [('[["a"],["b"]]', [["a"], ["b"]]), ("[[1,2],[]]", [[1, 2], []]),
                      ("[[1],[2]]", [[1], [2]]), *[(text, NO) for text in (
                          "[[1.5],[]]", "[[true],[]]", "[[null],[]]", "[1,2]", "{}", '"x"',
                          "[[1]]", "[[[1]],[]]")],
                      ('[["' + "a" * 2000 + '"],[]]', FAR), ("null", LACKS),
                      ("[[9223372036854775808],[]]", FAR)]),
    "id_list": Kind("x:id_list", 'type = "GroupedScores", measures = ["StRecall"], '
                    'inputs = { subtopics = "x", groups = "q" }',
                    {"grade": "1", "score": "2", "q": "7"},
                    [('["a","b"]', ["a", "b"]), ("[1,2]", [1, 2]), ("[]", []), *[(text, NO)
                     for text in ("[1.5]", "[true]", "[null]", "[[1]]", "{}", '"x"', "7")],
                     ('["' + "a" * 2000 + '"]', FAR), ("null", LACKS),
                     ("[9223372036854775808]", FAR)]),
    "flag_list": Kind("x:flag_list", 'type = "RankingMetrics", measures = ["MRR"], '
                      'inputs = { judged = "x" }', {"grade": "[0,0]", "score": "[0,0]"},
                      [("[true,false]", [True, False]), ("[1,0]", NO), ('["true",true]', NO),
                       ("true", NO), ("[true]", NO)]),  # the last: one for each label
    "real_row": Kind("x:real_row", f"{CLASSES}, top_k = [1]", {"y": "0"},
                     [*ROWS, *NO_ONES, *NO_TRUTHS]),
    "real_or_row": Kind("x:real_or_row", CLASSES, {"y": "0"}, [*ROWS, *ONES, *NO_TRUTHS]),
    "label_row": Kind("x:label_row", 'type = "MultilabelConfusion", n_labels = 3, '
                      'inputs = { labels = "x", scores = "z" }', {"z": "[1,1,1]"},
                      [*ROWS, *NO_ONES, *TRUTHS]),
    "label_or_row": Kind("x:label_or_row", 'type = "MulticlassAUC", n_classes = 3, '
                         'inputs = { labels = "x", scores = "z" }', {"z": "[1,1,1]"},
                         [*ROWS, *ONES, *TRUTHS]),
}  # fmt: skip


def plain(column: Column) -> list[object]:
    if isinstance(column, ListColumn):
        parts = np.split(column.values, column.offsets[1:-1]) if len(column) else []
        return [part.tolist() for part in parts]
    assert not isinstance(column, DictionaryColumn)
    return list(column.tolist())


def assert_read(piece: Decoded, kind: Kind) -> None:
    column = piece.columns[kind.column]
    values = column.values if isinstance(column, ListColumn) else column
    dtype = {"flag": np.bool_, "int": np.int64, "ids": np.object_, "id": np.object_}.get(
        kind.column.split(":")[1].split("_")[0]
    )
    assert values.dtype == (dtype or np.float64)  # type: ignore[union-attr]
    assert plain(column) == kind.good
    assert [(max(e.offset, e.index), e.reason) for e in piece.refused] == kind.bad
    assert {e.field for e in piece.refused} <= {kind.field, None}


def lines(kind: Kind) -> list[bytes]:
    prefix = "".join(f'"{name}":{text},' for name, text in kind.others.items())
    return [f'{{"ts":"{TS}",{prefix}"{kind.field}":{t}}}'.encode() for t, _ in kind.texts]


def csv_rows(kind: Kind, texts: Sequence[str]) -> tuple[list[bytes], tuple[str, ...]]:
    prefix = "".join(f',"{text}"' for text in kind.others.values())
    cells = [text.replace('"', '""') for text in texts]
    return [f'{TS}{prefix},"{cell}"'.encode() for cell in cells], ("ts", *kind.others, kind.field)


@pytest.mark.parametrize("name", KINDS)
def test_json_messages_and_csv_give_the_same_values_and_refuse_the_same(name: str) -> None:
    kind = KINDS[name]
    decoder = Decoder(config(**kind.parts))
    assert_read(decoder.decode(chunk(lines(kind))), kind)
    rows, fields = csv_rows(kind, [text for text, _ in kind.texts])
    assert_read(decoder.decode(chunk(rows, fields=fields)), kind)
    for format in ("ndjson", "array"):
        message_decoder = Decoder(of_format(format, **kind.parts))
        (piece,) = message_decoder.pieces(chunk([message(format, lines(kind))]))
        assert_read(piece, kind)


@pytest.mark.parametrize("name", ["real", "real_list", "int_list", "flag_list", "real_row"])
def test_columns_of_arrow_and_parquet_give_the_same_values(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    # What their types can say at all.
    texts = NUMBERS if name == "real" else kind.texts
    kind = kind._replace(texts=[(s, v) for s, v in texts if v not in (NO, LACKS) and len(s) < 22])
    rows = [json.loads(line) for line in lines(kind)]
    (piece,) = Decoder(of_format("arrow", **kind.parts)).pieces(chunk([arrow(rows)]))
    assert_read(piece, kind)
    # A column with a null is read one value at a time.
    holes = [*rows, {**rows[0], kind.field: None}]
    (piece,) = Decoder(of_format("arrow", **kind.parts)).pieces(chunk([arrow(holes)]))
    assert_read(piece, kind._replace(texts=[*kind.texts, ("null", LACKS)]))
    assert_read(from_parquet(tmp_path, kind, pa.Table.from_pylist(rows)), kind)


def test_lists_of_ids_are_read_from_arrow_and_parquet(tmp_path: Path) -> None:
    for name, good in (
        ("ids_list", [["a", "b"], []]), ("ids_list", [[3, 4], [5]]), ("id_list", ["a", "b"]),
        ("id_list", [3]), ("id_list", []), ("ids_list", [[], []]),
    ):  # fmt: skip
        kind = KINDS[name]._replace(texts=[(json.dumps(good), good)])
        rows = [json.loads(line) for line in lines(kind)]
        (piece,) = Decoder(of_format("arrow", **kind.parts)).pieces(chunk([arrow(rows)]))
        assert_read(piece, kind)
        assert_read(from_parquet(tmp_path, kind, pa.Table.from_pylist(rows)), kind)


def test_an_id_that_is_no_utf_8_costs_its_row_alone(tmp_path: Path) -> None:
    kind = KINDS["id_list"]._replace(texts=[("", ["a"]), ("", NO), ("", ["b"])])
    texts = pa.Array.from_buffers(
        pa.string(), 3, pa.array([b"a", b"\xff", b"b"], pa.binary()).buffers()
    )
    x = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), texts)
    table = pa.table({"ts": [TS] * 3, "grade": [1] * 3, "score": [2] * 3, "q": ["7"] * 3, "x": x})
    assert_read(from_parquet(tmp_path, kind, table), kind)


def from_parquet(folder: Path, kind: Kind, table: pa.Table) -> Decoded:
    pq.write_table(table, folder / "a.parquet")
    opened = source(folder / "a.parquet")
    opened.assign(From(0))
    (piece,) = (Decoder(config(**kind.parts)).decode(rows) for rows in drained(opened))
    close_all()
    return piece


def test_every_list_of_parquet_is_an_array(tmp_path: Path) -> None:
    for name, type_ in (
        ("int_list", pa.uint8()),
        ("int_list", pa.int32()),
        ("real_or_row", pa.float64()),
        ("real_or_row", pa.int64()),
    ):
        x: list[object] = [[3, 1, 0], None, [5, None, 1], [7, 1, 2]]
        good = [x[0], x[3]]
        forms = [pa.list_(type_), pa.large_list(type_), pa.list_(type_, 3)]
        kind = KINDS[name]._replace(texts=[("", x[0]), ("", LACKS), ("", NO), ("", x[3])])
        for form in forms:
            table = pa.table({"ts": [TS] * 4, "y": [0] * 4, "x": pa.array(x, form)})
            piece = from_parquet(tmp_path, kind, table)
            assert_read(piece, kind)
            assert plain(piece.columns[kind.column]) == good


def test_a_flag_is_true_or_false_and_csv_and_parquet_have_words_for_it(tmp_path: Path) -> None:
    metric = 'type = "GroupedScores", measures = ["MRR"], inputs = { judged = "x" }'
    texts: list[tuple[str, object]] = [("true", True), ("false", False), ("null", LACKS)]
    texts += [(text, NO) for text in ("1", "0.0", '"true"', "[true]")]
    other_fields = {"query": '"q"', "grade": "0", "score": "0.5"}
    kind = Kind("x:flag", metric, other_fields, texts)
    decoder = Decoder(config(**kind.parts))
    assert_read(decoder.decode(chunk(lines(kind))), kind)
    words = ["true", "false", "True", "False", " true ", "1", "yes", ""]
    expected: list[object] = [True, False, True, False, True, NO, NO, LACKS]
    in_words = kind._replace(
        others={"query": "q", "grade": "0", "score": "0.5"},
        texts=list(zip(words, expected, strict=True)),
    )
    rows, fields = csv_rows(in_words, words)
    assert_read(decoder.decode(chunk(rows, fields=fields)), in_words)
    x = pa.array([True, False, None])
    table = pa.table({"ts": [TS] * 3, "query": ["q"] * 3, "grade": [0] * 3, "score": [0.5] * 3})
    stored = from_parquet(tmp_path, kind, table.append_column("x", x))
    assert_read(stored, kind._replace(texts=texts[:3]))


def test_a_cell_that_is_no_json_array_is_refused() -> None:
    for name in ("real_row", "real_or_row"):
        kind = KINDS[name]
        cells = ["", "0.5;0.5;0.5", "[1,2", "[1,2,3]]", "(1,2,3)", "[NaN,1,2]"]
        rows, fields = csv_rows(kind, ["[1,2,3]", *cells, " [3,2,1] "])
        piece = Decoder(config(**kind.parts)).decode(chunk(rows, fields=fields))
        assert [entry.offset for entry in piece.refused] == list(range(1, len(cells) + 1))
        assert plain(piece.columns[kind.column]) == [[1, 2, 3], [3, 2, 1]]


def test_one_field_may_be_of_two_kinds_for_two_metrics() -> None:
    pairs = ("label_or_row", "real_or_row"), ("int_list", "label_list")
    labels = 'type = "RankingMetrics", measures = ["MRR"], inputs = { labels = "x" }'
    metrics = {name: kind.metric for name, kind in KINDS.items()} | {"label_list": labels}
    for kind_name, second_name in pairs:
        kind = KINDS[kind_name]
        metric_lines = f"m = {{ {metrics[kind_name]} }}\nn = {{ {metrics[second_name]} }}"
        decoder = Decoder(config(event='time = "ts"', slices="by = [[]]", metrics=metric_lines))
        other_fields = {**kind.others, "y": "0"}
        piece = decoder.decode(chunk(lines(kind._replace(others=other_fields))))
        # An event is good where both take it: neither true and false as items nor as scores.
        good = [value for text, value in kind.texts if not isinstance(value, str)]
        good = [value for value in good if value != [1, 0, 0]]
        assert plain(piece.columns[kind.column]) == good
        assert plain(piece.columns[f"x:{second_name}"]) == good


def test_numbers_as_texts_may_be_as_large_and_as_long_as_they_like() -> None:
    far = [str(10**400), str(10**4000), "9" * 6000, "1e400", "-1e400"]
    near = [("1", 1.0), ("0." + "3" * 6000, 1 / 3)]
    kind = KINDS["real"]._replace(texts=[*((text, FAR) for text in far), *near])
    decoder = Decoder(config(**kind.parts))
    rows, fields = csv_rows(kind, [text for text, _ in kind.texts])
    assert_read(decoder.decode(chunk(lines(kind))), kind)
    assert_read(decoder.decode(chunk(rows, fields=fields)), kind)
    ids = 'type = "GroupedAUC", ids = "integer", inputs = { groups = "x" }'
    texts = [("1e400", NO), ("-+5", NO), ("9" * 6000, FAR), ("+7", 7)]
    whole = Kind("x:int_id", ids, {"grade": "0", "score": "0.5"}, texts)
    rows, fields = csv_rows(whole, [text for text, _ in texts])
    assert_read(Decoder(config(**whole.parts)).decode(chunk(rows, fields=fields)), whole)


def test_a_text_that_says_so_is_an_infinity_as_in_parquet(tmp_path: Path) -> None:
    inf = float("inf")
    kind = KINDS["real"]._replace(texts=[("inf", inf), ("-Infinity", -inf), ("1", 1.0)])
    rows, fields = csv_rows(kind, [text for text, _ in kind.texts])
    assert_read(Decoder(config(**kind.parts)).decode(chunk(rows, fields=fields)), kind)
    table = pa.table({"ts": [TS] * 3, "y": [0] * 3, "x": [inf, -inf, 1.0]})
    assert_read(from_parquet(tmp_path, kind, table), kind)


def test_what_no_double_holds_is_named_and_ids_are_whole_numbers_of_64_bits() -> None:
    piece = Decoder(config(**KINDS["real"].parts)).decode(chunk(lines(KINDS["real"])))
    assert piece.refused[0].detail == (
        "no double holds 9007199254740993; send a smaller number, or 9007199254740992.0"
    )
    ids = 'type = "GroupedAUC", ids = "integer", inputs = { groups = "x" }'
    number = 2**53 + 1
    kind = Kind("x:int_id", ids, {"grade": "0", "score": "0.5"}, [(str(number), number)])
    assert_read(Decoder(config(**kind.parts)).decode(chunk(lines(kind))), kind)
