"""A run that refuses most of what it reads says so, with the key that is likely to be wrong."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.counting.refusal_watch import EVERY_S, FIRST, RefusalWatch
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Counters, Refused
from streammetrics_consumers.query import stream_warnings
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.server.application import application

from tests.consumers.running import Running, until
from tests.consumers.server.asking import Client
from tests.consumers.stores import event, make_store, write_config, write_events

MANY = 300
GOOD: Mapping[str, object] = event(0, "a", 1, 0.5)
DESCRIPTION = {"time": ["ts", None], "variant": ["variant", None], "inputs": {}, "slices": []}


def refused(count: int, reason: str = "bad_time", field: str | None = "ts") -> list[Refused]:
    return [Refused(i, 0, reason, field, "a detail", b"", 0, "") for i in range(count)]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


@pytest.mark.parametrize(
    ("events", "config", "warning"),
    [
        (
            [{**GOOD, "ts": 1_700_000_000_000 + i} for i in range(MANY)], {},
            'all 300 events were refused: 300 wrong_type in `ts`. The likely key is [event] '
            'time_unit: without it times are ISO texts; set it to "s" or "ms"',
        ),
        (
            [{**GOOD, "variant": "c"}] * MANY + [GOOD], {},
            "300 of 301 events were refused: 300 unknown_variant in `variant`. The likely key is "
            "[event] variants, which lists the known names",
        ),
        (
            [{"ts": GOOD["ts"], "variant": "a", "score": 0.5, "phase": "x"}] * MANY, {},
            "all 300 events were refused: 300 missing_field in `label`. The likely key is [event], "
            "or `inputs` of [metrics], where `label` is labels: name the field that events have",
        ),
        (
            [b"1,2,3"] * MANY, {},
            "all 300 events were refused: 300 two_documents. The likely key is [source] format, "
            "which says how records are read",
        ),
        (
            [GOOD] * MANY, {"where": '{ variant = "c" }'},
            "all 300 events were skipped: none meets [event] where; check its fields and values",
        ),
    ],
    ids=["time", "variant", "label", "format", "where"],
)  # fmt: skip
def test_it_is_in_the_log_in_status_and_on_the_page_without_contents(
    tmp_path: Path, events: Sequence[object], config: Mapping[str, str], warning: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    variants = 'variants = ["a", "b"]'
    if "where" in config:
        variants += f"\nwhere = {config['where']}"
    store = make_store(tmp_path, events, variants=variants)
    warning_lines = [
        line for line in capsys.readouterr().err.splitlines() if " events were " in line
    ]
    assert len(warning_lines) == 1
    start, end = warning.partition(":")[0], warning.partition(" The likely key is ")[2]
    assert f" warning: {start}: " in warning_lines[0] and warning_lines[0].endswith(end)
    assert main(["status", str(store)]) == 0
    printed = capsys.readouterr().out
    assert f"warning: {warning}" in " ".join(printed.split())
    with closing(Ledger.open(str(store))) as ledger:
        assert json.loads(status_json(ledger))["warnings"] == [warning]
        client = Client(application(ledger, store=str(store)))
        assert client.get("/api/health").json()["warnings"] == [warning]


def test_of_very_many_only_the_newest_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [{**GOOD, "ts": 1}] * MANY + [{**GOOD, "variant": "c"}] * 20
    store = make_store(tmp_path, events)
    monkeypatch.setattr(stream_warnings, "NEWEST", 50)
    with closing(Ledger.open(str(store))) as ledger:
        (warning,) = json.loads(status_json(ledger))["warnings"]
    assert warning.startswith(
        "all 320 events were refused; of the newest 50: 30 wrong_type in `ts`, 20 unknown_variant "
        "in `variant`. The likely key is [event] time_unit"
    )


def test_a_store_of_good_events_has_no_warning(store: Path) -> None:
    with closing(Ledger.open(str(store))) as ledger:
        assert json.loads(status_json(ledger))["warnings"] == []
        client = Client(application(ledger, store=str(store)))
        assert client.get("/api/health").json()["warnings"] == []


@pytest.fixture
def now() -> list[float]:
    return [0.0]


@pytest.fixture
def watch(now: list[float]) -> RefusalWatch:
    return RefusalWatch(DESCRIPTION, lambda: now[0])


def test_it_is_said_before_the_first_commit_and_again_each_minute(
    watch: RefusalWatch, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    few = Counters(rows=FIRST - 1, quarantined=FIRST - 1)
    watch.look([(few, refused(FIRST - 1))])
    assert warnings(caplog) == []
    bad = Counters(rows=FIRST, quarantined=FIRST)
    watch.look([(bad, refused(FIRST))])
    watch.look([(bad, refused(FIRST))])
    assert len(warnings(caplog)) == 1
    watch.count(bad, refused(FIRST))
    watch.count(bad, refused(FIRST))
    now[0] = EVERY_S
    watch.look([])
    watch.count(bad, refused(FIRST))
    now[0] = 2 * EVERY_S
    watch.look([])
    first, second, third = warnings(caplog)
    assert first.startswith(f"all {FIRST} events were refused: {FIRST} bad_time in `ts` (a detail)")
    assert second.startswith(f"all {2 * FIRST} events were refused: ")
    assert third.startswith(f"all the last {FIRST} events were refused: ")
    now[0] = 3 * EVERY_S  # only good ones came since
    watch.look([(Counters(rows=1000), [])])
    assert len(warnings(caplog)) == 3


def test_a_stream_that_turns_bad_after_months_is_seen(
    watch: RefusalWatch, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    for minute in range(5):
        now[0] = minute * EVERY_S
        watch.count(Counters(rows=1_000_000), [])
        watch.look([])
    assert warnings(caplog) == []
    now[0] += EVERY_S
    watch.count(Counters(rows=1000, quarantined=900), refused(900))
    watch.look([])
    assert [line.partition(":")[0] for line in warnings(caplog)] == [
        "900 of the last 1,000 events were refused"
    ]


def test_the_end_says_it_of_all_events(
    watch: RefusalWatch, caplog: pytest.LogCaptureFixture
) -> None:
    bad = Counters(rows=FIRST, quarantined=FIRST)
    watch.look([(bad, refused(FIRST))])
    watch.count(bad, refused(FIRST))
    watch.count(bad, refused(FIRST))
    watch.ended()
    assert warnings(caplog)[-1].startswith(f"all {2 * FIRST} events were refused: ")


def test_a_few_bad_events_are_no_warning(
    watch: RefusalWatch, caplog: pytest.LogCaptureFixture
) -> None:
    half = Counters(rows=1000, quarantined=400, skipped=200)
    watch.look([(half, refused(400))])
    watch.count(half, refused(400))
    watch.ended()
    assert warnings(caplog) == []


def test_a_process_that_runs_on_says_it_at_once(tmp_path: Path) -> None:
    write_events(tmp_path, [{**GOOD, "ts": 1}] * MANY)
    config = write_config(tmp_path)
    text = config.read_text().replace("[store]\n", "[store]\ncommit_interval_s = 3600\n")
    config.write_text(text)
    with Running(config) as running:
        until(lambda: "all 300 events were refused" in running.log, running)
        assert running.end() == 0
