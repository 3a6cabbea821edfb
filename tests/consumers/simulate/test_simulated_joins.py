"""The simulated stream whose clicks are events of their own."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from datetime import datetime
from functools import cache
from math import sqrt
from typing import Any

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.simulate.joined import JoinedSimulation, is_outcome, share_within
from streammetrics_consumers.simulate.output import write
from streammetrics_consumers.simulate.stream import Simulation

Event = dict[str, Any]


@cache
def lines(events: int, seed: int = 1) -> tuple[bytes, ...]:
    stream = JoinedSimulation(Simulation(events, seed))
    return tuple(line for batch in stream.batches() for line in batch)


def good(events: int) -> list[Event]:
    """The events that are whole."""
    found = []
    for line in lines(events):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"request_id", "ts"} <= event.keys():
            found.append(event)
    return found


def at_ms(event: Event) -> float:
    return datetime.fromisoformat(event["ts"]).timestamp() * 1000


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_for_ever() -> None:
    digest = hashlib.sha256(b"\n".join(lines(20_000, 7))).hexdigest()
    assert digest == "3c4520e946bc637ef908281d60e496792aace9946947d397926439556aedd168"


@pytest.mark.slow
def test_a_longer_stream_begins_with_a_shorter_one() -> None:
    for events in (0, 1, 9_000):
        assert lines(events) == lines(20_000)[:events]


def test_events_come_in_order_but_for_late_and_broken_ones() -> None:
    times = [at_ms(event) for event in good(20_000) if event["ts"].endswith("Z")]
    newest, late = times[0], 0
    for time in times:
        late += time < newest - 20_000
        newest = max(newest, time)
    assert 0 < late < 0.01 * len(times)


def test_impressions_have_no_label_and_outcomes_have_little_else_than_the_id() -> None:
    events = good(20_000)
    assert not any("label" in event for event in events)
    kinds = Counter(event["kind"] for event in events)
    assert kinds["impression"] > 20 * kinds["click"] > 40 * kinds["purchase"] > 0
    clicks = [event for event in events if event["kind"] == "click"]
    assert {frozenset(event) for event in clicks} == {
        frozenset(("kind", "ts", "request_id", "event_id"))
    }
    assert all(event["amount"] >= 5 for event in events if event["kind"] == "purchase")


@pytest.mark.slow
def test_some_events_come_twice_and_some_impressions_never() -> None:
    events = good(60_000)
    ids = Counter(event["event_id"] for event in events if event.get("event_id"))
    assert set(ids.values()) == {1, 2}
    assert 0.005 < sum(count == 2 for count in ids.values()) / len(ids) < 0.02
    shown = {event["request_id"] for event in events if event["kind"] == "impression"}
    clicked = {event["request_id"] for event in events if event["kind"] == "click"}
    assert 0 < len(clicked - shown) < 0.02 * len(clicked)


@pytest.mark.slow
def test_delays_are_those_that_the_truth_counts_with() -> None:
    events = good(60_000)
    shown = {e["request_id"]: at_ms(e) for e in events if e["kind"] == "impression"}
    clicks = {e["request_id"]: at_ms(e) for e in events if e["kind"] == "click"}
    delays = [clicks[id_] - shown[id_] for id_ in clicks.keys() & shown.keys()]
    assert min(delays) >= 1000 and max(delays) < 2_048_000
    for window_s in (30, 60, 300):
        share = sum(delay < window_s * 1000 for delay in delays) / len(delays)
        true = float(share_within(window_s))
        assert abs(share - true) < 4 * sqrt(true * (1 - true) / len(delays)) + 0.005
    whole, cut = Simulation(9).truth(), JoinedSimulation(Simulation(9)).truth(300)
    assert cut["control"].ctr == whole["control"].ctr * share_within(300)
    assert cut["treatment"].auc < whole["treatment"].auc
    assert JoinedSimulation(Simulation(9)).truth(2048) == whole


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--join", "--format", "csv"], "--join differ in their fields"),
        (["-o", "kafka://127.0.0.1:1/impressions,clicks"], "--join writes to two"),
        (["--format", "arrow", "-o", "-"], "kafka://HOST/TOPIC"),
        (["--format", "ndjson", "--batch", "0"], "--batch"),
        (["--format", "ndjson", "--batch", "200001"], "--batch"),
    ],
)
def test_flags_that_do_not_fit_are_errors_of_usage(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *flags]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_of_two_topics_the_second_has_the_outcomes(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, list[bytes]] = {}

    class Producing:
        def __init__(self, servers: str, topic: str) -> None:
            self._name = f"{servers}/{topic}"

        def __enter__(self) -> Any:
            return sent.setdefault(self._name, []).extend

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("streammetrics_consumers.sources.kafka.kafka_client.producing", Producing)
    stream = JoinedSimulation(Simulation(20_000))
    write(stream, "kafka://host:1/shown,clicks", None, lambda _: None, lambda: 0.0)
    assert sorted(sent) == ["host:1/clicks", "host:1/shown"]
    assert sent["host:1/clicks"] == [line for line in lines(20_000) if is_outcome(line)]
    assert sent["host:1/shown"] == [line for line in lines(20_000) if not is_outcome(line)]
