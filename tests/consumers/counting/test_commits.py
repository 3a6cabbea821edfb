"""How much one commit holds: pieces of a limited size, rows and bytes, and refused events."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import func, select
from streammetrics_consumers.counting.commits import (
    FIRST_ROWS,
    CommitLimits,
    ErrorBudget,
    ErrorBudgetExceeded,
    commit_of,
)
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.delta_metadata import split
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta as delta_table
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Commit, Counters, Head
from streammetrics_consumers.model.generation import Generation, Pane, StateShard
from streammetrics_consumers.query.query import Query
from streammetrics_consumers.query.reader import read_results

from streammetrics import PerKey, Ratio
from tests.consumers.ledger.small_ledger import DESCRIPTIONS, PRINTS, commit, opened
from tests.consumers.memory_run import GOOD, ONE, TWO, UNTIL_END, Run, assigned, log
from tests.consumers.memory_source import Deliver, Log, MemorySource
from tests.consumers.messages import KAFKA, message
from tests.consumers.small_config import EVENT, LOG, chunk, config, event

PANE = Pane("ctr", 1, None, None)
HEAD = Head(1, 1, LOG, False, 0, 0, None, Counters(), 0)
NDJSON = f'{KAFKA}\nformat = "ndjson"'


# -- pieces of states -----------------------------------------------------------------------------
def counted(keys: Sequence[str | tuple[int, str]], max_keys: int = 10_000) -> PerKey:
    state = PerKey(Ratio(), max_keys)
    state.update(list(keys), numerators=[1] * len(keys))
    return state


def merged(pieces: list[StateShard]) -> PerKey:
    states = [PerKey.from_bytes(shard.state) for shard in pieces]
    return sum(states[1:], states[0])


def test_pieces_keep_the_limit_and_merge_back_byte_for_byte() -> None:
    for max_keys in (10_000, 300):  # all are kept, or some are in the overflow
        state = counted([(1, f"key-{i}") for i in range(1000)], max_keys)
        pieces = list(split(PANE, state, 1000))
        assert len(pieces) > 1
        assert all(len(shard.state) <= 1000 for shard in pieces)
        assert merged(pieces) == state
        # Ranges are a power of two, and each key lies in one.
        (ranges,) = {shard.key_ranges for shard in pieces}
        assert ranges & (ranges - 1) == 0
        places = [shard.key_range for shard in pieces]
        assert places == sorted(set(places))
    small = counted(["a", "b"])
    assert list(split(PANE, small)) == [StateShard(PANE, 0, 1, small.to_bytes())]


def test_a_single_key_stays_whole_however_large_it_is() -> None:
    state = counted(["a", "b"])
    pieces = list(split(PANE, state, 1))
    assert len(pieces) == 2
    assert merged(pieces) == state
    delta = Delta(config(), LOG, 0)
    delta.add(Decoder(config()).decode(chunk([event(), event(variant="b")])))
    for shard in commit_of(HEAD, delta, limit=10).shards:
        assert len(PerKey.from_bytes(shard.state).keys()) == 1


def test_a_commit_of_a_thousand_slices_and_three_windows_is_a_few_rows() -> None:
    """Rows of a commit are states of windows, not of slices."""
    run_config = config(
        slices='by = [[], ["phase"]]', event=EVENT.replace('variants = ["a", "b"]', "")
    )
    delta = Delta(run_config, LOG, 0)
    events = [
        event(f"2024-01-01T{hour:02d}:00:00Z", phase=f"p{i}")
        for hour in range(3)
        for i in range(1000)
    ]
    delta.add(Decoder(run_config).decode(chunk(events)))
    commit = commit_of(HEAD, delta)
    metrics, finest, panes = 2, 1, 3 + 1
    assert len(commit.shards) == metrics * finest * panes
    assert all(shard.for_coarser and shard.pane.grouping == 1 for shard in commit.shards)
    # Of the new rows: a later commit of one event costs one event's slices.
    after = Delta(run_config, LOG, 3000)
    after.add(Decoder(run_config).decode(chunk(events[:1], 3000)))
    small = commit_of(replace(HEAD, next_offset=3000), after)
    assert len(small.shards) == metrics * finest * 2
    assert sum(len(shard.state) for shard in small.shards) < 4000


# -- a slice whose state is too large for a row: its log is committed in smaller steps ------------
EXACT = {"slices": "by = [[]]", "metrics": 'auc = { type = "ExactAUC" }\nctr = { type = "Ratio" }'}
ROW = 2000  # bytes, so that no megabytes are needed


def distinct(n: int) -> list[bytes]:
    """Events of one slice, each with a score of its own: what an exact state must keep."""
    return [event(score=i / 1e6, label=i % 3 % 2) for i in range(n)]


def largest_row(run: Run) -> int:
    largest = select(func.max(delta_table.c.nbytes))
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return ledger.store.read(lambda connection: int(connection.scalar(largest) or 0))


def states(run: Run) -> list[tuple[str, str, str]]:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return [(r.metric, r.view, r.digest) for r in read_results(ledger, Query("all")).rows]


@pytest.fixture
def small_rows(each_store: None, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = CommitLimits.__init__
    monkeypatch.setattr(CommitLimits, "__init__", lambda self, options: whole(self, options, ROW))


@pytest.mark.usefixtures("small_rows")
def test_no_row_is_over_the_limit_and_nothing_is_lost(tmp_path: Path) -> None:
    events = distinct(1500)
    run = Run(tmp_path, {ONE: Log([*events]), TWO: Log([*events[:40]])}, **EXACT)
    run(UNTIL_END, [Deliver(100)] * 10 + [Deliver(5000)] * 70)
    assert largest_row(run) <= ROW
    assert run.snapshot().counters == Counters(rows=1540)
    assert run.progress[-1].rows == 1540
    (tmp_path / "whole").mkdir()
    whole = Run(tmp_path / "whole", {ONE: Log([*events, *events[:40]])}, **EXACT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CommitLimits, "is_too_large", lambda self, commit: False)
        whole()
    assert largest_row(whole) > ROW
    assert states(run) == states(whole)


@pytest.mark.usefixtures("small_rows")
def test_a_message_and_what_cannot_be_read_again_are_written_whatever_their_size(
    tmp_path: Path,
) -> None:
    events = distinct(1500)
    lines = [message("ndjson", events[i * 500 : i * 500 + 500]) for i in range(3)]
    for name, values, source in (("messages", lines, {"source": NDJSON}), ("stdin", events, {})):
        (tmp_path / name).mkdir()
        run = Run(tmp_path / name, {ONE: Log([*values])}, **EXACT, **source)
        run.replayable = bool(source)
        run()
        assert run.snapshot().counters == Counters(rows=1500)
        assert largest_row(run) > ROW


def test_parts_hold_a_record_each_or_a_limited_span_and_all_of_the_chunk() -> None:
    limits = CommitLimits(config().store)
    sparse = Chunk(LOG, 5, 40, [5, 6, 20, 21, 22, 39], [event()] * 6)
    assert list(limits.parts(sparse)) == [sparse]
    assert not limits.is_too_large(Commit(replace(HEAD, next_offset=5), 5, 13, None, Counters()))
    limits._spans[LOG] = 4
    parts = list(limits.parts(sparse))
    assert [(part.start, part.end, list(part.offsets)) for part in parts] == [
        (5, 9, [5, 6]), (9, 21, [20]), (21, 25, [21, 22]), (25, 40, [39]),
    ]  # fmt: skip
    limits._spans[LOG] = 1
    assert [len(part) for part in limits.parts(sparse)] == [1] * 6
    limits._spans[LOG] = 40
    at_end = Chunk(LOG, 5, 60, [5, 6], [event()] * 2)
    assert [(part.start, part.end, len(part)) for part in limits.parts(at_end)] == [
        (5, 45, 2), (45, 60, 0),
    ]  # fmt: skip
    empty = Chunk(LOG, 5, 40, [], [])
    assert list(limits.parts(empty)) == [empty]


@pytest.mark.parametrize("end", [51, 60])
def test_records_before_a_hole_are_split_until_each_is_alone(end: int) -> None:
    limits = CommitLimits(config().store, 10)
    limits._spans[LOG] = 4
    sparse = Chunk(LOG, 0, end, [0, 1, 2, 3, 50][: 4 if end == 60 else 5], [event()] * 5)
    large = [StateShard(PANE, 0, 1, b"x" * 11)]
    for most in (4, 2):
        part = next(limits.parts(sparse))
        assert len(part) == most
        commit = Commit(replace(HEAD, next_offset=0), part.start, part.end, None, Counters(), large)
        assert limits.is_too_large(commit)
    assert len(next(limits.parts(sparse))) == 1


# -- rows and bytes of a delta --------------------------------------------------------------------
def test_a_delta_stops_where_the_next_records_would_be_too_much() -> None:
    limits = CommitLimits(replace(config().store, commit_events=3))
    delta = Delta(config(), LOG, 0)
    assert not limits.are_passed(delta, 9, 9)
    delta.add(Decoder(config()).decode(chunk([event()] * 2)))
    assert not limits.are_passed(delta, 1, 3)
    assert limits.are_passed(delta, 2, 4)
    limits._spans[LOG] = 3
    assert not limits.are_passed(delta, 1, 3)
    limits._spans[LOG] = 2
    assert limits.are_passed(delta, 1, 3)
    assert CommitLimits(replace(config().store, commit_bytes=10)).are_passed(delta, 1, 3)


def test_a_delta_holds_at_most_so_many_rows_however_many_a_message_carries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spans: list[tuple[int, int, int]] = []
    whole = Ledger.commit

    def noted(self: Ledger, generation: Generation, commit: Commit) -> Head:
        spans.append((commit.start, commit.end, commit.counters.rows))
        return whole(self, generation, commit)

    monkeypatch.setattr(Ledger, "commit", noted)
    # Each message is a piece of its own, as those of four megabytes are.
    monkeypatch.setattr("streammetrics_consumers.events.messages.PIECE_BYTES", 1)
    for sizes, most, commits in (
        ([100] * 5, 200, [(0, 2, 200), (2, 4, 200), (4, 6, 100)]),
        ([3, 40, 3, 3], 10, [(0, 1, 3), (1, 2, 40), (2, 5, 6)]),  # one is larger than a delta
    ):
        spans.clear()
        values = [message("ndjson", [event()] * size) for size in sizes]
        (tmp_path / str(most)).mkdir()
        rest = f"[store]\ncommit_events = {most}"
        run = Run(tmp_path / str(most), {ONE: Log([*values, None])}, source=NDJSON, rest=rest)
        run(Options(until_end=True))
        assert spans == commits
        # Progress counts events, and heads count messages.
        assert run.progress[-1].rows == sum(sizes)
        assert run.snapshot().counters == Counters(rows=sum(sizes), tombstones=1)
        assert run.heads() == [(0, len(sizes) + 1)]


def test_events_of_a_long_poll_are_committed_at_the_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.events.messages.PIECE_BYTES", 1)
    values = [message("ndjson", [event()] * 3) for _ in range(9)]
    spent = itertools.count(0, 0.75)  # seconds, between two looks at the clock
    run_config = config(source=NDJSON, rest="[store]\ncommit_interval_s = 3")
    with closing(Ledger.open(str(tmp_path / "long.db"), create=True)) as ledger:
        source = MemorySource({ONE: Log(list(values))}, [Deliver(9)])
        worker = assigned(run_config, ledger, source, monotonic=lambda: next(spent))
        [chunk] = source.poll(0.0)
        since_s = next(spent)
        worker.take(chunk)
        (head,) = ledger.heads(worker.generation)
        offset, took_s = head.next_offset, next(spent) - since_s
        assert worker.rows == head.counters.rows + 3 * (9 - offset) == 27
        with ledger.store.engine.connect() as connection:
            commits = connection.scalar(select(func.count(delta_table.c.start_offset.distinct())))
        assert commits == took_s // (3 + 0.75) and offset > 9 - 4


# -- refused events -------------------------------------------------------------------------------
STRICT = "[store]\nmax_bad_share = {}\ncommit_interval_s = 0.01"


def strict(folder: Path, *logs: Log, share: float = 0.5) -> Run:
    run = Run(folder, dict(zip((ONE, TWO), logs, strict=False)), rest=STRICT.format(share))
    run.clock.tick_s = 0.02
    return run


def test_a_log_that_begins_late_has_the_share_of_its_last_records(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as ledger:
        generation = ledger.begin(PRINTS, DESCRIPTIONS).generation
        head = ledger.resolve(generation, LOG, 3000)
        for rows, refused in ((2 * FIRST_ROWS, 0), (1, 1)):
            head = ledger.commit(generation, commit(head, rows))
            budget = ErrorBudget(0.5)
            budget.began(ledger.store, head)
            assert (budget.rows, budget.refused) == (FIRST_ROWS, refused)


def test_too_many_bad_events_stop_a_run_also_when_it_starts_again_until_good_ones_come(
    tmp_path: Path,
) -> None:
    run = strict(tmp_path, log(5000, b"{"))
    for _ in range(2):
        with pytest.raises(ErrorBudgetExceeded, match=r"more than max_bad_share = 0.5.*not_json"):
            run(UNTIL_END, [Deliver(300)] * 100)
        assert run.heads() == [(0, 900)]  # those before a share meant something
    run.logs[ONE] = Log([b"{"] * 900 + [GOOD] * 500)
    run(UNTIL_END, [Deliver(300)] * 100)
    assert run.heads() == [(0, 1400)]


def test_old_bad_events_do_not_count_for_ever(tmp_path: Path) -> None:
    run = strict(tmp_path, Log([b"{"] * 900 + [GOOD] * 2000), share=1.0)
    run(UNTIL_END, [Deliver(100)] * 100)
    run = strict(tmp_path, run.logs[ONE])
    run.logs[ONE].append(*[b"{", GOOD, GOOD] * 100)
    run(UNTIL_END, [Deliver(100)] * 100)
    assert run.heads() == [(0, 3200)]


def test_a_share_that_good_events_reveal_stops_too_and_so_does_one_at_the_end(
    tmp_path: Path,
) -> None:
    pattern = r"200 of 1100 events.*200 not_json; the first is"
    with pytest.raises(ErrorBudgetExceeded, match=pattern):
        run = strict(tmp_path, log(200, b"{"), log(900), share=0.1)
        run.clock.tick_s = 0.0  # both logs are in one commit
        run(UNTIL_END, [Deliver(900)])
    (tmp_path / "few").mkdir()
    with pytest.raises(ErrorBudgetExceeded, match="1 of 2 events"):
        few = strict(tmp_path / "few", Log([b"{", GOOD]), share=0.4)
        few.clock.tick_s = 0.0
        few(UNTIL_END, [Deliver(1)] * 2)
