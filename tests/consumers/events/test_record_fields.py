from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.chunk import Headers
from streammetrics_consumers.model.commit import Counters

from streammetrics import HashedIds, hash_ids
from tests.consumers.messages import counted, digests, in_chunks, message, of_format, positions
from tests.consumers.small_config import event

ROLES = """
time = "ts"
variant = "header.arm"
variants = ["a", "b"]
user = "key.user.id"
label = "label"
score = "header.model.score"
"""
SLICES = 'by = [[], ["variant"], ["header.region"]]'
METRICS = 'auc = { type = "HistogramAUC" }\ngauc = { type = "GroupedAUC", ids = "integer" }'
KEY = b'{"user":{"id":7}}'
HEADERS: list[tuple[str, bytes | None]] = [
    ("arm", b"a"),
    ("model.score", b"0.5"),
    ("region", "\u00e9".encode()),
]


def fed(
    format: str,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None],
    headers: Sequence[Headers],
    **parts: str,
) -> Delta:
    config = of_format(format, **({"event": ROLES, "slices": SLICES, "metrics": METRICS} | parts))
    (chunk,) = in_chunks(values, [])
    return counted(config, [replace(chunk, keys=keys, headers=headers)])


def with_header(name: str, *values: bytes | None) -> list[tuple[str, bytes | None]]:
    return [(key, value) for key, value in HEADERS if key != name] + [(name, v) for v in values]


@pytest.mark.parametrize("format", ["json", "ndjson", "array", "arrow"])
def test_the_key_and_the_headers_are_fields_of_every_event_of_the_record(format: str) -> None:
    events = [event(label=i % 2) for i in range(6)]
    values = (
        events if format == "json" else [message(format, events[:4]), message(format, events[4:])]
    )
    delta = fed(format, values, [KEY] * len(values), [HEADERS] * len(values))
    assert delta.counters == Counters(rows=6)
    inside = [
        b'{"ts":"2024-01-01T00:00:00Z","arm":"a","id":7,"label":%d,"s":0.5,"region":"\xc3\xa9"}'
        % (i % 2)
        for i in range(6)
    ]
    plain = of_format(
        "json",
        event='time = "ts"\nvariant = "arm"\nvariants = ["a", "b"]\nuser = "id"\n'
        'label = "label"\nscore = "s"',
        slices='by = [[], ["variant"], ["region"]]',
        metrics=METRICS,
    )
    assert digests(delta) == digests(counted(plain, in_chunks(inside, [])))


BAD = [
    (None, HEADERS, "missing_field", "key"),
    (b"", HEADERS, "bad_key", "key"),
    (b"user-7", HEADERS, "bad_key", "key"),
    (b"[7]", HEADERS, "bad_key", "key"),
    (b"\xff", HEADERS, "bad_key", "key"),
    (b'{"user":{}}', HEADERS, "missing_field", "key.user.id"),
    (b'{"user":{"id":"7"}}', HEADERS, "wrong_type", "key.user.id"),
    (b'{"user":{"id":7},"x":"' + b"x" * 70_000 + b'"}', HEADERS, "too_long", "key"),
    (KEY, with_header("arm"), "missing_field", "header.arm"),
    (KEY, with_header("arm", None), "missing_field", "header.arm"),
    (KEY, with_header("arm", b"a", b"a"), "bad_header", "header.arm"),
    (KEY, with_header("arm", None, b"a"), "bad_header", "header.arm"),
    (KEY, with_header("arm", b"\xff"), "bad_header", "header.arm"),
    (KEY, None, "bad_header", "header.arm"),  # a name is no text
    (KEY, with_header("arm", b"a" * 70_000), "too_long", "header.arm"),
    (KEY, with_header("arm", b"c"), "unknown_variant", "header.arm"),
    (KEY, with_header("model.score", b"high"), "wrong_type", "header.model.score"),
    (KEY, with_header("model.score", b"nan"), "not_a_number", "header.model.score"),
    (KEY, with_header("region", b"x", b"y"), "bad_header", "header.region"),
]


def test_a_record_whose_key_or_headers_are_bad_is_refused_whole() -> None:
    value = message("ndjson", [event(), event()])
    for key, headers, reason, field in BAD:
        delta = fed("ndjson", [value] * 3, [KEY, key, KEY], [HEADERS, headers, HEADERS])
        assert positions(delta) == [(1, 0, reason)], (key, headers)
        (entry,) = delta.quarantine
        assert (entry.field, entry.payload) == (field, value)
        assert delta.counters.rows == 5


