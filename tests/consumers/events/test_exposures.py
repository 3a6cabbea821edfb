"""Exposures beside other events in one log: each is read as its kind."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.exposures import ARM, EXPERIMENT, HAS_UNIT, UNIT
from streammetrics_consumers.events.decoder import Decoded, Decoder
from streammetrics_consumers.events.fields import ID
from streammetrics_consumers.events.kinds import EVENT, IMPRESSION, exposure_kind
from streammetrics_consumers.model.chunk import Values
from streammetrics_consumers.model.partition import Partition

from streammetrics import DictionaryColumn, hash_ids
from tests.consumers.messages import KAFKA, arrow
from tests.consumers.small_config import chunk, config

FIELDS = 'time = "ts"\ntime_unit = "s"\nuser = "user"\n'
EXPOSURES = """
[exposures]
field = "kind"
equals = "exposure"
experiment = "test"
arm = "arm"
"""
RANKER = """
[experiments.ranker]
control = "a"
variants = ["a", "b"]
decision = ["ctr"]
"""
METRICS = 'ctr = { type = "Ratio", inputs = { numerators = "click" } }'
JOIN = """
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 60
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
SEEN = {"kind": "exposure", "ts": 10, "user": "u", "test": "ranker", "arm": "b"}
CLICK = {"kind": "click", "ts": 11, "user": "u", "click": 1}
OTHER = {"ts": 12, "user": "v", "click": 0}


def exposed(exposures: str = EXPOSURES, rest: str = RANKER, **parts: str) -> Config:
    defaults = {"event": FIELDS, "slices": "by = [[]]", "metrics": METRICS}
    windows = "size_s = 3600\nlateness_s = 60"
    return config(rest=exposures + rest, windows=windows, **{**defaults, **parts})


def decode(events: Sequence[Any], settings: Config | None = None) -> Decoded:
    lines = [json.dumps(event).encode() for event in events]
    return Decoder(settings or exposed()).decode(chunk(lines))


def hashes(*units: str) -> list[int]:
    return [int(value) for value in np.asarray(hash_ids(list(units))).view(np.uint64)]


def units_of(decoded: Decoded) -> list[int]:
    column = decoded.columns[UNIT]
    assert isinstance(column, np.ndarray)
    return [int(value) for value in column.view(np.uint64)]


def texts_of(decoded: Decoded, name: str) -> list[object]:
    column = decoded.keys[name]
    return [column.values[code] for code in column.codes.tolist()]


def kinds_of(decoded: Decoded) -> list[int]:
    assert decoded.kinds is not None
    return [int(kind) for kind in decoded.kinds]


def test_an_exposure_has_a_unit_an_experiment_and_an_arm_and_others_a_unit() -> None:
    decoded = decode([CLICK, SEEN, OTHER, {**SEEN, "user": 7, "test": 3, "arm": True}])
    assert kinds_of(decoded) == [0, 1, 0, 1]
    assert (EVENT, exposure_kind(exposed())) == (0, 1)
    assert decoded.times_ms.tolist() == [11_000, 10_000, 12_000, 10_000]
    assert units_of(decoded) == hashes("u", "u", "v", "7")
    assert decoded.columns[HAS_UNIT].tolist() == [True] * 4  # type: ignore[union-attr]
    assert [texts_of(decoded, EXPERIMENT)[i] for i in (1, 3)] == ["ranker", "3"]
    assert [texts_of(decoded, ARM)[i] for i in (1, 3)] == ["b", "true"]
    assert decoded.columns["click:label"].tolist()[:3:2] == [1.0, 0.0]  # type: ignore[union-attr]


