"""A reader that follows says what a fresh read says, whatever happened in between."""

from __future__ import annotations

import dataclasses
import random
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import event, insert, select
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.commits import commit_of
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.compact import Compactor, compact
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.merge_plan import ABOVE
from streammetrics_consumers.ledger.schema import delta, retry
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Generation
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.query import follow
from streammetrics_consumers.query.follow import IncrementalView, QueryCache
from streammetrics_consumers.query.query import Lines, Query, QueryError
from streammetrics_consumers.query.reader import read_results
from streammetrics_consumers.query.results_json import to_json
from streammetrics_consumers.render.cells import headline_rows

from tests.consumers.folded import records
from tests.consumers.small_config import METRICS, config
from tests.consumers.stores import over_stores
from tests.consumers.views_once import views_computed_once
from tests.depth import tries

HOUR = 3_600_000
QUERIES = (
    Query("all"),
    Query("total", frozenset({"variant"})),
    Query("latest", metric="ctr"),
    Query("all", where=(("variant", "a"),), metric="auc"),
)
PARTS = (
    Query("all", frozenset({"variant"}), headlines=True),
    Query("all", lines=Lines(3)),
    Query("latest", lines=Lines(2, "value", "a", True)),
    Query("total", rows=8),
)
WINDOWS = "size_s = 3600\nslide_s = 1200\nlateness_s = 60\nretention_s = 86400"
DRIFT = '[drift.before]\nmetric = "auc"'
SMALL = config(windows=WINDOWS, rest=DRIFT)
MORE = config(windows=WINDOWS, rest=DRIFT, metrics=f'{METRICS}\nmore = {{ type = "Ratio" }}')


class Written:
    """A ledger with two logs that grow, a few records at a time."""

    def __init__(self, ledger: Ledger, seed: int = 1, using: Config = SMALL) -> None:
        self.ledger, self.config = ledger, using
        self.logs = {
            Partition("test", "events", "id", n): records(seed + n, 1500, 0.02) for n in range(2)
        }
        self.generation: Generation
        self.heads: dict[Partition, Head] = {}
        self.begin(using)

    def begin(self, using: Config, *, new_generation: bool = False) -> None:
        self.config = using
        self.generation = self.ledger.begin(
            using.fingerprints(), using.descriptions, new_generation=new_generation
        ).generation
        self.heads = {
            partition: self.ledger.resolve(self.generation, partition, 0) for partition in self.logs
        }

    def commit(self, log: int, n: int) -> None:
        partition = Partition("test", "events", "id", log)
        head = self.heads[partition]
        start = head.next_offset
        values = self.logs[partition][start : start + n]
        if not values:
            return
        end = start + len(values)
        chunk_delta = Delta(
            self.config, partition, start, head.greatest_event_ms, self.generation.floor_ms
        )
        chunk = Chunk(partition, start, end, range(start, end), values, None)
        chunk_delta.add(Decoder(self.config).decode(chunk))
        self.heads[partition] = self.ledger.commit(self.generation, commit_of(head, chunk_delta))

    def raise_floor(self) -> None:
        times = [head.greatest_event_ms for head in self.heads.values()]
        if None not in times:
            floor_ms = min(time for time in times if time is not None) // HOUR * HOUR
            self.generation = self.ledger.raise_floor(self.generation, floor_ms)

    def close_head(self, log: int) -> None:
        partition = Partition("test", "events", "id", log)
        self.heads[partition] = self.ledger.follow(
            self.generation, self.heads[partition], partition, 0
        )

    def retry(self, note: str = "", place: int = 0) -> None:
        """A row of a retry: a copy of what a row counts, the one in this place, under the number of
        the retry."""
        with self.ledger.store.engine.begin() as connection:
            row = connection.execute(
                select(delta).where(delta.c.generation == self.generation.id)
                .order_by(delta.c.start_offset, delta.c.id).offset(place).limit(1)
            ).mappings().one_or_none()  # fmt: skip
            if row is None:
                return
            result = connection.execute(
                insert(retry).values(generation=self.generation.id, created_ms=5, note=note)
            )
            (number,) = result.inserted_primary_key or (0,)
            copy = {k: v for k, v in row.items() if k != "id"} | {"retry": number}
            connection.execute(insert(delta).values(**copy))


