import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streammetrics_consumers.events.decoder import Decoder

from tests.consumers.events.test_messages import CUTS, GOOD
from tests.consumers.messages import (
    arrow,
    counted,
    digests,
    in_chunks,
    of_format,
    positions,
    records,
    stream,
)
from tests.consumers.small_config import event
from tests.depth import tries

ARROW, JSON = of_format("arrow"), of_format("json")
ROWS = [json.loads(value) for value in GOOD]
ODD = [
    event(variant="z"),
    event(score="null"),
    event(label=2),
    event(ts="yesterday"),
    event(phase=""),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*GOOD, *ODD]), max_size=30), CUTS, CUTS)
def test_rows_count_as_the_same_events_in_json_do(
    events: list[bytes], cuts: list[int], chunks: list[int]
) -> None:
    whole = counted(JSON, in_chunks(events, []))
    delta = counted(ARROW, in_chunks(records("arrow", events, cuts), chunks))
    assert digests(delta) == digests(whole)
    assert delta.counters == whole.counters
    assert [r for _, _, r in positions(delta)] == [r for _, _, r in positions(whole)]


def test_a_body_may_be_compressed_and_a_message_may_be_a_stream_of_batches_or_a_file() -> None:
    plain = digests(counted(JSON, in_chunks(GOOD, [])))
    batches = [pa.RecordBatch.from_pylist(ROWS[a : a + 8]) for a in (0, 8, 16, 24, 32)]
    values = [stream(*batches, compression=kind) for kind in (None, "lz4", "zstd")]
    sink = pa.BufferOutputStream()
    with pyarrow.ipc.new_file(sink, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    for value in (*values, bytes(sink.getvalue().to_pybytes())):
        assert digests(counted(ARROW, in_chunks([value], []))) == plain


def test_the_types_of_columns_may_differ_from_message_to_message() -> None:
    rows = pa.Table.from_pylist(ROWS)
    times = pa.array([datetime.fromisoformat(row["ts"]) for row in ROWS], pa.timestamp("us", "UTC"))
    variation = rows.set_column(0, "ts", times)
    for name, kind in [("label", pa.int8()), ("score", pa.float32()), ("phase", pa.large_string())]:
        position = variation.schema.get_field_index(name)
        variation = variation.set_column(position, name, variation[name].cast(kind))
    messages = [stream(*table.to_batches()) for table in (rows, variation, rows)]
    delta = counted(ARROW, in_chunks(messages, []))
    assert digests(delta) == digests(counted(JSON, in_chunks(GOOD * 3, [])))


def test_a_bad_row_costs_itself_and_a_bad_message_is_one_entry() -> None:
    rows = [*ROWS[:3], ROWS[0] | {"variant": "z"}, ROWS[4]]
    values = [arrow(ROWS), arrow(rows), b"ARROW1 not", arrow(rows)[:300], arrow(ROWS)]
    delta = counted(ARROW, in_chunks(values, []))
    assert positions(delta) == [(1, 3, "unknown_variant"), (2, 0, "not_arrow"), (3, 0, "not_arrow")]
    assert (delta.counters.rows, delta.counters.quarantined) == (87, 3)
    read = {name: value for name, value in rows[3].items() if name != "user"}
    assert json.loads(delta.quarantine[0].payload) == read
    assert delta.quarantine[1].payload == b"ARROW1 not"


def without(name: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{k: v for k, v in r.items() if k != name} for r in ROWS])


def changed(name: str, column: pa.Array) -> pa.RecordBatch:
    batch = pa.RecordBatch.from_pylist(ROWS)
    return batch.set_column(batch.schema.get_field_index(name), name, column)


N = len(ROWS)


