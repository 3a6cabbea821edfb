"""ExposedRows: each event has the arms that its unit was exposed to before it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streammetrics import (
    END_OF_TIME,
    DictionaryColumn,
    ExposedRows,
    InputError,
    StateError,
    Units,
    hash_ids,
)
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.join import AttributedRows, Attribution
from streammetrics.results.exposed_results import listed
from streammetrics.testing import strategies
from tests.depth import EXAMPLES, tries
from tests.exposure_cases import COLUMNS, EVENT, EXPERIMENTS, NAMES, parsed
from tests.oracles import exposed
from tests.oracles.exposed import Event, Exposure

Row = tuple[Any, ...]
ROWS = st.lists(EVENT, max_size=25)
EPOCH = 1_700_000_000_000
WINDOWS = st.sampled_from((None, 1, 5))
TIMES = st.integers(-5, 30)
CHOSEN = st.sampled_from(
    (
        None,
        EXPERIMENTS,
        ("colour",),
        (),
        {"colour": (3, 9)},
        {"colour": (None, 9), "checkout": (4, None)},
    )
)


def fed(rows: Sequence[Row], window: int | None = None) -> ExposedRows:
    """The sets of these events."""
    state = ExposedRows(COLUMNS, window)
    if rows:
        state.update(**strategies.columns(*NAMES)(rows))
    return state


def arms_of(attribution: Attribution, n: int) -> list[dict[Any, Any]]:
    """By experiment the arm of each event and the time of exposure."""
    rows: list[dict[Any, Any]] = [{} for _ in range(n)]
    for name, arms in attribution.arms.items():
        times = attribution.exposed_ms[name].tolist()
        for row, arm, time in zip(rows, listed(arms), times, strict=True):
            assert arm is not None or time == 0
            if arm is not None:
                row[name] = (arm, time)
    return rows


def rows_of(out: AttributedRows) -> list[Row]:
    """Unit, time, content and arms of each event."""
    columns = [listed(out.columns[name]) for name in ("price", "page")]  # type: ignore[arg-type]
    arms = arms_of(out.attribution, len(out))
    rows = zip(out.units.tolist(), out.times_ms.tolist(), *columns, arms, strict=True)
    return sorted(rows, key=repr)


def exposures_of(out: AttributedRows) -> list[Row]:
    """The exposures that became known."""
    new = out.exposures
    columns = (listed(new.experiments), listed(new.arms), new.first.tolist())
    return sorted(zip(new.units.tolist(), new.times_ms.tolist(), *columns, strict=True))


@settings(max_examples=EXAMPLES)
@given(rows=ROWS, before=TIMES, window=WINDOWS, chosen=CHOSEN)
def test_closing_gives_what_every_event_finds_among_the_exposures_of_its_unit(
    rows: list[Row], before: int, window: int | None, chosen: Any
) -> None:
    exact = exposed.closed(parsed(rows), before, window, chosen)
    out = fed(rows, window).close(before, chosen)
    assert rows_of(out) == sorted(
        [
            (
                event.unit,
                event.time,
                *event.content,
                {name: arm for name, arm in arms.items() if arm is not None},
            )
            for event, arms in exact.rows
        ],
        key=repr,
    )
    assert exposures_of(out) == sorted((*exposure, first) for exposure, first in exact.exposures)
    assert out.other_exposures == exact.dropped


@settings(max_examples=EXAMPLES // 2)
@given(
    rows=ROWS,
    times=st.lists(TIMES, min_size=1, max_size=4),
    window=WINDOWS,
    random=st.randoms(use_true_random=False),
)
def test_closing_at_growing_times_is_closing_once_at_the_last(
    rows: list[Row], times: list[int], window: int | None, random: Random
) -> None:
    times.sort()
    once, steps = fed(rows, window), fed([], window)
    whole = once.close(times[-1])
    outs = []
    # Before each step all that it closes has come, in any order, and nothing else need have.
    for before, after in pairwise([-100, *times]):
        new = [row for row in rows if before <= row[1] < after]
        new += random.sample(new, len(new) // 2)
        random.shuffle(new)
        steps.merge([fed(new[::2], window), fed(new[1::2], window)])
        outs.append(steps.close(after))
    steps.merge(fed([row for row in rows if row[1] >= times[-1]], window))
    assert sorted((row for out in outs for row in rows_of(out)), key=repr) == rows_of(whole)
    assert sorted(row for out in outs for row in exposures_of(out)) == exposures_of(whole)
    assert steps.to_bytes() == once.to_bytes()


@settings(max_examples=EXAMPLES // 4)
@given(rows=ROWS, before=TIMES, window=WINDOWS)
def test_shards_by_unit_close_apart_and_come_together_again(
    rows: list[Row], before: int, window: int | None
) -> None:
    rows = [(f"user {unit}", *rest) for unit, *rest in rows]
    whole = fed(rows, window)
    parts = whole.split(None, 4)
    assert all(key[0] == 0 <= key[1] < 4 for key in parts)
    assert sum(parts.values(), start=whole.empty()) == whole
    outs = [part.close(before) for part in parts.values()]
    out = whole.close(before)
    assert sorted((row for o in outs for row in rows_of(o)), key=repr) == rows_of(out)
    assert sorted(row for o in outs for row in exposures_of(o)) == exposures_of(out)
    assert sum(parts.values(), start=whole.empty()) == whole


@settings(max_examples=EXAMPLES // 4)
@given(rows=ROWS, before=TIMES)
def test_what_stays_goes_through_bytes_panes_and_parts(rows: list[Row], before: int) -> None:
    state = fed(rows)
    out = state.close(before)
    loaded = ExposedRows.from_bytes(state.to_bytes())
    assert loaded == state == state + loaded == state.known() + state.pending()
    assert state.known() == state.known_of(out.exposures)
    panes = state.split(4, 2)
    for (start, _), piece in panes.items():
        for part in (piece.event_rows, piece.exposure_rows, piece.known_rows):
            table = part.sets[0].settled()
            assert ((table.times >= start) & (table.times < start + 4)).all()
    assert sum(panes.values(), start=state.empty()) == state
    assert rows_of(loaded.close(END_OF_TIME)) == rows_of(state.close(END_OF_TIME))


@settings(max_examples=EXAMPLES // 4)
@given(rows=ROWS, before=TIMES, window=WINDOWS)
def test_events_are_attributed_by_what_is_known(
    rows: list[Row], before: int, window: int | None
) -> None:
    state = fed(rows, window)
    out = state.close(before)
    events = [e for e in parsed(rows) if isinstance(e, Event)]
    exposures = [e for e in parsed(rows) if isinstance(e, Exposure) and e.time < before]
    columns = ([e.unit for e in events], [e.time for e in events])
    arms = arms_of(state.attribute(*map(np.array, columns)), len(events)) if events else []
    for event, event_arms in zip(events, arms, strict=True):
        for name in EXPERIMENTS:
            exact = exposed.arm_at(event.unit, event.time, name, exposures, window)
            assert event_arms.get(name) == exact
    assert set(out.attribution.arms) == {e.experiment for e in exposures}


def test_an_event_belongs_to_an_exposure_from_its_time_until_the_end_of_the_window() -> None:
    state = ExposedRows({}, window_ms=10)
    state.update_exposures([1], [100], "e", ["a"])
    times = [99, 100, 109, 110]
    state.update_events([1] * 4, times)
    out = state.close(1_000)
    assert listed(out.attribution.arms["e"]) == [None, "a", "a", None]
    assert out.attribution.exposed_ms["e"].tolist() == [0, 100, 100, 0]


def test_of_exposures_at_one_time_the_lesser_arm_by_name_counts() -> None:
    state = ExposedRows({})
    state.update_exposures([1] * 3, [5] * 3, "e", ["a b", "a", "b"])
    state.update_exposures([2] * 2, [5] * 2, "e", [10, 9])
    state.update_events([1, 2], [5, 5])
    assert listed(state.close(10).attribution.arms["e"]) == ["a", 9]


def test_the_arms_of_other_units_do_not_matter() -> None:
    """A unit has fewer exposures than there are arms, and its first one is in the last of them."""
    state = ExposedRows({})
    state.update_exposures([2] * 4, [5] * 4, "e", ["a", "b", "c", "d"])
    state.update_exposures([1, 1], [5, 6], "e", ["z", "a"])
    state.update_events([1], [7])
    out = state.close(10)
    assert listed(out.attribution.arms["e"]) == ["z"]
    assert out.attribution.exposed_ms["e"].tolist() == [5]


def test_an_arm_whose_name_is_new_makes_a_new_exposure() -> None:
    state = ExposedRows({})
    state.update_exposures([1], [5], "e", ["b"])
    assert exposures_of(state.close(10)) == [(1, 5, "e", "b", True)]
    state.update_exposures([1, 1], [12, 13], ["e", "f"], ["a", "b"])
    assert exposures_of(state.close(20)) == [(1, 12, "e", "a", False), (1, 13, "f", "b", True)]
    state.update_exposures([1], [25], "e", ["a"])
    assert exposures_of(state.close(30)) == []


def test_of_many_random_streams_each_is_as_by_brute_force_however_it_is_closed() -> None:
    random = Random(39)
    arms = [*"abcdefg", "a b"]
    for _ in range(tries(300, 20_000)):
        n_arms = random.randrange(1, len(arms) + 1)
        rows = [
            (
                random.randrange(4),
                random.randrange(20),
                random.choice(EXPERIMENTS),
                random.choice([None, None, *arms[:n_arms]]),
                random.choice((None, 7)),
                0.5,
                random.choice(("home", "cart")),
            )
            for _ in range(random.randrange(30))
        ]
        window = random.choice((None, 1, 6))
        exact = exposed.closed(parsed(rows), 99, window)
        state, outs = fed([], window), []
        cuts = [-1, *sorted(random.randrange(20) for _ in range(random.randrange(4))), 99]
        for before, after in pairwise(cuts):
            new = [row for row in rows if before <= row[1] < after]
            new += random.sample(new, len(new) // 2)
            random.shuffle(new)
            state = state + fed(new[::2], window) + fed(new[1::2], window)
            outs.append(state.close(after))
        exposures = sorted((row for out in outs for row in exposures_of(out)), key=repr)
        assert exposures == sorted(
            ((*exposure, first) for exposure, first in exact.exposures), key=repr
        )
        assert sorted((row for out in outs for row in rows_of(out)), key=repr) == sorted(
            [
                (e.unit, e.time, *e.content, {name: arm for name, arm in its.items() if arm})
                for e, its in exact.rows
            ],
            key=repr,
        )


def test_two_events_of_a_unit_at_one_time_are_told_apart_by_event_ids_or_columns() -> None:
    state = ExposedRows({"price": "float64"})
    state.update_events([1] * 3, [5] * 3, price=[1, 1, 2])
    state.update_events([1] * 3, [5] * 3, price=[1, 1, 1], event_ids=["x", "y", "x"])
    assert state.compute().events == 4


def test_units_come_back_as_metrics_of_units_take_them() -> None:
    names = ["ann", "bo", "ann"]
    state = ExposedRows({})
    state.update_events(names, [1, 2, 3])
    state.update_exposures(hash_ids(names), [1, 2, 3], "e", ["a", "b", "a"])
    out = state.close(10)
    direct, recovered = Units(), Units()
    direct.update(names)
    recovered.update(out.units.view(np.int64))
    assert recovered == direct
    assert set(out.units.view(np.int64).tolist()) == set(hash_ids(names).tolist())
    assert out.exposures.units.tolist() == sorted(set(out.units.tolist()))


def test_events_in_one_table_are_those_given_apart() -> None:
    mixed, apart = ExposedRows(COLUMNS), ExposedRows(COLUMNS)
    mixed.update(
        ["x", "x", "y"],
        [1, 2, 3],
        DictionaryColumn(np.array([0, 1, 0]), ("e", None)),
        np.array(["a", None, "b"], object),
        event_ids=np.array([None, "id", None], object),
        price=[np.nan, 7.5, np.nan],
        page=DictionaryColumn(np.array([1, 0, 1]), ("home", "unused")),
    )
    apart.update_exposures(["y", "x"], [3, 1], ["e", "e"], ["b", "a"])
    apart.update_events(["x"], [2], event_ids=["id"], price=[7.5], page=["home"])
    assert mixed == apart
    result = mixed.compute()
    assert (result.events, result.exposures, result.first_ms, result.last_ms) == (1, {"e": 2}, 1, 3)


def test_an_exposure_takes_at_most_24_bytes() -> None:
    n = 20_000
    state = ExposedRows({})
    for experiment in range(5):
        arms = DictionaryColumn(np.arange(n) % 2, ("a", "b"))
        state.update_exposures(np.arange(n), EPOCH + np.arange(n) * 86_400, f"e{experiment}", arms)
    state.close(END_OF_TIME)
    assert state.compute().known == {f"e{i}": n for i in range(5)}
    assert state.nbytes < 20 * 5 * n
    assert len(state.to_bytes()) < 15 * 5 * n


def test_an_error_names_the_event_among_all_events() -> None:
    state = ExposedRows(COLUMNS)
    with pytest.raises(InputError) as caught:
        state.update(
            [1, 2], [0, 0], "e", ["a", None], price=[np.nan, np.nan], page=["home", "home"]
        )
    assert caught.value.where == "price[1]"
    with pytest.raises(InputError, match=r"^arms\[1\]: expected a string or an integer"):
        state.update_exposures([1, 2], [0, 0], "e", ["a", None])
    assert state == state.empty()


@pytest.mark.parametrize("bad", [1.5, True, 1 << 63, None])
def test_a_time_that_is_none_closes_nothing(bad: Any) -> None:
    state = ExposedRows({})
    state.update_events([1], [1])
    with pytest.raises(InputError, match="since the epoch"):
        state.close(bad)
    assert state.compute().events == 1


def test_exposures_out_of_order_or_twice_are_refused() -> None:
    state = ExposedRows({})
    state.update_exposures([1, 2], [5, 5], "e", ["a", "a"])
    head, body = unframe(STATE_MAGIC, state.to_bytes())
    ids = bytes(body[2:10]), bytes(body[10:18])
    assert ids == ((1).to_bytes(8, "little"), (2).to_bytes(8, "little"))
    for first, second in ((ids[1], ids[0]), (ids[0], ids[0])):
        damaged = bytes(body[:2]) + first + second + bytes(body[18:])
        with pytest.raises(StateError, match="out of order"):
            ExposedRows.from_bytes(frame(STATE_MAGIC, head, damaged))
