import csv
import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streammetrics_consumers.events.decoder import NO_TIMESTAMP, Decoded, Decoder
from streammetrics_consumers.events.fields import EVENT_ID
from streammetrics_consumers.model.chunk import Cut, SourceError

from streammetrics import DictionaryColumn, HashedIds, hash_ids
from tests.consumers.messages import arrow, of_format
from tests.consumers.small_config import EVENT, chunk, config, event

METRICS = (
    'auc = { type = "HistogramAUC" }\n'
    'ctr = { type = "Ratio", inputs = { numerators = "label", denominators = "shown.n" } }'
)
SMALL = config()
DEEP = b'{"ts":"2024-01-01T00:00:00Z","variant":"a","label":0,"score":0.5,"x":%s}'


def decode(*values: bytes | None, **parts: str) -> Decoded:
    return Decoder(config(**parts) if parts else SMALL).decode(chunk(values))


def reasons(decoded: Decoded) -> list[tuple[str, str | None]]:
    return [(entry.reason, entry.field) for entry in decoded.refused]


def texts(column: DictionaryColumn) -> list[object]:
    return [column.values[code] for code in column.codes.tolist()]


def test_an_event_becomes_columns_by_role() -> None:
    piece = decode(event(score=0.5, label=1, phase="eval"), event(variant="b", label="true"))
    assert piece.times_ms.tolist() == [1_704_067_200_000] * 2
    assert texts(piece.keys["variant"]) == ["a", "b"]
    assert texts(piece.keys["slice phase"]) == ["eval", "fit"]
    assert np.asarray(piece.columns["label:label"]).tolist() == [1.0, 1.0]
    assert np.asarray(piece.columns["score:real"]).tolist() == [0.5, 0.25]
    assert not piece.refused
    # Fields that nothing reads may be anything.
    value = event()[:-1] + b',"user":[{}],"more":{"ts":1e999,"x":[null,"\\u00e9"]}}'
    assert len(decode(value)) == 1


def test_a_short_events_reason_does_not_depend_on_a_long_one_beside_it() -> None:
    short, long = b"[" * 300 + b"\xff", event()[:-1] + b',"x":"%s"}' % (b" " * 600)
    assert reasons(decode(short)) == reasons(decode(short, long)) == [("invalid_utf8", None)]


def test_a_dotted_path_leads_into_objects() -> None:
    value = b'{"ts":"2024-01-01T00:00:00Z","variant":"a","label":1,"score":0.5,"shown":{"n":3}}'
    piece = decode(value, metrics=METRICS)
    assert np.asarray(piece.columns["shown.n:real"]).tolist() == [3.0]


BAD = [  # what is not in `POISON` of small_config.py, or has a field there
    (b" \t\r\n", "empty", None),
    (b'{"ts":}', "not_json", None),
    (event() + b"x", "not_json", None),
    (b"[" + event() + b"]", "not_an_object", None),
    (b"\xff\xfe{}", "invalid_utf8", None),
    (event(phase="\xff").decode().encode("latin-1"), "invalid_utf8", None),
    (b"\xef\xbb\xbf" + event(), "not_json", None),
    (event().replace(b'"label":0,', b""), "missing_field", "label"),
    (event().replace(b'"ts"', b'"t"'), "missing_field", "ts"),
    (event(label="null"), "missing_field", "label"),
    (event(label='"0"'), "wrong_type", "label"),
    (event(score="true"), "wrong_type", "score"),
    (event(score='"0.5"'), "wrong_type", "score"),
    (event(score="{}"), "wrong_type", "score"),
    (event(score="1" + "0" * 400), "out_of_range", "score"),
    (event().replace(b'"a"', b"1e5"), "wrong_type", "variant"),
    (event(variant="c"), "unknown_variant", "variant"),
    (event(variant=""), "unknown_variant", "variant"),
    (event(variant="x" * 2000), "too_long", "variant"),
    (event(phase="\u20ac" * 81), "too_long", "phase"),
    (event().replace(b'"fit"', b"0.5"), "wrong_type", "phase"),
    (event().replace(b'"fit"', b"[]"), "wrong_type", "phase"),
    (event().replace(b'"fit"', b"9" * 25), "out_of_range", "phase"),
    (event(ts="2024-01-01T00:00:00"), "bad_time", "ts"),
    (event().replace(b'"2024-01-01T00:00:00Z"', b"1704067200"), "wrong_type", "ts"),
    (DEEP % (b'{"a":' * 5000 + b"1" + b"}" * 5000), "too_deep", None),
]


