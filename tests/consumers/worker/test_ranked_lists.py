"""Ranked lists from a log, an impression or a list an event: however it is cut, one answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from streammetrics_consumers.query.results import Results, to_json
from streammetrics_consumers.sources.files import file_source

from streammetrics import Accumulator, GroupedScores, RankingMetrics
from tests.consumers.impressions import (
    MEASURES,
    OF_IMPRESSIONS,
    OF_LISTS,
    Event,
    as_lines,
    as_lists,
    columns,
    counted,
    hour_of,
    impressions,
    without_offsets,
)
from tests.consumers.obd_men import from_kafka
from tests.kafka_broker import Record, create_topic, produce, unique_topic

IMPRESSIONS = impressions(1, 150)
LISTS = as_lists(impressions(2, 150))
PARTITIONS = 3


def written(folder: Path, events: Sequence[Event]) -> str:
    """A file of events, as [source]."""
    path = folder / "events.jsonl"
    path.write_bytes(b"\n".join(as_lines(events)) + b"\n")
    return f'kind = "file"\npath = "{path}"'


def of_impressions(events: Sequence[Event]) -> Accumulator:
    found = columns(events)
    state = GroupedScores(
        MEASURES, ids="hashed", item_ids="hashed", duplicates="conflict", max_rows=10_000_000
    )
    state.update(
        found["grade"],
        found["score"],
        lists=found["query"],
        items=found["doc"],
        judged=found["known"],
    )
    return state


def of_lists(events: Sequence[Event]) -> Accumulator:
    flat = {
        name: [value for event in events for value in event[name]]
        for name in ("grade", "score", "known")
    }
    offsets = np.cumsum([0, *(len(event["grade"]) for event in events)])
    state = RankingMetrics(MEASURES)
    state.update(flat["grade"], flat["score"], offsets=offsets, judged=flat["known"])
    return state


def require_those_of_the_library(found: Results, events: Sequence[Event], fed: object) -> None:
    """Every digest and value is that of the library fed with the rows of the window and slice."""
    assert callable(fed)
    assert (found.rows_read, found.quarantined, found.late) == (len(events), 0, 0)
    checked = set()
    for row in found.rows:
        some = [event for event in events if all(event[k] == v for k, v in row.slice.items())]
        start = row.window.start_ms
        if start is not None:
            some = [event for event in some if hour_of(event) == start]
        state = fed(some)
        result = state.compute()
        assert row.digest == state.digest()
        assert row.value == result[row.view] or np.isnan([row.value, result[row.view]]).all()
        for name in ("lists_kept", "lists_empty", "conflicting", "rows"):
            assert row.counts[name] == getattr(result, name)
        checked.add((start, row.slice.get("variant"), row.view))
    assert checked == {
        (start, variant, measure)
        for event in events
        for start in (None, hour_of(event))
        for variant in (None, event["variant"])
        for measure in MEASURES
    }


@pytest.mark.slow
def test_impressions_of_a_file_have_the_results_of_the_library(tmp_path: Path) -> None:
    found = counted(tmp_path, written(tmp_path, IMPRESSIONS))
    require_those_of_the_library(found, IMPRESSIONS, of_impressions)
    (total,) = (
        r for r in found.rows if not r.slice and r.view == "MRR" and r.window.start_ms is None
    )
    assert total.counts["conflicting"] > 5 and total.counts["lists_kept"] > 50


@pytest.mark.slow
def test_lists_of_a_file_have_the_results_of_the_library(tmp_path: Path) -> None:
    found = counted(tmp_path, written(tmp_path, LISTS), OF_LISTS)
    require_those_of_the_library(found, LISTS, of_lists)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metrics", "events"),
    [
        pytest.param(OF_IMPRESSIONS, IMPRESSIONS, id="impressions", marks=pytest.mark.slow),
        pytest.param(OF_LISTS, LISTS, id="lists"),
    ],
)
def test_no_chunk_and_no_commit_leaves_a_trace(
    metrics: str, events: Sequence[Event], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = written(tmp_path, events)
    expected = to_json(counted(tmp_path / "whole", source, metrics))
    for records, rows in ((1, 40), (7, 7), (200, 1)):
        monkeypatch.setattr(file_source, "CHUNK_RECORDS", records)
        found = counted(tmp_path / str(records), source, metrics, max_delta_rows=rows)
        assert to_json(found) == expected


@pytest.mark.parametrize(
    ("metrics", "events"), [(OF_IMPRESSIONS, IMPRESSIONS), (OF_LISTS, LISTS)],
    ids=["impressions", "lists"],
)  # fmt: skip
def test_lists_over_several_partitions_have_the_results_of_the_file(
    metrics: str, events: Sequence[Event], kafka: str, tmp_path: Path
) -> None:
    topic = create_topic(kafka, PARTITIONS, configs={"retention.ms": "-1"})
    records = [
        Record(line, number % PARTITIONS, timestamp_ms=event["ts"])
        for number, (event, line) in enumerate(zip(events, as_lines(events), strict=True))
    ]
    produce(kafka, topic, records)
    by_file = counted(tmp_path, written(tmp_path, events), metrics)
    texts = set()
    for most, interval_s in ((1000, 60.0), (5, 0.01)):
        source = from_kafka(kafka, topic, unique_topic("group"), records=most)
        found = counted(tmp_path / str(most), source, metrics, interval_s=interval_s)
        assert len(found.offsets) == PARTITIONS
        texts.add(to_json(found))
        assert to_json(without_offsets(found)) == to_json(without_offsets(by_file))
    assert len(texts) == 1
