"""How a join stands, against counts over the plain events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.answers import Join
from streammetrics_consumers.query.follow import QueryCache
from streammetrics_consumers.query.join_status import JoinReader, join_warnings
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.render.join_text import join_outcomes
from streammetrics_consumers.render.store_text import status_text
from streammetrics_consumers.render.style import Style

from tests.consumers import joined_stream
from tests.consumers.joined_stream import LOGS, SPLIT, WHOLE, WINDOW_MS, logs_of, stream
from tests.consumers.memory_source import Log

Event = Mapping[str, Any]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "store.db"), create=True)) as store:
        yield store


def read_join(ledger: Ledger) -> Join:
    join, _ = JoinReader(ledger).found()
    assert join is not None
    return join


def distinct(events: Iterable[Event]) -> list[Event]:
    return list({json.dumps(event): event for event in events}.values())


@pytest.mark.parametrize("close", [False, True])
def test_every_event_is_counted_once_by_what_became_of_it(ledger: Ledger, close: bool) -> None:
    clickstream = stream(5)
    joined_stream.run(SPLIT, ledger, logs_of(clickstream.parts), close=close)
    join = read_join(ledger)
    everything = list(chain.from_iterable(clickstream.parts.values()))
    shown = [event for event in distinct(everything) if event["kind"] == "shown"]
    clicks = [event for event in distinct(everything) if event["kind"] == "click"]
    assert join.closed_ms is not None and (join.pending == 0) == close
    at_ms = {event["id"]: event["ts"] for event in shown}
    assert join.events == len(everything)
    assert join.repeated == len(everything) - len(shown) - len(clicks) > 0
    assert join.closed == sum(time_ms < join.closed_ms for time_ms in at_ms.values())
    assert join.pending == len(shown) - join.closed
    assert (join.conflicts, join.late_impressions, join.late_outcomes) == (0,) * 3
    outcome = join.outcomes["click"]
    left = [event for event in clicks if event["ts"] < join.closed_ms]
    assert outcome.waiting == len(clicks) - len(left)
    delays = [event["ts"] - at_ms[event["id"]] for event in left if event["id"] in at_ms]
    within = [delay for delay in delays if delay < WINDOW_MS]
    assert outcome.attributed == len(within)
    assert outcome.unattributed - outcome.unknown == len(delays) - len(within) > 0
    assert outcome.unknown == len(left) - len(delays)
    assert outcome.share_after_window == pytest.approx(1 - len(within) / len(delays), rel=1e-14)
    half_s = int(next(join_outcomes(join))[3].removesuffix(" s"))
    assert sum(delay < 1000 * half_s for delay in within) >= len(within) / 2
    assert sum(delay < 500 * half_s for delay in within) < len(within) / 2


def test_a_window_that_cuts_outcomes_off_is_warned_of_unless_that_is_meant(ledger: Ledger) -> None:
    joined_stream.run(SPLIT, ledger, logs_of(stream(5).parts))
    (warning,) = read_join(ledger).warnings
    assert warning.startswith("the label window cuts off click: at least ")
    assert warning.endswith("raise [join] label_window_s, or warn_cut if this is intended")
    assert list(join_warnings(read_join(ledger), 0.9)) == []


def test_many_outcomes_in_the_last_tenth_are_warned_of(ledger: Ledger) -> None:
    events = [joined_stream.shown(f"i{n}", 0) for n in range(10)]
    events += [joined_stream.click(f"i{n}", WINDOW_MS - 1 - n) for n in range(10)]
    events = sorted(events, key=lambda event: event["ts"])
    joined_stream.run(SPLIT, ledger, logs_of({LOGS[0]: events}))
    (warning,) = read_join(ledger).warnings
    assert warning.startswith("the label window may cut off click: 100.0 % come in the last tenth")


def test_what_comes_too_late_is_counted_by_what_it_is(ledger: Ledger) -> None:
    events = [
        joined_stream.shown("new", 500_000),
        joined_stream.shown("old", 0),
        joined_stream.click("old", 1),
        joined_stream.click("older", 2),
    ]
    joined_stream.run(SPLIT, ledger, logs_of({LOGS[0]: events}), close=False)
    join = read_join(ledger)
    assert (join.late_impressions, join.late_outcomes, join.pending) == (1, 2, 1)
    assert (join.repeated, join.events) == (0, 4)


def test_a_store_that_joins_nothing_says_so_with_null(ledger: Ledger) -> None:
    whole = {LOGS[0]: Log([json.dumps(event).encode() for event in stream(5).whole])}
    joined_stream.run(WHOLE, ledger, whole)
    results = read_results(ledger, Query())
    assert results.join is None and json.loads(to_json(results))["join"] is None
    assert json.loads(status_json(ledger))["join"] is None
    assert "joined" not in status_text(ledger, Style(), title="x")


def test_answers_results_and_status_say_the_same_of_it(ledger: Ledger) -> None:
    joined_stream.run(SPLIT, ledger, logs_of(stream(5).parts), close=False)
    answer = to_json(read_results(ledger, Query()))
    assert to_json(QueryCache(ledger).results(Query())) == answer
    join = json.loads(answer)["join"]
    assert json.loads(status_json(ledger))["join"] == join
    assert join["pending"] == read_join(ledger).pending
    assert (
        sum(n for _, _, n in join["outcomes"]["click"]["delays_s"])
        == (join["outcomes"]["click"]["attributed"])
    )
    status = status_text(ledger, Style(), title="x")
    assert "joined, label window 40 s" in status and "warning: the label window cuts" in status


def test_a_reader_reads_again_only_the_panes_that_changed(ledger: Ledger) -> None:
    parts = stream(5).parts
    joined_stream.run(SPLIT, ledger, logs_of(parts), close=False)
    reader = JoinReader(ledger)
    reader.found()
    read = reader.panes_read
    assert read > 3
    assert reader.found()[0] == read_join(ledger) and reader.panes_read == read
    newest = max(event["ts"] for event in chain.from_iterable(parts.values()))
    events = [*parts[LOGS[0]], joined_stream.shown("one more", newest - joined_stream.START_MS)]
    joined_stream.run(SPLIT, ledger, logs_of({**parts, LOGS[0]: events}), close=False)
    assert reader.found()[0] == read_join(ledger)
    assert reader.panes_read == read + 1


def test_a_store_without_events_waits_for_nothing(ledger: Ledger) -> None:
    joined_stream.run(SPLIT, ledger, {LOGS[0]: Log([])}, close=False)
    join = read_join(ledger)
    assert (join.closed_ms, join.pending, join.events, join.warnings) == (None, 0, 0, ())
    assert json.loads(status_json(ledger))["join"]["share_pending"] is None
