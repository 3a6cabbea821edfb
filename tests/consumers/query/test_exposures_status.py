"""The status of exposures warns of what came too late, and of nothing else."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest
from msgspec.structs import replace
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.exposures_status import PendingReaders, exposures_warnings
from streammetrics_consumers.render.exposed_text import exposures_line, exposures_window

from tests.consumers.render.exposed import BEFORE_THE_FIRST, EXPOSURES
from tests.consumers.stores import make_store


def test_a_few_late_ones_are_no_warning() -> None:
    assert not list(exposures_warnings(EXPOSURES))
    assert not list(exposures_warnings(BEFORE_THE_FIRST))


@pytest.mark.parametrize(
    ("late", "message"),
    [
        ({"late_exposures": 100}, "100 of 1,734 (5.8 %) exposures were too late"),
        ({"late_events": 5000}, "5,000 of 91,234 (5.5 %) events were too late to be attributed"),
    ],
)
def test_many_late_ones_are(late: dict[str, int], message: str) -> None:
    [warning] = exposures_warnings(replace(EXPOSURES, **late))
    assert warning.startswith(message) and "lateness_s" in warning


def test_the_counts_are_one_line() -> None:
    assert exposures_line(BEFORE_THE_FIRST).startswith("0 events counted, 8 pending")
    assert exposures_window(EXPOSURES) == "window 7 days"


def test_events_that_wait_for_others_are_read_in_one_transaction(tmp_path: Path) -> None:
    with closing(Ledger.open(str(make_store(tmp_path)))) as ledger:
        readers = PendingReaders(ledger)
        with patch.object(ledger.store, "read", wraps=ledger.store.read) as read:
            assert readers.read(None) == ((None, None), None)
        assert read.call_count == 1