def test_a_slice_may_lack_its_header_and_a_tombstone_its_key_and_all_headers() -> None:
    headers = [HEADERS, with_header("region"), []]
    delta = fed("json", [event(), event(), None], [KEY, KEY, None], headers)
    assert delta.counters == Counters(rows=2, tombstones=1)


OF_SEARCH = """
x = { type = "Moments", inputs = { values = "header.x" }, where = "surface == 's'" }
y = { type = "Moments", inputs = { values = "key.y" }, where = "surface == 's'" }
"""


@pytest.mark.parametrize("format", ["json", "ndjson", "array", "arrow"])
def test_fields_of_a_metric_with_where_are_needed_only_in_events_that_it_counts(
    format: str,
) -> None:
    def with_surface(surface: str) -> bytes:
        return f'{{"ts":"2024-01-01T00:00:00Z","surface":"{surface}"}}'.encode()

    search = [with_surface("s")] if format == "json" else [with_surface(s) for s in ("h", "s")]
    unfit: list[tuple[bytes | None, Headers, str, str]] = [
        (b'{"y":2}', [], "missing_field", "header.x"),
        (b'{"y":2}', [("x", b"z")], "wrong_type", "header.x"),
        (b'{"y":2}', [("x", b"1e400")], "out_of_range", "header.x"),
        (b'{"y":2}', [("x", b"1"), ("x", b"2")], "bad_header", "header.x"),
        (b'{"y":2}', [("x", b"\xff")], "bad_header", "header.x"),
        (b"{}", [("x", b"1")], "missing_field", "key.y"),
        (None, [("x", b"1")], "missing_field", "key.y"),
        (b'{"y":"q"}', [("x", b"1")], "wrong_type", "key.y"),
        (b'{"y":1e999}', [("x", b"1")], "wrong_type", "key.y"),
        (b"y", [("x", b"1")], "bad_key", "key"),
    ]
    keys, headers = [case[0] for case in unfit], [case[1] for case in unfit]
    of_search = {"event": 'time = "ts"', "slices": "by = [[]]", "metrics": OF_SEARCH}
    n = len(search)
    for values, reasons in (
        ([with_surface("h")] * n, []),
        (search, [(reason, field) for *_, reason, field in unfit]),
    ):
        value = values[0] if format == "json" else message(format, values)
        delta = fed(format, [value] * len(unfit), keys, headers, **of_search)
        assert delta.counters.rows == n * len(unfit)
        assert [(entry.reason, entry.field) for entry in delta.quarantine] == reasons
        assert {entry.index for entry in delta.quarantine} <= {n - 1}


def test_the_key_alone_is_its_whole_text() -> None:
    config = of_format("json", event='time = "ts"\nuser = "key"\nlabel = "label"\nscore = "score"',
                     slices="by = [[]]", metrics='g = { type = "GroupedAUC" }')  # fmt: skip
    (chunk,) = in_chunks([event(), event(), event()], [])
    chunk = replace(chunk, keys=[b"u1", b"\xff", None])
    (decoded,) = Decoder(config).pieces(chunk)
    column = decoded.columns["key:hashed_id"]
    assert isinstance(column, HashedIds) and column.tolist() == hash_ids(["u1"]).tolist()
    reasons = [(entry.reason, entry.field) for entry in decoded.refused]
    assert reasons == [("bad_key", "key"), ("missing_field", "key")]


def test_a_header_may_be_the_time_of_its_events() -> None:
    config = of_format("json", event='time = "header.ts"\ntime_unit = "ms"\nlabel = "label"',
                     slices="by = [[]]", metrics='r = { type = "Ratio" }')  # fmt: skip
    (chunk,) = in_chunks([event(), event()], [])
    chunk = replace(chunk, headers=[[("ts", b"1704067200000")], [("ts", b"1e3")]])
    (decoded,) = Decoder(config).pieces(chunk)
    assert np.asarray(decoded.times_ms).tolist() == [1_704_067_200_000]
    assert [entry.reason for entry in decoded.refused] == ["wrong_type"]
