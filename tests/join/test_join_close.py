"""Closing a join: the same rows, labels and delays as by brute force, in any steps and order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise, permutations
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from streammetrics import END_OF_TIME, DictionaryColumn, JoinRows
from streammetrics.core.rows import first_at_least, spans
from streammetrics.join.join_close import (
    counted_impressions,
    pairs,
    sorted_by_id_and_time,
    sums,
)
from streammetrics.join.join_events import ATTRIBUTIONS
from streammetrics.results import ClosedRows
from streammetrics.testing import strategies
from tests.depth import EXAMPLES
from tests.join_cases import COLUMNS, COUNTS, EVENT, NAMES, WINDOW, parsed
from tests.oracles import joins
from tests.oracles.joins import Terms

ways = pytest.mark.parametrize("attribution", ATTRIBUTIONS)
Row = tuple[Any, ...]


def fed(rows: Sequence[Row], attribution: str, remember: int = 9) -> JoinRows:
    """The sets of these events."""
    state = JoinRows(COLUMNS, COUNTS, WINDOW, attribution, remember)
    if rows:
        state.update(**strategies.columns(*NAMES)(rows))
    return state


def listed(out: ClosedRows) -> list[Row]:
    """The rows as tuples: id, time, columns, labels."""
    variants = out.columns["variant"]
    assert isinstance(variants, DictionaryColumn)
    names = [variants.values[code] for code in variants.codes.tolist()]
    scores = np.asarray(out.columns["score"]).tolist()
    labels = [out.labels[name].tolist() for name in sorted(COUNTS)]
    return sorted(zip(out.ids.tolist(), out.times_ms.tolist(), scores, names, *labels, strict=True))


def left(out: ClosedRows) -> list[tuple[Any, int]]:
    """Outcome and delay of what left."""
    kinds = [out.outcomes.values[code] for code in out.outcomes.codes.tolist()]
    return sorted(zip(map(str, kinds), out.delays_ms.tolist(), strict=True))


@ways
@settings(max_examples=EXAMPLES // 2)
@given(rows=st.lists(EVENT, max_size=25), before=st.integers(-5, 40))
def test_closing_gives_what_every_impression_finds_among_all_outcomes(
    attribution: str, rows: list[Row], before: int
) -> None:
    exact = joins.closed(parsed(rows), Terms(COUNTS, WINDOW, attribution, 9), before)
    out = fed(rows, attribution).close(before)
    contents = [row[1:] for row in listed(out)]
    assert sorted(contents) == sorted(
        (impression.time, *impression.content, labels["click"], float(labels["sale"]))
        for impression, labels in exact.rows
    )
    assert out.conflicts == exact.conflicts
    assert left(out) == exact.left


@ways
@settings(max_examples=EXAMPLES // 2)
@given(
    rows=st.lists(EVENT, max_size=25),
    times=st.lists(st.integers(-5, 40), min_size=1, max_size=4),
    random=st.randoms(use_true_random=False),
)
def test_closing_at_growing_times_is_closing_once_at_the_last(
    attribution: str, rows: list[Row], times: list[int], random: Random
) -> None:
    times.sort()
    once, steps = fed(rows, attribution), fed([], attribution)
    whole = once.close(times[-1])
    outs = []
    # Before each step all that the step needs has come, and nothing else need have.
    for before, after in pairwise([-100, *times]):
        new = [row for row in rows if before + WINDOW <= row[2] < after + WINDOW]
        new += random.sample(new, len(new) // 2)
        random.shuffle(new)
        steps.merge([fed(new[::2], attribution), fed(new[1::2], attribution)])
        outs.append(steps.close(after))
    steps.merge(fed([row for row in rows if row[2] >= times[-1] + WINDOW], attribution))
    assert sorted(row for out in outs for row in listed(out)) == listed(whole)
    assert sorted(pair for out in outs for pair in left(out)) == left(whole)
    assert sum(out.conflicts for out in outs) == whole.conflicts
    assert steps.to_bytes() == once.to_bytes()


@ways
@given(rows=st.lists(EVENT, max_size=25), before=st.integers(-5, 40))
@settings(max_examples=EXAMPLES // 4)
def test_parts_by_id_close_apart_and_come_together_again(
    attribution: str, rows: list[Row], before: int
) -> None:
    whole = fed(rows, attribution)
    parts = whole.split(None, 4)
    assert all(key[0] == 0 <= key[1] < 4 for key in parts)
    assert sum(parts.values(), start=whole.empty()) == whole
    outs = [part.close(before) for part in parts.values()]
    out = whole.close(before)
    assert sorted(row for output in outs for row in listed(output)) == listed(out)
    assert sorted(pair for output in outs for pair in left(output)) == left(out)
    assert sum(parts.values(), start=whole.empty()) == whole


@ways
@given(rows=st.lists(EVENT, max_size=25), before=st.integers(-5, 40))
def test_what_stays_goes_through_bytes_and_panes(
    attribution: str, rows: list[Row], before: int
) -> None:
    state = fed(rows, attribution)
    state.close(before)
    loaded = JoinRows.from_bytes(state.to_bytes())
    assert loaded == state == state + loaded
    panes = state.split(4, 2)
    for (start, number), piece in panes.items():
        assert start % 4 == 0
        for part in (piece.shown_rows, piece.outcome_rows, piece.known_rows):
            table = part.sets[0].settled()
            assert ((table.times >= start) & (table.times < start + 4)).all()
            assert (table.ids >> np.uint64(63) == number).all()
    assert sum(panes.values(), start=state.empty()) == state
    out = loaded.close(END_OF_TIME)
    assert listed(out) == listed(state.close(END_OF_TIME))
    assert loaded == loaded.empty()


def test_an_outcome_belongs_to_the_last_impression_or_to_every_one() -> None:
    rows = [("impression", 1, time, 0.0, None, 0.5, "a") for time in (0, 2)]
    rows += [("click", 1, 4, 0.0, None, 0.0, ""), ("click", 1, 6, 0.0, None, 0.0, "")]
    clicks = {way: fed(rows, way).close(100).labels["click"].tolist() for way in ATTRIBUTIONS}
    assert clicks == {"one": [1], "last": [0, 1], "every": [1, 1]}
    assert fed(rows, "one").close(100).conflicts == 1


def test_an_outcome_has_a_delay_where_its_impression_is_remembered() -> None:
    shown = ("impression", 1, 0, 0.0, None, 0.5, "a")
    late = [("click", 1, time, 0.0, None, 0.0, "") for time in (-1, 4, 5, 8, 9)]
    steps = fed([shown], "one")
    assert len(steps.close(1)) == 1
    steps.merge(fed(late, "one"))
    assert left(steps.close(100)) == [("click", d) for d in (-1, -1, 4, 5, 8)]
    assert left(fed([shown, *late], "one").close(100)) == [("click", d) for d in (-1, -1, 4, 5, 8)]


IDS = np.array([1, 1, 1, 4, 7, 7], np.uint64)
TIMES = np.array([0, 3, 8, 5, 1, 2], np.int64)


def places(*values: int) -> NDArray[np.intp]:
    return np.array(values, np.intp)


def test_the_first_time_that_is_late_enough_is_found_in_each_span() -> None:
    low, high = spans(IDS, np.array([1, 1, 2, 7], np.uint64))
    assert (low.tolist(), high.tolist()) == ([0, 0, 3, 4], [3, 3, 3, 6])
    thresholds = np.array([3, 9, 0, 2], np.int64)
    assert first_at_least(TIMES, low, high, thresholds).tolist() == [1, 3, 3, 5]


def test_an_impression_stands_unless_one_that_stands_came_shortly_before() -> None:
    assert counted_impressions(IDS, TIMES, 4).tolist() == [True, False, True, True, True, False]
    assert counted_impressions(IDS, TIMES, 9).tolist() == [True, False, False, True, True, False]
    assert counted_impressions(IDS[:0], TIMES[:0], 9).tolist() == []


def test_an_outcome_belongs_to_the_last_impression_in_its_window_or_to_each() -> None:
    low, last, times = places(0, 0, 3, 4), places(1, 2, 2, 5), np.array([5, 20, 9, 3])
    owner, owned = pairs(TIMES, low, last, times, 6, every=False)
    assert (owner.tolist(), owned.tolist()) == ([1, 5], [0, 3])
    owner, owned = pairs(TIMES, low, last, times, 6, every=True)
    assert (owner.tolist(), owned.tolist()) == ([0, 1, 4, 5], [0, 0, 3, 3])
    nothing, _ = pairs(TIMES, low[:0], last[:0], times[:0], 6, every=True)
    assert len(nothing) == 0


def test_the_order_of_events_is_by_id_and_time_and_stable() -> None:
    ids = np.array([2, 1, 2, 1, 2], np.uint64)
    times = np.array([5, 0, 1, 0, 5], np.int64)
    assert sorted_by_id_and_time(ids, times).tolist() == [1, 3, 2, 0, 4]


def test_sums_are_rounded_once_in_any_order() -> None:
    values = [1e308, 1e308, -1e308, 0.1, -1e308]
    for order in list(permutations(values))[::7]:
        totals = sums(np.array([*order, -0.0]), places(1, 1, 1, 1, 1, 2), 4)
        assert totals.tolist() == [0.0, 0.1, 0.0, 0.0]
        assert math.copysign(1, totals[2]) == 1
    assert sums(np.array([1e308, 1e308]), places(0, 0), 1).tolist() == [math.inf]
