"""Events that [event] where does not mean, from the log to every place that says what was read."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import update
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import ErrorBudgetExceeded
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import Counters
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.render.store_text import status_text
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.terminal import Watcher, screen
from streammetrics_consumers.render.text import table
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.server.exposition import exposition
from streammetrics_consumers.server.health import HealthMonitor, WatchedWorkers

from tests.consumers.memory_run import ONE, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log
from tests.consumers.replay.verified_run import EACH, change, tried, verified
from tests.consumers.small_config import EVENT, config, event
from tests.consumers.stores import filled_once

T = TypeVar("T")

ROLES = EVENT.replace('variant = "variant"', 'variant = "exps.e00"').replace('user = "user"\n', "")
WHERE = ROLES + 'where = { "exps.e00" = "present" }\n'
SLICES = 'by = [[], ["variant"]]'
METRICS = 'ctr = { type = "Ratio" }'


def line(i: int) -> bytes:
    """Seven of ten events are of other experiments; one in fifty is broken."""
    row: dict[str, object] = {"ts": f"2024-01-01T{i // 60:02d}:{i % 60:02d}:00Z", "label": i % 2}
    if i % 10 < 3:
        row["exps"] = {"e00": "ab"[i % 2]}
    return b"{" if i % 50 == 49 else json.dumps(row).encode()


LINES: list[bytes | None] = [line(i) for i in range(200)]
MEANT = [value for i, value in enumerate(LINES) if i % 10 < 3 or i % 50 == 49]


def run_over(folder: Path, values: list[bytes | None], roles: str = WHERE, rest: str = EACH,
             *, watched: bool = False) -> Run:  # fmt: skip
    folder.mkdir(exist_ok=True)
    run = Run(folder, {ONE: Log(values)}, event=roles, slices=SLICES, metrics=METRICS, rest=rest)
    run.clock.tick_s = 0.02
    if watched:  # a copy of a store would have no status
        run(UNTIL_END, [Deliver(50)] * 40)
        return run
    key = ("skipped", roles, rest, *values[:100])
    filled_once(Path(run.config.store.url), key, lambda: run(UNTIL_END, [Deliver(50)] * 40))
    return run


def read(run: Run, query: Callable[[Ledger], T]) -> T:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return query(ledger)


def counted(run: Run) -> list[tuple[object, str]]:
    rows = read(run, lambda ledger: read_results(ledger, parse_query("all"))).rows
    return [((row.window, row.slice, row.view), row.digest) for row in rows]


def test_they_fill_no_quarantine_change_no_result_and_are_verified(tmp_path: Path) -> None:
    run = run_over(tmp_path, LINES)
    assert run.snapshot().counters == Counters(rows=200, skipped=136, quarantined=4)
    filtered = run_over(tmp_path / "alone", MEANT, ROLES)
    assert counted(run) == counted(filtered)
    assert verified(run, tmp_path).is_good
    change(run, lambda c: c.execute(update(schema.head).values(skipped=schema.head.c.skipped + 1)))
    differences = "\n".join(verified(run, tmp_path).differences)
    assert "skipped: 137 in the ledger, 136 from the log" in differences


def test_another_where_is_refused_by_run_verify_and_retry(tmp_path: Path) -> None:
    run = run_over(tmp_path, LINES)
    settings = config(
        event=WHERE.replace("present", "absent"), slices=SLICES, metrics=METRICS, rest=EACH
    )
    for act in (
        lambda: run(UNTIL_END, config=run_config(run, settings)),
        lambda: verified(run, tmp_path, run_config(run, settings)),
        lambda: tried(run, run_config(run, settings)),
    ):
        with pytest.raises(SettingsChanged, match="where"):
            act()
    assert tried(run, run.config) == 0


def run_config(run: Run, settings: Config) -> Config:
    return replace(settings, store=run.config.store)


def test_every_result_counts_them_by_one_name(tmp_path: Path) -> None:
    run = run_over(tmp_path, LINES, watched=True)
    with closing(Ledger.open(run.config.store.url)) as ledger:
        results = read_results(ledger, Query())
        style = Style()
        watched = WatchedWorkers(lambda: {"0": run.watch.snapshot()}, lambda: 1.0, lambda: 1.0)
        texts = {
            "results": table(results, style, title="t"),
            "watch": screen(Watcher(ledger, Query(), lambda: 0.0).look(), style),
        }
        status = json.loads(status_json(ledger))
        assert "skipped" in status_text(ledger, style, title="t")
        health = dumps(HealthMonitor(ledger, watched).health())
        answers = [json.loads(to_json(results)), json.loads(health)]
        scrape = exposition(ledger, watched).decode()
    for name, text in texts.items():
        assert "136 skipped" in text, name
    (log,) = status["logs"]
    assert [answer["skipped"] for answer in (*answers, log)] == [136] * 3
    samples = {s.name: s.value for f in text_string_to_metric_families(scrape) for s in f.samples}
    assert samples["streammetrics_store_skipped_events"] == 136
    assert samples["streammetrics_events_skipped_total"] == 136


def test_where_no_event_is_meant_results_say_so(tmp_path: Path) -> None:
    run = run_over(tmp_path, LINES[:40], WHERE.replace("exps.e00", "exp.e00"))
    text = table(read(run, lambda ledger: read_results(ledger, Query())), Style(), title="t")
    assert "no event meets [event] where: all are skipped" in text
    partial_run = run_over(tmp_path / "some", LINES[:40])
    text = table(
        read(partial_run, lambda ledger: read_results(ledger, Query())), Style(), title="t"
    )
    assert "no event meets" not in text


def test_the_share_of_bad_events_is_of_those_that_are_meant(tmp_path: Path) -> None:
    bad: list[bytes | None] = [b"{" if i % 20 == 0 else LINES[5] for i in range(2000)]
    bad[1::40] = [LINES[0]] * 50
    rest = "[store]\nmax_bad_share = 0.5"
    with pytest.raises(ErrorBudgetExceeded, match="100 of 150 events were refused"):
        run_over(tmp_path, bad, rest=rest)


def test_a_retry_says_which_events_the_config_does_not_mean_any_more(tmp_path: Path) -> None:
    roles = EVENT + 'where = { user = "present" }\n'
    values: list[bytes | None] = [event(variant="c"), event(variant="c", phase="p" * 9000)]
    run = Run(tmp_path, {ONE: Log(values)}, event=roles, rest=EACH)
    run(UNTIL_END)
    moved = roles.replace('["a", "b"]', '["a", "b", "c"]').replace('user = "user"', 'user = "who"')
    settings = run_config(run, config(event=moved, rest=EACH))

    with closing(Ledger.open(run.config.store.url)) as ledger:
        (page,) = retry(settings, ledger, now_ms=lambda: 7, opener=run.opener)
    assert [(refusal.entry.offset, refusal.reason) for refusal in page.still] == [
        (0, "skipped"),
        (1, "skipped"),
    ]
    assert page.counted == []
