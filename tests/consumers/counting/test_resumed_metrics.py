"""A metric that was dropped and comes back: what it missed is stated, and no more is missing."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import delete, select
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.compact import compact
from streammetrics_consumers.ledger.failures import SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.generation import Requested
from streammetrics_consumers.query.query import Query, parse_query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.state_files import export
from streammetrics_consumers.query.status import status_json
from streammetrics_consumers.render.store_text import status_text
from streammetrics_consumers.render.style import Style
from streammetrics_consumers.render.text import table
from streammetrics_consumers.replay.verify import verify

from streammetrics import Ratio
from tests.consumers import joined_stream as joined
from tests.consumers.folded import records
from tests.consumers.memory_run import ONE, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log, MemorySource
from tests.consumers.replay.verified_run import EACH, change, verified
from tests.consumers.small_config import EVENT, config
from tests.consumers.stores import filled_once

CHUNKS = [Deliver(10)] * 20
BOTH = 'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }'
ALONE = 'auc = { type = "HistogramAUC" }'
DROP = replace(UNTIL_END, requested=Requested(drop=("ctr",)))
RESUME = replace(UNTIL_END, requested=Requested(resume=("ctr",)))
N = 30
PARTS = [list(records(seed, N)) for seed in (1, 2, 3)]


def config_of(run: Run, metrics: str) -> Config:
    return replace(config(metrics=metrics, rest=EACH), store=run.config.store)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Events with a metric, events without, and events with it again."""
    gap_run = Run(tmp_path, {ONE: Log(list(PARTS[0]))}, metrics=BOTH, rest=EACH)

    def fill() -> None:
        gap_run.clock.tick_s = 0.02
        gap_run(UNTIL_END, CHUNKS)
        gap_run.logs[ONE].append(*PARTS[1])
        gap_run(DROP, CHUNKS, config=config_of(gap_run, ALONE))
        gap_run.logs[ONE].append(*PARTS[2])
        gap_run(RESUME, CHUNKS)

    filled_once(Path(gap_run.config.store.url), ("resumed",), fill)
    gap_run.logs[ONE] = Log([*PARTS[0], *PARTS[1], *PARTS[2]])
    return gap_run


def total(run: Run) -> Ratio:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        ratio = export(ledger, parse_query(by="", metric="ctr"))
    assert isinstance(ratio, Ratio)
    return ratio


def test_it_counts_what_came_before_it_was_dropped_and_after_it_came_back(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    gapless_run = Run(
        tmp_path / "other", {ONE: Log([*PARTS[0], *PARTS[2]])}, metrics=BOTH, rest=EACH
    )
    gapless_run(UNTIL_END, CHUNKS)
    ratio = total(run)
    assert ratio == total(gapless_run)
    spans = {(start, end) for source, _, start, end in ratio.provenance if "~" not in source}
    assert spans == {(0, N), (2 * N, 3 * N)}


def test_verify_expects_nothing_in_the_hole_and_all_around_it(run: Run, tmp_path: Path) -> None:
    assert verified(run, tmp_path).is_good
    with closing(Ledger.open(run.config.store.url)) as ledger:
        compact(ledger.store)
    assert verified(run, tmp_path).is_good
    last = select(schema.delta.c.id).where(schema.delta.c.metric == "ctr").limit(1)
    change(run, lambda c: c.execute(delete(schema.delta).where(schema.delta.c.id.in_(last))))
    assert not verified(run, tmp_path).is_good


def test_results_and_status_state_the_hole(run: Run) -> None:
    note = (
        "Metric ctr was dropped and later resumed: it did not count offsets 30 to 59 of events/0."
    )
    with closing(Ledger.open(run.config.store.url)) as ledger:
        results = read_results(ledger, Query())
        assert results.notes == (note,)
        assert note in " ".join(table(results, Style(), title="t").split())
        status = json.loads(status_json(ledger))
        assert "ctr (with a hole)" in status_text(ledger, Style(), title="t")
    holes = {metric["name"]: metric["holes"] for metric in status["metrics"]}
    assert holes == {
        "auc": [],
        "ctr": [{"log": "events/0", "start_offset": N, "end_offset": 2 * N}],
    }


def test_a_metric_of_joined_events_misses_the_impressions_that_were_closed_meanwhile(
    tmp_path: Path,
) -> None:
    events = joined.stream(3).parts[joined.LOGS[0]]
    shown = [row for row in events if row["kind"] == "shown"]
    third = len(shown) // 3
    auc_settings = replace(joined.SPLIT, metrics=joined.SPLIT.metrics[:1])
    steps = [
        (joined.SPLIT, third, Requested()),
        (auc_settings, 2 * third, Requested(drop=("ctr",))),
        (joined.SPLIT, 3 * third, Requested(resume=("ctr",))),
    ]
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        for settings, n, requested in steps:
            ledger.begin(settings.fingerprints(), settings.descriptions, requested=requested)
            joined.run(settings, ledger, joined.logs_of({joined.LOGS[0]: shown[:n]}), close=False)
        snapshot = ledger.snapshot()
        (join,) = [head for head in snapshot.heads if head.is_join]
        (ctr,) = [metric for metric in snapshot.generation.metrics if metric.name == "ctr"]
        assert list(ctr.holes) == [join.id]
        (note,) = read_results(ledger, Query()).notes
        assert note.startswith(
            "Metric ctr was dropped and later resumed: it did not count impressions"
        )
        logs = joined.logs_of({joined.LOGS[0]: shown})
        with closing(Ledger.open(str(tmp_path / "scratch.db"), create=True)) as scratch:
            findings = verify(joined.SPLIT, ledger, scratch, monotonic=lambda: 0.0,
                           opener=lambda config, options: MemorySource(logs))  # fmt: skip
        assert findings.is_good, (findings.differences, findings.notes)


EXPERIMENT = '\n[experiment]\ncontrol = "a"\ndecision = ["ctr"]\n'


def test_an_arm_more_in_a_running_experiment_is_refused_with_what_to_do(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(list(PARTS[0]))}, metrics=BOTH + EXPERIMENT, rest=EACH)
    run(UNTIL_END, CHUNKS)
    event = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
    settings = config(event=event, metrics=BOTH + EXPERIMENT, rest=EACH)
    settings = replace(settings, store=run.config.store)
    with pytest.raises(SettingsChanged) as caught:
        run(Options(until_end=True), CHUNKS, config=settings)
    message = str(caught.value)
    assert message.startswith("experiment: c cannot be added while it runs")
    assert message.count("cannot be added") == 1
    assert "--new-generation, with --from for that time" in message and "unknown_variant" in message
    run(UNTIL_END, CHUNKS)  # as before
    run(UNTIL_END, CHUNKS, config=settings, new_generation=True)
    assert run.snapshot().generation.id == 2
