"""Windows: each window's state is that of the plain metric fed with the rows of its span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from streammetrics import SettingsError, Windows
from tests.toys import Tally

MINUTE, DAY = 60_000, 86_400_000
ENDS = [-(2**63), -(2**63) + 1, -MINUTE, -1, 0, 1, MINUTE - 1, MINUTE, 2**63 - 1]


def counted(times: Sequence[int], size_s: float, slide_s: float | None = None) -> Windows:
    state = Windows(Tally(1), size_s, slide_s)
    state.update(times, cells=[0] * len(times))
    return state


def rows_by_window(state: Windows) -> dict[tuple[int, int], int]:
    return {span: result.rows for span, result in state.compute().items()}  # type: ignore[attr-defined]


def test_a_sliding_window_is_the_sum_of_its_panes() -> None:
    state = counted([0], 180, 60)
    assert state.pane_ms == MINUTE
    assert rows_by_window(state) == {(-120_000, 60_000): 1, (-60_000, 120_000): 1, (0, 180_000): 1}
    assert counted([0], 90, 60).pane_ms == 30_000
    assert state.compute().total.rows == 1  # type: ignore[attr-defined]


def test_the_ends_of_time_have_windows_too() -> None:
    state = counted(ENDS, 60)
    found = rows_by_window(state)
    assert sum(found.values()) == len(ENDS)
    for start, end in found:
        assert start % MINUTE == 0
        assert end == start + MINUTE
        assert any(start <= t < end for t in ENDS)
    assert Windows.from_bytes(state.to_bytes()) == state
    longest = counted(ENDS, 315_576_000)
    assert sum(rows_by_window(longest).values()) == len(ENDS)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((60, None), (60.0, 60)),
        ((60, 60), (60, None)),
        ((0.5, None), (0.5, 0.5)),
        ((7.5, 5), (7.5, 5.0)),
    ],
)
def test_equal_spans_are_equal_settings(a: Any, b: Any) -> None:
    first, second = counted([1], *a), counted([2], *b)
    assert (first + second).compute().total.rows == 2  # type: ignore[attr-defined]


def test_an_hour_may_slide_by_a_second_and_no_window_by_less_of_itself() -> None:
    assert len(counted([0], 3_600, 1).windows()) == 3_600
    with pytest.raises(SettingsError, match=r"at most 3,600 windows.*slide by at least 24 s"):
        Windows(Tally(), 86_400, 1)
    Windows(Tally(), 86_400, 24)
    with pytest.raises(SettingsError, match=r"slide by at least 0\.028 s"):
        Windows(Tally(), 100, 0.001)
    Windows(Tally(), 100, 0.028)


def test_only_whole_panes_are_summed() -> None:
    state = counted([0, MINUTE, 5 * MINUTE], 60)
    assert state.window_state(0, 2 * MINUTE).compute().rows == 2  # type: ignore[attr-defined]
    assert state.window_state(-DAY, DAY) == state.total_state()
    assert state.window_state(DAY, 2 * DAY) == Tally(1)
    assert state.window_state(MINUTE, 0) == Tally(1)
    with pytest.raises(SettingsError, match="multiple of the panes' 60000 ms"):
        state.window_state(1, MINUTE)
