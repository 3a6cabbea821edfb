"""Events that come twice are counted once: [dedup], in a worker and in the ledger."""

from __future__ import annotations

import functools
import json
import random
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.config.section import ConfigError
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.settings import SettingsChanged
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.replay.verify import Wanted
from streammetrics_consumers.sources.memory_source import Assign, Deliver, Log, Lose, Revoke, Step

from tests.consumers.folded import KNOWN_BROKEN, Counted, counted, fold, records
from tests.consumers.joined_stream import EVENT as SPLIT_EVENT
from tests.consumers.joined_stream import JOIN, click, shown
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.replay.verified_run import CHUNKS, tried, verified
from tests.consumers.small_config import EVENT, event

EACH = "[store]\ncommit_interval_s = 0.01\n"
DEDUP = '[dedup]\nevent_id = "id"\nretention_s = 86400\nkeyed = true'
Values = list[bytes | None]


def twice(seed: int, n: int) -> tuple[Values, Values]:
    """Records that have ids, with repeats among them, and the same without."""
    rng = random.Random(seed)
    once: Values = []
    for i, value in enumerate(records(seed, n)):
        if value is None or value in KNOWN_BROKEN:
            once.append(value)
            continue
        once.append(json.dumps({**json.loads(value), "id": f"{seed} {i}"}).encode())
    again: Values = []
    for value in once:
        again.append(value)
        if rng.random() < 0.3:
            earlier = again[-1 - rng.randrange(min(len(again), 50))]
            if earlier is not None and earlier not in KNOWN_BROKEN:
                again.append(earlier)
    return again, once


def run_of(folder: Path, rest: str = DEDUP) -> Run:
    made = {ONE: Log(twice(1, 300)[0]), TWO: Log(twice(2, 150)[0])}
    run = Run(folder, made, rest=EACH + rest)
    run.clock.tick_s = 0.02
    return run


def without_repeats(found: Counted) -> tuple[object, object, object]:
    """What a ledger says of events that came once: states, kept counters, refused payloads."""
    kept = {
        log: replace(counters, rows=counters.rows - counters.repeated, repeated=0)
        for log, counters in found.counters.items()
    }
    return found.states, kept, len(found.refused)


def ledger_of(run: Run) -> Counted:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return counted(ledger)


@functools.cache
def once() -> Counted:
    return fold({ONE: twice(1, 300)[1], TWO: twice(2, 150)[1]})


SCRIPTS: dict[str, list[Step]] = {
    "whole chunks": [],
    "event by event": [Deliver(1)] * 40,
    "a few at a time": [Deliver(7)] * 40,
    "rebalances": [
        *[Deliver(40)] * 3, Revoke((ONE,)), *[Deliver(9)] * 2, Assign((ONE,)), *[Deliver(40)] * 2,
        Lose((ONE, TWO)), Assign((ONE, TWO)),
    ],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_repeats_are_counted_as_repeats_and_no_metric_sees_them(
    tmp_path: Path, script: str
) -> None:
    run = run_of(tmp_path)
    run(UNTIL_END, [*SCRIPTS[script], *CHUNKS])
    found = ledger_of(run)
    assert without_repeats(found) == without_repeats(once())
    extra = len(twice(1, 300)[0]) - len(twice(1, 300)[1])
    assert found.counters[ONE].repeated == extra > 20
    assert found.heads[ONE][0] == len(twice(1, 300)[0])


def test_a_repeat_in_another_run_is_known(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    first, second = event(phase="one")[:-1] + b', "id": "x"}', event()[:-1] + b', "id": "y"}'
    run.logs.clear()
    run.logs[ONE] = Log([first, second])
    run()
    run.logs[ONE].append(first, second, first)
    run()
    (head,) = run.seen().heads
    assert (head.counters.rows, head.counters.repeated) == (5, 3)


@pytest.mark.slow
def test_the_log_read_again_says_the_same_and_a_part_of_it_is_not_verified(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run(UNTIL_END, CHUNKS)
    found = verified(run, tmp_path)
    assert found.is_good, found.differences
    assert found.logs == 2
    found = verified(run, tmp_path, wanted=Wanted(offsets={0: (200, None)}))
    assert found.logs == 0
    assert any("are repeats follows from those before" in note for note in found.notes)
    other = run_of(tmp_path, rest=DEDUP.replace("86400", "3600"))
    with pytest.raises(SettingsChanged, match="dedup"):
        other()


@pytest.mark.slow
def test_the_repeat_of_a_refused_event_is_a_repeat_and_a_retry_counts_the_event_once(
    tmp_path: Path,
) -> None:
    bad = event(variant="c")[:-1] + b', "id": "x"}'
    run = Run(tmp_path, {ONE: Log([bad, bad, event()[:-1] + b', "id": "y"}'])}, rest=DEDUP)
    run()
    (head,) = run.seen().heads
    assert (head.counters.quarantined, head.counters.repeated) == (1, 1)
    more = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
    other = Run(tmp_path, run.logs, event=more, rest=DEDUP)
    other()
    assert tried(other, other.config) == 1
    assert verified(other, tmp_path).is_good


def test_an_event_without_an_id_is_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log([event()])}, rest=DEDUP)
    run()
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (entry,) = ledger.quarantine()
    assert (entry.reason, entry.field) == ("missing_field", "id")


@pytest.mark.slow
def test_several_partitions_are_refused_unless_repeats_come_to_the_same(tmp_path: Path) -> None:
    run = run_of(tmp_path, rest=DEDUP.replace("keyed = true", ""))
    with pytest.raises(ConfigError, match=r"\[dedup\] keyed: expected true, since a topic has"):
        run()


def test_outcomes_of_one_moment_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """The same click in two partitions is one, and two clicks at once are two."""
    clicks = [{**click("i", 5), "event": name} for name in ("a", "b")]
    impression = {**shown("i", 0), "event": "c"}
    values = [json.dumps(one).encode() for one in (impression, *clicks, clicks[0])]
    logs = {ONE: Log(list(values)), TWO: Log(list(values[1:3]))}
    counts = JOIN.replace('equals = "click"', 'equals = "click", counts = "count"')
    rest = counts + DEDUP.replace('"id"', '"event"')
    ctr = 'ctr = { type = "Ratio" }'
    run = Run(tmp_path, logs, event=SPLIT_EVENT, slices="by = [[]]", metrics=ctr, rest=rest)
    run(Options(until_end=True, close=True))
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (found,) = (
            row.value
            for row in read_results(ledger, parse_query("total")).rows
            if row.view == "numerator"
        )
    assert found == 2
    (one,) = (head for head in run.seen().heads if head.partition == ONE)
    assert one.counters.repeated == 1
