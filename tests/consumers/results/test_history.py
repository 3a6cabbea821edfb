"""A view over time: parallel to its windows, in the order of the config, and bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import pytest

from consumers.ledger.looks import Point
from consumers.results import history
from consumers.results.answers import Window
from consumers.results.history import History, history_of, thinned
from consumers.results.results import SINCE_THE_START, ResultRow, Results
from streammetrics.experiments import Anytime


def row(hour: int | None, variant: str, value: float) -> ResultRow:
    """One value of one hour, or since the start."""
    window = SINCE_THE_START
    if hour is not None:
        window = Window(hour * 3_600_000, (hour + 1) * 3_600_000, "closed")
    return ResultRow(window, {"variant": variant}, "ctr", "Ratio", "ratio", value, value, value,
                     {"rows": 1}, "sha256:")  # fmt: skip


def of(*rows: ResultRow) -> History:
    results = Results(1, {}, 0, 0, 0, 0, 0, None, rows, ("old", "new"))
    return history_of(results, "ctr", "ratio", (), lambda name: ())


def values(found: History) -> dict[object, list[float | None]]:
    return {
        one.slice["variant"]: [None if cell is None else cell.value for cell in one.rows]
        for one in found.series
    }


def test_series_run_parallel_to_the_windows_and_gaps_are_none() -> None:
    found = of(row(None, "new", 9.0), row(0, "new", 1.0), row(1, "old", 2.0), row(3, "new", 3.0))
    assert [window.start_ms for window in found.windows] == [0, 3_600_000, 10_800_000]
    assert values(found) == {"old": [None, 2.0, None], "new": [1.0, None, 3.0]}


def test_series_stand_as_variants_are_declared_and_others_follow() -> None:
    found = of(row(0, "a", 1.0), row(0, "new", 1.0), row(0, "old", 1.0))
    assert list(values(found)) == ["old", "new", "a"]


def test_the_newest_windows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MAX_WINDOWS", 2)
    found = of(*(row(hour, "new", hour) for hour in range(5)))
    assert (values(found), found.more) == ({"new": [3, 4]}, 3)


@pytest.mark.parametrize("count", [0, 1, 2, 499, 500, 501, 100_000])
def test_looks_are_thinned_evenly_between_the_first_and_the_last(count: int) -> None:
    points = [Point(i, i, 0.0, Anytime(log_e=math.nan)) for i in range(count)]
    found: Sequence[Point] = thinned(points)
    assert len(found) == min(count, 500)
    assert found[:1] == points[:1] and found[-1:] == points[-1:]
    steps = {b.place - a.place for a, b in pairwise(found)}
    assert not steps or max(steps) - min(steps) <= 1
