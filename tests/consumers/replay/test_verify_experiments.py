"""A store with experiments that began, ended and were resumed on the way: a retry counts an event
for those that its offset belongs to, compaction changes nothing, and `verify` reproduces all."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.folded import counted, time_of
from tests.consumers.many_experiments import EVENTS
from tests.consumers.memory_run import ONE, UNTIL_END, Run
from tests.consumers.memory_source import Log
from tests.consumers.process.test_experiment_lifecycle import (
    ALL,
    FIRST,
    SECOND,
    N,
    config_of,
    go_on,
    separate_states,
    states,
)
from tests.consumers.replay.verified_run import CHUNKS, EACH, tried, verified
from tests.consumers.small_config import METRICS

LATE = "[experiments.late]\n" + FIRST.partition("\n")[2].replace(
    "mde", 'variant = "exps.plain"\nmde'
)
AHEAD = (N // 2, N + N // 2, 2 * N + N // 2)  # offsets of events that are refused


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """`three` has a hole from N to 2 N, and `late` begins at 2 N; each third has a refused one."""
    times = [time_of(json.loads(value or b"")) for value in ALL]
    ahead = [ms - 10**6 * (place in AHEAD) for place, ms in enumerate(times)]
    log = Log(ALL[:N], timestamps_ms=ahead)
    run = Run(tmp_path, {ONE: log}, event=EVENTS, metrics=METRICS, rest=FIRST + SECOND + EACH)
    run.clock.tick_s = 0.02
    run(UNTIL_END, CHUNKS)
    go_on(run, FIRST, drop=("experiment/three",))
    go_on(run, FIRST + SECOND + LATE, resume=("experiment/three",))
    return run


def test_a_retry_counts_for_the_experiments_that_the_offset_belongs_to(
    run: Run, tmp_path: Path
) -> None:
    settings = config_of(run, FIRST + SECOND + LATE)
    assert run.snapshot().counters.quarantined == len(AHEAD)
    assert verified(run, tmp_path, settings).is_good
    lenient = replace(settings, windows=replace(settings.windows, max_ahead_s=10**6))
    assert tried(run, lenient) == len(AHEAD)
    parts = {"plain": (FIRST, [range(3 * N)]),
             "three": (SECOND, [range(N), range(2 * N, 3 * N)]),
             "late": (LATE, [range(2 * N, 3 * N)])}  # fmt: skip
    for name, (rest, ranges) in parts.items():
        assert states(run, name) == separate_states(tmp_path / name, name, rest, *ranges), name
    assert verified(run, tmp_path, settings).differences == []
    with closing(Ledger.open(run.config.store.url)) as ledger:
        before = counted(ledger)
        merged = [*Compactor(ledger.store, above=1).steps()]
        assert merged and counted(ledger) == before
    findings = verified(run, tmp_path, settings)
    assert findings.is_good, (findings.differences, findings.notes)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        (metric, *_) = (m for m in ledger.generation().metrics if m.name == "experiment/three/ctr")
        assert (
            not metric.counts(1, AHEAD[1])
            and metric.counts(1, AHEAD[0])
            and metric.counts(1, AHEAD[2])
        )
