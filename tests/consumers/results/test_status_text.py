from contextlib import closing
from pathlib import Path

from consumers.ledger.ledger import Ledger
from consumers.results.store_text import status_text
from consumers.results.terminal import Style
from tests.consumers.worker.memory_run import ONE, Run, log


def shown(run: Run) -> str:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        return status_text(ledger, Style(width=120), title="store")


def test_tombstones_have_a_column_where_there_are_some(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(5)})
    run()
    assert "tombstones" not in shown(run)
    run.logs[ONE].append(None, None, None)
    run()
    header, row = (
        line for line in shown(run).splitlines() if "next offset" in line or "/0" in line
    )
    assert header.split()[-4:] == ["late", "tombstones", "newest", "event"]
    assert row.split()[1:6] == ["8", "5", "0", "0", "3"]
