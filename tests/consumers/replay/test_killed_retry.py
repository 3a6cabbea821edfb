"""A retry that is killed with SIGKILL at each of its points, again and again: each entry counts at
most once, and in the end the ledger is that of a run that never refused."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop

from tests.consumers import killed_retry
from tests.consumers.folded import counted, fold, records
from tests.consumers.forked import forked
from tests.consumers.killed_retry import POINTS
from tests.consumers.small_config import EVENT, event, toml
from tests.patience import LIMIT_S
from tests.postgres_server import Postgres

WITH_C = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
pytestmark = pytest.mark.faults


# Of PostgreSQL the points within the transaction: outside of it, stores do not differ.
EACH = [
    *(("sqlite", point) for point in POINTS),
    *(pytest.param("postgres", point, marks=pytest.mark.postgres) for point in POINTS[2:4]),
]


@pytest.fixture
def store(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a store that other processes reach as well."""
    if request.param == "sqlite":
        yield "run.db"
        return
    server: Postgres = request.getfixturevalue("postgres")
    url = server.new_store()
    yield url
    server.drop(url)


def open_entries(url: str) -> int:
    with closing(Ledger.open(url)) as ledger:
        return len(ledger.quarantine())


@pytest.mark.parametrize(("store", "point"), EACH, indirect=["store"])
def test_each_entry_counts_once_whenever_a_retry_is_killed(
    tmp_path: Path, store: str, point: str
) -> None:
    lines = [line for line in records(3, 60, broken_share=0) if line is not None]
    for i in range(26):
        lines.insert(4 * i, event(f"2024-01-01T{i % 3:02d}:30:00Z", "c", i % 2, i / 32))
    lines.insert(30, b"{")
    (tmp_path / "events.jsonl").write_bytes(b"".join(line + b"\n" for line in lines))
    small, wider = tmp_path / "small.toml", tmp_path / "wider.toml"
    small.write_text(toml(rest=f'[store]\nurl = "{store}"'))
    wider.write_text(toml(event=WITH_C, rest=f'[store]\nurl = "{store}"'))
    config = load_config(small)
    service.run(config, Options(until_end=True), stop=Stop())
    url = config.store.url
    words = ["quarantine", "retry", url, "--config", str(wider)]
    left = [open_entries(url)]
    assert left == [27]
    log = tmp_path / "retry.log"
    for n in (1, 2):
        died = forked(log, killed_retry.retry, point, n, words)
        died.join(LIMIT_S)
        assert died.exitcode == -signal.SIGKILL, log.read_text()
        left.append(open_entries(url))
    # A page is counted whole or not at all; what was in the middle is open.
    assert all(a - b in (0, 3, 4, 7, 8) for a, b in pairwise(left))
    assert main(words) == 0
    assert open_entries(url) == 1
    with closing(Ledger.open(url)) as ledger:
        totals = counted(ledger)
        assert len(ledger.quarantine(is_done=True)) == 26
    whole = fold({partition: [None if line == b"{" else line for line in lines]
                  for partition in totals.heads})  # fmt: skip
    assert totals.states == whole.states
    assert main(["verify", str(small)]) == 0
