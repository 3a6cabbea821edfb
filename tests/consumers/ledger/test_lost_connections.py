"""PostgreSQL: a connection that is lost around COMMIT, and a server that dies, double nothing."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.model.commit import Commit, Counters
from streammetrics_consumers.sources.memory_source import Deliver, Log

from tests.consumers.folded import counted, fold, records
from tests.consumers.ledger.cutting_proxy import MOMENTS, CuttingProxy, StoreVersion
from tests.consumers.ledger.single_writes import TOTAL, WRITES, begun, four_rows, happened_once
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.postgres_server import Postgres, Server
from tests.requirements import absent


@pytest.fixture
def url(postgres: Postgres) -> Iterator[str]:
    url = postgres.new_store()
    yield url
    postgres.drop(url)


@pytest.fixture
def proxy(url: str) -> Iterator[CuttingProxy]:
    with closing(CuttingProxy(url)) as proxy:
        yield proxy


@pytest.fixture
def server(postgres: Postgres) -> Server:
    """A server that a test may kill."""
    if not isinstance(postgres, Server):
        absent("postgres", "STREAMMETRICS_POSTGRES is a server that is not ours to kill")
    return postgres


@pytest.mark.parametrize("version", MOMENTS)
@pytest.mark.parametrize("write", WRITES)
def test_a_write_whose_connection_is_lost_happens_once(
    url: str, proxy: CuttingProxy, write: str, version: StoreVersion
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=(0.0,))) as ledger:
        generation, head = begun(ledger)
        proxy.version = version
        WRITES[write](ledger, generation, head)
        assert proxy.cuts == {version: 1}
    with closing(Ledger.open(url)) as ledger:
        assert happened_once(ledger, write)


@pytest.mark.parametrize(("version", "rows"), [("before", 0), ("late", 4), ("after", 4)])
def test_a_writer_that_gives_up_reads_in_the_ledger_what_became_of_it(
    proxy: CuttingProxy, version: StoreVersion, rows: int
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=())) as ledger:
        generation, head = begun(ledger)
        proxy.version = version
        with pytest.raises(StoreUnavailable, match="nothing is lost") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 75
        # A write waits for what is still on its way; a read would not.
        again = ledger.resolve(generation, head.partition, 0)
        if version == "late":
            with pytest.raises(Fenced):
                ledger.commit(generation, four_rows(head))
            (again,) = ledger.heads(generation)
        assert again.next_offset == ledger.snapshot().counters.rows == rows


def test_after_a_lost_answer_a_head_that_someone_moved_further_fences(
    url: str, proxy: CuttingProxy
) -> None:
    def overtake(_: float) -> None:
        with closing(Ledger.open(url)) as other:
            other.commit(generation, Commit(head, 0, 9, None, Counters(9)))

    opened = Ledger.open(proxy.url, create=True, pauses_s=(0.0,), sleep=overtake)
    with closing(opened) as ledger:
        generation, head = begun(ledger)
        proxy.version = "before"
        with pytest.raises(Fenced):
            ledger.commit(generation, four_rows(head))
        assert ledger.snapshot().counters.rows == 9


def test_a_run_whose_connection_is_cut_again_and_again_counts_what_a_fold_counts(
    url: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    logs = {ONE: records(1, 150), TWO: records(2, 100)}
    run = Run(tmp_path, {partition: Log(list(values)) for partition, values in logs.items()})
    run.config = replace(run.config, store=replace(run.config.store, url=proxy.url))
    run.clock.tick_s = 2.0  # a commit every few polls
    # After a cut two get through: that of the new connection's settings, and that of the next try.
    plan = itertools.cycle(
        itertools.chain.from_iterable((None, None, version) for version in MOMENTS)
    )
    proxy.choose = lambda: next(plan)  # type: ignore[assignment]
    run(UNTIL_END, [Deliver(7)] * 100)
    assert all(proxy.cuts[version] >= 2 for version in MOMENTS), proxy.cuts
    with closing(Ledger.open(url)) as ledger:
        assert counted(ledger) == fold(logs)


# -- the server dies


def test_a_server_that_is_killed_and_comes_back_is_waited_for(server: Server, url: str) -> None:
    paused: list[float] = []

    def sleep(seconds: float) -> None:
        paused.append(seconds)
        if len(paused) == 2:
            server.start()

    opened = Ledger.open(url, create=True, sleep=sleep, pauses_s=(0.1, 0.5, 2.0))
    with closing(opened) as ledger:
        generation, head = begun(ledger)
        server.kill()
        ledger.commit(generation, four_rows(head))
        assert paused == [0.1, 0.5]
        assert happened_once(ledger, "commit")


def test_a_server_that_stays_away_is_for_later(server: Server, url: str) -> None:
    with closing(Ledger.open(url, create=True, pauses_s=(0.0,))) as ledger:
        generation, head = begun(ledger)
        server.kill()
        try:
            with pytest.raises(StoreUnavailable, match="nothing is lost") as caught:
                ledger.commit(generation, four_rows(head))
            assert caught.value.exit_code == 75
            with pytest.raises(StoreUnavailable):
                Ledger.open(url, pauses_s=())
        finally:
            server.start()
        ledger.commit(generation, four_rows(head))
        assert ledger.snapshot(lambda seen: [TOTAL]).counters.rows == 4


def test_a_run_over_a_server_that_is_killed_again_and_again_counts_what_a_fold_counts(
    server: Server, url: str, tmp_path: Path
) -> None:
    logs = {ONE: records(1, 1000)}
    run = Run(tmp_path, {ONE: Log(list(logs[ONE]))})
    run.config = replace(run.config, store=replace(run.config.store, url=url))
    run.clock.tick_s = 6.0
    done, kills = threading.Event(), 0

    def disturb() -> None:
        nonlocal kills
        while not done.wait(0.25):
            server.kill()
            server.start()
            kills += 1

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        run(UNTIL_END, [Deliver(10)] * 100)
    finally:
        done.set()
        thread.join()
    assert kills >= 2
    with closing(Ledger.open(url)) as ledger:
        assert counted(ledger) == fold(logs)