def copy_content(source: Path, target: Path) -> None:
    """Make the content of a SQLite store that of another one, also beside its readers."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)


@pytest.fixture
def written(tmp_path: Path) -> Iterator[Written]:
    new_ledger = Ledger.open(str(tmp_path / "a.db"), create=True, pauses_s=())
    with closing(new_ledger) as ledger, views_computed_once():
        yield Written(ledger)


def require_fresh(follower: IncrementalView | QueryCache, ledger: Ledger, query: Query) -> None:
    answer = follower.results(query) if isinstance(follower, QueryCache) else follower.results()
    assert to_json(answer) == to_json(read_results(ledger, query))


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize(
    ("databases", "seed", "rounds"),
    over_stores(*((seed, tries(8, 20)) for seed in range(tries(1, 8))), postgres=tries(0, 8))
    + over_stores((3, 6), postgres=1)[1:],
    indirect=["databases"],
)
def test_it_always_equals_a_fresh_read(written: Written, seed: int, rounds: int) -> None:
    rng = random.Random(seed)
    answers = QueryCache(written.ledger)
    followers = [(answers, query) for query in QUERIES + PARTS]
    happened: set[str] = set()
    for _ in range(rounds):
        for _ in range(rng.choice([1, 1, 2, 5])):
            action = rng.choices(
                ["commit", "compact", "some", "floor", "close", "retry", "metric", "generation"],
                [60, 8, 12, 5, 2, 4, 1, 1],
            )[0]
            happened.add(action)
            match action:
                case "commit":
                    written.commit(rng.randrange(2), rng.randrange(1, 60))
                case "compact":
                    compact(written.ledger.store)
                case "some":
                    compactor = Compactor(written.ledger.store, above=2, leave=1, row_bytes=2000)
                    list(compactor.steps())
                case "floor":
                    written.raise_floor()
                case "close":
                    written.close_head(rng.randrange(2))
                case "retry":
                    written.retry()
                case "metric":
                    written.begin(MORE)
                case "generation":
                    written.begin(written.config, new_generation=True)
        for follower, query in rng.sample(followers, 3):
            require_fresh(follower, written.ledger, query)
    for follower, query in followers:
        require_fresh(follower, written.ledger, query)
    assert {"commit", "compact", "some"} <= happened


def test_it_reads_what_is_new_and_nothing_merged_behind_its_cursor(
    written: Written,
) -> None:
    follower = IncrementalView(written.ledger, Query())
    for _ in range(5):
        written.commit(0, 30)
    follower.results()
    read = follower.rows_read
    follower.results()
    compact(written.ledger.store)
    require_fresh(follower, written.ledger, Query())
    assert (follower.rows_read, follower.reloads) == (read, 0)
    written.commit(1, 30)
    require_fresh(follower, written.ledger, Query())
    assert follower.rows_read == read + 2 * 3, "two metrics in three groupings"
    # Rows that are merged around its cursor are read anew.
    written.commit(0, 30)
    compact(written.ledger.store)
    require_fresh(follower, written.ledger, Query())
    assert follower.reloads == 6


def test_a_worker_that_merges_old_rows_leaves_those_that_are_new_to_it(written: Written) -> None:
    follower = IncrementalView(written.ledger, Query())
    for number in range(ABOVE + 4):
        written.commit(0, 20)
        list(Compactor(written.ledger.store).steps())
        follower.results()
        if number % 5 == 4:  # what it once missed, it would miss from then on
            require_fresh(follower, written.ledger, Query())
    assert follower.reloads == 0


def test_a_store_that_lost_a_retry_and_nothing_else_is_read_again(
    written: Written, tmp_path: Path
) -> None:
    query, backup = Query(by=frozenset()), tmp_path / "backup.db"
    follower, store = IncrementalView(written.ledger, query), Path(written.ledger.store.name)
    for log in (0, 1):
        written.commit(log, 30)
    copy_content(store, backup)
    for number, (log, n) in enumerate([(0, 0), (1, 0), (0, 20)]):
        written.retry(f"before {number}")
        require_fresh(follower, written.ledger, query)
        copy_content(backup, store)
        if number == 0:  # with no retry in its place
            require_fresh(follower, written.ledger, query)
        written.commit(log, n)
        written.retry(f"after {number}", place=log)
        require_fresh(follower, written.ledger, query)


def test_an_error_leaves_it_as_it_was(written: Written) -> None:
    follower = IncrementalView(written.ledger, Query(metric="more"))
    written.commit(0, 30)
    with pytest.raises(QueryError):
        follower.results()
    written.begin(MORE)
    written.commit(0, 30)
    require_fresh(follower, written.ledger, Query(metric="more"))
    with pytest.raises(QueryError):
        IncrementalView(written.ledger, Query(generation=7)).results()


# -- the views of a server: they cost what was counted since ---------------------------------------


def statements(ledger: Ledger, answers: QueryCache, query: Query) -> list[str]:
    """What a poll asks of the store."""
    sql: list[str] = []

    def note(_1: object, _2: object, statement: str, *_3: object) -> None:
        sql.append(statement)

    event.listen(ledger.store.engine, "before_cursor_execute", note)
    answers.results(query)
    event.remove(ledger.store.engine, "before_cursor_execute", note)
    return sql


def test_a_poll_reads_no_delta_row_while_nothing_was_counted(written: Written) -> None:
    answers, query = QueryCache(written.ledger), Query("all")
    written.commit(0, 40)
    first = answers.results(query)
    compact(written.ledger.store)
    sql = statements(written.ledger, answers, query)
    assert sql and not any("FROM delta" in statement for statement in sql)
    assert answers.results(query) is first


def test_what_is_too_large_to_be_kept_is_answered_all_the_same(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    for views, limit in ((follow.CACHED, 10), (1, follow.CACHED_BYTES)):
        monkeypatch.setattr(follow, "CACHED", views)
        answers = QueryCache(written.ledger, max_bytes=limit)
        written.commit(0, 40)
        for query in QUERIES:
            require_fresh(answers, written.ledger, query)
        assert len(answers._cached) <= 1


def test_an_answer_over_the_limits_is_read_once_while_nothing_was_counted(
    written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, query = QueryCache(written.ledger), Query("all")
    for limit in ("MAX_DELTA_BYTES", "MAX_STATE_BYTES"):
        with monkeypatch.context() as patch:
            patch.setattr(follow, limit, 10)
            written.commit(0, 30)
            require_fresh(answers, written.ledger, query)
            assert answers.results(query) is answers.results(query)
    written.commit(0, 30)
    require_fresh(answers, written.ledger, query)


def test_any_number_of_threads_may_ask(written: Written) -> None:
    answers = QueryCache(written.ledger)
    written.commit(0, 40)
    with ThreadPoolExecutor(8) as pool:
        texts = set(pool.map(lambda i: to_json(answers.results(QUERIES[i % 4])), range(16)))
    assert texts == {to_json(read_results(written.ledger, query)) for query in QUERIES}


def test_what_is_taken_of_an_answer_belongs_to_it(written: Written) -> None:
    written.commit(0, 300)
    answers = QueryCache(written.ledger)
    for query in QUERIES:
        whole = answers.results(query)
        assert answers.rows(query).rows == whole.rows
        digests = answers.states(query, lambda states: [state.digest() for _, state in states])
        assert set(digests) == {row.digest for row in whole.rows if row.type != "Drift"}
        headline_answer = answers.results(dataclasses.replace(query, headlines=True))
        rows = tuple(headline_rows(whole))
        assert to_json(headline_answer) == to_json(replace(whole, rows=rows))
        assert 0 < len(headline_answer.rows) < len(whole.rows)
        assert answers.experiment(query).rows == ()


def test_refused_queries_take_no_more_than_the_cache_may(written: Written) -> None:
    written.commit(0, 20)
    answers = QueryCache(written.ledger, max_bytes=100_000)
    answers.results(Query())
    for n in range(10):
        with pytest.raises(QueryError):
            answers.results(Query(metric=f"{n}" * 50_000))
    assert 50_000 <= answers.nbytes <= 100_000
    assert len(answers._cached) <= 2