def test_a_bad_event_is_refused_alone() -> None:
    for value, reason, field in BAD:
        piece = decode(event(), value, event(variant="b"))
        assert reasons(piece) == [(reason, field)], value[:80]
        assert piece.at.tolist() == [0, 2]
        assert piece.refused[0].offset == 1
        assert texts(piece.keys["variant"]) == ["a", "b"]


def test_nesting_that_is_allowed_is_read_however_deep_the_caller_is() -> None:
    value = DEEP % (b"[" * 255 + b"]" * 255)
    assert len(decode(DEEP % (b'"' + b"[" * 5000 + b'"'))) == 1

    def deeper(levels: int) -> int:
        return deeper(levels - 1) if levels else len(decode(value))

    assert deeper(0) == deeper(400) == 1


def test_quarantine_keeps_the_beginning_and_the_hash_of_all() -> None:
    value = b"{" + b"x" * 10_000
    (entry,) = decode(value).refused
    assert entry.payload == value[:4096]
    assert (entry.size, entry.sha256) == (10_001, hashlib.sha256(value).hexdigest())


def test_an_event_may_be_exactly_as_large_as_the_limit() -> None:
    small = config(source='kind = "file"\npath = "a.jsonl"\nmax_event_bytes = 100')
    value = event(phase="")
    value = event(phase="x" * (100 - len(value)))
    piece = Decoder(small).decode(chunk([value, value + b" "]))
    assert piece.at.tolist() == [0] and reasons(piece) == [("too_large", None)]


def test_a_record_that_its_source_has_cut_is_too_large() -> None:
    cut = replace(chunk([b"begin", event()]), cut={0: Cut(999_999, "ab")})
    (entry,) = Decoder(SMALL).decode(cut).refused
    assert (entry.reason, entry.size, entry.sha256) == ("too_large", 999_999, "ab")
    assert entry.payload == b"begin"


def test_a_slice_may_be_missing_or_null_and_numbers_are_what_they_look_like() -> None:
    values = [
        event().replace(b',"phase":"fit"', b""), event().replace(b'"fit"', b"null"),
        event().replace(b'"fit"', b"3"), event(phase="3"), event().replace(b'"fit"', b"3.0"),
        event().replace(b'"fit"', b"true"), event().replace(b'"fit"', b"1"),
    ]  # fmt: skip
    column = decode(*values).keys["slice phase"]
    assert texts(column) == [None, None, "3", "3", "3", "true", "1"]


def test_a_slice_may_be_missing_with_the_objects_on_the_way_to_it() -> None:
    slices = 'by = [[], ["device.os"], ["device.browser.name"]]'

    def with_device(text: str) -> bytes:
        return event()[:-1] + b',"device":' + text.encode() + b"}"

    piece = decode(
        event(), with_device("null"), with_device("{}"), with_device('{"os":null}'),
        with_device('{"os":"x","browser":null}'), with_device('{"browser":{"name":"y"}}'),
        slices=slices,
    )  # fmt: skip
    assert not piece.refused
    assert texts(piece.keys["slice device.os"]) == [None] * 4 + ["x", None]
    assert texts(piece.keys["slice device.browser.name"]) == [None] * 5 + ["y"]
    for bad, path in (("5", "device.os"), ('{"os":"x","browser":[]}', "device.browser.name")):
        assert reasons(decode(with_device(bad), slices=slices)) == [("wrong_type", path)]
    # A needed field in the same object is what is missing.
    metrics = 'ctr = { type = "Ratio", inputs = { numerators = "device.on" } }'
    for value in (event(), with_device("null"), with_device('{"os":"x"}')):
        piece = decode(value, slices=slices, metrics=metrics)
        assert reasons(piece) == [("missing_field", "device.on")]


