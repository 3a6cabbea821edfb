"""When a window is closed: the watermark, and partitions that are idle."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from msgspec import structs
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import SHOWN
from streammetrics_consumers.query.query import parse_query
from streammetrics_consumers.query.query_plan import idle_heads, watermark_ms
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.render.store_text import status_text
from streammetrics_consumers.render.style import Style

from tests.consumers.memory_run import ONE, TWO, Run
from tests.consumers.memory_source import Log
from tests.consumers.small_config import WINDOWS, event

HOUR_MS, DAY_MS = 3_600_000, 1_704_067_200_000
THREE = replace(ONE, number=2)


def event_at(hour: int, minute: int = 0) -> bytes:
    return event(f"2024-01-01T{hour:02}:{minute:02}:00Z")


def counted(folder: Path, idle_timeout_s: int, *, quiet: int = 1) -> Run:
    """One partition reads until 6:30, one stops at `quiet` o'clock, one never has an event."""
    logs = {
        ONE: Log([event_at(hour, 30) for hour in range(7)]),
        TWO: Log([event_at(hour) for hour in range(quiet + 1)]),
        THREE: Log([None]),
    }
    windows = f"{WINDOWS}\nidle_timeout_s = {idle_timeout_s}"
    run = Run(folder, logs, windows=windows)
    run(Options(until_end=True))
    return run


def test_a_partition_without_events_holds_windows_open_until_it_is_idle(tmp_path: Path) -> None:
    answers = []
    for seconds, expected in (
        (20 * 3600, ["closing"] + ["open"] * 6),
        (3600, ["closed"] * 6 + ["open"]),
    ):
        folder = tmp_path / str(seconds)
        folder.mkdir()
        run = counted(folder, seconds)
        with closing(Ledger.open(run.config.store.url)) as ledger:
            results = read_results(ledger, parse_query("all"))
        states = {row.window.start_ms: row.window.state for row in results.rows}
        assert [states[DAY_MS + hour * HOUR_MS] for hour in range(7)] == expected
        # It is shown, and in no value and no digest.
        rows = tuple(
            replace(row, window=structs.replace(row.window, state="total")) for row in results.rows
        )
        answers.append((to_json(structs.replace(results, rows=rows)), run.config.fingerprints()))
    assert answers[0] == answers[1]
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert status_json(ledger).count(b'"idle": true') == 2
        assert status_text(ledger, Style(width=100), title="run.db").count("(idle)") == 1


def test_an_idle_partition_is_so_only_beside_others(tmp_path: Path) -> None:
    snapshot = counted(tmp_path, 3600).snapshot()
    assert idle_heads(snapshot) == {2, 3}
    assert watermark_ms(snapshot) == DAY_MS + 6 * HOUR_MS + HOUR_MS // 2
    subset = replace(snapshot, heads=snapshot.heads[1:])
    assert idle_heads(subset) == {3}
    assert watermark_ms(subset) == DAY_MS + HOUR_MS
    assert watermark_ms(replace(snapshot, heads=snapshot.heads[2:])) is None


def test_exactly_the_timeout_behind_is_not_idle(tmp_path: Path) -> None:
    snapshot = counted(tmp_path, 5400, quiet=5).snapshot()
    assert idle_heads(snapshot) == {3}
    metrics = tuple(
        replace(metric, description={**metric.description, SHOWN: {"idle_timeout_s": 5399}})
        for metric in snapshot.generation.metrics
    )
    less = replace(snapshot, generation=replace(snapshot.generation, metrics=metrics))
    assert idle_heads(less) == {2, 3}
