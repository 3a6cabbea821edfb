"""Impressions and outcomes in one log: each is read as its kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.events.fields import ID, VALUE
from streammetrics_consumers.model.chunk import Values

from streammetrics import DictionaryColumn, hash_ids
from tests.consumers.messages import arrow, of_format
from tests.consumers.small_config import chunk, config

EVENT = 'time = "ts"\ntime_unit = "s"\nvariant = "variant"\nvariants = ["a", "b"]\nscore = "score"'
JOIN = """
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
others = "OTHERS"
[join.outcomes]
click = { field = "kind", equals = "click" }
paid = { field = "kind", equals = "paid", counts = "sum", value = "price" }
"""
SHOWN = {"kind": "shown", "id": "x", "ts": 10, "variant": "b", "score": 0.5}
CLICK = {"kind": "click", "id": "x", "ts": 11}
PAID = {"kind": "paid", "id": "y", "ts": 12, "price": 2.5}


def split(policy: str = "refuse", tables: str = "", **parts: str) -> Config:
    join_tables, slices = JOIN.replace("OTHERS", policy) + tables, 'by = [["variant"], ["phase"]]'
    return config(event=EVENT, slices=slices, rest=join_tables, **parts)


def decode(events: Sequence[Any], settings: Config | None = None) -> Decoded:
    lines = [json.dumps(event).encode() for event in events]
    return Decoder(settings or split()).decode(chunk(lines))


def test_each_event_has_what_its_kind_has() -> None:
    piece = decode([CLICK, SHOWN, PAID, SHOWN])
    assert piece.kinds is not None
    assert piece.kinds.tolist() == [1, 0, 2, 0]
    assert piece.times_ms.tolist() == [11_000, 10_000, 12_000, 10_000]
    ids = piece.columns[ID]
    assert ids.tolist() == hash_ids(["x", "x", "y", "x"]).tolist()  # type: ignore[union-attr]
    assert piece.columns[VALUE].tolist()[2] == 2.5  # type: ignore[union-attr]
    assert piece.columns["score:real"].tolist()[1] == 0.5  # type: ignore[union-attr]
    variant = piece.keys["variant"]
    assert variant.values[variant.codes[1]] == "b"
    # An outcome may have fields of an impression that are no good.
    piece = decode([{**CLICK, "score": None, "variant": "z"}, SHOWN])
    assert (len(piece), piece.refused) == (2, ())


def test_an_event_is_refused_for_what_its_kind_lacks() -> None:
    bad: list[tuple[dict[str, Any], str, str | None]] = [
        ({**SHOWN, "score": "high"}, "wrong_type", "score"),
        ({**SHOWN, "variant": "z"}, "unknown_variant", "variant"),
        ({"kind": "shown", "ts": 1}, "missing_field", None),
        ({**CLICK, "ts": "late"}, "wrong_type", "ts"),
        ({**PAID, "price": None}, "missing_field", "price"),
        ({"kind": "paid", "id": "x", "ts": 1}, "missing_field", "price"),
        ({"kind": "seen", "id": "x", "ts": 1}, "unknown_kind", "kind"),
        ({"id": "x", "ts": 1}, "unknown_kind", "kind"),
    ]
    for event, reason, field in bad:
        piece = decode([CLICK, event, SHOWN])
        (refused,) = piece.refused
        assert (refused.offset, len(piece)) == (1, 2)
        assert refused.reason == reason
        assert field is None or refused.field == field


def test_events_of_no_kind_can_be_skipped_but_what_is_no_json_is_refused_before() -> None:
    piece = decode([CLICK, {"kind": "seen"}, SHOWN, {}], split("skip"))
    assert (piece.skipped, len(piece), piece.refused) == (2, 2, ())
    piece = Decoder(split("skip")).decode(chunk([b"{", json.dumps(CLICK).encode()]))
    assert [entry.reason for entry in piece.refused] == ["not_json"]
    assert (piece.skipped, len(piece)) == (0, 1)


def test_a_log_without_impressions_is_read_all_the_same() -> None:
    piece = decode([CLICK, CLICK])
    assert piece.take(piece.at[:1]).columns[ID].shape == (1,)  # type: ignore[union-attr]
    assert len(decode([])) == 0


def test_rows_of_csv_have_empty_fields_where_their_kind_has_none() -> None:
    fields = ("kind", "id", "ts", "variant", "phase", "score", "price")
    lines = [b"click,x,11,,,,", b"shown,x,10,b,,0.5,", b"paid,y,12,,,,2.5", b"shown,x,10,b,,,"]
    settings = split(source='kind = "file"\npath = "events.csv"')
    piece = Decoder(settings).decode(chunk(lines, fields=fields))
    assert piece.kinds is not None
    assert piece.kinds.tolist() == [1, 0, 2]
    assert piece.columns["score:real"].tolist()[1] == 0.5  # type: ignore[union-attr]
    assert [(entry.offset, entry.field) for entry in piece.refused] == [(3, "score")]


def test_rows_of_a_column_store_have_nulls_where_their_kind_has_none() -> None:
    columns: dict[str, Values] = {
        "kind": DictionaryColumn(np.array([0, 1, 0]), ("click", "shown")),
        "id": DictionaryColumn(np.array([0, 0, 1]), ("x", "y")),
        "ts": np.array([11, 10, 12]),
        "variant": DictionaryColumn(np.array([0, 1, 0]), (None, "b")),
        "score": [None, 0.5, None],
    }
    settings = split(source='kind = "file"\npath = "events.parquet"')
    piece = Decoder(settings).decode(replace(chunk([b"", b"", b""]), columns=columns))
    assert piece.kinds is not None
    assert (piece.kinds.tolist(), piece.refused) == ([1, 0, 1], ())
    assert piece.times_ms.tolist() == [11_000, 10_000, 12_000]
    assert piece.columns["score:real"].tolist()[1] == 0.5  # type: ignore[union-attr]


def test_events_in_messages_have_their_kinds_and_what_stands_in_their_records() -> None:
    servers = 'kind = "kafka"\nbootstrap_servers = "a:1"\ntopic = "t"\ngroup = "g"'
    settings = config(
        source=f'{servers}\nformat = "ndjson"',
        event=EVENT.replace('"variant"', '"header.arm"', 1),
        slices="by = [[]]",
        rest=JOIN.replace("OTHERS", "skip"),
    )
    lines = b"\n".join(json.dumps(event).encode() for event in (CLICK, SHOWN, {"kind": "x"}))
    records = replace(chunk([lines, lines]), headers=[[("arm", b"a")], []])
    piece = Decoder(settings).decode(records)
    assert piece.kinds is not None
    assert (piece.kinds.tolist(), piece.skipped) == ([1, 0, 1], 2)
    assert [(entry.offset, entry.index, entry.field) for entry in piece.refused] == [
        (1, 1, "header.arm")
    ]


def test_a_refused_row_of_an_arrow_message_is_quarantined_alone() -> None:
    outcomes = '[join.outcomes]\nclick = { field = "kind", equals = "click" }'
    rest = JOIN.replace("OTHERS", "refuse").partition("[join.outcomes]")[0] + outcomes
    settings = of_format("arrow", event=EVENT, slices="by = [[]]", rest=rest)
    bad = [{**SHOWN, "variant": "z"}, {**SHOWN, "kind": "seen"}]
    (piece,) = Decoder(settings).pieces(chunk([arrow([SHOWN, *bad])]))
    assert [entry.index for entry in piece.refused] == [1, 2]
    assert [json.loads(entry.payload) for entry in piece.refused] == bad


def test_impressions_and_outcomes_have_event_ids_alike() -> None:
    settings = split(tables='[dedup]\nevent_id = "event"')
    for events in ([{**SHOWN, "event": "a"}, {**PAID, "event": "b"}], []):
        piece = decode(events, settings)
        assert piece.event_ids is not None
        ids = np.asarray(hash_ids(["a", "b"][: len(events)])).view(np.uint64)
        assert piece.event_ids.ids.tolist() == ids.tolist()
