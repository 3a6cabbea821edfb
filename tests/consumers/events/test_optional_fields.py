"""What only experiments with names read may be missing, null, of any type or hostile: the event is
counted all the same, and it is no event of those experiments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources.files import FileSource

from streammetrics import Ratio, UserGroups
from tests.consumers import messages
from tests.consumers.file_sources import From, drained, source
from tests.consumers.messages import KAFKA, states_of
from tests.consumers.small_config import EVENT, LOG, METRICS, chunk, config, event

ASSIGNED = f'{EVENT}assignments = "exps"\n'
REST = """
[experiments.x]
control = "a"
variants = ["a", "b"]
decision = ["ctr"]
unit = "session"
[experiments.y]
control = "a"
variants = ["a", "b"]
decision = ["ctr"]
unit = "session"
where = { surface = "search" }
"""


BY_USER = f'{METRICS}\ngauc = {{ type = "GroupedAUC" }}'


def make_config(**parts: str) -> Config:
    return config(**{"event": ASSIGNED, "metrics": METRICS, "rest": REST, **parts})


def with_fields(**fields: str) -> bytes:
    """A good event with further fields as JSON."""
    good = {"session": '"s1"', "surface": '"search"', "exps": '{"x": "a", "y": "a"}'}
    texts = (f',"{name}":{text}' for name, text in {**good, **fields}.items() if text)
    return event()[:-1] + "".join(texts).encode() + b"}"


def rows_of(delta: Delta, name: str) -> dict[object, int]:
    """The number of events of an experiment in each arm."""
    rows_by_arm: dict[object, int] = {}
    for shard in states_of(delta):
        if shard.metric == f"experiment/{name}/ctr" and shard.start_ms is None:
            for key, result in shard.state.compute().items():
                assert isinstance(key, tuple)
                rows_by_arm[key[2]] = result.rows
    return rows_by_arm


def counted(value: bytes, settings: Config | None = None) -> tuple[Arms, Arms]:
    """The arms that an event counts for in both experiments; others count it in any case."""
    delta = messages.counted(settings or make_config(), [chunk([value])])
    assert not delta.quarantine, delta.quarantine[0]
    assert delta.counters.rows == 1
    assert any(shard.metric == "ctr" for shard in states_of(delta))
    return rows_of(delta, "x"), rows_of(delta, "y")


Arms = dict[object, int]  # the number of events of each
A: Arms = {"a": 1}
UNKNOWN: Arms = {None: 1}
DEEP = "[" * 200 + "]" * 200
HOSTILE: list[tuple[str, dict[str, str], Arms, Arms]] = [
    ("a good one", {}, A, A),
    ("no assignments", {"exps": ""}, {}, {}),
    ("null", {"exps": "null"}, {}, {}),
    ("a text", {"exps": '"x"'}, {}, {}),
    ("a number", {"exps": "7"}, {}, {}),
    ("a list", {"exps": '["a"]'}, {}, {}),
    ("an empty list, as PHP writes an empty map", {"exps": "[]"}, {}, {}),
    ("no such arm", {"exps": '{"z": "a"}'}, {}, {}),
    ("a null", {"exps": '{"x": null, "y": "a"}'}, {}, A),
    ("an object", {"exps": '{"x": {"arm": "a"}, "y": "a"}'}, {}, A),
    ("a list of arms", {"exps": '{"x": ["a"], "y": "a"}'}, {}, A),
    ("a fraction", {"exps": '{"x": 0.5, "y": "a"}'}, {}, A),
    ("a number that no double holds", {"exps": '{"x": 1e999, "y": "a"}'}, {}, A),
    ("a huge number", {"exps": '{"x": 1%s, "y": "a"}' % ("0" * 5000)}, {}, A),
    ("deep", {"exps": f'{{"x": {DEEP}, "y": "a"}}'}, {}, A),
    ("deep instead of assignments", {"exps": DEEP}, {}, {}),
    ("a long text", {"exps": '{"x": "%s", "y": "a"}' % ("z" * 100_000)}, {}, A),
    ("many entries", {"exps": json.dumps({**{f"e{i}": "a" for i in range(10_000)}, "y": "a"})},
     {}, A),
    ("twice, of which the last counts", {"exps": '{"x": "b", "x": "a", "y": "a"}'}, A, A),
    ("an arm that is not declared", {"exps": '{"x": "c", "y": "a"}'}, UNKNOWN, A),
    ("an empty text", {"exps": '{"x": "", "y": "a"}'}, UNKNOWN, A),
    ("a whole number", {"exps": '{"x": 1, "y": "a"}'}, UNKNOWN, A),
    ("true", {"exps": '{"x": true, "y": "a"}'}, UNKNOWN, A),
    ("no unit", {"session": ""}, {}, {}),
    ("a null unit", {"session": "null"}, {}, {}),
    ("a unit that is an object", {"session": '{"id": 1}'}, {}, {}),
    ("a unit that is a number", {"session": "12"}, A, A),
    ("a unit that is the least number of 64 bits",
     {"session": str(-(2**63)), "exps": '{"x": "a", "y": 1e999}'}, A, {}),
    ("a unit that no double holds", {"session": "-1e999"}, {}, {}),
    ("a unit that is too long", {"session": '"%s"' % ("s" * 1025)}, {}, {}),
    ("a unit as long as may be", {"session": '"%s"' % ("s" * 1024)}, A, A),
    ("another surface", {"surface": '"home"'}, A, {}),
    ("no surface", {"surface": ""}, A, {}),
    ("a surface that is a list", {"surface": '["search"]'}, A, {}),
    ("a surface that no double holds", {"surface": "1e999"}, A, {}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "x", "y"), [case[1:] for case in HOSTILE], ids=[case[0] for case in HOSTILE]
)
def test_an_event_counts_whatever_the_fields_of_experiments_are(
    fields: dict[str, str], x: Arms, y: Arms
) -> None:
    settings = make_config(source='kind = "file"\npath = "e.jsonl"\nmax_event_bytes = 1000000')
    assert counted(with_fields(**fields), settings) == (x, y)


def test_wrong_values_of_other_events_change_nothing() -> None:
    values = [with_fields(**fields) for _, fields, _, _ in HOSTILE]
    settings = make_config(source='kind = "file"\npath = "e.jsonl"\nmax_event_bytes = 1000000')
    together = messages.counted(settings, [chunk(values)])
    assert not together.quarantine
    expected: dict[str, Arms] = {"x": {}, "y": {}}
    for _, _, x, y in HOSTILE:
        for name, arms in (("x", x), ("y", y)):
            for arm, n in arms.items():
                expected[name][arm] = expected[name].get(arm, 0) + n
    assert {name: rows_of(together, name) for name in expected} == expected


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (with_fields()[:-1], "not_json"),
        (with_fields(exps='{"x": NaN}'), "not_a_number"),
        (with_fields(exps='{"x": 01}'), "not_json"),
        (with_fields(exps="[" * 300 + "]" * 300), "too_deep"),
        (with_fields(exps='{"x": 1e999}').replace(b'"label":0', b'"label":"no"'), "wrong_type"),
        (with_fields(exps='{"x": 1e999}').replace(b'"label":0', b'"label":1e999'), "out_of_range"),
        (with_fields(exps='{"x": 1e999}').replace(b'"user"', b'"users"'), "missing_field"),
        (with_fields(exps='{"x": 1e999}').replace(b'"u1"', b'"\\ud800"'), "not_json"),
        (with_fields(exps='{"x": "\\ud800", "y": "a"}'), "not_json"),  # as where nothing reads it
        (with_fields(exps='{"x": []}', unread='"\\ud800"'), "not_json"),
        (with_fields(exps='{"x": "\xff"}').decode().encode("latin-1"), "invalid_utf8"),
    ],
)
def test_what_is_no_json_or_lacks_another_field_is_refused_as_ever(
    broken: bytes, reason: str
) -> None:
    good = with_fields()
    delta = messages.counted(make_config(metrics=BY_USER), [chunk([good, broken, good])])
    assert [(entry.offset, entry.reason) for entry in delta.quarantine] == [(1, reason)]
    assert rows_of(delta, "x") == {"a": 2}


def test_whether_an_event_is_refused_does_not_depend_on_experiments() -> None:
    long = b"3" * 100_000 + b"e-100000"
    for broken in (
        with_fields().replace(b'"label":0', b'"label":"no","label":0'),
        with_fields().replace(b'"score":0.25', b'"score":' + long),
        with_fields(exps='{"x": "\\ud800"}, "exps": {}'),
        with_fields(exps='{"x": 1e999}').replace(b'"ts"', b'"ts":1,"ts"'),
    ):
        with_experiments = messages.counted(make_config(), [chunk([broken])])
        without = messages.counted(config(event=EVENT, metrics=METRICS), [chunk([broken])])
        assert [entry.reason for entry in without.quarantine] == ["not_json"]
        assert with_experiments.quarantine == without.quarantine


def test_a_field_that_a_metric_reads_too_is_required_as_ever() -> None:
    settings = make_config(rest=REST.replace('"session"', '"user"'), metrics=BY_USER)
    value = with_fields().replace(b'"u1"', b"null")
    delta = messages.counted(settings, [chunk([value])])
    assert [entry.reason for entry in delta.quarantine] == ["missing_field"]
    assert counted(with_fields(session=""), settings) == (A, A)


def test_a_field_that_slices_read_too_is_refused_where_slices_refuse_it() -> None:
    settings = make_config(slices='by = [["exps.x"]]')
    assert counted(with_fields(exps=""), settings) == ({}, {})
    assert counted(with_fields(exps='{"x": 0.5}'), make_config()) == ({}, {})
    delta = messages.counted(settings, [chunk([with_fields(exps='{"x": {}}')])])
    assert [entry.field for entry in delta.quarantine] == ["exps.x"]


CSV = "ts,variant,user,label,score,phase,exps.x,exps.y,session,surface"


def test_empty_and_lacking_columns_of_csv_are_absent() -> None:
    settings = make_config(source='kind = "file"\npath = "e.csv"', event=ASSIGNED)
    row = "2024-01-01T00:00:00Z,a,u1,0,0.25,fit"
    header = tuple(CSV.split(","))
    values = [f"{row},{cells}".encode() for cells in ("a,b,s1,search", ",b,s1,home", "c,b,,search")]
    delta = messages.counted(settings, [chunk(values, fields=header)])
    assert not delta.quarantine
    assert (rows_of(delta, "x"), rows_of(delta, "y")) == ({"a": 1}, {"b": 1})
    delta = messages.counted(settings, [chunk([row.encode()], fields=header[:6])])
    assert not delta.quarantine
    assert (rows_of(delta, "x"), rows_of(delta, "y")) == ({}, {})
    with pytest.raises(SourceError, match="no column 'score'"):
        messages.counted(settings, [chunk([b"x"], fields=(*header[:4], "phase"))])


def row(**fields: object) -> dict[str, object]:
    return {**json.loads(event()), **fields}


@pytest.mark.parametrize(
    ("fields", "x", "y"),
    [
        ({"exps": {"x": "a", "y": "b"}, "session": "s1", "surface": "search"}, A, {"b": 1}),
        ({"exps": {"x": "a", "y": "b"}, "session": 7, "surface": "search"}, A, {"b": 1}),
        ({"exps": {"x": 1, "y": 2.5}, "session": "s1", "surface": "search"}, UNKNOWN, {}),
        ({"exps": {"x": b"a", "y": "b"}, "session": "s1", "surface": "search"}, {}, {"b": 1}),
        ({"exps": {"x": {"arm": "a"}, "y": "b"}, "session": "s1"}, {}, {}),
        ({"exps": "a", "session": "s1", "surface": "search"}, {}, {}),
        ({"exps": [["a"]], "session": "s1", "surface": "search"}, {}, {}),
        ({"session": "s1", "surface": "search"}, {}, {}),
        ({"exps": {"x": "a", "y": "b"}, "session": b"s1", "surface": "search"}, {}, {}),
        ({"exps": {"x": "a", "y": "b"}, "session": "s1", "surface": ["search"]}, A, {}),
    ],
)
def test_columns_of_any_type_refuse_no_message_and_no_file(
    fields: dict[str, object], x: Arms, y: Arms, tmp_path: Path
) -> None:
    table = pa.Table.from_pylist([row(**fields)])
    settings = messages.of_format("arrow", event=ASSIGNED, metrics=METRICS, rest=REST)
    delta = messages.counted(settings, messages.in_chunks([messages.arrow([row(**fields)])], ()))
    assert not delta.quarantine
    assert (rows_of(delta, "x"), rows_of(delta, "y")) == (x, y)
    path = tmp_path / "events.parquet"
    pyarrow.parquet.write_table(table, path)
    settings = make_config(source=f'kind = "file"\npath = "{path}"')
    chunks = [replace(part, partition=LOG) for part in drained(assigned(path))]
    delta = messages.counted(settings, chunks)
    assert not delta.quarantine
    assert (rows_of(delta, "x"), rows_of(delta, "y")) == (x, y)


def assigned(path: Path) -> FileSource:
    """The source of a file, from its first row on."""
    opened = source(path)
    opened.assign(From(0))
    return opened


def test_times_without_a_zone_in_an_optional_column_are_values_like_any_other() -> None:
    without_zone = pa.array([1], pa.timestamp("ms"))
    table = pa.Table.from_pylist([row(exps={"x": "a", "y": "b"}, session="s1")])
    table = table.append_column("surface", without_zone)
    rest = REST.replace('surface = "search"', 'surface = "present"')
    settings = messages.of_format("arrow", event=ASSIGNED, metrics=METRICS, rest=rest)
    value = messages.stream(*table.to_batches())
    delta = messages.counted(settings, messages.in_chunks([value], ()))
    assert not delta.quarantine
    assert (rows_of(delta, "x"), rows_of(delta, "y")) == (A, {"b": 1})


def test_optional_columns_whose_values_may_repeat_are_not_opened() -> None:
    """Four kilobytes may be a gigabyte of Python objects: only whether there is a value is read."""
    n = 40
    base = pa.Table.from_pylist([row(exps={"x": "a", "y": "b"}, session="s1")] * n)
    rest = REST.replace('surface = "search"', 'surface = "present"')
    settings = messages.of_format("arrow", event=ASSIGNED, metrics=METRICS, rest=rest)
    text = pa.array(["s" * (2 << 20)], pa.string_view()).buffers()
    for column in (
        pa.Array.from_buffers(
            pa.string_view(), n, [None, *(pa.py_buffer(text[1].to_pybytes()[:16] * n), text[2])]
        ),
        pa.ListViewArray.from_arrays(
            pa.array([0] * n, pa.int32()), pa.array([9] * n, pa.int32()), pa.nulls(9)
        ),
        pa.RunEndEncodedArray.from_arrays(pa.array([n], pa.int32()), pa.array(["search"])),
        pa.UnionArray.from_dense(
            pa.array([0] * n, pa.int8()), pa.array([0] * n, pa.int32()), [pa.array(["search"])]
        ),
    ):
        table = base.append_column("surface", column)
        bad = table.set_column(0, table.schema.names[0], pa.array([None] * n))
        values = [messages.stream(*part.to_batches()) for part in (table, bad)]
        delta = messages.counted(settings, messages.in_chunks(values, ()))
        assert rows_of(delta, "x") == {"a": n}
        for entry in delta.quarantine:
            assert json.loads(entry.payload)["surface"] == f"a value of {column.type}"
        assert len(delta.quarantine) == n


def test_views_of_few_texts_are_read_as_texts() -> None:
    table = pa.Table.from_pylist([row(exps={"x": "a", "y": "b"})] * 3)
    sessions = pa.array(["the first of all sessions", None, "s2"], pa.string_view())
    table = table.append_column("session", sessions).append_column(
        "surface", pa.array(["search"] * 3)
    )
    settings = messages.of_format("arrow", event=ASSIGNED, metrics=METRICS, rest=REST)
    values = [messages.stream(*part.to_batches()) for part in (table, table.slice(2))]
    delta = messages.counted(settings, messages.in_chunks(values, ()))
    assert not delta.quarantine
    assert rows_of(delta, "x") == {"a": 3}


def test_arms_and_units_in_the_key_and_headers_of_records_are_optional_too() -> None:
    rest = REST.replace('unit = "session"', 'unit = "header.session"\nvariant = "key.x"')
    rest = rest.replace('surface = "search"', '"header.surface" = "search"')
    settings = config(source=f'{KAFKA}\nformat = "json"', event=EVENT, metrics=METRICS, rest=rest)
    session, surface = ("session", b"s1"), ("surface", b"search")
    cases: list[tuple[bytes | None, list[tuple[str, bytes]], Arms, Arms]]
    cases = [
        (b'{"x": "a"}', [session, surface], A, A),
        (b'{"x": "a"}', [session], A, {}),
        (b'{"x": "a"}', [surface], {}, {}),
        (b'{"x": "a"}', [session, session, surface], {}, {}),
        (b'{"x": "a"}', [("session", b"\xff"), surface], {}, {}),
        (b'{"x": {}}', [session, surface], {}, {}),
        (b"not json", [session, surface], {}, {}),
        (None, [session, surface], {}, {}),
        (b"{" + b" " * 70_000 + b"}", [session, surface], {}, {}),
    ]
    for key, headers, x, y in cases:
        (part,) = messages.in_chunks([event()], ())
        delta = messages.counted(settings, [replace(part, keys=[key], headers=[headers])])
        assert not delta.quarantine
        assert (rows_of(delta, "x"), rows_of(delta, "y")) == (x, y)


def test_states_of_optional_units_are_those_of_required_ones() -> None:
    values = [with_fields(session=f'"s{i % 3}"') for i in range(9)]
    delta = messages.counted(make_config(), [chunk(values)])
    (state,) = (s.state for s in states_of(delta)
                if s.metric == "experiment/x/ctr" and s.start_ms is None)  # fmt: skip
    ctr = UserGroups(Ratio())
    ctr.update([f"s{i % 3}" for i in range(9)], numerators=[0] * 9)
    assert state.state((0, "start", "a")) == ctr
