"""`verify` compares events that are joined, or follow exposures: those counted, those pending, and
their counters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Delete, Update, and_, delete, update
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.schema import delta, head
from streammetrics_consumers.model.generation import ROWS, Requested
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import ALL, Wanted, verify

from tests.consumers import exposed_stream as exposed
from tests.consumers import joined_stream as joined
from tests.consumers.joined_stream import LOGS, START_MS, click, shown
from tests.consumers.memory_source import MemorySource

EVENTS = [
    *(shown("x", 0), click("x", 1_000), shown("x", 2_000, 0.25)),
    *(shown("y", 100_000), click("y", 101_000), shown("z", 150_000), shown("w", 200_000)),
]


LOGGED = joined.logs_of({LOGS[0]: EVENTS, LOGS[1]: EVENTS[-1:]})


def verified(ledger: Ledger, folder: Path, selection: Wanted = ALL) -> Findings:
    scratch_file = folder / "scratch.db"
    with closing(Ledger.open(str(scratch_file), create=True)) as scratch:
        findings = verify(
            joined.SPLIT, ledger, scratch, scope=selection, monotonic=lambda: 0.0,
            opener=lambda config, options: MemorySource(LOGGED),
        )  # fmt: skip
    scratch_file.unlink()
    return findings


def damaged() -> Mapping[str, tuple[Update | Delete, str]]:
    """How a ledger is altered, and a part of the difference that is found."""
    pending = and_(delta.c.metric == ROWS, delta.c.window_start_ms == START_MS + 150_000)
    counted = and_(delta.c.metric == "ctr", delta.c.window_start_ms.is_(None))
    of_join = head.c.topic == "(join)"
    return {
        "pending": (delete(delta).where(pending), f"metric {ROWS}, grouping 0, "),
        "counted": (delete(delta).where(counted), "metric ctr, grouping "),
        "closed": (
            update(head).where(of_join).values(closed_rows=4),
            "closed: 4 in the ledger, 2 from the log",
        ),
        "conflicts": (
            update(head).where(of_join).values(conflicts=5),
            "conflicts: 5 in the ledger, 1 from the log",
        ),
    }


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Label windows are closed for all events but the last."""
    with closing(Ledger.open(str(tmp_path / "joined.db"), create=True)) as ledger:
        joined.run(joined.SPLIT, ledger, LOGGED, close=False)
        assert ledger.snapshot().closed_ms == START_MS + 150_000
        yield ledger


@pytest.mark.parametrize("damage", damaged())
def test_of_joined_events_the_counted_the_pending_and_the_counters_are_compared(
    ledger: Ledger, tmp_path: Path, damage: str
) -> None:
    statement, message = damaged()[damage]
    ledger.store.write(lambda connection, _: connection.execute(statement))
    differences = verified(ledger, tmp_path).differences
    assert differences and all(message in difference for difference in differences), differences


def test_without_all_logs_joined_events_are_not_compared_and_this_is_noted(
    ledger: Ledger, tmp_path: Path
) -> None:
    whole = verified(ledger, tmp_path)
    assert whole.is_good and not whole.notes
    findings = verified(ledger, tmp_path, Wanted((0,)))
    assert findings.is_good and findings.states < whole.states and len(findings.notes) == 1


RANKER = exposed.exposed_config(rest=exposed.RANKER)
PAIR = exposed.exposed_config(rest=exposed.RANKER + exposed.PRICE.partition("start")[0])


def test_an_experiment_ends_where_it_was_dropped_though_its_last_exposures_were_known(
    tmp_path: Path,
) -> None:
    """A closing that finds only known exposures of an experiment adds no row to it."""
    exposures = [exposed.exposure("u", at_ms, "price", "low") for at_ms in (0, 100_000)]
    orders = [exposed.order("x", at_ms) for at_ms in range(1000, 400_000, 1000)]
    events = sorted([*exposures, *orders], key=lambda event: event["ts"])
    steps = ((PAIR, 100, Requested()), (PAIR, 200, Requested()),
             (RANKER, 300, Requested(drop=("experiment/price",))),
             (PAIR, 400, Requested(resume=("experiment/price",))))  # fmt: skip
    with closing(Ledger.open(str(tmp_path / "exposed.db"), create=True)) as ledger:
        for run_config, n, requested in steps:
            descriptions = run_config.descriptions
            ledger.begin(run_config.fingerprints(), descriptions, requested=requested)
            logs = exposed.logs_of({LOGS[0]: events[:n]})
            exposed.run(run_config, ledger, logs, close=False)
            findings = exposed.verified(run_config, ledger, logs, tmp_path)
            assert findings.is_good, (n, findings.differences)