def test_variants_that_are_not_declared_may_be_any() -> None:
    piece = decode(event(variant="z"), event(variant="7").replace(b'"7"', b"7"),
                   event=EVENT.replace('variants = ["a", "b"]', ""))  # fmt: skip
    assert texts(piece.keys["variant"]) == ["z", "7"]


def test_a_time_may_be_an_integer_of_a_unit_and_the_other_unit_is_found_out() -> None:
    def encode(number: int | str) -> bytes:
        return event().replace(b'"2024-01-01T00:00:00Z"', str(number).encode())

    for unit, number, ms, slipped, reason, right_unit in (
        ("s", 1_704_067_200, 1000, 1_704_067_200_000, "out_of_range", "ms"),
        ("ms", 17, 1, 1_704_067_200, "bad_time", "s"),
    ):
        values = [
            encode(number),
            event(),
            encode("9" * 17),
            encode("9" * 30),
            encode(slipped),
            encode(number),
        ]
        piece = decode(*values, event=f'{EVENT}time_unit = "{unit}"')
        assert piece.times_ms.tolist() == [number * ms] * 2
        far = ("out_of_range", "ts")
        assert reasons(piece) == [("wrong_type", "ts"), far, far, (reason, "ts")]
        assert f'event.time_unit = "{right_unit}"' in piece.refused[3].detail


def test_ids_are_texts_unless_the_metric_wants_integers() -> None:
    def read(ids: str) -> Decoded:
        values = event(user="7").replace(b'"7"', b"7"), event(user="x")
        return decode(*values, metrics=f'g = {{ type = "GroupedAUC"{ids} }}')

    column = read("").columns["user:hashed_id"]
    assert isinstance(column, HashedIds) and column.tolist() == hash_ids(["7", "x"]).tolist()
    names = read(', ids = "exact"').columns["user:text_id"]
    assert isinstance(names, DictionaryColumn) and texts(names) == ["7", "x"]
    whole = read(', ids = "integer"')
    assert np.asarray(whole.columns["user:int_id"]).tolist() == [7]
    assert reasons(whole) == [("wrong_type", "user")]


RANKED = {
    "event": 'time = "ts"\nlabel = "clicks"\nscore = "scores"',
    "slices": "by = [[]]",
    "metrics": 'r = { type = "RankingMetrics", measures = ["NDCG@3"] }',
}


def ranked(clicks: str, scores: str) -> bytes:
    return f'{{"ts":"2024-01-01T00:00:00Z","clicks":{clicks},"scores":{scores}}}'.encode()


def test_an_event_may_be_a_whole_list() -> None:
    piece = decode(
        ranked("[1,0]", "[0.5,1]"), ranked("[]", "[]"), ranked("[1,0]", "[1]"),
        ranked("[true]", "[0.25]"), ranked("[1]", '["x"]'), ranked("[null]", "[1]"),
        ranked("1", "[1]"), ranked("[1]", "[1e999]"), **RANKED,
    )  # fmt: skip
    labels, scores = piece.columns["clicks:label_list"], piece.columns["scores:real_list"]
    assert labels.values.tolist() == [1, 0, 1] and scores.values.tolist() == [0.5, 1, 0.25]  # type: ignore[union-attr]
    assert labels.offsets.tolist() == [0, 2, 2, 3]  # type: ignore[union-attr]
    assert [reason for reason, _ in reasons(piece)] == ["wrong_type"] * 4 + ["out_of_range"]
    assert [entry.offset for entry in piece.refused] == [2, 4, 5, 6, 7]


NOISE = st.sampled_from(
    [event(), event(variant="b", label=1), event(variant="z"), event(label="[]"), b"{", b"", None,
     event() + event(), event(ts="x"), event(score="NaN"), b"\xff", event(phase="p")]
)  # fmt: skip