def test_a_column_that_cannot_be_read_costs_its_message() -> None:
    for batch, reason, detail in (
        (without("score"), "missing_field", "no such column"),
        (changed("variant", pa.array(["a"] * N).dictionary_encode()), "not_arrow", "dictionary"),
        (changed("score", pa.array([[{"x": 1}]] * N)), "wrong_type", "list<"),
        (changed("score", pa.array([b"x"] * N)), "wrong_type", "binary"),
        (changed("score", pa.array([b"x" * 16] * N, pa.uuid())), "wrong_type", "uuid"),
        (changed("ts", pa.array([0] * N, pa.timestamp("ms"))), "bad_time", "zone"),
        (pa.record_batch([pa.array([1])] * 2, ["ts", "ts"]), "not_arrow", "one name"),
        (
            pa.record_batch([pa.array(["a"]), pa.array([{"b": "c"}])], ["a.b", "a"]),
            "not_arrow",
            "one name",
        ),
    ):
        delta = counted(ARROW, in_chunks([arrow(ROWS), stream(batch), arrow(ROWS)], []))
        assert positions(delta) == [(1, 0, reason)]
        assert detail in delta.quarantine[0].detail
        assert delta.counters.rows == 2 * N + 1


def test_a_column_that_nothing_reads_may_be_anything() -> None:
    batch = pa.RecordBatch.from_pylist(ROWS).append_column("x", pa.array([[{"y": b"z"}]] * N))
    delta = counted(ARROW, in_chunks([stream(batch)], []))
    assert digests(delta) == digests(counted(JSON, in_chunks(GOOD, [])))
    lacks_a_slice = counted(ARROW, in_chunks([stream(without("phase"))], []))
    assert (lacks_a_slice.counters.rows, lacks_a_slice.quarantine) == (N, [])


def test_times_outside_of_the_calendar_are_bad_in_every_unit() -> None:
    for unit, far in [("s", 1 << 62), ("ms", 1 << 62), ("s", -(1 << 62)), ("s", 1 << 40)]:
        column = pa.array([0, far, None] + [0] * (N - 3), pa.timestamp(unit, "UTC"))
        delta = counted(ARROW, in_chunks([stream(changed("ts", column))], []))
        assert positions(delta) == [(0, 1, "out_of_range"), (0, 2, "missing_field")]


def test_lists_and_structs_are_columns_too() -> None:
    config = of_format(
        "arrow",
        event='time = "ts"\ntime_unit = "ms"\nlabel = "shown.clicks"\nscore = "shown.scores"',
        slices="by = [[]]",
        metrics='r = { type = "RankingMetrics", measures = ["MRR@3"] }',
    )
    shown = [{"clicks": [0, 1], "scores": [0.5, 0.2]}, {"clicks": [1], "scores": [0.5, 0.1]}]
    rows = [{"ts": 1000, "shown": ranking} for ranking in shown]
    delta = counted(config, in_chunks([arrow(rows)], []))
    assert positions(delta) == [(0, 1, "wrong_type")]
    assert delta.counters.rows == 2


def test_what_a_message_opens_to_is_bounded_before_it_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streammetrics_consumers.events.arrow_messages.MAX_OPEN_BYTES", 1 << 20)
    # Zeros, which zstd makes small, under a name that nothing reads; and rows that take no bytes.
    zeros = pa.record_batch([pa.array([b"\0" * (1 << 19)] * 3)], ["x"])
    nothing = pa.record_batch([pa.nulls(10_000_000)], ["ts"])
    for value, reason in (
        (stream(zeros, compression="zstd"), "too_large"),
        (stream(nothing), "too_many_events"),
    ):
        assert len(value) < 1 << 19
        assert positions(counted(ARROW, in_chunks([value], []))) == [(0, 0, reason)]


def test_how_many_values_lists_have_is_bounded_before_they_are_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    most = 1000
    monkeypatch.setattr("streammetrics_consumers.events.arrow_messages.MAX_LISTED", most)

    def lists(values: pa.Array) -> pa.Array:
        ends = pa.array([0] + [len(values)] * N, pa.int32())
        return pa.ListArray.from_arrays(ends, values)

    bits = pa.array([True] * (most + N))
    bytes_ = pa.array([1] * (most + N), pa.int8())
    wide = pa.FixedSizeListArray.from_arrays(pa.nulls(N * most), most)
    for column, compression in (
        (lists(pa.nulls(most + N + 1)), None),
        (wide, None),
        (lists(pa.array([True] * (most + N + 1))), "zstd"),
    ):
        value = stream(changed("phase", column), compression=compression)
        delta = counted(ARROW, in_chunks([value], []))
        assert positions(delta) == [(0, 0, "too_large")]
        assert "values in lists" in delta.quarantine[0].detail
    for column in (lists(bits), lists(bytes_)):
        delta = counted(ARROW, in_chunks([stream(changed("phase", column))], []))
        assert [why for _, _, why in positions(delta)] == ["wrong_type"] * N