def test_an_event_without_a_unit_is_good_and_says_so() -> None:
    without = [{**OTHER, "user": user} for user in (None, {}, [], 0.5, "x" * 1025)]
    by_rows = exposed(rest=f'{RANKER}cluster = "none"')
    decoded = decode([OTHER, *without, {"ts": 1, "click": 0}], by_rows)
    assert decoded.refused == ()
    assert decoded.columns[HAS_UNIT].tolist() == [True] + [False] * 6  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("change", "reason", "field"),
    [
        ({"user": None}, "missing_field", "user"),
        ({"user": {}}, "wrong_type", "user"),
        ({"user": ["u"]}, "wrong_type", "user"),
        ({"user": 0.5}, "wrong_type", "user"),
        ({"user": True}, "wrong_type", "user"),
        ({"user": "x" * 1025}, "too_long", "user"),
        ({"user": 1 << 64}, "out_of_range", "user"),
        ({"test": None}, "missing_field", "test"),
        ({"test": {"name": "ranker"}}, "wrong_type", "test"),
        ({"test": ["ranker"]}, "wrong_type", "test"),
        ({"test": 0.5}, "wrong_type", "test"),
        ({"test": "x" * 10_000}, "too_long", "test"),
        ({"test": "\x00" * 100}, "too_long", "test"),
        ({"arm": None}, "missing_field", "arm"),
        ({"arm": {}}, "wrong_type", "arm"),
        ({"arm": []}, "wrong_type", "arm"),
        ({"arm": 0.5}, "wrong_type", "arm"),
        ({"arm": 1 << 64}, "out_of_range", "arm"),
        ({"arm": "x" * 10_000}, "too_long", "arm"),
        ({"ts": float("nan")}, "not_a_number", None),
        ({"ts": "soon"}, "wrong_type", "ts"),
        ({"ts": 1 << 60}, "out_of_range", "ts"),
    ],
)
def test_a_bad_exposure_is_refused_alone(
    change: dict[str, Any], reason: str, field: str | None
) -> None:
    decoded = decode([CLICK, {**SEEN, **change}, SEEN])
    (refused,) = decoded.refused
    assert (refused.offset, refused.reason, refused.field) == (1, reason, field)
    assert len(refused.detail) < 200
    assert kinds_of(decoded) == [0, 1]


def test_an_event_with_any_other_mark_is_no_exposure() -> None:
    marks = [
        None,
        {},
        {"x": 1},
        [],
        ["exposure"],
        0.5,
        1e300,
        True,
        7,
        "",
        "Exposure",
        "x" * 10_000,
    ]
    decoded = decode([*({**CLICK, "kind": mark} for mark in marks), SEEN, OTHER])
    assert decoded.refused == ()
    assert kinds_of(decoded) == [0] * len(marks) + [1, 0]
    for equals, marks in (("true", [True, "true"]), ("7", [7, "7", 7.0])):
        settings = exposed(EXPOSURES.replace('"exposure"', equals))
        assert kinds_of(decode([{**SEEN, "kind": mark} for mark in marks], settings)) == [1] * len(
            marks
        )
    # Beside a join with the same field it must be told which of these an event is.
    settings = exposed(rest=RANKER + JOIN, metrics='ctr = { type = "Ratio" }')
    (refused,) = decode([{**SEEN, "kind": {}}], settings).refused
    assert (refused.reason, refused.field) == ("wrong_type", "kind")


def test_an_exposure_lacks_no_field_of_other_events_nor_these_any_of_an_exposure() -> None:
    bad = [{**SEEN, "click": "no number"}, {**CLICK, "test": [], "arm": {}}]
    assert decode(bad).refused == ()
    without = {name: value for name, value in SEEN.items() if name != "arm"}
    (refused,) = decode([without, CLICK]).refused
    assert (refused.reason, refused.field) == ("missing_field", "arm")


def test_millions_of_names_cost_what_their_texts_cost() -> None:
    names = [f"{i}-{'x' * 300}" for i in range(20_000)]
    decoded = decode([{**SEEN, "test": name, "arm": name} for name in names])
    assert len(decoded) == 20_000
    assert texts_of(decoded, EXPERIMENT) == names


def test_exposures_of_the_only_experiment_need_not_name_it() -> None:
    settings = exposed(EXPOSURES.replace('experiment = "test"', ""))
    decoded = decode([CLICK, {**SEEN, "test": ["never", "read"]}], settings)
    assert texts_of(decoded, EXPERIMENT)[1] == "ranker"
    assert texts_of(decoded, ARM)[1] == "b"


