"""Computed columns and conditions of metrics count what plain metrics count of events that were
derived and chosen before."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import PerKey
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log
from tests.consumers.messages import (
    FORMATS,
    counted,
    digests,
    in_chunks,
    of_format,
    positions,
    records,
    states_of,
)
from tests.consumers.replay.verified_run import CHUNKS, EACH, tried, verified
from tests.consumers.small_config import EVENT, chunk, config

ROLES = """
time = "ts"
variant = "variant"
user = "user"
"""
WHERE = "surface == 'search' and dwell_s >= 30"
COLUMNS = """
[columns]
gain = "max(reward, 0) * weight - fee / 2"
is_long = "dwell_s >= 30"
search = "surface == 'search'"
good = "gain > 0.5 or is_long and not is_bot"
"""
METRICS = f"""
clicks = {{ type = "Ratio", inputs = {{ numerators = "click" }} }}
mean_gain = {{ type = "Moments", inputs = {{ values = "gain" }}, where = "surface == 'search'" }}
long = {{ type = "Ratio", inputs = {{ numerators = "is_long" }}, where = "search" }}
dwell = {{ type = "Moments", inputs = {{ values = "dwell_s" }}, where = "{WHERE}" }}
quality = {{ type = "Ratio", inputs = {{ numerators = "good" }}, where = "not is_bot and search" }}
"""
SLICES = 'by = [[], ["variant"]]'


OF_SEARCH = ("reward", "weight", "fee", "dwell_s", "is_bot")
PLAIN = {int, float, bool, type(None)}


def events(seed: int, n: int = 240) -> list[dict[str, Any]]:
    """Events of two surfaces, of which one lacks most fields; some lack what they need."""
    rng = random.Random(seed)
    rows = []
    for i in range(n):
        event: dict[str, Any] = {
            "ts": f"2024-01-01T{i % 3:02d}:{i % 60:02d}:00Z",
            "variant": rng.choice("ab"),
            "user": f"u{rng.randrange(9)}",
            "click": rng.randrange(2),
            "surface": rng.choice(("search", "home", "搜索")),
        }
        if event["surface"] == "search" or rng.random() < 0.2:
            event |= {
                "reward": rng.choice((1, 0.5, -0.25, 2**53 + 1, 1e300, 5e-324, -0.0, 3)),
                "weight": rng.choice((1, 2, 0.1)),
                "fee": rng.choice((0, 1, 2**62 + 1)),
                "dwell_s": rng.choice((10, 29.5, 30, 31, 2**53 + 1)),
                "is_bot": rng.random() < 0.2,
            }
        if rng.random() < 0.05:
            event.pop(rng.choice(("dwell_s", "reward", "is_bot", "surface")), None)
        if rng.random() < 0.05:
            event[rng.choice(("dwell_s", "reward", "is_bot"))] = rng.choice((None, "x", [1], {}))
        rows.append(event)
    return rows


def gain(event: dict[str, Any]) -> float:
    """The column `gain`, in plain Python."""
    reward, weight, fee = event["reward"], event["weight"], event["fee"]
    best: Any = max(reward, 0) if isinstance(reward, int) else max(float(reward), 0.0) + 0.0
    product = best * weight
    result: float = float(product) - fee / 2
    return result


def is_number(event: dict[str, Any], *names: str) -> bool:
    return all(type(event.get(name)) in (int, float) for name in names)


def derived(event: dict[str, Any]) -> dict[str, dict[str, Any]] | None:
    """What each metric counts of an event: plain values of `numerators` or `values`; None for an
    event that lacks what one of them needs."""
    surface = event.get("surface")
    if not isinstance(surface, str):
        return None
    counted: dict[str, Any] = {"clicks": event["click"]}
    is_bot = event.get("is_bot")
    if surface != "search":
        return counted
    if not is_number(event, "dwell_s", "reward", "weight", "fee") or type(is_bot) is not bool:
        return None
    if isinstance(event["dwell_s"], int) and event["dwell_s"] > 2**53 and event["dwell_s"] >= 30:
        return None  # no double holds it: the metric of dwell_s refuses it
    value = gain(event)
    is_long = event["dwell_s"] >= 30
    counted |= {"mean_gain": value, "long": int(is_long)}
    if is_long:
        counted["dwell"] = event["dwell_s"]
    if not is_bot:
        counted["quality"] = int(value > 0.5 or is_long)
    return counted


def plain_config(name: str) -> Config:
    argument = "values" if name in ("mean_gain", "dwell") else "numerators"
    kind = "Moments" if argument == "values" else "Ratio"
    return config(
        event=ROLES,
        slices=SLICES,
        metrics=f'{name} = {{ type = "{kind}", inputs = {{ {argument} = "value" }} }}',
    )


def by_hand(rows: Sequence[dict[str, Any]]) -> dict[object, bytes]:
    """The states of each metric alone, of events that were derived and chosen before."""
    states: dict[object, bytes] = {}
    for name in ("clicks", "mean_gain", "long", "dwell", "quality"):
        lines = []
        for event in rows:
            values = derived(event)
            if values is not None and name in values:
                common = {key: event[key] for key in ("ts", "variant", "user")}
                lines.append(json.dumps({**common, "value": values[name]}).encode())
        delta = counted(plain_config(name), in_chunks(lines, []))
        assert not delta.quarantine, delta.quarantine[0]
        states |= digests(delta)
    return states


@pytest.mark.parametrize("format", FORMATS)
def test_states_are_those_of_derived_and_chosen_events(format: str) -> None:
    rows = events(3)
    if format == "arrow":  # a column has one type
        rows = [row for row in rows if {type(row.get(name)) for name in OF_SEARCH} <= PLAIN]
        for row in rows:
            floats = [name for name in ("reward", "weight", "dwell_s") if row.get(name) is not None]
            row.update({name: float(row[name]) for name in floats})
            row.update({name: row.get(name) for name in (*OF_SEARCH, "surface")})
    lines = [json.dumps(row).encode() for row in rows]
    run_config = of_format(format, event=ROLES, slices=SLICES, metrics=METRICS, rest=COLUMNS)
    sent = records(format, lines, [7, 50, 51])
    delta = counted(run_config, in_chunks(sent, []))
    assert digests(delta) == by_hand(rows)
    refused = [i for i, row in enumerate(rows) if derived(row) is None]
    assert len(delta.quarantine) == len(refused) > 0
    second_delta = counted(run_config, in_chunks(sent, [1, 2, 5]))
    assert digests(second_delta) == digests(delta) and positions(second_delta) == positions(delta)


def test_csv_files_count_the_same() -> None:
    rows = [row for row in events(4) if derived(row) is not None]
    names = (*("ts", "variant", "user", "click", "surface", "reward", "weight", "fee"), "dwell_s",
             "is_bot")  # fmt: skip
    lines = [
        ",".join("" if row.get(name) is None else str(row[name]) for name in names).encode()
        for row in rows
    ]
    run_config = config(event=ROLES, slices=SLICES, metrics=METRICS, rest=COLUMNS)
    delta, decoder = Delta(run_config, chunk([]).partition, 0), Decoder(run_config)
    delta.add(decoder.decode(chunk(lines, fields=names)))
    assert not delta.quarantine
    assert digests(delta) == by_hand(rows)


@pytest.mark.parametrize(
    ("change", "reason", "field", "detail"),
    [
        ({"dwell_s": None}, "missing_field", "dwell_s", "expected a number, got null"),
        ({"dwell_s": "31"}, "wrong_type", "dwell_s", "expected a number, got '31'"),
        ({"is_bot": 0}, "wrong_type", "is_bot", "expected true or false, got 0"),
        ({"surface": 3}, "wrong_type", "surface", "expected a text, got 3"),
        ({"reward": 2**62, "weight": 4}, "out_of_range", None, "does not fit 64 bits"),
    ],
)
def test_an_event_that_lacks_what_is_needed_is_refused_with_the_place(
    change: dict[str, Any], reason: str, field: str | None, detail: str
) -> None:
    good = next(row for row in events(5) if "reward" in row and derived(row) is not None)
    good |= {"surface": "search", "is_bot": False, "dwell_s": 29}
    run_config = config(event=ROLES, slices=SLICES, metrics=METRICS, rest=COLUMNS)
    (entry,) = counted(run_config, in_chunks([json.dumps(good | change).encode()], [])).quarantine
    assert (entry.reason, entry.field) == (reason, field)
    assert detail in entry.detail and ", column " in entry.detail
    assert "[columns]" in entry.detail or "where" in entry.detail
    elsewhere = json.dumps(good | change | {"surface": "home"}).encode()
    refused = counted(run_config, in_chunks([elsewhere], [])).quarantine
    assert not refused


def test_a_field_that_another_metric_always_reads_is_needed_in_each_event() -> None:
    always = METRICS + 'all_dwell = { type = "Moments", inputs = { values = "dwell_s" } }\n'
    run_config = config(event=ROLES, slices=SLICES, metrics=always, rest=COLUMNS)
    home = {
        "ts": "2024-01-01T00:00:00Z",
        "variant": "a",
        "user": "u",
        "click": 0,
        "surface": "home",
    }
    (entry,) = counted(run_config, in_chunks([json.dumps(home).encode()], [])).quarantine
    assert (entry.reason, entry.field) == ("missing_field", "dwell_s")


def test_a_metric_refuses_only_events_that_it_counts() -> None:
    metrics = 'auc = { type = "HistogramAUC", inputs = { scores = "p" }, where = "p <= 1" }\n'
    run_config = config(event=EVENT, metrics=metrics + 'ctr = { type = "Ratio" }')
    lines = [
        json.dumps({"ts": "2024-01-01T00:00:00Z", "variant": "a", "user": "u", "label": label,
                    "phase": "x", "p": p}).encode()
        for label, p in ((1, 0.5), (0, 7.0), (2, 7.0), (1, -1.0))
    ]  # fmt: skip
    delta = counted(run_config, in_chunks(lines, []))
    assert [(entry.offset, entry.reason) for entry in delta.quarantine] == [(3, "metric")]
    rows = {
        shard.metric: rows_of(shard.state, (0,)) for shard in states_of(delta) if not shard.grouping
    }
    assert rows["auc"] == 1 and rows["ctr"] == 3


def rows_of(state: PerKey, key: Any) -> int:
    """How many rows the state of a key has."""
    rows: int = getattr(state.state(key).compute(), "rows")  # noqa: B009
    return rows


def test_slices_may_be_computed() -> None:
    run_config = config(event=ROLES, slices='by = [["is_long"]]', rest=COLUMNS,
                  metrics='n = { type = "Ratio", inputs = { numerators = "click" } }')  # fmt: skip
    lines = [
        json.dumps(
            {"ts": "2024-01-01T00:00:00Z", "variant": "a", "click": 1, "dwell_s": dwell}
        ).encode()
        for dwell in (10, 30, 40)
    ]
    (state, *_) = [shard.state for shard in states_of(counted(run_config, in_chunks(lines, [])))]
    assert {key: rows_of(state, key) for key in state.keys()} == {  # noqa: SIM118
        (0, "false"): 1,
        (0, "true"): 2,
    }


@pytest.mark.parametrize("format", FORMATS)
def test_keys_and_headers_are_operands_too(format: str) -> None:
    metrics = """
    own = { type = "Ratio", inputs = { numerators = "wide" }, where = "header.model == 'v7'" }
    all = { type = "Ratio", inputs = { numerators = "click" } }
    """
    columns = '[columns]\nwide = "header.width * key.scale > 100 or click == 1"\n'
    run_config = of_format(format, event=ROLES, slices="by = [[]]", metrics=metrics, rest=columns)
    event = json.dumps({"ts": "2024-01-01T00:00:00Z", "variant": "a", "click": 0}).encode()
    sent = records(format, [event] * 4, [1, 2, 3])
    headers = [
        [("model", b"v7"), ("width", b"60")],
        [("model", b"v8")],
        [("model", b"v7"), ("width", b"wide")],
        [("model", b"v7"), ("width", b" 40 ")],
    ]
    (whole,) = in_chunks(sent, [])
    delta = counted(run_config, [replace(whole, keys=[b'{"scale":2}'] * 4, headers=headers)])
    assert [(entry.offset, entry.field) for entry in delta.quarantine] == [(2, "header.width")]
    assert delta.quarantine[0].detail == (
        "expected a number, got 'wide'; read by [columns] wide, column 1"
    )
    rows = {shard.metric: rows_of(shard.state, (0,)) for shard in states_of(delta)}
    assert rows == {"own": 2, "all": 3}


def run_of(folder: Path, rest: str = "", metrics: str = METRICS, roles: str = ROLES) -> Run:
    """A run with many commits over two logs."""
    folder.mkdir(exist_ok=True)
    logs = {
        name: Log([json.dumps(row).encode() for row in sorted(events(seed), key=lambda e: e["ts"])])
        for name, seed in ((ONE, 1), (TWO, 2))
    }
    run = Run(folder, logs, event=roles, slices=SLICES, metrics=metrics,
              rest=EACH + COLUMNS + rest)  # fmt: skip
    run.clock.tick_s = 0.02
    run(UNTIL_END, CHUNKS)
    return run


def test_a_store_of_them_is_verified_and_retried(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    findings = verified(run, tmp_path)
    assert findings.is_good and findings.states > 10 and findings.entries > 5
    assert tried(run, run.config) == 0
    with closing(Ledger.open(run.config.store.url)) as ledger:
        rows = read_results(ledger, Query()).rows
    assert {row.metric for row in rows} == {"clicks", "mean_gain", "long", "dwell", "quality"}


def test_another_expression_is_another_metric(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    for old, new in (('dwell_s >= 30"\nsearch', 'dwell_s >= 31"\nsearch'),):
        new_config = config(
            event=ROLES, slices=SLICES, metrics=METRICS, rest=EACH + COLUMNS.replace(old, new)
        )
        for act in (
            lambda run_config=new_config: verified(run, tmp_path, run_config),
            lambda run_config=new_config: tried(run, run_config),
        ):
            with pytest.raises(SettingsChanged, match="columns"):
                act()


JOIN = """
[join]
id = "id"
label_window_s = 60
[join.impression]
field = "kind"
equals = "shown"
[join.outcomes.click]
field = "kind"
equals = "click"
"""


def test_impressions_are_joined_with_their_columns(tmp_path: Path) -> None:
    rng = random.Random(8)
    values: list[bytes | None] = []
    expected = {"all": [0, 0], "search": [0, 0]}
    for i in range(200):
        ts = f"2024-01-01T{i // 60:02d}:{i % 60:02d}:00Z"
        surface, dwell = rng.choice(("search", "home")), rng.randrange(60)
        shown: dict[str, Any] = {"ts": ts, "kind": "shown", "id": f"i{i}", "surface": surface}
        if surface == "search":
            shown["dwell_s"] = dwell
        values.append(json.dumps(shown).encode())
        is_clicked = rng.random() < 0.4
        if is_clicked:
            click = {"ts": ts.replace("00Z", "30Z"), "kind": "click", "id": f"i{i}"}
            values.append(json.dumps(click).encode())
        for name, counts in (("all", True), ("search", surface == "search" and dwell >= 30)):
            if counts:
                expected[name][0] += is_clicked
                expected[name][1] += 1
    metrics = f'all = {{ type = "Ratio" }}\nsearch = {{ type = "Ratio", where = "{WHERE}" }}\n'
    run = Run(tmp_path, {ONE: Log(values)}, event='time = "ts"', slices="by = [[]]",
              windows="size_s = 3600\nlateness_s = 60\nmax_ahead_s = 60",
              metrics=metrics, rest=EACH + JOIN)  # fmt: skip
    run.clock.tick_s = 0.02
    run(UNTIL_END, [Deliver(20)] * 40)
    assert verified(run, tmp_path).is_good
    with closing(Ledger.open(run.config.store.url)) as ledger:
        rows = read_results(ledger, Query()).rows
    totals = {
        (row.metric, row.view): row.value
        for row in rows
        if row.view in ("numerator", "denominator")
    }
    assert totals[("all", "denominator")] > 150
    assert 0 < totals[("search", "denominator")] < 60
    assert totals[("search", "denominator")] <= expected["search"][1]