@given(st.lists(NOISE, max_size=12), st.data())
def test_where_a_chunk_is_cut_does_not_matter(
    values: list[bytes | None], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(values)))
    decoder = Decoder(SMALL)
    whole = decoder.decode(chunk(values))
    parts = [decoder.decode(chunk(values[:cut])), decoder.decode(chunk(values[cut:], cut))]
    assert [e for part in parts for e in part.refused] == list(whole.refused)
    for column in ("label:label", "score:real"):
        halves = [np.asarray(part.columns[column]) for part in parts]
        assert np.concatenate(halves).tolist() == np.asarray(whole.columns[column]).tolist()
    assert [t for part in parts for t in texts(part.keys["slice phase"])] == texts(
        whole.keys["slice phase"]
    )


@given(st.binary(max_size=40) | st.text(max_size=20).map(str.encode))
def test_no_record_brings_the_decoder_down(value: bytes) -> None:
    piece = decode(event(), value, event())
    assert len(piece) + len(piece.refused) == 3


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)  # fmt: skip


@given(st.sampled_from(["ts", "variant", "label", "score", "phase"]), JSON)
def test_any_value_in_any_field_is_taken_or_refused(field: str, value: object) -> None:
    changed = {**json.loads(event()), field: value}
    piece = decode(event(), json.dumps(changed).encode(), event())
    assert len(piece) + len(piece.refused) == 3
    assert all(entry.offset == 1 for entry in piece.refused)


HEADER = ("ts", "variant", "label", "score", "phase", "extra")
CSV_GOOD = b"2024-01-01T00:00:00Z,a,1,0.5,fit,x"


def decode_csv(*values: bytes, header: Sequence[str] = HEADER) -> Decoded:
    return Decoder(SMALL).decode(chunk(values, fields=tuple(header)))


def test_a_csv_row_is_an_event() -> None:
    quoted = b'"2024-01-01T00:00:00Z",b,true,1e-3,"a ""quoted"", value\nin two lines",'
    piece = decode_csv(CSV_GOOD, quoted, CSV_GOOD.replace(b"fit", b""))
    assert np.asarray(piece.columns["label:label"]).tolist() == [1, 1, 1]
    assert np.asarray(piece.columns["score:real"]).tolist() == [0.5, 0.001, 0.5]
    assert texts(piece.keys["slice phase"]) == ["fit", 'a "quoted", value\nin two lines', None]


def test_a_bad_csv_row_is_refused_alone() -> None:
    for value, reason, field in (
        (b"", "empty", None),
        (b"a,b", "not_csv", None),
        (CSV_GOOD + b",y", "not_csv", None),
        (CSV_GOOD.replace(b"fit", b'"fi"t'), "not_csv", None),
        (CSV_GOOD.replace(b"fit", b"\xff"), "invalid_utf8", None),
        (CSV_GOOD.replace(b",1,", b",,"), "missing_field", "label"),
        (CSV_GOOD.replace(b",1,", b",one,"), "wrong_type", "label"),
        (CSV_GOOD.replace(b"0.5", b"nan"), "not_a_number", "score"),
        (CSV_GOOD.replace(b"0.5", b"1_0"), "wrong_type", "score"),
        (CSV_GOOD.replace(b"0.5", "\u0661".encode()), "wrong_type", "score"),
        (CSV_GOOD.replace(b",a,", b",q,"), "unknown_variant", "variant"),
        (CSV_GOOD.replace(b"Z", b""), "bad_time", "ts"),
    ):
        piece = decode_csv(CSV_GOOD, value, CSV_GOOD)
        assert reasons(piece) == [(reason, field)], value
        assert piece.at.tolist() == [0, 2]


def test_a_quoted_cell_may_be_as_large_as_an_event() -> None:
    csv.field_size_limit(131_072)  # the default, whatever has been read before
    large = CSV_GOOD.replace(b",x", b',"%s"' % (b"x" * 200_000))
    assert len(decode_csv(CSV_GOOD, large)) == 2


