"""Sliding windows: the sums that windows share, against the sum of each window by itself."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    InputError,
    PerKey,
    StateError,
    Windows,
    load,
)
from streammetrics.combine.windows import runs
from streammetrics.core.bytes.codec import STATE_MAGIC, frame, unframe
from tests.toys import Reach, Tally

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


@pytest.mark.parametrize("some", PANES.values(), ids=PANES)
def test_runs_are_the_windows_of_each_pane(some: np.ndarray) -> None:
    held = sorted({int(pane) for pane in some})
    for size, slide in SPANS:
        check_runs(held, size, slide)


def check_runs(held: list[int], size: int, slide: int) -> None:
    expected: dict[int, list[int]] = {}
    for at, pane in enumerate(held):
        for start in range(pane // slide * slide, pane - size, -slide):
            expected.setdefault(start, []).append(at)
    found = {}
    made = list(runs(held, size, slide, 1))
    for run in made:
        for start in run.starts:
            assert start not in found
            found[start] = list(range(run.low, run.high))
    assert found == expected and list(found) == sorted(found), (size, slide)
    assert len(made) <= 2 * len(held)


METRICS: list[tuple[Accumulator, dict[str, object]]] = [
    (Tally(3), {"cells": lambda n: RNG.integers(0, 3, n)}),
    (Reach(), {"values": lambda n: RNG.integers(-9, 9, n)}),
    (HistogramAUC(resolution=4), {"labels": lambda n: RNG.integers(0, 2, n), "scores": RNG.random}),
    (ExactAUC(max_rows=60), {"labels": lambda n: RNG.integers(0, 2, n), "scores": RNG.random}),
    (
        GroupedAUC(),
        {
            "labels": lambda n: RNG.integers(0, 2, n),
            "scores": RNG.random,
            "groups": lambda n: RNG.integers(-5, 5, n) << 40,
        },
    ),
    (
        PerKey(Tally(3), 4),
        {"keys": lambda n: RNG.integers(0, 30, n), "cells": lambda n: RNG.integers(0, 3, n)},
    ),
]


@pytest.mark.parametrize(("metric", "columns"), METRICS, ids=lambda x: str(x)[:20])
@pytest.mark.parametrize(("size", "slide"), [(1, 1), (17, 1), (60, 4)])
def test_sums_that_windows_share_are_those_of_each_window(
    metric: Accumulator, columns: dict[str, object], size: int, slide: int
) -> None:
    state = Windows(metric, size, slide)
    for some in ([0, 1, 2, 900_000], RNG.integers(-50_000, 50_000, 60), [10**17]):
        drawn = {name: draw(len(some)) for name, draw in columns.items()}  # type: ignore[operator]
        state.update(some, **drawn)
    before = state.to_bytes()
    result = state.compute()
    assert tuple(result) == state.windows()
    here = [(span, one) for spans, one in state.window_states() for span in spans]
    assert [span for span, _ in here] == list(state.windows())
    for (span, one), (again, computed) in zip(here, result.items(), strict=True):
        alone = state.window_state(*span)
        assert one.to_bytes() == alone.to_bytes() and span == again
        assert repr(computed) == repr(alone.compute())
    assert state.to_bytes() == before


def test_a_window_of_many_panes_is_the_sum_of_blocks_of_panes() -> None:
    state, n = Windows(Tally(3), 300, 7), 700
    state.update((np.arange(n) - n // 2) * 1_000, cells=np.arange(n) % 3)
    for spans, one in state.window_states():
        assert all(one == state.window_state(*span) for span in spans)
    assert len(state.panes()) == sum(one.compute().rows for one in state.panes().values()) == n  # type: ignore[attr-defined]
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


def test_few_panes_of_many_windows_take_little_time_and_memory() -> None:
    n = 20
    state = Windows(HistogramAUC(), 3_600, 1)
    state.update(np.arange(n) * -(10**9), labels=[1] * n, scores=[0.5] * n)
    assert len(state.to_bytes()) < 700
    tracemalloc.start()
    try:
        start = time.process_time()
        result = state.compute()
        text = repr(result)
        taken = time.process_time() - start
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(result) == n * 3_600 and len({id(one) for one in result.values()}) == n
    assert text.count("(") < 20_000 and f"and {n * 3_600 - 1_000} more" in text
    assert taken < 10 and peak < 20 << 20


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
    with pytest.raises(StateError, match="Windows refuses"):
        load(hostile(state, b'"slide_s":60', b'"slide_s":0.9', of_head=True))
    assert isinstance(load(few), Windows)


@pytest.mark.parametrize("key", [("a",), 60_001, -(2**63) - 60_000, 2**63])
def test_a_pane_that_no_row_can_have_is_refused(key: object) -> None:
    state = Windows(Tally(1), 60)
    state.update([60_000], cells=[0])
    state.compute()
    keys = state.states.index[0]
    keys[key] = keys.pop(60_000)  # type: ignore[index]
    with pytest.raises(StateError, match="does not begin with a pane"):
        load(state.to_bytes())


def test_the_panes_at_the_ends_of_time_are_read() -> None:
    state = Windows(Tally(1), 60)
    state.update([-(2**63), 2**63 - 1], cells=[0, 0])
    assert load(state.to_bytes()) == state
