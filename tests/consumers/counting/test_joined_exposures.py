"""[join] with [exposures]: an impression that is joined with its clicks is an event of its unit,
and counts in the arm of the unit's exposure as a whole event with a label would."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.counting.closer import Closer
from streammetrics_consumers.ledger.compact import Compactor
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.service import begin

from tests.consumers.exposed_stream import (
    EXPOSURES,
    LOGS,
    RANKER,
    START_MS,
    WINDOWS,
    Event,
    exposure,
    logs_of,
    results,
    run,
    verified,
)
from tests.consumers.joined_stream import WINDOW_MS
from tests.consumers.small_config import config

EVENT = 'time = "ts"\ntime_unit = "ms"\nuser = "user"'
METRICS = (
    'ctr = {{ type = "Ratio" }}\nclicks = {{ type = "UnitMean", inputs = {{ values = "{}" }} }}'
)
EXPERIMENT = RANKER.replace('["revenue", "buyers", "errors"]', '["ctr", "clicks"]')
JOIN = """\
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 40
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
PARTS = {"windows": WINDOWS, "slices": "by = [[]]"}
SPLIT = config(event=EVENT, metrics=METRICS.format("click"), rest=EXPOSURES + JOIN + EXPERIMENT,
               **PARTS)  # fmt: skip
WHOLE = config(
    event=f'{EVENT}\nlabel = "label"',
    metrics=METRICS.format("label"),
    rest=EXPOSURES + EXPERIMENT,
    **PARTS,
)
Parts = Mapping[Partition, Sequence[Event]]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(Ledger.open(str(tmp_path / "exposed.db"), create=True)) as ledger:
        yield ledger


def events_of(seed: int) -> tuple[Parts, Parts]:
    """Impressions, clicks and exposures by partition; and the same with whole events."""
    rng = random.Random(seed)
    split: list[Event] = []
    whole: list[Event] = []
    for number in range(40):
        user = f"u{number % 15}"
        at_ms = number * 3_000 + rng.randrange(3_000)
        shown = {"kind": "shown", "id": f"i{number}", "user": user, "ts": START_MS + at_ms}
        delays = [rng.randrange(2 * WINDOW_MS) for _ in range(rng.choice((0, 1, 2)))]
        split += [shown, *({"kind": "click", "id": f"i{number}", "ts": START_MS + at_ms + delay}
                           for delay in delays)]  # fmt: skip
        whole.append({**shown, "label": int(any(delay < WINDOW_MS for delay in delays))})
        if rng.random() < 0.5:
            exposure_event = exposure(
                user, at_ms + rng.choice((-5_000, 0, 1)), "ranker", rng.choice(("control", "v7"))
            )
            split.append(exposure_event)
            whole.append(exposure_event)
    return divided(split, rng), divided(whole, rng)


def divided(events: Sequence[Event], rng: random.Random) -> Parts:
    """The events in partitions, up to 10 seconds out of order."""
    parts: dict[Partition, list[tuple[int, Event]]] = {log: [] for log in LOGS}
    for event in events:
        for _ in range(rng.choice((1, 1, 2))):
            parts[rng.choice(LOGS)].append((event["ts"] + rng.randrange(10_000), event))
    return {log: [e for _, e in sorted(p, key=lambda entry: entry[0])] for log, p in parts.items()}


@pytest.mark.parametrize("seed", range(4))
def test_joined_impressions_count_in_the_arms_of_their_units_as_whole_events_do(
    ledger: Ledger, tmp_path: Path, seed: int
) -> None:
    split, whole = events_of(seed)
    run(SPLIT, ledger, logs_of(split))
    with closing(Ledger.open(str(tmp_path / "whole.db"), create=True)) as whole_ledger:
        run(WHOLE, whole_ledger, logs_of(whole))
        expected = results(whole_ledger)
    assert results(ledger) == expected
    assert ledger.snapshot().counters.closed == 40
    findings = verified(SPLIT, ledger, logs_of(split), tmp_path)
    assert findings.is_good and not findings.notes, (findings.differences, findings.notes)


def test_what_is_pending_of_both_is_read_in_parts_and_the_result_is_the_same(
    tmp_path: Path,
) -> None:
    split, _ = events_of(5)
    outcomes = []
    for max_bytes in (200, 1 << 26):
        url = str(tmp_path / f"{max_bytes}.db")
        with closing(Ledger.open(url, create=True)) as ledger:
            run(SPLIT, ledger, logs_of(split), close=False)
            list(Compactor(ledger.store, above=1).steps())
            findings = verified(SPLIT, ledger, logs_of(split), tmp_path)
            assert findings.is_good, (findings.differences, findings.notes)
            generation = begin(ledger, SPLIT).generation
            Closer(SPLIT, ledger, generation, max_bytes=max_bytes).close(everything=True)
            outcomes.append((results(ledger), ledger.snapshot().counters))
    assert outcomes[0] == outcomes[1]