def test_messages_that_open_to_more_are_opened_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streammetrics_consumers.events.decoder.ARROW_BYTES", 1 << 20)
    zeros = pa.array(["\0" * (1 << 15)] * N)
    lists = pa.ListArray.from_arrays(pa.array([0] + [600_000] * N, pa.int32()), pa.nulls(600_000))
    for column in (zeros, lists):
        value = stream(changed("phase", column), compression="zstd")
        assert len(value) < 1 << 13
        pieces = list(Decoder(ARROW).pieces(in_chunks([value] * 4, [])[0]))
        assert [piece.rows for piece in pieces] == [N] * 4
    nothing = pa.record_batch([pa.nulls(20_000)], ["ts"])
    pieces = list(Decoder(ARROW).pieces(in_chunks([stream(nothing)] * 4, [])[0]))
    assert len(pieces) == 4
    small = list(Decoder(ARROW).pieces(in_chunks([arrow(ROWS), b"", arrow(ROWS)] * 4, [])[0]))
    assert len(small) == 9  # an empty message has no schema to share


def test_names_of_columns_keep_their_dots_whatever_they_hold() -> None:
    times = {"ts": "2024-01-01T00:00:00Z", "n": 1}
    rows: list[dict[str, object]] = [{"m.t": times, "variant": "a", "geo.x": {"c": "de"}}]
    config = of_format(
        "arrow",
        event='time = "m.t.ts"\nvariant = "variant"',
        slices='by = [["geo.x.c"]]',
        metrics='n = { type = "Ratio", inputs = { numerators = "m.t.n" } }',
    )
    (piece,) = Decoder(config).pieces(in_chunks([arrow(rows)], [])[0])
    assert not piece.refused
    assert piece.keys["slice geo.x.c"].values == ("de",)


def test_a_slice_is_no_object_as_in_json() -> None:
    rows = [row | {"phase": {"x": 1}} for row in ROWS[:2]] + [ROWS[2] | {"phase": None}]
    values = [json.dumps(row).encode() for row in rows]
    in_json = counted(JSON, in_chunks(values, []))
    delta = counted(ARROW, in_chunks([arrow(rows)], []))
    for refused in (in_json.quarantine, delta.quarantine):
        assert [(entry.reason, entry.field) for entry in refused] == [("wrong_type", "phase")] * 2
    assert digests(delta) == digests(in_json)


def test_a_column_needs_no_object_for_each_event() -> None:
    batch = changed("user", pa.array(["u1"] * N))
    chunks = in_chunks([stream(batch)], [])
    (decoded,) = Decoder(ARROW).pieces(chunks[0])
    assert np.asarray(decoded.columns["score:real"]).dtype == np.float64
    assert decoded.keys["variant"].values == ("a", "b")


FUZZ = """
import random, sys
from tests.consumers.messages import arrow, counted, in_chunks, of_format, positions
from tests.consumers.events.test_arrow_messages import ROWS
made, rng, refused = of_format("arrow"), random.Random(int(sys.argv[1])), 0
for compression in (None, "lz4", "zstd"):
    good = arrow(ROWS, compression=compression)
    for turn in range(int(sys.argv[2])):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.randrange(len(bad))
            if rng.random() < 0.3:
                bad[at : at + 8] = rng.choice((b"\\xff" * 8, b"\\x7f" * 8, bytes(8)))
            else:
                bad[at] ^= 1 << rng.randrange(8)
        value = bytes(bad[: rng.randrange(len(bad))] if turn % 10 == 0 else bad)
        delta = counted(made, in_chunks([good, value, good], []))
        assert delta.counters.rows >= 2 * len(ROWS), delta.counters
        assert all(offset == 1 for offset, _, _ in positions(delta))
        refused += delta.counters.quarantined > 0
print(refused)
"""
TURNS = tries(40, 2000)


@pytest.mark.parametrize("seed", range(tries(1, 8)))
def test_hostile_bytes_end_in_quarantine_and_never_the_process(seed: int, tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    limit = "import resource; resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
    process = subprocess.run(
        [sys.executable, "-c", limit + FUZZ, str(seed), str(TURNS)],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    assert int(process.stdout) > 0.7 * TURNS
