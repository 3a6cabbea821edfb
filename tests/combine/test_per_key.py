"""PerKey: each key's state is that of the plain metric fed with its rows."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

import numpy as np
import pytest

from streammetrics import (
    InputError,
    Panel,
    PerKey,
    Ratio,
    SettingsError,
    StoredPerKey,
    UnknownKeyError,
    UserGroups,
    Windows,
)
from streammetrics.combine import children
from streammetrics.combine.children import Map, MapColumn
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.ids.keys import dictionary_column, encode_key
from streammetrics.core.rows import Key
from tests.oracles.maps import rank
from tests.toys import Tally


def tally(keys: Sequence[Key], limit: int = 3) -> PerKey:
    """Each key counts one row, whose cell is its place in the list."""
    state = PerKey(Tally(64), limit)
    state.update(keys, cells=range(len(keys)) if len(keys) else [])
    return state


def test_a_key_that_never_came_is_refused_with_the_nearest_one() -> None:
    state = tally(["control", "treatment"])
    stored = StoredPerKey([state.to_bytes()])
    lookups: list[tuple[str, Callable[[Any], object]]] = [
        ("PerKey.state", state.state),
        ("PerKey.state", stored.state),
        ("KeyedResult", state.compute().__getitem__),
    ]
    for where, ask in lookups:
        with pytest.raises(InputError) as error:
            ask("treatmnt")
        assert isinstance(error.value, KeyError)
        assert str(error.value) == (
            f"{where}: expected one of 2 keys ('control', 'treatment'), got 'treatmnt'; "
            "did you mean 'treatment'?"
        )
        with pytest.raises(KeyError, match="got 7; correct it"):
            ask(7)
    with pytest.raises(KeyError, match="expected no keys, got 'a'"):
        tally([]).state("a")
    mixed = tally([1, ("de", 2)])
    with pytest.raises(KeyError, match=r"did you mean 1\?"):
        mixed.state("1")
    with pytest.raises(KeyError, match=r"did you mean \('de', 2\)\?"):
        mixed.state(("de", "2"))


def test_a_key_that_never_came_has_an_empty_state_for_who_asks_for_one() -> None:
    state = tally(["a"])
    for states in (state, StoredPerKey([state.to_bytes()])):
        states.state("b", missing="empty").update([1])
        assert states.state("b", missing="empty") == Tally(64)
        assert states.keys() == ("a",)
        with pytest.raises(SettingsError, match="missing: expected one of error, empty"):
            states.state("b", missing="none")  # type: ignore[arg-type]
    result = state.compute()
    assert "b" not in result and result.get("b") is None and result.get("b", 7) == 7
    assert result.get("a") == result["a"] and "a" in result


def test_a_key_past_max_keys_is_said_to_be_among_the_others() -> None:
    state = tally([f"k{i}" for i in range(9)])
    with pytest.raises(KeyError, match=r"keys past max_keys are summed in overflow_state\(\)"):
        state.state("x")
    with pytest.raises(KeyError, match="keys past max_keys are summed in `overflow`"):
        state.compute()["x"]


def test_an_error_of_very_many_keys_names_few_and_comes_soon() -> None:
    state = PerKey(Ratio(), 100_000)
    state.update([*range(100_000)], numerators=[1] * 100_000)
    result = state.compute()
    with pytest.raises(KeyError) as error:
        result["x" * 100_000]
    assert str(error.value).startswith("KeyedResult: expected one of 100,000 keys (")
    assert "and 99,995 more), got" in str(error.value) and len(str(error.value)) < 300


def test_metrics_of_panels_and_windows_are_refused_alike() -> None:
    panel = Panel({"ctr": Tally(), "auc": Tally()})
    windows = Windows(Tally(), size_s=60)
    windows.update([60_000], cells=[0])
    by_key = PerKey(panel)
    lookups: list[tuple[Callable[[], object], str]] = [
        (lambda: panel.compute()["crt"], "PanelResult: expected one of 2 metrics ('auc', 'ctr')"),
        (lambda: panel.state("crt"), "Panel.state: expected one of 2 metrics"),
        (lambda: by_key.project("crt"), "PerKey.project: expected one of 2 metrics"),
        (lambda: windows.compute()[0, 60_000], "expected one of 1 windows ((60000, 120000))"),
    ]
    for ask, text in lookups:
        with pytest.raises(UnknownKeyError) as error:
            ask()
        assert text in str(error.value)
        assert ("did you mean 'ctr'?" in str(error.value)) == ("metrics" in text)


def test_one_and_true_and_the_text_1_are_not_one_key() -> None:
    state = PerKey(Tally(), 10)
    state.update([1, "1", (1,)], cells=[1, 2, 3])
    assert len(state.keys()) == 3
    state.update([True, False, 1.0], cells=[1, 2, 3])
    assert state.keys() == ("1", "False", "True", 1, (1,))
    with pytest.raises(InputError, match="expected 2 values, one for each row"):
        state.update(["a"], cells=[1, 2])


def test_no_rows_are_lost_to_the_limit() -> None:
    state = tally([f"k{i}" for i in range(64)], limit=5)
    overflow = state.overflow_state()
    assert overflow is not None
    total = overflow.copy()
    total.merge(map(state.state, state.keys()))
    assert total.compute().cells == (1,) * 64  # type: ignore[attr-defined]


def test_keys_that_cannot_be_kept_take_no_place() -> None:
    keys = sorted((f"k{i}" for i in range(100)), key=rank)
    state = tally(keys[:5], limit=4)
    assert len(state.keys()) == 4
    width = state.states.child._width
    state.update(keys[5:6], cells=[1])
    state._flush()
    assert state.states.child._width == width == 5


def test_a_state_far_past_its_limit_stays_small() -> None:
    state = PerKey(Ratio(), 100)
    sizes = []
    for start in range(0, 20_000, 1_000):
        state.update(np.arange(start, start + 1_000), numerators=np.ones(1_000))
        state._flush()  # it is never read
        sizes.append(state.nbytes)
    assert sizes[-1] <= sizes[0] * 2


@pytest.mark.parametrize(("n", "limit"), [(1, 3), (2, 100), (7, 3)])
def test_pieces_by_hash_merge_back_into_the_whole(n: int, limit: int) -> None:
    state = tally([f"k{i}" for i in range(40)], limit)
    pieces = state.split(n)
    assert len(pieces) == n
    keys = list(itertools.chain.from_iterable(piece.keys() for piece in pieces))
    assert sorted(keys) == sorted(state.keys())
    for order in (pieces, pieces[::-1]):
        back = state.empty()
        back.merge(order)
        assert back == state
        back.merge([])
    stored = [PerKey.from_bytes(piece.to_bytes()) for piece in pieces]
    assert sum(stored[1:], start=stored[0]) == state


def test_chosen_keys_have_the_states_and_results_of_the_whole() -> None:
    whole = PerKey(Ratio(), max_keys=5)
    keys: list[Key] = ["a", "1", 1, None, ("a", 1), "b", "c", "d"]
    whole.update(keys * 3, numerators=np.arange(24) % 5)
    selection = [*whole.keys()[::2], "never", *keys[:1]]
    part = whole.chosen(selection)
    assert set(part.keys()) == set(selection) & set(whole.keys())
    assert part.overflow_state() is None is not whole.overflow_state()
    for key in part.keys():  # noqa: SIM118
        assert part.state(key) == whole.state(key)
        assert part.compute()[key] == whole.compute()[key]
    part.merge(part.copy())
    assert whole.chosen(selection) != part


def test_a_projection_is_the_state_of_one_metric_alone() -> None:
    state = PerKey(Panel({"t": Tally(), "r": Ratio()}, inputs={"r": {"numerators": "cells"}}), 2)
    tallies, ratios = PerKey(Tally(), 2), PerKey(Ratio(), 2)
    for keys in (["a", "b"], ["c", "a"], ["d"]):
        cells = [1, 2][: len(keys)]
        state.update(keys, cells=cells)
        tallies.update(keys, cells=cells)
        ratios.update(keys, numerators=cells)
    assert state.project("t") == tallies
    assert state.project("r") == ratios
    projected = state.project("t")
    before = state.digest()
    projected.update(["a"], cells=[3])
    assert state.digest() == before
    with pytest.raises(SettingsError, match="a PerKey of Tally"):
        tallies.project("t")


@pytest.mark.parametrize("keys", [["a", "b"], [f"{i}" for i in range(40)], []])
def test_a_projection_with_a_limit_is_the_limited_projection(keys: list[str]) -> None:
    panel = Panel({"t": Tally(), "users": UserGroups(Ratio())})
    state = PerKey(panel, 30)
    if keys:
        cells = [i % 2 for i in range(len(keys))]
        state.update(keys, cells=cells, groups=keys, numerators=cells)
    before = state.to_bytes()
    for name in panel.metrics:
        for most in (30, 7, 1, 100):
            expected = PerKey(panel.metrics[name], most)
            expected.merge(
                state.project(name, most)
            )  # its settings are those that it would be given
            for limited in (state.project(name, most), state.project(name).limited(most)):
                assert limited.to_bytes() == expected.to_bytes() and limited.max_keys == most
                limited.update(["new"], **{n: [1] for n in panel.metrics[name].arguments()})
                assert limited.to_bytes() != expected.to_bytes()
            assert state.project(name, most).to_bytes() == expected.to_bytes()
        assert state.project(name).max_keys == 30
        for bad in (0, 1 << 32, True, 1.5, "7", [7]):
            with pytest.raises(SettingsError, match="max_keys"):
                state.project(name, bad)  # type: ignore[arg-type]
            with pytest.raises(SettingsError, match="max_keys"):
                state.limited(bad)  # type: ignore[arg-type]
    assert state.to_bytes() == before


def test_a_projection_of_some_keys_is_that_of_the_chosen_ones() -> None:
    state = PerKey(Panel({"t": Tally(), "users": UserGroups(Ratio())}), 6)
    keys = [(str(i % 3), i % 4) for i in range(12)]
    cells = [i % 2 for i in range(12)]
    for _ in range(2):
        state.update(keys, cells=cells, groups=cells, numerators=cells)
        before = state.to_bytes()
        selection = [key for key in state.keys() if isinstance(key, tuple) and key[0] == "1"]  # noqa: SIM118
        for name in ("t", "users"):
            for key_of in (None, lambda key: key[1], lambda key: 0):
                chosen = state.chosen([*selection, "never"], key_of)
                part = state.project(name, 50, keys=[*selection, "never"], key_of=key_of)
                assert selection and part.to_bytes() == chosen.project(name, 50).to_bytes()
                part.merge(part.copy())
                if key_of is not None:
                    renamed = state.project(name, 50).rekeyed(lambda key: ("new", *key))
                    projection = state.project(name, 50, key_of=lambda key: ("new", *key))
                    assert projection.to_bytes() == renamed.to_bytes()
        assert state.to_bytes() == before
    with pytest.raises(InputError, match=r"PerKey\.project: expected several keys"):
        state.project("t", keys=7)  # type: ignore[arg-type]


@pytest.mark.parametrize("most", [3, 100])
def test_keys_that_stay_apart_take_their_states_to_their_new_names(most: int) -> None:
    keys = [("ranker", arm) for arm in ("a", "b", "c", None, 7)]
    state = PerKey(UserGroups(Ratio()), most)
    rng = np.random.default_rng(most)
    for n in (1, 60):
        drawn = [keys[i] for i in rng.integers(0, 5, n)]
        state.update(drawn, groups=rng.integers(0, 9, n), numerators=rng.random(n))
    before, counted = state.to_bytes(), state.keys()
    for rename in (lambda key: key[1], lambda key: ("z", key[1]), lambda key: keys.index(key) - 2):
        renamed = state.rekeyed(rename)
        assert {*renamed.keys()} == {rename(key) for key in counted}
        for key in counted:
            assert renamed.state(rename(key)) == state.state(key)
        assert renamed.overflow_state() == state.overflow_state()
        assert PerKey.from_bytes(renamed.to_bytes()) == renamed
        renamed.update([rename(keys[0])], groups=[1], numerators=[1])
        assert state.to_bytes() == before


def test_extracted_states_are_independent() -> None:
    state = tally(["a", "b", "c", "d", "e"])
    before = state.digest()
    overflow = state.overflow_state()
    assert overflow is not None
    for part in (state.state("a"), overflow, *state.split(2), state.copy()):
        if isinstance(part, PerKey):
            part.update(["a"], cells=[1])
        else:
            part.update([1])
    assert state.digest() == before


def test_the_limit_of_mass_is_that_of_all_keys_together() -> None:
    state = PerKey(Tally(), 10)
    state.update(["a"], cells=[1], weights=[2**62])
    state.update(["b"], cells=[1], weights=[2**62 - 1])
    before = state.digest()
    with pytest.raises(StateError):
        state.update(["c"], cells=[1])
    with pytest.raises(StateError):
        state.merge(one_more())
    assert state.digest() == before
    extracted: Accumulator = state.state("a")
    extracted.update([1], weights=[2**62 - 1])
    assert extracted.compute().rows == 2**63 - 1  # type: ignore[attr-defined]


def one_more() -> PerKey:
    state = PerKey(Tally(), 10)
    state.update(["c"], cells=[1])
    return state


# -- the map of states, slot by slot, against dictionaries of counts


Model: TypeAlias = list[dict[Key, Counter[int]]]  # of each slot: key -> cell -> count, no evictions

KEYS: list[Key] = ["a", "b", "c", "d", "e", 1, 2, None, ("a", 1)]
CELLS = 5


def empty(limit: int | None, width: int) -> MapColumn:
    owner = PerKey(Tally(CELLS), 5 if limit is None else limit)
    column = Map().empty(owner, width)
    column.max_keys = limit
    return column


def encoded(column: MapColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def feed(random: Random, column: MapColumn, model: Model) -> None:
    n = random.choice([1, 3, 12])
    keys = [random.choice(KEYS) for _ in range(n)]
    slots = [random.randrange(column.width) for _ in range(n)]
    cells = [random.randrange(CELLS) for _ in range(n)]
    slotted = column.width > 1 or random.random() < 0.5
    grouping = column.locate(dictionary_column(keys), np.array(slots) if slotted else None)
    child_slots = grouping.slots[grouping.codes]
    column.child._feed(Tally(CELLS).check(cells), child_slots)
    column.tidy()
    for key, slot, cell in zip(keys, slots, cells, strict=True):
        model[slot].setdefault(key, Counter())[cell] += 1


def merged(model: Model, source: Model, to: list[int]) -> None:
    for slot, keys in zip(to, source, strict=True):
        for key, counts in keys.items():
            model[slot].setdefault(key, Counter()).update(counts)


def check(column: MapColumn, model: Model, limit: int | None) -> None:
    """Whatever was evicted when, what is kept is a function of the keys that ever came."""
    data = encoded(column)
    assert column.width == len(model)
    for slot, keys in enumerate(model):
        ranked = sorted(keys, key=rank)
        survivors, gone = ranked[:limit], ranked[len(ranked[:limit]) :]
        assert set(column.index[slot]) == set(survivors)
        for key in survivors:
            assert cells_of(column, column.index[slot][key]) == keys[key]
        assert (slot in column.other) == bool(gone)
        if gone:
            overflow: Counter[int] = sum((keys[key] for key in gone), Counter())
            assert cells_of(column, column.other[slot]) == overflow
    reader = Reader(data)
    back = empty(limit, column.width)
    back.read(reader)
    assert reader.left == 0
    assert encoded(back) == data


def cells_of(column: MapColumn, slot: int) -> Counter[int]:
    cells = column.child._take(np.array([slot])).compute().cells  # type: ignore[attr-defined]
    return Counter({cell: n for cell, n in enumerate(cells) if n})


def random_map(random: Random, limit: int | None, width: int) -> tuple[MapColumn, Model]:
    column: MapColumn = empty(limit, width)
    model: Model = [{} for _ in range(width)]
    for _ in range(random.randrange(3) if width else 0):
        feed(random, column, model)
    return column, model


@pytest.mark.parametrize("limit", [1, 2, 5, None])
@pytest.mark.parametrize("seed", range(3))
def test_random_operations_agree_with_dictionaries(limit: int | None, seed: int) -> None:
    random = Random(seed)
    column, model = random_map(random, limit, random.choice([1, 3]))
    for _ in range(25):
        match random.choice(["feed", "feed", "merge", "take", "widen", "through bytes"]):
            case "feed":
                feed(random, column, model)
            case "merge":
                source_column, source_model = random_map(random, limit, random.choice([0, 1, 2, 4]))
                to = [random.randrange(len(model)) for _ in source_model]
                before = encoded(source_column)
                column.merge(source_column, np.array(to, np.intp))
                merged(model, source_model, to)
                assert encoded(source_column) == before
            case "take":
                slots = [random.randrange(len(model)) for _ in range(random.choice([1, 3]))]
                old, snapshot = column, encoded(column)
                column = column.take(np.array(slots))
                model = [{key: Counter(n) for key, n in model[slot].items()} for slot in slots]
                feed(random, column, model)
                assert encoded(old) == snapshot
            case "widen":
                column.widen(len(model) + 2)
                model.extend({} for _ in range(2))
            case _:
                data = encoded(column)
                column = empty(limit, len(model))
                column.read(Reader(data))
        if random.random() < 0.5:  # else let evictions pile up
            check(column, model, limit)
    check(column, model, limit)


def test_keys_of_equal_hash_are_kept_in_the_order_of_their_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(children, "key_hash", lambda encoded: len(encoded))
    states = []
    for order in (["bb", "aa", "cc"], ["cc", "bb", "aa"], ["aa", "cc", "bb"]):
        state = PerKey(Tally(), 2)
        for key in order:
            state.update([key], cells=[1])
            state.keys()  # evicts
        states.append(state)
    assert states[0] == states[1] == states[2]
    assert states[0].keys() == ("aa", "bb")


def map_bytes(*slots: dict[Any, Tally], overflow: Tally | None = None) -> bytes:
    """The bytes of a map by the README, with keys in the order given."""
    out, tallies = Writer(), []
    out.ints(np.array([len(slot) + (overflow is not None) for slot in slots]))
    for slot in slots:
        if overflow is not None:
            out.text(b"")
            tallies.append(overflow)
        for key, tally in slot.items():
            out.text(key if isinstance(key, bytes) else encode_key(key))
            tallies.append(tally)
    states = Tally(CELLS)._empty(len(tallies))
    for i, tally in enumerate(tallies):
        states._merge_slots(tally, np.array([i]))
    states._encode(out)
    return out.bytes_()


def tally_of(cell: int) -> Tally:
    state = Tally(CELLS)
    state.update([cell])
    return state


def test_a_map_is_written_as_the_readme_draws_it() -> None:
    column = empty(2, 2)
    slots = column.locate(dictionary_column(["b", "a", "b"]), np.array([0, 0, 1])).slots
    column.child._feed(Tally(CELLS).check([1, 2, 3]), slots)
    assert encoded(column) == map_bytes({"a": tally_of(2), "b": tally_of(1)}, {"b": tally_of(3)})


def test_maps_that_nobody_writes_are_refused() -> None:
    for data in (
        map_bytes({"b": tally_of(1), "a": tally_of(1)}),
        map_bytes({b'"a"': tally_of(1), b'"a" ': tally_of(1)}),
        map_bytes({b"a": tally_of(1)}),
        map_bytes({b"1.5": tally_of(1)}),
        map_bytes({"a": tally_of(1), "b": tally_of(1), "c": tally_of(1)}),
        map_bytes({b"1" * 4097: tally_of(1)}),
        map_bytes({"a": tally_of(1)})[:-1],
        b"\x08" + ((1 << 63) - 1).to_bytes(8, "little"),
        b"\x08" + (1 << 40).to_bytes(8, "little") + b"\0" * 50,
    ):
        with pytest.raises(StateError):
            reader = Reader(data)
            empty(2, 1).read(reader)
            reader.finish()


def test_a_state_of_other_keys_is_refused_where_all_keys_are_kept() -> None:
    data = map_bytes({"a": tally_of(1)}, overflow=tally_of(2))
    empty(1, 1).read(Reader(data))
    with pytest.raises(StateError, match="without max_keys"):
        empty(None, 1).read(Reader(data))


def test_memory_is_counted() -> None:
    state = PerKey(Tally(), 10_000)
    assert state.nbytes < 2_000
    state.update(np.arange(5_000), cells=np.zeros(5_000, np.int64))
    state.keys()
    assert 5_000 * 32 < state.nbytes < 5_000 * 1_000
