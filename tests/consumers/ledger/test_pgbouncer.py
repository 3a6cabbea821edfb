"""A store behind PgBouncer in transaction mode, where each transaction may have another connection
to the server: every part of the product works, and leaves nothing behind there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.engine import make_url
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition

from tests.consumers.ledger.small_ledger import DESCRIPTIONS, LOG, PRINTS, TOTAL, commit
from tests.consumers.stores import make_store, stored, write_config, write_events
from tests.pgbouncer_server import PgBouncer

pytestmark = pytest.mark.postgres

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def url(pgbouncer: PgBouncer) -> Iterator[str]:
    with pgbouncer.new_store() as url:
        yield url


def test_every_command_works(tmp_path: Path, url: str, capsys: Capture) -> None:
    file = str(make_store(tmp_path))
    write_events(tmp_path)
    config = str(write_config(tmp_path))
    assert main(["run", config, "--until-end", "--no-serve", "--store", url]) == 0
    for _ in range(6):  # statements that come again are prepared, unless that is turned off
        assert main(["verify", config, "--store", url]) == 0
    assert main(["compact", url]) == 0
    assert main(["verify", config, "--store", url]) == 0
    assert main(["quarantine", "retry", url, "--config", config]) == 0
    capsys.readouterr()
    outputs = []
    for store in (file, url):
        assert main(["results", store, "--json", "--window", "all"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_many_writers_and_readers_share_few_connections(pgbouncer: PgBouncer, url: str) -> None:
    Ledger.open(url, create=True).close()

    def work(number: int) -> int:
        with closing(Ledger.open(url, pauses_s=(0.1,) * 20)) as ledger:
            generation = ledger.begin(PRINTS, DESCRIPTIONS).generation
            log: Partition = replace(LOG, number=number)
            head = ledger.resolve(generation, log, 0)
            for _ in range(10):
                head = ledger.commit(generation, commit(head, 10, TOTAL))
                stored(ledger)
            return head.next_offset

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [100] * 4
    with closing(Ledger.open(url)) as ledger:
        assert len(stored(ledger).rows) == 40
        assert ledger.store.tried_again == 0
    for setting in ("lock_timeout", "idle_in_transaction_session_timeout"):
        assert set(pgbouncer.ask(url, f"SHOW {setting}")) == {"0"}


def test_limits_hold_within_a_transaction(url: str) -> None:
    with closing(Ledger.open(url, create=True, busy_s=2.5)) as ledger:
        assert ledger.store.read(_limits) == ("2500ms", "1min")
        assert ledger.store.write(lambda connection, _: _limits(connection)) == ("2500ms", "1min")


def _limits(connection: Connection) -> tuple[object, object]:
    return (
        connection.exec_driver_sql("SHOW lock_timeout").scalar(),
        connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").scalar(),
    )


def test_a_setting_that_it_does_not_pass_on_is_refused_in_words(url: str) -> None:
    chosen = make_url(url).update_query_dict({"options": "-csearch_path=elsewhere"})
    with pytest.raises(LedgerError, match="ALTER ROLE") as caught:
        Ledger.open(chosen.render_as_string(hide_password=False), create=True, pauses_s=())
    assert caught.value.exit_code == 1
