"""The status of exposures warns of what came too late, and of nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from streammetrics_consumers.query.exposures_status import exposures_warnings
from streammetrics_consumers.render.exposed_text import exposures_line, exposures_window

from tests.consumers.render.exposed import BEFORE_THE_FIRST, EXPOSURES


def test_a_few_late_ones_are_no_warning() -> None:
    assert not list(exposures_warnings(EXPOSURES))
    assert not list(exposures_warnings(BEFORE_THE_FIRST))


@pytest.mark.parametrize(
    ("late", "said"),
    [
        ({"late_exposures": 100}, "100 of 1,734 (5.8 %) exposures were too late"),
        ({"late_events": 5000}, "5,000 of 91,234 (5.5 %) events were too late to be attributed"),
    ],
)
def test_many_late_ones_are(late: dict[str, int], said: str) -> None:
    [warning] = exposures_warnings(replace(EXPOSURES, **late))
    assert warning.startswith(said) and "lateness_s" in warning


def test_the_counts_are_one_line() -> None:
    assert exposures_line(BEFORE_THE_FIRST).startswith("0 events counted, 8 pending")
    assert exposures_window(EXPOSURES) == "window 7 days"