def test_a_chunk_may_have_exposures_alone_or_none_or_no_event() -> None:
    assert kinds_of(decode([SEEN, SEEN])) == [1, 1]
    decoded = decode([CLICK])
    assert kinds_of(decoded) == [0] and EXPERIMENT not in decoded.keys
    assert len(decode([])) == 0
    assert texts_of(decode([SEEN, CLICK, SEEN]).take(np.array([2])), ARM) == ["b"]


def test_beside_a_join_an_exposure_is_the_last_kind() -> None:
    settings = exposed(rest=RANKER + JOIN, metrics='ctr = { type = "Ratio" }')
    shown = {"kind": "shown", "id": "x", "ts": 9, "user": "u"}
    decoded = decode([shown, SEEN, {**CLICK, "id": "x"}, OTHER], settings)
    assert kinds_of(decoded) == [IMPRESSION, 2, 1]
    assert exposure_kind(settings) == 2
    assert decoded.columns[ID].tolist()[:3:2] == hash_ids(["x", "x"]).tolist()  # type: ignore[union-attr]
    assert units_of(decoded)[:2] == hashes("u", "u")
    (refused,) = decoded.refused
    assert refused.detail == "expected an impression, an exposure or one of 1 outcomes, got None"
    skipping = settings.join
    assert skipping is not None
    skip_settings = replace(settings, join=replace(skipping, others="skip"))
    assert decode([OTHER, SEEN], skip_settings).skipped == 1


def test_exposures_have_the_fields_and_the_times_of_their_own_topic() -> None:
    exposures = """
[exposures]
topic = "seen"
unit = "context.id"
experiment = "flag.$key"
arm = "flag.variation"
time = "at"
time_unit = "iso"
"""
    settings = exposed(exposures, source=KAFKA.replace('"t"', '"seen,shop"'))
    flag = {"$key": "ranker", "variation": 1}
    exposure = {"context": {"id": "u"}, "flag": flag, "at": "2024-01-01T01:00:00.5+01:00"}
    for topic, event, kind in (("seen", exposure, 1), ("shop", CLICK, 0)):
        records = replace(
            chunk([json.dumps(event).encode()]), partition=Partition("test", topic, "id", 0)
        )
        decoded = Decoder(settings).decode(records)
        assert (kinds_of(decoded), decoded.refused) == ([kind], ())
        assert units_of(decoded) == hashes("u")
        if kind:
            assert decoded.times_ms.tolist() == [1_704_067_200_500]
            assert texts_of(decoded, EXPERIMENT) == ["ranker"]
            assert texts_of(decoded, ARM) == ["1"]


def test_marks_of_two_fields_are_told_apart_by_their_topics() -> None:
    exposures = EXPOSURES.replace('"kind"', '"event"') + 'topic = "seen"\n'
    join = JOIN.replace('{ field = "kind"', '{ topic = "shop", field = "kind"')
    source = KAFKA.replace('"t"', '"seen,shop"')
    settings = exposed(exposures, RANKER + join, metrics='ctr = { type = "Ratio" }', source=source)
    exposure = {**SEEN, "event": "exposure", "kind": "shown"}
    shown = {"kind": "shown", "event": "exposure", "id": "x", "ts": 9, "user": "u"}
    for topic, event, kind in (("seen", exposure, 2), ("shop", shown, 0)):
        records = replace(
            chunk([json.dumps(event).encode()]), partition=Partition("test", topic, "id", 0)
        )
        assert kinds_of(Decoder(settings).decode(records)) == [kind]


