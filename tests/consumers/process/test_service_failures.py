"""`run`: what it does about gaps, failing sources, changed settings and bad events."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, NewSource
from streammetrics_consumers.ledger.settings import SettingsChanged
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.process.service import FIRST_TRIES
from streammetrics_consumers.sources import Disconnected, GapError
from streammetrics_consumers.sources.memory_source import Deliver, Fail, Log

from tests.consumers.folded import counted, fold, records
from tests.consumers.memory_run import GOOD, ONE, UNTIL_END, Run, log

pytestmark = pytest.mark.usefixtures("each_store")
NEW_SOURCE = Options(until_end=True, new_source=True)

# -- gaps and other logs


def test_a_gap_stops_and_says_what_is_missing(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run()
    run.logs[ONE] = log(5, beginning=8)
    with pytest.raises(GapError, match="stands at offset 5, but the log holds 8 to 13"):
        run()
    assert run.heads() == [(0, 5)]


def test_a_gap_is_skipped_on_request_and_counted(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run()
    run.logs[ONE] = log(5, beginning=8)
    run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 13)]
    assert [head.lost for head in run.seen().heads] == [3]
    assert run.seen().counters.rows == 10


@pytest.mark.slow
def test_a_log_that_lost_its_end_is_read_on_from_there_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs[ONE] = log(6)
    with pytest.raises(GapError, match="stands at offset 9, but the log holds 0 to 6"):
        run()
    run(Options(until_end=True, on_gap="skip"))
    run.logs[ONE].append(GOOD)
    run()
    assert run.heads() == [(0, 9), (6, 7)]
    assert run.seen().counters.rows == 10


def test_a_log_made_anew_stops_and_is_followed_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, topic_id="id-2"): log(4)}
    with pytest.raises(LogChanged):
        run()
    run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 9), (0, 4)]
    assert run.seen().offsets == {"events/0": 4}


def test_another_cluster_stops_and_is_followed_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, cluster="other"): log(4)}
    for options in (UNTIL_END, Options(until_end=True, on_gap="skip")):
        with pytest.raises(NewSource, match="got events of cluster other"):
            run(options)
    assert run.heads() == [(0, 9)]
    run(NEW_SOURCE)
    assert run.heads() == [(0, 9), (0, 4)]
    assert run.seen().counters.rows == 13
    run.logs[replace(ONE, cluster="other")].append(GOOD)
    run()  # it has counted from there by now
    run.logs = {ONE: log(9)}
    with pytest.raises(LogChanged, match="--new-source"):  # the head of this name is another's
        run(Options(until_end=True, on_gap="skip"))
    assert run.heads() == [(0, 9), (0, 5)]


def test_another_topic_stops_and_is_added_on_request(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    other = replace(ONE, topic="views", topic_id="id-2")
    run.logs = {ONE: log(9), other: log(4)}
    with pytest.raises(NewSource, match="views") as caught:
        run(Options(until_end=True, on_gap="skip"))
    assert caught.value.exit_code == 4
    assert run.heads() == [(0, 9)]
    run(NEW_SOURCE)
    assert run.heads() == [(0, 9), (0, 4)]
    run()  # and is known from then on
    run.logs = {other: log(4)}
    run()


def test_a_new_generation_counts_from_any_source(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(9)})
    run()
    run.logs = {replace(ONE, topic="views"): log(4)}
    run(new_generation=True)
    assert run.heads() == [(0, 4)]


# -- failures of the source


@pytest.mark.slow
def test_a_source_that_fails_is_opened_again_and_nothing_is_lost(tmp_path: Path) -> None:
    logs = {ONE: records(1, 400)}
    run = Run(tmp_path, {ONE: Log(list(logs[ONE]))})
    failing = [Deliver(50), Fail(Disconnected("broker away"))]
    run(UNTIL_END, failing, failing, [Fail(Disconnected("again"))])
    assert len(run.sources) == 4
    assert all(source.closed for source in run.sources)
    assert run.clock.waits == [0.5, 0.5, 1.0]  # a failure after progress is a new one
    with closing(Ledger.open(run.config.store.url)) as ledger:
        assert counted(ledger) == fold(logs)


def test_a_source_that_never_answers_is_given_up_for_later(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    with pytest.raises(Disconnected) as caught:
        run(UNTIL_END, failures=[Disconnected("no broker")] * 100)
    assert len(run.clock.waits) == FIRST_TRIES
    assert caught.value.exit_code == 75


def test_an_error_of_the_source_ends_the_run_after_a_commit(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(1000)})
    with pytest.raises(SourceError, match="no rights"):
        run(UNTIL_END, [Deliver(50), Fail(SourceError("no rights"))])
    assert run.heads() == [(0, 50)]


def test_a_stop_ends_the_wait_for_a_source(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    run.stop.request()
    run(UNTIL_END, failures=[Disconnected("no broker")] * 100)
    assert run.clock.waits == []


# -- settings


def test_changed_settings_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)})
    run()
    changed = replace(run.config, windows=replace(run.config.windows, size_s=60, slide_s=60))
    with pytest.raises(SettingsChanged, match=r"windows\.size_s was 3600, is 60"):
        run(UNTIL_END, config=changed)
    run(UNTIL_END, config=changed, new_generation=True)
    assert run.seen().generation.id == 2
    assert run.heads() == [(0, 4)]


def test_an_added_metric_counts_from_where_the_others_stand(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(4)}, metrics='ctr = { type = "Ratio" }')
    run()
    run.logs[ONE].append(GOOD, GOOD)
    more = Run(
        tmp_path, run.logs, metrics='ctr = { type = "Ratio" }\nauc = { type = "HistogramAUC" }'
    )
    more()
    seen = more.seen()
    (head,) = seen.heads
    starts = {metric.name: metric.start_offsets for metric in seen.generation.metrics}
    assert starts == {"ctr": {}, "auc": {head.id: 4}}
    rows = {size.pane.metric: size.rows for size in seen.panes if size.pane.is_total}
    assert rows == {"ctr": 2, "auc": 1}
