"""`verify` reads each offset with the settings of its time, whichever config it is given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.events import messages
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.replay.retry import retry

from tests.consumers.exposed_stream import verified
from tests.consumers.joined_stream import EVENT, JOIN, LOGS, Event, logs_of, run, shown
from tests.consumers.memory_source import Log, MemorySource
from tests.consumers.small_config import SOURCE, config

ONE_LOG = LOGS[0]
MESSAGES = (
    'kind = "kafka"\nbootstrap_servers = "nowhere:1"\ntopic = "events"\ngroup = "g"\n'
    'format = "ndjson"'
)
KEPT = "size_s = 60\nmax_ahead_s = 10\nretention_s = 86400\n"


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "store.db"), create=True)) as store_ledger:
        yield store_ledger


def joined(
    *, lateness_s: int = 10, reopen_s: int = 0, others: str = "refuse", source: str = SOURCE
) -> Config:
    keys = f'reopen_s = {reopen_s}\nothers = "{others}"\n[join.outcomes]'
    return config(
        source=source,
        event=EVENT,
        windows=f"{KEPT}lateness_s = {lateness_s}",
        slices="by = [[]]",
        metrics='ctr = { type = "Ratio" }',
        rest=JOIN.replace("[join.outcomes]", keys),
    )


def limited(max_event_bytes: int) -> Config:
    return config(
        source=f"{SOURCE}\nmax_event_bytes = {max_event_bytes}",
        event=f'{EVENT}\nlabel = "label"',
        windows=f"{KEPT}lateness_s = 10",
        slices="by = [[]]",
    )


def count(ledger: Ledger, run_config: Config, events: Sequence[Event]) -> None:
    run(run_config, ledger, logs_of({ONE_LOG: events}), close=False)


def assert_good(ledger: Ledger, run_config: Config, events: Sequence[Event], folder: Path) -> None:
    findings = verified(run_config, ledger, logs_of({ONE_LOG: events}), folder)
    assert findings.is_good, findings.differences


@pytest.mark.parametrize("limits", [(1000, 300), (300, 1000)])
def test_an_event_is_too_large_by_the_limit_of_its_offset(
    ledger: Ledger, tmp_path: Path, limits: tuple[int, int]
) -> None:
    events = [{**shown(f"{i}", i), "label": 0, "pad": "x" * 400 * (i % 2)} for i in range(4)]
    first, second = map(limited, limits)
    count(ledger, first, events[:2])
    count(ledger, second, events)
    assert [entry.offset for entry in ledger.quarantine()] == [3 if limits[1] == 300 else 1]
    for run_config in (first, second):
        assert_good(ledger, run_config, events, tmp_path)


@pytest.mark.parametrize("policies", [("refuse", "skip"), ("skip", "refuse")])
def test_events_of_no_kind_are_refused_or_skipped_by_the_setting_of_their_offset(
    ledger: Ledger, tmp_path: Path, policies: tuple[str, str]
) -> None:
    other = {"kind": "other", "id": "x", "ts": shown("x", 0)["ts"]}
    events = [shown("a", 0), other, shown("b", 1000), other]
    first, second = (joined(others=others) for others in policies)
    count(ledger, first, events[:2])
    count(ledger, second, events)
    assert [entry.offset for entry in ledger.quarantine()] == [3 if policies[1] == "refuse" else 1]
    for run_config in (first, second):
        assert_good(ledger, run_config, events, tmp_path)


def test_where_events_wait_a_lateness_that_moved_to_reopen_s_changes_nothing(
    ledger: Ledger, tmp_path: Path
) -> None:
    first, second = joined(lateness_s=10, reopen_s=20), joined(lateness_s=20, reopen_s=10)
    events = [shown(f"{ms}", ms) for ms in (0, 60_000, 35_000, 100_000, 160_000, 135_000, 300_000)]
    count(ledger, first, events[:4])
    count(ledger, second, events)
    assert not ledger.quarantine()
    assert_good(ledger, second, events, tmp_path)


def test_a_message_whose_retry_skipped_an_event_is_read_again_as_the_retry_did(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = [shown("a", 0), shown("b", 1), {"kind": "other"}]
    logs = {ONE_LOG: Log([b"\n".join(json.dumps(event).encode() for event in events)])}
    refusing, skipping = joined(source=MESSAGES), joined(source=MESSAGES, others="skip")
    with monkeypatch.context() as patched:
        patched.setattr(messages, "MAX_EVENTS", 2)
        run(refusing, ledger, logs, close=False)
    counted = [
        len(page.counted)
        for settings in (refusing, skipping)
        for page in retry(
            settings, ledger, now_ms=lambda: 7, opener=lambda *options: MemorySource(logs)
        )
    ]
    assert counted == [0, 1]
    differences = verified(refusing, ledger, logs, tmp_path).differences
    assert not [text for text in differences if "retry" in text]


def test_a_retry_says_that_an_event_of_no_kind_is_skipped(ledger: Ledger) -> None:
    count(ledger, joined(), [{"kind": "other"}])
    [page] = retry(joined(others="skip"), ledger, now_ms=lambda: 7)
    assert [(still.reason, still.detail) for still in page.still] == [
        ("skipped", "this config skips it ([event] where, [exposures] where or [join] others)")
    ]