def test_rows_of_csv_and_of_a_column_store_have_nulls_where_their_kind_has_none() -> None:
    fields = ("kind", "ts", "user", "test", "arm", "click")
    lines = [b"exposure,10,u,ranker,1,", b",12,v,,,0", b"exposure,10,u,ranker,,", b"click,11,,,,1"]
    settings = exposed(
        source='kind = "file"\npath = "events.csv"', rest=f'{RANKER}cluster = "none"'
    )
    decoded = Decoder(settings).decode(chunk(lines, fields=fields))
    assert kinds_of(decoded) == [1, 0, 0]
    assert decoded.columns[HAS_UNIT].tolist() == [True, True, False]  # type: ignore[union-attr]
    assert texts_of(decoded, ARM)[0] == "1"
    assert [(refused.offset, refused.field) for refused in decoded.refused] == [(2, "arm")]
    columns: dict[str, Values] = {
        "kind": DictionaryColumn(np.array([0, 1, 0]), ("exposure", None)),
        "ts": np.array([10, 12, 10]),
        "user": DictionaryColumn(np.array([0, 1, 0]), ("u", "v")),
        "test": DictionaryColumn(np.array([0, 1, 0]), ("ranker", None)),
        "arm": DictionaryColumn(np.array([0, 1, 1]), ("b", None)),
        "click": [None, 0, None],
    }
    decoded = Decoder(exposed(source='kind = "file"\npath = "events.parquet"')).decode(
        replace(chunk([b"", b"", b""]), columns=columns)
    )
    assert kinds_of(decoded) == [1, 0]
    assert units_of(decoded) == hashes("u", "v")
    assert [(refused.offset, refused.field) for refused in decoded.refused] == [(2, "arm")]


def test_a_refused_row_of_an_arrow_message_is_quarantined_alone() -> None:
    settings = exposed(source=f'{KAFKA}\nformat = "arrow"', rest=f'{RANKER}cluster = "none"')
    rows = [{**SEEN, "click": None}, {**SEEN, "arm": None}, {**CLICK, "test": None, "arm": None}]
    (decoded,) = Decoder(settings).pieces(chunk([arrow(rows)]))
    assert [entry.index for entry in decoded.refused] == [1]
    assert kinds_of(decoded) == [1, 0]
    # The columns of exposures may be missing altogether.
    (decoded,) = Decoder(settings).pieces(chunk([arrow([{**CLICK}])]))
    assert kinds_of(decoded) == [0]


def test_exposures_have_event_ids_as_other_events_have() -> None:
    settings = exposed(rest=f'{RANKER}[dedup]\nevent_id = "event"')
    decoded = decode([{**SEEN, "event": "a"}, {**CLICK, "event": "b"}, SEEN], settings)
    assert decoded.event_ids is not None
    assert [int(value) for value in decoded.event_ids.ids] == hashes("a", "b")
    assert [refused.field for refused in decoded.refused] == ["event"]


def test_events_that_the_filter_leaves_out_are_no_exposures() -> None:
    settings = exposed(event=f"{FIELDS}where = {{ bot = false }}")
    decoded = decode([SEEN, {**SEEN, "bot": False}, {**CLICK, "bot": True}], settings)
    assert (kinds_of(decoded), decoded.skipped) == ([1], 2)


def test_exposures_of_a_topic_that_cannot_be_parsed_are_refused_and_shift_no_others() -> None:
    exposures = EXPOSURES.replace('field = "kind"\nequals = "exposure"', 'topic = "events"')
    settings = exposed(
        f"{exposures}where = {{ bot = false }}", source=KAFKA.replace('"t"', '"events"')
    )
    exposure = json.dumps({**SEEN, "bot": False}).encode()
    bot = json.dumps({**SEEN, "bot": True}).encode()
    decoded = Decoder(settings).decode(chunk([b"{", bot, exposure, b"\xff", bot, exposure, b"[]"]))
    assert [refused.offset for refused in decoded.refused] == [0, 3, 6]
    assert (decoded.at.tolist(), decoded.skipped) == ([2, 5], 2)


def test_marks_conditions_and_units_of_other_types_refuse_no_arrow_message() -> None:
    exposures = f'{EXPOSURES}unit = "who"\nwhere = {{ bot = false }}\n'
    source = f'{KAFKA}\nformat = "arrow"'
    settings = exposed(exposures, source=source, rest=f'{RANKER}cluster = "none"')
    values = dict.fromkeys(("kind", "user", "bot"), timedelta(1))
    rows = [{"ts": 1, "click": 1, **values}]
    (decoded,) = Decoder(settings).pieces(chunk([arrow(rows)]))
    assert decoded.refused == ()
    assert kinds_of(decoded) == [0]
    assert decoded.columns[HAS_UNIT].tolist() == [False]  # type: ignore[union-attr]
