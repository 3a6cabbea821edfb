from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from streammetrics_consumers.events import messages
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.commit import Counters

from tests.consumers.messages import (
    FORMATS,
    TEXTS,
    counted,
    digests,
    in_chunks,
    message,
    of_format,
    positions,
    records,
)
from tests.consumers.small_config import chunk, event

MANY = ("ndjson", "array")
CONFIGS = {format: of_format(format) for format in FORMATS}
BROKEN = {
    "unknown_variant": event(variant="z"),
    "missing_field": event().replace(b'"label":0,', b""),
    "not_a_number": event(score="NaN"),
    "not_json": event().replace(b'"fit"', b"fit"),
    "not_an_object": b"17",
    "wrong_type": event(label='"0"'),
    "too_deep": event()[:-1] + b',"x":' + b"[" * 300 + b"]" * 300 + b"}",
    "invalid_utf8": event(phase="\xff").decode().encode("latin-1"),
    "bad_time": event(ts="yesterday"),
    "metric": event(label=2),
}
GOOD = [
    event(f"2024-01-01T0{i % 3}:{i:02}:00Z", "ab"[i % 2], i % 2, i / 64, phase=f"p{i % 3}")
    for i in range(40)
]


@pytest.mark.parametrize("format", MANY)
def test_a_bad_event_in_a_message_costs_that_event_alone(format: str) -> None:
    values = [message(format, [event()])]
    for bad in BROKEN.values():
        values.append(message(format, [event(), event(), bad, event(label=1)]))
    delta = counted(CONFIGS[format], in_chunks(values, []))
    # What a metric refuses comes last, in the order in which it is counted.
    refusals = sorted((e.offset, e.index, e.reason, e.payload, e.size) for e in delta.quarantine)
    broken = enumerate(BROKEN.items(), 1)
    assert refusals == [(i, 2, reason, bad, len(bad)) for i, (reason, bad) in broken]
    assert delta.counters == Counters(rows=1 + 4 * len(BROKEN), quarantined=len(BROKEN))


def test_a_message_that_is_no_array_is_one_entry() -> None:
    good = message("array", [event(), event()])
    for value, reason in (
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{}", "not_array"),
        (b"[", "not_array"),
        (b"[{]}", "not_array"),
        (b"[{}] [{}]", "not_array"),
        (b"null", "not_array"),
        (b"]" * 300_000, "not_array"),
        (b"[" * 300_000, "not_array"),
        (b"[" + b"1," * 200_000 + b"1]", "too_many_events"),
    ):
        delta = counted(CONFIGS["array"], in_chunks([good, value, good], []))
        assert positions(delta) == [(1, 0, reason)], value[:20]
        assert delta.counters == Counters(rows=5, quarantined=1)


def test_an_array_may_be_empty_and_a_comma_too_many_is_an_empty_event() -> None:
    assert counted(CONFIGS["array"], in_chunks([b" [ ]\n"], [])).counters == Counters()
    delta = counted(CONFIGS["array"], in_chunks([b"[" + event() + b",]"], []))
    assert positions(delta) == [(0, 1, "empty")]


def test_what_stands_in_texts_divides_nothing() -> None:
    for value, expected in (
        (b'[{"a":1},{"b":"x}]', [b'{"a":1}', b'{"b":"x}']),
        (b'[{"a":"],[{\\"}, \\\\"},x]', [b'{"a":"],[{\\"}, \\\\"}', b"x"]),
        (b'["a,b",x,"c\\",d"]', [b'"a,b"', b"x", b'"c\\",d"']),
    ):
        assert messages.elements(value) == expected


def test_a_text_that_nothing_closes_is_read_once() -> None:
    text = b'"' + b'\\"' * (1 << 20)  # from each quote to the end it would take hours
    assert messages.elements(b"[" + text + b"]") == [text]


def test_lines_may_end_with_cr_lf_and_an_empty_line_is_an_empty_event() -> None:
    value = event() + b"\r\n" + event() + b"\r\n"
    assert counted(CONFIGS["ndjson"], in_chunks([value], [])).counters == Counters(rows=2)
    delta = counted(CONFIGS["ndjson"], in_chunks([event() + b"\n\n" + event()], []))
    assert positions(delta) == [(0, 1, "empty")]


def test_two_broken_lines_that_join_to_an_event_are_two_bad_events() -> None:
    whole = event()
    value = whole[:20] + b"\n" + whole[20:] + b"\n" + whole + whole + b"\n\n"
    delta = counted(CONFIGS["ndjson"], in_chunks([value], []))
    assert [index for _, index, _ in positions(delta)] == [0, 1, 2, 3]


