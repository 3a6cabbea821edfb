"""Windows: each window's state is that of the plain metric fed with the rows of its span."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    PerKey,
    SettingsError,
    StateError,
    Windows,
    load,
)
from streammetrics.combine.windows import runs
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.testing.laws import exact_text
from tests.toys import Reach, Tally

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


@pytest.mark.parametrize("times", [[], [0, 1], [0, 3 * MINUTE], [MINUTE, -5 * MINUTE, 9 * MINUTE]])
def test_panes_that_may_share_memory_are_those_that_do_not(times: list[int]) -> None:
    for state in (counted(times, 60), by_key(times)):
        before = state.to_bytes()
        shared = state.panes(copy=False)
        assert shared == state.panes() and [*shared] == [*state.panes()]
        copies = {start: pane.to_bytes() for start, pane in state.panes().items()}
        assert {start: pane.to_bytes() for start, pane in shared.items()} == copies
        assert state.to_bytes() == before
    with pytest.raises(InputError, match=r"Windows\.panes\(copy\)"):
        counted(times, 60).panes(copy=1)  # type: ignore[arg-type]


def by_key(times: Sequence[int]) -> Windows:
    state = Windows(PerKey(Tally(4)), 60)
    state.update(times, keys=["a"] * len(times), cells=[1] * len(times))
    return state


def test_the_ends_of_time_have_windows_too() -> None:
    state = counted(ENDS, 60)
    counts = rows_by_window(state)
    assert sum(counts.values()) == len(ENDS)
    for start, end in counts:
        assert start % MINUTE == 0
        assert end == start + MINUTE
        assert any(start <= t < end for t in ENDS)
    assert Windows.from_bytes(state.to_bytes()) == state
    longest = counted(ENDS, 315_576_000)
    assert sum(rows_by_window(longest).values()) == len(ENDS)


def test_equal_spans_are_equal_settings() -> None:
    spans: list[tuple[Any, Any]] = [
        ((60, None), (60.0, 60)),
        ((0.5, None), (0.5, 0.5)),
        ((7.5, 5), (7.5, 5.0)),
    ]
    for a, b in spans:
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
    with pytest.raises(SettingsError, match="multiple of the pane length, 60000 ms"):
        state.window_state(1, MINUTE)


# -- sums that sliding windows share, against the sum of each window by itself


RNG = np.random.default_rng(22)
SPANS = [(1, 1), (2, 1), (7, 5), (17, 1), (40, 3), (300, 1), (1_000, 999)]


# Starts of panes of a second, in seconds.
PANES = {
    "none": np.empty(0),
    "one": np.array([5]),
    "each": np.arange(-40, 200),
    "far": RNG.integers(-(2**50), 2**50, 20),
    "mixed": np.concatenate([RNG.integers(-600, 600, 100), RNG.integers(0, 2**40, 9)]),
    "ends": np.array([-(2**63) // 1000 + 1, 0, (2**63 - 1) // 1000]),
}


def test_runs_are_the_windows_of_each_pane() -> None:
    for values in PANES.values():
        panes = sorted({int(pane) for pane in values})
        for size, slide in SPANS:
            check_runs(panes, size, slide)


def check_runs(panes: list[int], size: int, slide: int) -> None:
    expected: dict[int, list[int]] = {}
    for index, pane in enumerate(panes):
        for start in range(pane // slide * slide, pane - size, -slide):
            expected.setdefault(start, []).append(index)
    indices_by_start = {}
    pane_runs = list(runs(panes, size, slide, 1))
    for run in pane_runs:
        for start in run.starts:
            assert start not in indices_by_start
            indices_by_start[start] = list(range(run.low, run.high))
    assert indices_by_start == expected and list(indices_by_start) == sorted(indices_by_start), (
        size,
        slide,
    )
    assert len(pane_runs) <= 2 * len(panes)


LABELS, SCORES = (lambda n: RNG.integers(0, 2, n)), RNG.random
METRICS: list[tuple[Accumulator, int, int, dict[str, Callable[[int], object]]]] = [
    (Tally(3), 1, 1, {"cells": lambda n: RNG.integers(0, 3, n)}),
    (Reach(), 17, 1, {"values": lambda n: RNG.integers(-9, 9, n)}),
    (ExactAUC(max_rows=60), 60, 4, {"labels": LABELS, "scores": SCORES}),
    (
        GroupedAUC(),
        17,
        1,
        {"labels": LABELS, "scores": SCORES, "groups": lambda n: RNG.integers(-5, 5, n) << 40},
    ),
    (
        PerKey(Tally(3), 4),
        60,
        4,
        {"keys": lambda n: RNG.integers(0, 30, n), "cells": lambda n: RNG.integers(0, 3, n)},
    ),
]


def test_sums_that_windows_share_are_those_of_each_window() -> None:
    for metric, size, slide, columns in METRICS:
        state = Windows(metric, size, slide)
        for times in ([0, 1, 2, 900_000], RNG.integers(-50_000, 50_000, 20), [10**17]):
            state.update(times, **{name: draw(len(times)) for name, draw in columns.items()})  # type: ignore[arg-type]
        before = state.to_bytes()
        result = state.compute()
        assert tuple(result) == state.windows()
        states = [(span, total) for spans, total in state.window_states() for span in spans]
        assert [span for span, _ in states] == list(state.windows())
        for (span, window_state), (result_span, computed) in zip(
            states, result.items(), strict=True
        ):
            expected = state.window_state(*span)
            assert window_state.to_bytes() == expected.to_bytes() and span == result_span, metric
            assert exact_text(computed) == exact_text(expected.compute())
        assert state.to_bytes() == before


def test_a_window_of_many_panes_is_the_sum_of_blocks_of_panes() -> None:
    state, n = Windows(Tally(3), 300, 7), 700
    state.update((np.arange(n) - n // 2) * 1_000, cells=np.arange(n) % 3)
    for spans, total in state.window_states():
        assert all(total == state.window_state(*span) for span in spans)
    assert len(state.panes()) == sum(pane.compute().rows for pane in state.panes().values()) == n  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="expected 3 values, one for each row"):
        state.update([0, 1], cells=[0, 0, 0])


def test_a_window_that_holds_nothing_has_no_result() -> None:
    state = Windows(Tally(1), 10, 5)
    state.update([0, 100_000], cells=[0, 0])
    result = state.compute()
    for span in ((-10_000, 0), (5_000, 15_000), (-5_000, 4_000), (1, 10_001), (10**20, 10**20)):
        assert span not in result and result.get(span) is None
    assert len(result) == 4 and (0, 10_000) in result
    assert not any(key in result for key in ("total", "ab", 0, (0,), ("a", "b"), None))


def test_many_windows_of_few_panes_share_their_results_and_take_little_memory() -> None:
    n = 2
    state = Windows(HistogramAUC(), 3_600, 1)
    state.update(np.arange(n) * -(10**9), labels=[1] * n, scores=[0.5] * n)
    assert len(state.to_bytes()) < 400
    tracemalloc.start()
    try:
        result = state.compute()
        text = repr(result)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(result) == n * 3_600 and len({id(value) for value in result.values()}) == n
    assert len(text.splitlines()) < 30 and text.startswith("WindowsResult: 7,200 results\n")
    assert peak < 2 << 20


def hostile(state: Windows, old: bytes, new: bytes, *, of_head: bool = False) -> bytes:
    """The state's bytes with something else in them."""
    head, body = (bytes(part) for part in unframe(STATE_MAGIC, state.to_bytes()))
    assert (head if of_head else body).count(old) == 1
    if of_head:
        return frame(STATE_MAGIC, head.replace(old, new), body)
    return frame(STATE_MAGIC, head, body.replace(old, new))


def test_a_state_of_windows_that_are_refused_is_refused() -> None:
    state = Windows(Tally(1), 3_600, 60)
    state.update([0], cells=[0])
    few = hostile(state, b'"size_s":3600,"slide_s":60', b'"size_s":3600,"slide_s":1', of_head=True)
    with pytest.raises(StateError, match="Windows rejects"):
        load(hostile(state, b'"slide_s":60', b'"slide_s":0.9', of_head=True))
    assert isinstance(load(few), Windows)


@pytest.mark.parametrize("key", [("a",), 60_001, -(2**63) - 60_000, 2**63])
def test_a_pane_that_no_row_can_have_is_refused(key: object) -> None:
    state = Windows(Tally(1), 60)
    state.update([60_000], cells=[0])
    state.compute()
    keys = state.states.index[0]
    keys[key] = keys.pop(60_000)  # type: ignore[index]
    with pytest.raises(StateError, match="does not begin at a pane"):
        load(state.to_bytes())


def test_the_panes_at_the_ends_of_time_are_read() -> None:
    state = Windows(Tally(1), 60)
    state.update([-(2**63), 2**63 - 1], cells=[0, 0])
    assert load(state.to_bytes()) == state