def test_a_table_that_lacks_a_column_is_an_error_and_no_heap_of_refusals() -> None:
    with pytest.raises(SourceError, match="no column 'score'"):
        decode_csv(CSV_GOOD, header=("ts", "variant", "label", "p", "phase", "extra"))


# -- the ids by which repeats of events are known

DEDUP = '[dedup]\nevent_id = "id"'
MS = 1_704_067_200_000  # of `event`


def with_id(value: bytes, id_: object) -> bytes:
    return json.dumps({**json.loads(value), "id": id_}).encode()


def hashes(*ids: str) -> list[int]:
    return np.asarray(hash_ids(list(ids))).view(np.uint64).tolist()  # type: ignore[no-any-return]


def test_ids_are_those_of_good_events_and_of_refused_ones_that_have_one() -> None:
    values = (
        with_id(event(), "a"),
        b"{",  # no JSON
        with_id(event(variant="c"), "b"),  # an unknown variant
        event(),  # no id
        with_id(event(ts="soon"), "c"),  # no time
        with_id(event(), 7),
        with_id(event(label='"x"'), "d"),  # another type: it is not read any further
    )
    piece = decode(*values, rest=DEDUP)
    assert piece.event_ids is not None
    assert piece.event_ids.positions.tolist() == [0, 2, 5]
    assert piece.event_ids.ids.tolist() == hashes("a", "b", "7")
    assert piece.event_ids.times_ms.tolist() == [MS] * 3
    # No metric sees them, and a config without [dedup] reads none.
    assert EVENT_ID not in {*piece.columns, *piece.keys}
    assert decode(event()).event_ids is None


def test_the_same_event_has_an_id_or_none_in_every_format() -> None:
    # Only a field that is read and has an unfit value leaves the id known.
    settings = config(rest=DEDUP)
    names = ("ts", "variant", "user", "label", "score", "phase", "id")
    for changes, n_ids in (
        ({}, 1),
        ({"variant": "c"}, 1),
        ({"label": None}, 0),
        ({"variant": "c", "label": None}, 0),
        ({"label": "x"}, 0),
        ({"score": 2**53 + 1}, 0),
        ({"variant": "c", "score": 2**53 + 1}, 0),
        ({"ts": "soon", "score": 2**53 + 1}, 0),
    ):
        row = {**json.loads(with_id(event(), "a")), **changes}
        cells = ",".join("" if row[name] is None else str(row[name]) for name in names)
        pieces = [
            Decoder(settings).decode(chunk([json.dumps(row).encode()])),
            Decoder(settings).decode(chunk([cells.encode()], fields=names)),
            *Decoder(of_format("arrow", rest=DEDUP)).pieces(chunk([arrow([row])])),
        ]
        if changes.get("label", 0) in (None, "x"):
            pieces.pop()  # whose columns have one type
        ids = [None if piece.event_ids is None else len(piece.event_ids.ids) for piece in pieces]
        assert ids == [n_ids] * len(pieces), changes
        assert len({tuple(reasons(piece)) for piece in pieces}) == 1, changes


def test_a_time_too_far_ahead_counts_as_that_of_its_record() -> None:
    times: list[int | None] = [MS, MS - 100_000, MS - 100_001, None]
    values = chunk([with_id(event(), "a")] * 4, timestamps_ms=times)
    ids = Decoder(config(rest=DEDUP)).decode(values).event_ids
    assert ids is not None
    assert ids.times_ms.tolist() == [MS, MS, MS - 100_001, MS]


def test_a_record_time_beyond_64_bits_is_none_and_affects_only_its_record() -> None:
    good = event()
    times = [0, 1 << 63, -(1 << 70), None, (1 << 63) - 1]
    whole = replace(chunk([good, b"no", good, b"no", good]), timestamps_ms=times)
    decoded = Decoder(config()).decode(whole)
    assert decoded.record_times_ms is not None
    assert decoded.record_times_ms.tolist() == [0, NO_TIMESTAMP, NO_TIMESTAMP]
    assert [entry.record_ms for entry in decoded.refused] == [None, None]
