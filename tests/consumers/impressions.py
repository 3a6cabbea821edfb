"""Impressions of ranked lists: one an event, or a whole list an event, and runs that count them."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from msgspec import structs
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results import Results

DAY_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
HOUR_MS = 3_600_000
MEASURES = ("NDCG@3", "MRR", "AP@5", "Bpref", "PooledHR@2")

Event = Mapping[str, Any]

_TOML = """\
[source]
{source}
[event]
time = "ts"
time_unit = "ms"
variant = "variant"
list = "query"
item = "doc"
label = "grade"
score = "score"
[windows]
size_s = 3600
lateness_s = 86400
max_ahead_s = 3600
retention_s = 864000
[slices]
by = [[], ["variant"]]
[metrics]
{metrics}
[store]
url = "{store}"
commit_interval_s = {interval_s}
"""
_METRIC = 'm = {{ type = "{0}", measures = {1}, inputs = {{ judged = "known" }} }}'
OF_IMPRESSIONS = _METRIC.format("GroupedScores", list(MEASURES))
OF_LISTS = _METRIC.format("RankingMetrics", list(MEASURES))


def impressions(seed: int, lists: int) -> list[dict[str, Any]]:
    """Shuffled impressions of lists over three hours; in some lists an item comes twice."""
    rng = random.Random(seed)
    found = []
    for number in range(lists):
        begin_ms = DAY_MS + rng.randrange(3 * HOUR_MS)
        items = rng.sample(range(40), rng.randrange(1, 9))
        if rng.random() < 0.1:
            items.append(rng.choice(items))
        for item in items:
            known = rng.random() < 0.8
            found.append(
                {
                    "ts": begin_ms + rng.randrange(600_000),  # some straddle the end of an hour
                    "variant": rng.choice("ab"),
                    "query": f"q{number}",
                    "doc": f"d{item}",
                    "grade": rng.choice((0, 0, 1, 3)) if known else 0,
                    "score": rng.randrange(-6, 6) / 4,
                    "known": known,
                }
            )
    rng.shuffle(found)
    return found


def as_lists(events: Iterable[Event]) -> list[dict[str, Any]]:
    """An event for each list, at the time of its first impression, in order of time."""
    lists: dict[str, list[Event]] = {}
    for event in events:
        lists.setdefault(event["query"], []).append(event)
    found = [
        {
            "ts": min(event["ts"] for event in list_),
            "variant": list_[0]["variant"],
            **{name: [event[name] for event in list_] for name in ("grade", "score", "known")},
        }
        for list_ in lists.values()
    ]
    return sorted(found, key=lambda event: int(event["ts"]))


def as_lines(events: Iterable[Event]) -> list[bytes]:
    """JSON, one event a line."""
    return [json.dumps(event).encode() for event in events]


def hour_of(event: Event) -> int:
    """The start of its window in milliseconds."""
    time: int = event["ts"]
    return time // HOUR_MS * HOUR_MS


def counted(
    folder: Path,
    source: str,
    metrics: str = OF_IMPRESSIONS,
    *,
    interval_s: float = 60.0,
    max_delta_rows: int = 200_000,
) -> Results:
    """All results of a run to the end, in a store of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.toml"
    store = folder / "run.db"
    path.write_text(
        _TOML.format(source=source, metrics=metrics, store=store, interval_s=interval_s)
    )
    options = Options(until_end=True, max_delta_rows=max_delta_rows)
    service.run(load_config(path), options, stop=Stop())
    with closing(Ledger.open(str(store))) as ledger:
        return read_results(ledger, parse_query("all"))


def without_offsets(found: Results) -> Results:
    """What does not depend on how a log is split into partitions."""
    rows = (replace(row, window=structs.replace(row.window, state="total")) for row in found.rows)
    return replace(found, offsets={}, watermark_ms=None, rows=tuple(rows))


def columns(events: Sequence[Event]) -> dict[str, list[Any]]:
    """The fields of events as columns."""
    return {name: [event[name] for event in events] for name in events[0]}
