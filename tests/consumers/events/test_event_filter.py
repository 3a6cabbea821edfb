"""[event] where: what is not meant is skipped, in every format, before anything refuses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.arrow_columns import ArrowColumns, RowTexts
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.model.chunk import Chunk, SourceError
from streammetrics_consumers.model.commit import Counters

from tests.consumers.messages import (
    FORMATS,
    arrow,
    counted,
    digests,
    in_chunks,
    message,
    of_format,
    positions,
    records,
)
from tests.consumers.small_config import LOG, chunk, config

ROLES = 'time = "ts"\ntime_unit = "s"\nvariant = "exps.e00"\nvariants = ["a", "b"]\nlabel = "label"'
METRICS = 'ctr = { type = "Ratio" }'
SLICES = 'by = [[], ["variant"]]'
PARTS = {"metrics": METRICS, "slices": SLICES}

Event = dict[str, Any]


def parts(where: str) -> dict[str, str]:
    return {**PARTS, "event": f"{ROLES}\nwhere = {{ {where} }}" if where else ROLES}


def event(**fields: object) -> Event:
    """An event of experiment e00, unless fields say otherwise."""
    return {"ts": 7, "label": 1, "exps": {"e00": "a"}, "country": "de", **fields}


def delta_of(events: Sequence[Event], where: str, format: str = "json") -> Delta:
    filter_config = of_format(format, **parts(where))
    values = [json.dumps(row).encode() for row in events]
    return counted(filter_config, in_chunks(records(format, values, range(0, len(values), 3)), []))


CONDITIONS: dict[str, Callable[[Event], bool]] = {
    '"exps.e00" = "present"': lambda e: (e.get("exps") or {}).get("e00") is not None,
    'exps.e00 = "absent"': lambda e: (e.get("exps") or {}).get("e00") is None,
    'exps = "present"': lambda e: e.get("exps") is not None,
    'country = ["de", "at"]': lambda e: e.get("country") in ("de", "at"),
    'country = "de"': lambda e: e.get("country") == "de",
    'country = ["present"]': lambda e: e.get("country") == "present",
    'country = "absent"': lambda e: e.get("country") is None,
    "n = [7, true]": lambda e: e.get("n") in (7, "7"),
    'n = "present", country = "de"': lambda e: e.get("n") is not None and e["country"] == "de",
    'variant = "b"': lambda e: (e.get("exps") or {}).get("e00") == "b",
    'variant = "present", exps = "present"': lambda e: (e.get("exps") or {}).get("e00") is not None,
}
EVENTS = st.fixed_dictionaries(
    {
        "ts": st.just(7),
        "exps": st.sampled_from([{"e00": "a"}, {"e00": "b"}, {"e00": None}, None]),
        "country": st.sampled_from(["de", "at", "fr", "present", None]),
        "n": st.sampled_from([7, 8, None]),
        "label": st.sampled_from([0, 1]),
    }
)


@settings(deadline=None, max_examples=25)
@given(st.lists(EVENTS, max_size=8), st.sampled_from(sorted(CONDITIONS)), st.sampled_from(FORMATS))
def test_what_is_counted_is_what_the_events_that_are_meant_count_alone(
    events: list[Event], where: str, format: str
) -> None:
    if format == "arrow":  # where a struct of nulls and no struct are alike
        assume({"e00": None} not in [row["exps"] for row in events])
    meant = [row for row in events if CONDITIONS[where](row)]
    delta, expected = delta_of(events, where, format), delta_of(meant, "", format)
    assert digests(delta) == digests(expected)
    assert delta.counters == replace(
        expected.counters, rows=len(events), skipped=len(events) - len(meant)
    )
    values = [json.dumps(row).encode() for row in events]
    refusals = [(entry.reason, entry.field) for entry in delta.quarantine]
    assert refusals == [(entry.reason, entry.field) for entry in expected.quarantine]
    if format == "json":
        assert [entry.payload for entry in delta.quarantine] == [
            values[entry.offset] for entry in delta.quarantine
        ]


def test_a_variant_that_is_missing_where_the_event_is_not_meant_is_no_refusal() -> None:
    events = [event(), {"ts": 7}, event(exps={"e01": "a"}), event(exps="none"), event(exps=[1])]
    assert delta_of(events, "").counters.quarantined == 4
    delta = delta_of(events, '"exps.e00" = "present"')
    assert (delta.counters, delta.quarantine) == (Counters(rows=5, skipped=4), [])


def test_an_event_that_cannot_be_parsed_is_refused_all_the_same() -> None:
    for bad, reason in (
        (b"{", "not_json"),
        (b"", "empty"),
        (b"[]", "not_an_object"),
        (b'{"x":NaN}', "not_a_number"),
        (b'{"x":"\xff"}', "invalid_utf8"),
        (b'{"x":' + b"[" * 600 + b"]" * 600 + b"}", "too_deep"),
        (b"{}{}", "two_documents"),
    ):
        values = [bad, json.dumps({"ts": 1}).encode(), json.dumps(event()).encode()]
        delta = counted(of_format("json", **parts('"exps.e00" = "present"')), in_chunks(values, []))
        assert positions(delta) == [(0, 0, reason)]
        assert delta.counters == Counters(rows=3, skipped=1, quarantined=1)


def test_half_of_a_character_is_no_json_whatever_the_filter_reads() -> None:
    for more in ('"odd":"\\ud800"', '"x":"\\ud800"', '"x":"\\ud800","x":1'):
        value = b'{"ts":7,"label":1,"exps":{"e00":"a"},%s}' % more.encode()
        for where in ("", 'odd = "present"', 'odd = "absent"', 'country = "de"'):
            delta = counted(of_format("json", **parts(where)), in_chunks([value], []))
            assert positions(delta) == [(0, 0, "not_json")]


def test_a_field_may_hold_what_no_column_takes() -> None:
    for text in ("1e999", "9" * 400, '[1e999, {"e00": 1}]'):
        value = b'{"ts":7,"label":1,"exps":{"e00":"a"},"odd":%s}' % text.encode()
        for where, skipped in (('odd = "present"', 0), ('odd = "absent"', 1), ("odd = [1]", 1)):
            delta = counted(of_format("json", **parts(where)), in_chunks([value], []))
            assert (delta.counters.skipped, delta.counters.rows) == (skipped, 1)


def test_numbers_truths_and_texts_are_compared_as_slices_show_them() -> None:
    values: list[object] = [7, 7.0, "7", 7.5, True, "true", 1, "True", False, None]
    events = [event(n=value) for value in values]
    assert delta_of(events, "n = 7").counters.skipped == 7
    assert delta_of(events, "n = true").counters.skipped == 8
    assert delta_of(events, "n = [false, 1]").counters.skipped == 8


def test_events_of_a_csv_file_are_chosen_by_its_columns() -> None:
    filter_config = config(
        source='kind = "file"\npath = "e.csv"', **parts('"exps.e00" = "present", n = 7')
    )
    fields = ("ts", "label", "exps.e00", "n")
    rows = [b"7,1,a,7", b"7,1,,7", b"x,1,a,8", b'7,1,"a","7"', b"7,1", b"7,1,z,7"]
    decoder, delta = Decoder(filter_config), Delta(filter_config, LOG, 0)
    delta.add(decoder.decode(chunk(rows, fields=fields)))
    assert positions(delta) == [(4, 0, "not_csv"), (5, 0, "unknown_variant")]
    assert delta.counters == Counters(rows=6, skipped=2, quarantined=2)
    with pytest.raises(SourceError, match="has no column 'n'"):
        decoder.decode(chunk(rows[:1], fields=("ts", "label", "exps.e00", "m")))


def table(filter_config: Config, batch: pa.RecordBatch) -> Delta:
    n = batch.num_rows
    rows = Chunk(LOG, 0, n, range(n), RowTexts(batch), columns=ArrowColumns(batch))
    delta = Delta(filter_config, LOG, 0)
    delta.add(Decoder(filter_config).decode(rows))
    return delta


def test_rows_of_a_table_are_chosen_by_its_columns_and_refused_under_their_own_places() -> None:
    rows = [event(), event(exps={"e00": None}), event(country="fr"), event(exps={"e00": "z"})]
    rows += [event(country=None), event(label=3)]
    batch = pa.RecordBatch.from_pylist(rows)
    filter_config = config(
        source='kind = "file"\npath = "e.parquet"',
        **parts('"exps.e00" = "present", country = ["de"]'),
    )
    delta = table(filter_config, batch)
    assert positions(delta) == [(3, 0, "unknown_variant")]
    assert json.loads(delta.quarantine[0].payload) == rows[3]
    assert delta.counters == Counters(rows=6, skipped=3, quarantined=1)
    lacking = batch.select(["ts", "label", "exps"])
    with pytest.raises(SourceError, match="has no column 'country'"):
        table(filter_config, lacking)
    absent = config(
        source='kind = "file"\npath = "e.parquet"', **parts('country = "absent", variant = "a"')
    )
    assert table(absent, lacking).counters == Counters(rows=6, skipped=2)


def test_a_column_of_structs_is_present_where_one_of_its_fields_is() -> None:
    times = pa.array([1, None, None], pa.timestamp("ms"))  # of a type that nothing reads
    structs = pa.StructArray.from_arrays([times], ["seen"])
    batch = pa.RecordBatch.from_pylist([event()] * 3).append_column("more", structs)
    filter_config = config(source='kind = "file"\npath = "e.parquet"', **parts('more = "present"'))
    assert table(filter_config, batch).counters == Counters(rows=3, skipped=2)


def test_an_arrow_message_without_the_columns_is_skipped_where_none_of_its_rows_is_meant() -> None:
    strangers = arrow([{"kind": "seen", "who": 1}] * 4)
    mixed = arrow([{"kind": "click", "exps": {"e00": "a"}}, {"kind": "seen", "exps": None}])
    good = arrow([{"kind": "click", **event()}, {"kind": "seen", **event(label=None)}])
    filter_config = of_format("arrow", **parts('kind = "click"'))
    delta = counted(filter_config, in_chunks([strangers, mixed, good], []))
    # A message that has an event that is meant, and lacks a column, is refused whole as ever.
    assert positions(delta) == [(1, 0, "missing_field")]
    assert delta.counters == Counters(rows=7, skipped=5, quarantined=1)


def headed(
    values: Sequence[bytes], headers: Sequence[Any], filter_config: Config, keys: Any = None
) -> Delta:
    (whole_chunk,) = in_chunks(values, [])
    return counted(filter_config, [replace(whole_chunk, headers=headers, keys=keys)])


@pytest.mark.parametrize("format", FORMATS)
def test_a_header_says_which_records_are_meant_before_its_lack_refuses_them(format: str) -> None:
    roles = ROLES.replace("exps.e00", "header.arm") + '\nwhere = { variant = "present" }'
    filter_config = of_format(format, event=roles, **PARTS)
    value = message(format, [json.dumps(event()).encode()] * (1 if format == "json" else 2))
    n = 1 if format == "json" else 2
    twice = [("arm", b"a"), ("arm", b"b")]
    delta = headed([value] * 4, [[("arm", b"a")], [], [("arm", None)], twice], filter_config)
    assert positions(delta) == [(3, 0, "bad_header")]
    assert delta.counters == Counters(rows=3 * n + 1, skipped=2 * n, quarantined=1)


def test_a_record_is_refused_for_its_headers_only_where_one_of_its_events_is_meant() -> None:
    roles = ROLES.replace("exps.e00", "header.arm") + '\nwhere = { country = "de" }'
    filter_config = of_format("ndjson", event=roles, **PARTS)
    de, fr = (json.dumps(event(country=c)).encode() for c in ("de", "fr"))
    values = [b"\n".join(lines) for lines in ([fr, fr], [fr, de], [de, fr])]
    delta = headed(values, [[], [], [("arm", b"a")]], filter_config)
    assert positions(delta) == [(1, 0, "missing_field")]
    assert delta.counters == Counters(rows=5, skipped=3, quarantined=1)


def test_a_field_of_the_key_says_which_records_are_meant() -> None:
    filter_config = of_format("json", **parts('"key.site" = [1, "x"], key = "present"'))
    keys = [b'{"site":1}', b'{"site":"x"}', b'{"site":2}', b"{}", None, b"nine", b'{"site":{}}']
    value = json.dumps(event()).encode()
    delta = headed([value] * 7, [[]] * 7, filter_config, keys)
    assert positions(delta) == [(5, 0, "bad_key")]
    assert delta.counters == Counters(rows=7, skipped=4, quarantined=1)


def test_what_is_skipped_is_neither_a_repeat_nor_a_reason_to_forget_ids() -> None:
    rest = '[dedup]\nevent_id = "id"'
    filter_config = config(event=parts('country = "de"')["event"], rest=rest, **PARTS)
    events = [event(id="1", country="fr"), event(id="1"), {"country": "fr", "ts": "bad"}]
    values = [json.dumps(row).encode() for row in events]
    piece = Decoder(filter_config).decode(chunk(values))
    assert piece.event_ids is not None
    assert (len(piece.event_ids.ids), piece.event_ids.positions.tolist()) == (1, [1])


def test_events_that_are_joined_are_chosen_before_their_kind_is_read() -> None:
    rest = """
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
    roles = ROLES.replace('\nlabel = "label"', "") + '\nwhere = { site = "x" }'
    filter_config = config(event=roles, rest=rest, **PARTS)
    shown = {"kind": "shown", "id": "1", "site": "x", **event()}
    events = [shown, {"kind": "what"}, {"kind": "click", "id": "1", "ts": 9, "site": "x"}]
    events += [{"kind": "what", "site": "x"}, {**shown, "site": "y"}]
    values = [json.dumps(row).encode() for row in events]
    piece = Decoder(filter_config).decode(chunk(values))
    assert piece.kinds is not None and piece.kinds.tolist() == [0, 1]
    assert [(entry.offset, entry.reason) for entry in piece.refused] == [(3, "unknown_kind")]
    assert (piece.skipped, piece.rows) == (2, 5)