def test_a_message_with_too_many_lines_is_refused_before_it_is_cut() -> None:
    delta = counted(CONFIGS["ndjson"], in_chunks([b"x\n" * 300_000, event()], []))
    assert positions(delta) == [(0, 0, "too_many_events")]
    assert delta.counters == Counters(rows=2, quarantined=1)


@pytest.mark.parametrize("format", MANY)
def test_the_size_limit_is_that_of_an_event(format: str) -> None:
    small = of_format(format)
    small = replace(small, source=replace(small.source, max_event_bytes=200))
    values = [message(format, [event()] * 50 + [event(phase="x" * 200)] + [event()])]
    delta = counted(small, in_chunks(values, []))
    assert positions(delta) == [(0, 50, "too_large")]
    assert delta.counters == Counters(rows=52, quarantined=1)


@pytest.mark.parametrize("format", [*MANY, "arrow"])
def test_a_message_has_a_size_limit_of_its_own(
    format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.events.decoder.MAX_MESSAGE_BYTES", 3000)
    values = [message(format, [event()]), message(format, [event(user="u" * 99)] * 100)]
    assert len(values[0]) < 3000 < len(values[1])
    delta = counted(CONFIGS[format], in_chunks(values, []))
    assert positions(delta) == [(1, 0, "too_large")]


@pytest.mark.parametrize("format", FORMATS)
def test_tombstones_are_counted_and_are_no_events_but_empty_messages_are(format: str) -> None:
    value = message(format, [event()])
    delta = counted(CONFIGS[format], in_chunks([None, value, None, value, None, b""], [2]))
    assert delta.counters == Counters(rows=3, tombstones=3, quarantined=1)
    assert delta.end == 6
    assert [(offset, index) for offset, index, _ in positions(delta)] == [(5, 0)]


@pytest.mark.parametrize("format", FORMATS)
def test_events_in_messages_are_those_of_single_messages(format: str) -> None:
    whole = counted(CONFIGS["json"], in_chunks(GOOD, []))
    cut = counted(CONFIGS[format], in_chunks(records(format, GOOD, [3, 4, 20]), [2]))
    assert digests(cut) == digests(whole)
    assert cut.counters == whole.counters
    assert cut.greatest_event_ms == whole.greatest_event_ms


@pytest.mark.parametrize("format", [format for format in FORMATS if format != "json"])
def test_events_have_the_record_time_of_their_own_message(format: str) -> None:
    values = [message(format, GOOD[:2]), None, message(format, [*GOOD[2:4], GOOD[4]])]
    message_chunk = chunk(values, timestamps_ms=[5, 6, 7])
    arrays = [decoded.record_times_ms for decoded in Decoder(CONFIGS[format]).pieces(message_chunk)]
    times = [time for array in arrays if array is not None for time in array.tolist()]
    assert times == [5, 5, 7, 7, 7]


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    pool = [*GOOD, *BROKEN.values(), b""]
    return draw(st.lists(st.sampled_from(pool), max_size=30))


CUTS = st.lists(st.integers(0, 30), max_size=6)


@settings(deadline=None)
@given(streams(), CUTS, CUTS, st.sampled_from(TEXTS), st.integers(1, 600))
@example([b""], [], [], "array", 1)
@example([b"", b""], [1], [], "array", 1)
@example([b""], [], [], "ndjson", 1)
def test_no_cut_into_messages_or_pieces_leaves_a_trace(
    events: list[bytes], cuts: list[int], chunks: list[int], format: str, shard: int
) -> None:
    whole = counted(CONFIGS["json"], in_chunks(events, []))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "PIECE_BYTES", shard)
        values = records(format, events, cuts)
        delta = counted(CONFIGS[format], in_chunks(values, chunks))
    assert digests(delta) == digests(whole)
    assert delta.counters == whole.counters
    assert [r for _, _, r in positions(delta)] == [r for _, _, r in positions(whole)]


def test_the_last_piece_ends_where_the_chunk_does() -> None:
    message_chunk = replace(chunk([event()] * 5), offsets=[0, 2, 4, 6, 8], end=20)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(messages, "PIECE_BYTES", 1)
        pieces = list(Decoder(CONFIGS["ndjson"]).pieces(message_chunk))
    assert [(d.chunk.start, d.chunk.end) for d in pieces] == [
        (0, 1),
        (1, 3),
        (3, 5),
        (5, 7),
        (7, 20),
    ]
