"""A slice whose state is too large for a row: its log is committed in smaller steps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select
from streammetrics_consumers.counting.commits import Limits
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.delta_metadata import SHARD_BYTES
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.sources.memory_source import Deliver, Log

from tests.consumers.messages import KAFKA, message
from tests.consumers.small_config import LOG, chunk, config, event
from tests.consumers.worker.memory_run import ONE, TWO, UNTIL_END, Run

EXACT = 'auc = { type = "ExactAUC" }\nctr = { type = "Ratio" }'
CLASSES = 'areas = { type = "MulticlassAUC", n_classes = 8, exact = true }'
SLICES = "by = [[]]"
ROW = 2000  # bytes, for the tests that need no megabytes


def distinct(n: int) -> list[bytes]:
    """Events of one slice, each with a score of its own: what an exact state must keep."""
    return [event(score=i / 1e6, label=i % 3 % 2) for i in range(n)]


def largest_row(run: Run) -> int:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return ledger.store.read(lambda c: int(c.scalar(select(func.max(delta.c.nbytes))) or 0))


def states(run: Run) -> list[tuple[str, str, str]]:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return [(r.metric, r.view, r.digest) for r in read_results(ledger, Query("all")).rows]


@pytest.fixture
def small_rows(each_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Limits.__init__
    monkeypatch.setattr(Limits, "__init__", lambda self, options: whole(self, options, ROW))


@pytest.mark.slow
@pytest.mark.parametrize("poll", [100, 5000], ids=["many polls", "one poll"])
@pytest.mark.usefixtures("small_rows")
def test_no_row_is_over_the_limit_and_nothing_is_lost(tmp_path: Path, poll: int) -> None:
    events = distinct(1500)
    run = Run(tmp_path, {ONE: Log(list(events)), TWO: Log(list(events[:40]))},
              slices=SLICES, metrics=EXACT)  # fmt: skip
    run(UNTIL_END, [Deliver(poll)] * 80)
    assert largest_row(run) <= ROW
    assert run.seen().counters == Counters(rows=1540)
    assert run.progress[-1].rows == 1540
    whole = Run(made(tmp_path / "whole"), {ONE: Log([*events, *events[:40]])},
                slices=SLICES, metrics=EXACT)  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streammetrics_consumers.counting.commits.is_too_large", lambda *_: False)
        whole()
    assert largest_row(whole) > ROW
    assert states(run) == states(whole)


@pytest.mark.usefixtures("small_rows")
def test_a_message_of_its_own_is_written_whatever_its_size(tmp_path: Path) -> None:
    lines: Sequence[bytes] = [message("ndjson", distinct(1500)[i * 500 : i * 500 + 500])
                              for i in range(3)]  # fmt: skip
    run = Run(tmp_path, {ONE: Log(list(lines))}, source=f'{KAFKA}\nformat = "ndjson"',
              slices=SLICES, metrics=EXACT)  # fmt: skip
    run()
    assert run.seen().counters == Counters(rows=1500)
    assert largest_row(run) > ROW


@pytest.mark.usefixtures("small_rows")
def test_what_cannot_be_read_again_is_written_whatever_its_size(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: Log(list(distinct(1500)))}, slices=SLICES, metrics=EXACT)
    run.replayable = False
    run()
    assert run.seen().counters == Counters(rows=1500)


@pytest.mark.slow
def test_a_slice_of_150_000_rows_that_is_over_8_mib(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At the real limits: an exact state of scores of many classes, in one commit interval."""
    rng = random.Random(1)
    events = [
        event(label=i % 8, score=[rng.randrange(1 << 30) / (1 << 30) for _ in range(8)])
        for i in range(150_000)
    ]
    run = Run(tmp_path, {ONE: Log(list(events))}, slices=SLICES,
              metrics=CLASSES)  # fmt: skip
    run(UNTIL_END, [Deliver(8000)] * 30)
    assert (SHARD_BYTES >> 3) < largest_row(run) <= SHARD_BYTES
    assert run.seen().counters == Counters(rows=150_000)
    assert "is too large for a row" in caplog.text


def test_parts_hold_a_record_each_and_all_of_the_chunk() -> None:
    limits = Limits(Options())
    sparse = Chunk(LOG, 5, 40, [5, 6, 20, 21, 22, 39], [event()] * 6)
    assert list(limits.parts(sparse)) == [sparse]
    head = Head(1, 1, LOG, False, 0, 5, None, Counters(), 0)
    whole = Commit(head, 5, 13, None, Counters())
    assert not limits.is_too_large(whole)
    limits._spans[LOG] = 4
    parts = list(limits.parts(sparse))
    assert [(part.start, part.end, list(part.offsets)) for part in parts] == [
        (5, 20, [5, 6]), (20, 39, [20, 21, 22]), (39, 40, [39]),
    ]  # fmt: skip
    limits._spans[LOG] = 1
    assert [len(part) for part in limits.parts(sparse)] == [1] * 6
    empty = Chunk(LOG, 5, 40, [], [])
    assert list(limits.parts(empty)) == [empty]


def test_a_delta_stops_where_the_next_records_would_be_too_much() -> None:
    limits = Limits(Options(max_delta_rows=3))
    delta = Delta(config(), LOG, 0)
    assert not limits.are_passed(delta, chunk([event()] * 9))
    delta.add(Decoder(config()).decode(chunk([event()] * 2)))
    assert not limits.are_passed(delta, chunk([event()], 2))
    assert limits.are_passed(delta, chunk([event()] * 2, 2))
    limits._spans[LOG] = 2
    assert limits.are_passed(delta, chunk([event()], 2))
    assert Limits(Options(max_delta_bytes=10)).are_passed(delta, chunk([event()], 2))


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder
