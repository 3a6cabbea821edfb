"""PostgreSQL: a connection that is lost around COMMIT, and a server that dies, double nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.write import Fenced
from streammetrics_consumers.sources.memory_source import Deliver, Log

from tests.consumers.folded import counted, fold, records
from tests.consumers.ledger.cutting_proxy import MOMENTS, CuttingProxy, Moment
from tests.consumers.ledger.small_ledger import WRITES, begun, four_rows, require_once
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


# How a connection is lost is the same for every write: see test_ledger_store.py.
@pytest.mark.parametrize(
    ("write", "moment"), [*(("commit", one) for one in MOMENTS), ("begin", "late")]
)
def test_a_write_whose_connection_is_lost_happens_once(
    url: str, proxy: CuttingProxy, write: str, moment: Moment
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=(0.0,))) as ledger:
        generation, head = begun(ledger)
        proxy.moment = moment
        WRITES[write](ledger, generation, head)
        assert proxy.cuts == {moment: 1}
    with closing(Ledger.open(url)) as ledger:
        require_once(ledger, write)


@pytest.mark.parametrize(("moment", "rows"), [("before", 0), ("late", 4), ("after", 4)])
def test_a_writer_that_gives_up_reads_in_the_ledger_what_became_of_it(
    proxy: CuttingProxy, moment: Moment, rows: int
) -> None:
    with closing(Ledger.open(proxy.url, create=True, pauses_s=())) as ledger:
        generation, head = begun(ledger)
        proxy.moment = moment
        with pytest.raises(StoreUnavailable, match="nothing is lost") as caught:
            ledger.commit(generation, four_rows(head))
        assert caught.value.exit_code == 75
        # A write waits for what is still on its way; a read would not.
        again = ledger.resolve(generation, head.partition, 0)
        if moment == "late":
            with pytest.raises(Fenced):
                ledger.commit(generation, four_rows(head))
            (again,) = ledger.heads(generation)
        assert again.next_offset == ledger.snapshot().counters.rows == rows


def test_a_run_whose_connection_is_cut_again_and_again_counts_what_a_fold_counts(
    url: str, proxy: CuttingProxy, tmp_path: Path
) -> None:
    logs = {ONE: records(1, 90), TWO: records(2, 60)}
    run = Run(tmp_path, {partition: Log(list(values)) for partition, values in logs.items()})
    run.config = replace(run.config, store=replace(run.config.store, url=proxy.url))
    run.clock.tick_s = 2.0  # a commit every few polls
    # After a cut two get through: that of the new connection's settings, and that of the next try.
    plan = itertools.cycle(
        itertools.chain.from_iterable((None, None, moment) for moment in MOMENTS)
    )
    proxy.choose = lambda: next(plan)  # type: ignore[assignment]
    run(UNTIL_END, [Deliver(7)] * 100)
    assert all(proxy.cuts[moment] >= 2 for moment in MOMENTS), proxy.cuts
    with closing(Ledger.open(url)) as ledger:
        assert counted(ledger) == fold(logs)


# -- the server dies


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
        assert ledger.snapshot().counters.rows == 4
