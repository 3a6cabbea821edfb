"""A stream of impressions and clicks over several partitions, out of order and with repeats, and
the same as whole events, which is what must come of it."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker import Worker
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results

from tests.consumers.memory_run import worker_of
from tests.consumers.memory_source import Log, MemorySource, Step
from tests.consumers.small_config import config

WINDOW_MS = 40_000
LATENESS_MS = 10_000
START_MS = 1_700_000_000_000
LOGS = tuple(Partition("test", "events", "id", number) for number in range(3))
EVENT = 'time = "ts"\ntime_unit = "ms"\nvariant = "variant"\nvariants = ["a", "b"]\nscore = "score"'
WINDOWS = "size_s = 60\nlateness_s = 10\nretention_s = 86400"
SLICES = 'by = [[], ["variant"]]'
METRICS = 'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }'
JOIN = """\
[store]
commit_interval_s = 0.5
[join]
id = "id"
impression = { field = "kind", equals = "shown" }
label_window_s = 40
[join.outcomes]
click = { field = "kind", equals = "click" }
"""
SPLIT = config(event=EVENT, windows=WINDOWS, slices=SLICES, metrics=METRICS, rest=JOIN)
WHOLE = config(
    event=f'{EVENT}\nlabel = "label"', windows=WINDOWS, slices=SLICES, metrics=METRICS
)  # fmt: skip

Event = Mapping[str, Any]
Found = Mapping[tuple[object, ...], str]


def shown(id_: str, at_ms: int, score: float = 0.5, variant: str = "a") -> Event:
    """An impression; times count from START_MS."""
    return {"kind": "shown", "id": id_, "ts": START_MS + at_ms, "score": score, "variant": variant}


def click(id_: str, at_ms: int) -> Event:
    """A click."""
    return {"kind": "click", "id": id_, "ts": START_MS + at_ms}


@dataclass(frozen=True)
class Stream:
    """Events by partition in their order, and the whole events that come of them."""

    parts: Mapping[Partition, Sequence[Event]]
    whole: Sequence[Event]


def stream(seed: int, impressions: int = 120) -> Stream:
    """Clicks in other partitions than their impressions, some too late, some without one; events
    come up to the lateness out of order, and some again."""
    rng = random.Random(seed)
    got: dict[Partition, list[tuple[int, Event]]] = {log: [] for log in LOGS}
    whole = []
    for number in range(impressions):
        at_ms = number * 2_000 + rng.randrange(2_000)
        impression = shown(f"i{number}", at_ms, rng.randrange(64) / 64, rng.choice("ab"))
        delays = [rng.randrange(2 * WINDOW_MS) for _ in range(rng.choice((0, 0, 1, 2)))]
        whole.append({**impression, "label": int(any(delay < WINDOW_MS for delay in delays))})
        clicks = [click(f"i{number}", at_ms + delay) for delay in delays]
        if rng.random() < 0.05:
            clicks.append(click(f"nobody {number}", at_ms))
        for event in (impression, *clicks):
            log = rng.choice(LOGS)
            for _ in range(rng.choice((1, 1, 2))):
                got[log].append((event["ts"] + rng.randrange(LATENESS_MS), event))
    parts = {
        log: [e for _, e in sorted(arrivals, key=lambda p: p[0])] for log, arrivals in got.items()
    }
    return Stream(parts, whole)


def logs_of(parts: Mapping[Partition, Sequence[Event]]) -> dict[Partition, Log]:
    """The events as JSON."""
    return {log: Log([json.dumps(e).encode() for e in events]) for log, events in parts.items()}


def run(run_config: Config, ledger: Ledger, logs: Mapping[Partition, Log],
        script: Sequence[Step] = (), *, close: bool = True) -> Worker:  # fmt: skip
    """Count to the end."""
    source = MemorySource(logs, script, limit=20)
    options = Options(until_end=True, close=close)
    worker = worker_of(run_config, ledger, source, monotonic=lambda: 0.0, options=options)
    for _ in worker.run():
        pass
    return worker


def digests(ledger: Ledger) -> Found:
    """The digests of all results, by what they are of."""
    rows = read_results(ledger, parse_query("all")).rows
    return {
        (row.window.start_ms, str(sorted(row.slice.items())), row.metric, row.view): str(row.digest)
        for row in rows
    }


def config_at(run_config: Config, url: str) -> Config:
    """The config with another store."""
    return replace(run_config, store=replace(run_config.store, url=url))
