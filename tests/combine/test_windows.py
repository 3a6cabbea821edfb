"""Windows: each window's state is that of the plain metric fed with the rows of its span."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import InputError, Panel, PerKey, SettingsError, Windows
from streammetrics.testing import Case, strategies
from tests.cases import panel, windows
from tests.depth import further_are_slow
from tests.oracles.maps import rows_of_keys, rows_of_windows
from tests.plain_cases import PLAIN
from tests.toys import Reach, Tally

FEW = hypothesis.settings(max_examples=12)
MINUTE, DAY = 60_000, 86_400_000
ENDS = [-(2**63), -(2**63) + 1, -MINUTE, -1, 0, 1, MINUTE - 1, MINUTE, 2**63 - 1]


def counted(times: Sequence[int], size_s: float, slide_s: float | None = None) -> Windows:
    state = Windows(Tally(1), size_s, slide_s)
    state.update(times, cells=[0] * len(times))
    return state


def rows_by_window(state: Windows) -> dict[tuple[int, int], int]:
    return {span: result.rows for span, result in state.compute().items()}  # type: ignore[attr-defined]


SOME = [
    PLAIN[0],
    *further_are_slow(panel(), PLAIN[6], PLAIN[11], PLAIN[13], fast=0),
]
SPANS = [(3600, None), (10_800, 3600), (7.5, 5), (0.001, None), (90, 60), (86_400, 43_200)]


@pytest.mark.parametrize(
    ("case", "size_s", "slide_s"),
    [(PLAIN[0], *span) for span in SPANS]
    + [pytest.param(*one.values, *SPANS[1], marks=one.marks) for one in SOME[1:]],
    ids=str,
)
def test_every_window_equals_the_plain_metric_fed_with_its_rows(
    case: Case[Any], size_s: float, slide_s: float | None
) -> None:
    made = windows(case, size_s, slide_s)
    state = made.empty
    assert isinstance(state, Windows)
    size_ms, slide_ms = state.size_ms, state.slide_ms

    @FEW
    @given(st.lists(st.tuples(strategies.times_ms(), case.row), max_size=20))
    def check(rows: Sequence[tuple[int, Any]]) -> None:
        state = Windows(case.empty, size_s, slide_s)
        for some in (rows[:4], rows[4:5], rows[5:]):
            if some:
                state.update(**made.columns(some))
        expected = rows_of_windows(rows, size_ms, slide_ms)
        assert state.windows() == tuple(sorted(expected))
        for span, mine in expected.items():
            assert state.window_state(*span) == case.fed(mine)
        assert state.total_state() == case.fed([row for _, row in rows])
        assert set(state.compute()) == set(expected)
        panes = state.panes()
        assert list(panes) == sorted(panes)
        for start, pane in panes.items():
            assert pane == case.fed([r for t, r in rows if start <= t < start + state.pane_ms])

    check()


def test_a_window_holds_its_start_and_not_its_end() -> None:
    assert rows_by_window(counted([0, MINUTE - 1, MINUTE], 60)) == {
        (0, MINUTE): 2,
        (MINUTE, 2 * MINUTE): 1,
    }


def test_windows_are_aligned_to_the_epoch_on_either_side_of_it() -> None:
    assert rows_by_window(counted([-1, -MINUTE, -MINUTE - 1], 60)) == {
        (-MINUTE, 0): 2,
        (-2 * MINUTE, -MINUTE): 1,
    }


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


def test_windows_that_lie_far_apart_cost_no_more_than_near_ones() -> None:
    near = counted([0, MINUTE], 60)
    far = counted([0, 2**62], 60)
    assert abs(far.nbytes - near.nbytes) < 1_000
    assert len(far.windows()) == 2
    assert len(far.to_bytes()) < len(near.to_bytes()) + 30


def test_a_late_row_adds_to_its_window() -> None:
    state = counted([DAY], 60)
    state.update([0], cells=[0])
    assert rows_by_window(state) == {(0, MINUTE): 1, (DAY, DAY + MINUTE): 1}


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


@pytest.mark.parametrize(
    "times",
    [
        [0, 1],
        np.array([0, 1], np.int32),
        np.array([0, 1], np.uint64),
        np.array([0, 1], object),
        np.array([0, 1], ">i8"),
    ],
)
def test_times_are_integers_of_any_type(times: Any) -> None:
    assert counted(times, 60) == counted([0, 1], 60)


@pytest.mark.parametrize(
    ("times", "columns"),
    [
        ([0.0, 1.0], {"cells": [0, 0]}),
        ([0, None], {"cells": [0, 0]}),
        ([0, 2**63], {"cells": [0, 0]}),
        (["2020-01-01", "x"], {"cells": [0, 0]}),
        (np.array(["2020-01-01"] * 2, "M8[ms]"), {"cells": [0, 0]}),
        ([0], {"cells": [0, 0]}),
        ([0, 1], {"cells": [0, 7]}),
        (5, {"cells": [0, 0]}),
    ],
    ids=range(8),
)
def test_a_refused_update_changes_nothing(times: Any, columns: Any) -> None:
    state = counted([1], 60)
    before = state.digest()
    with pytest.raises(InputError):
        state.update(times, **columns)
    assert state.digest() == before


@pytest.mark.parametrize(
    ("size_s", "slide_s", "name"),
    [
        (0, None, "size_s"),
        (-60, None, "size_s"),
        (0.0001, None, "size_s"),
        (1.0005, None, "size_s"),
        (float("inf"), None, "size_s"),
        (float("nan"), None, "size_s"),
        (10**400, None, "size_s"),
        (316_000_000, None, "size_s"),
        (True, None, "size_s"),
        ("60", None, "size_s"),
        (None, None, "size_s"),
        (60, 0, "slide_s"),
        (60, 61, "slide_s"),
        (60, "60", "slide_s"),
        (100.001, 0.001, "slide_s"),
    ],
)
def test_spans_that_are_none_are_refused(size_s: Any, slide_s: Any, name: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Windows(Tally(), size_s, slide_s)
    assert caught.value.where == f"Windows.{name}"


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


def test_extracted_states_are_independent() -> None:
    state = counted([0, MINUTE], 60)
    before = state.digest()
    for part in (state.total_state(), state.window_state(0, MINUTE), *state.panes().values()):
        part.update([0])
    assert state.digest() == before


def test_a_metric_that_is_fed_after_it_was_given_does_not_feed_the_windows() -> None:
    metric = Tally(1)
    state = Windows(metric, 60)
    metric.update([0])
    assert state == Windows(Tally(1), 60)
    assert state.total_state() == Tally(1)


def nested(limit: int = 2) -> Windows:
    both = Panel({"t": Tally(64), "r": Reach()}, inputs={"r": {"values": "cells"}})
    return Windows(PerKey(both, limit), 7200, 3600)


@FEW
@given(
    st.lists(st.tuples(strategies.times_ms(), strategies.keys(), st.integers(0, 63)), max_size=30),
    st.integers(0, 30),
)
def test_windows_of_keys_of_panels_agree_with_plain_dictionaries(
    rows: Sequence[tuple[int, Any, int]], cut: int
) -> None:
    a, b = nested(), nested()
    for state, some in ((a, rows[:cut]), (b, rows[cut:])):
        if some:
            times, keys, cells = map(list, zip(*some, strict=True))
            state.update(times, keys=keys, cells=cells)
    whole = Windows.from_bytes((a + b).to_bytes())
    spans = rows_of_windows([(t, (k, c)) for t, k, c in rows], 7_200_000, 3_600_000)
    result = whole.compute()
    assert set(result) == set(spans)
    for span, mine in spans.items():
        # A pane keeps two keys, so what a window keeps are the least two of those of its panes.
        by_key, others = rows_of_keys(mine, 2)
        window = result[span]
        assert set(window) == set(by_key)  # type: ignore[call-overload]
        for key, cells in by_key.items():
            assert window[key]["t"].cells == tuple(cells.count(c) for c in range(64))  # type: ignore[index]
            assert window[key]["r"] == (min(cells), max(cells))  # type: ignore[index]
        if others is None:
            assert window.overflow is None  # type: ignore[attr-defined]
        else:
            assert window.overflow["t"].rows == len(others)  # type: ignore[attr-defined]
            assert window.overflow["r"] == (min(others), max(others))  # type: ignore[attr-defined]
    assert sum_of_rows(result.total) == len(rows)


def sum_of_rows(keyed: Any) -> int:
    results = [*keyed.values(), *([] if keyed.overflow is None else [keyed.overflow])]
    return sum(result["t"].rows for result in results)


def test_memory_grows_with_what_is_held() -> None:
    n = 2_000
    state = Windows(PerKey(Tally(4), 10), 60)
    state.update(np.arange(n) * MINUTE, keys=["a", "b"] * (n // 2), cells=np.zeros(n, np.int64))
    assert len(state.windows()) == n
    assert 100 * n < state.nbytes < 2_000 * n
    assert len(state.to_bytes()) < 50 * n
