"""Bags of rows: any batches, slots, layouts and merges, against Counter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from streammetrics import MulticlassAUC
from streammetrics.core.bytes.codec import Reader
from streammetrics.core.ids import group_ids
from streammetrics.core.multiset import bag as bag_module
from streammetrics.core.multiset import bag_keys, bag_layout, bag_table, sorted_run
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_layout import Layout, Rule, layout_for
from streammetrics.core.multiset.bag_table import read_table
from tests.bags import (
    Row,
    any_rule,
    data,
    expected,
    feed,
    fitted,
    held,
    most_are_slow,
    names,
    some_rows,
)
from tests.depth import further_are_slow


@pytest.fixture(params=["as usual", "wide"])
def tiny(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every buffer so small that few rows fill it; "wide": keys of two words from early on."""
    for module, name, size in (
        (sorted_run, "BUFFERED", 50),
        (sorted_run, "FAN", 4),
        (sorted_run, "_CHUNK", 9),
        (sorted_run, "_RANGE", 13),
        (bag_keys, "_CHUNK", 7),
        (bag_module, "_WAIT", 20),
        (bag_module, "_PIECE", 37),
        (bag_table, "_CHUNK", 5),
        (bag_layout, "_CHUNK", 11),
        (group_ids, "_BLOCK", 16),
        (group_ids, "_CHUNK", 8),
    ):
        monkeypatch.setattr(module, name, size)

    def wide(
        value_bits: int, label_bits: int, width: int, n: int | None, before: Layout | None = None
    ) -> Layout:
        if width > 4 if n is None else n > 3:
            return Layout(value_bits, label_bits, "wide", 0 if n is None else 32)
        return layout_for(value_bits, label_bits, width, n, before)

    if request.param == "wide":
        monkeypatch.setattr(bag_module, "layout_for", wide)
    yield


@pytest.mark.slow
@most_are_slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("width", list(further_are_slow(17, 1, 2)))
def test_bytes_are_those_of_the_rows_however_they_came(rule: Rule, width: int) -> None:
    rng = np.random.default_rng([6, width])
    for sizes in ([0, 1, 3, 40], [100] * 3, [5] * 30):
        batches = [some_rows(rule, n, width, rng) for n in sizes]
        rows = [row for batch in batches for row in batch]
        whole, streamed = BagColumn(rule, width), BagColumn(rule, 0)
        feed(whole, rows, plain=width == 1)
        for batch in batches:
            streamed.widen(min(width, streamed.width + 9))
            here = [row for row in batch if row[0] < streamed.width]
            feed(streamed, here)
            if rng.random() < 0.3:
                data(streamed)
            later = [row for row in batch if row[0] >= streamed.width]
            streamed.widen(width)
            feed(streamed, later)
        parts = [BagColumn(rule, width) for _ in range(3)]
        for row in rows:
            feed(parts[int(rng.integers(3))], [row])
        merged = BagColumn(rule, width)
        for part in parts:
            merged.merge(part, np.arange(width))
        assert held(whole) == expected(rule, rows)
        assert data(whole) == data(streamed) == data(merged)
        assert whole.total_count == len(rows)
        back = BagColumn.of(rule, read_table(rule, width, Reader(data(whole))))
        assert data(back) == data(whole)


@pytest.mark.slow
@any_rule
@pytest.mark.usefixtures("tiny")
def test_merging_moves_states_to_their_slots_and_leaves_them_as_they_were(rule: Rule) -> None:
    rng = np.random.default_rng(7)
    for to in ([2, 0, 1], [1, 1, 1], [0, 1, 2], [4, 4, 0]):
        mine, theirs = some_rows(rule, 60, 5, rng), some_rows(rule, 60, 3, rng)
        into, other = BagColumn(rule, 5), BagColumn(rule, 3)
        feed(into, mine)
        feed(other, theirs)
        before = data(other)
        into.merge(other, np.array(to))
        moved = [(to[slot], *rest) for slot, *rest in theirs]
        assert held(into) == expected(rule, [*mine, *moved])  # type: ignore[list-item]
        feed(into, mine)
        data(into)
        assert data(other) == before and held(other) == expected(rule, theirs)


@most_are_slow
@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize(
    "slots", list(further_are_slow([2], [3, 0, 0], [0, 3], [], list(range(5)), fast=2))
)
def test_taken_states_are_theirs_alone(rule: Rule, slots: list[int]) -> None:
    rng = np.random.default_rng(8)
    rows = some_rows(rule, 90, 5, rng)
    column = BagColumn(rule, 5)
    feed(column, rows)
    before, taken = data(column), column.take(np.array(slots, np.intp))
    picked = [(i, *row[1:]) for i, slot in enumerate(slots) for row in rows if row[0] == slot]
    assert taken.width == len(slots) and held(taken) == expected(rule, picked)
    more = fitted(rule, [(0, names(rule)[0], 0.25, 1)]) if slots else []
    feed(taken, more)
    assert held(taken) == expected(rule, [*picked, *more]) and data(column) == before
    if len(slots) == 1:  # as one that was never part of a wider column
        alone = BagColumn(rule, 1)
        feed(alone, [*picked, *more], plain=True)
        assert data(alone) == data(taken)


@any_rule
def test_counts_past_32_bits_are_counts(rule: Rule) -> None:
    three = ((0, 0.5, 0), (0, 0.75, 1), (1, 2.0, 1))
    rows = fitted(rule, [(0, names(rule)[i], s, y) for i, s, y in three])
    column, bystander = BagColumn(rule, 1), BagColumn(rule, 1)
    feed(column, rows, plain=True)
    feed(bystander, fitted(rule, [(0, names(rule)[1], 3.0, 0)] * 5), plain=True)
    for _ in range(40):
        column.merge(column.take(np.zeros(1, np.intp)), np.zeros(1, np.intp))
    column.merge(bystander, np.zeros(1, np.intp))
    found = held(column)
    assert found == Counter(dict.fromkeys(expected(rule, rows), 2**40) | dict(held(bystander)))
    assert column.total_count == column.total == 3 * 2**40 + 5 and column.nbytes < 10_000


@any_rule
@pytest.mark.usefixtures("tiny")
def test_past_max_rows_the_number_alone_is_kept(rule: Rule) -> None:
    limited = replace(rule, max_rows=10)
    rng = np.random.default_rng(9)
    for sizes in ([11], [10, 1], [1] * 25, [5, 3, 40], [10]):
        width = 3
        batches = [some_rows(rule, n, width, rng) for n in sizes]
        rows = [row for batch in batches for row in batch]
        streamed, whole = BagColumn(limited, width), BagColumn(limited, width)
        for batch in batches:
            part = BagColumn(limited, width)
            feed(part, batch)
            streamed.merge(part, np.arange(width))
        feed(whole, rows)
        totals = [sum(row[0] == slot for row in rows) for slot in range(width)]
        kept = [row for row in rows if totals[row[0]] <= 10]
        assert held(whole) == expected(rule, kept) and data(whole) == data(streamed)
        assert whole.totals.tolist() == totals
        for slot in range(width):
            assert whole.take(np.array([slot])).dropped == (totals[slot] > 10)


@any_rule
def test_a_state_past_max_rows_holds_no_more_than_an_empty_one(rule: Rule) -> None:
    limited = replace(rule, max_rows=50)
    column = BagColumn(limited, 1)
    rng = np.random.default_rng(10)
    feed(column, some_rows(rule, 50, 1, rng), plain=True)
    full = column.nbytes
    feed(column, some_rows(rule, 1, 1, rng), plain=True)
    feed(column, some_rows(rule, 500, 1, rng), plain=True)
    assert column.dropped and column.total == 551 and len(column.keys) == 0
    assert column.nbytes < full
    assert "551" in column.why_dropped and "max_rows=50" in column.why_dropped


def test_memory_is_four_bytes_a_float32_and_eight_a_float64() -> None:
    scores = np.random.default_rng(11).random(100_000)
    labels = np.zeros(100_000, np.uint8)
    for values, size in (("float32", 4), ("float64", 8)):
        column = BagColumn(Rule(values, 2, None, None), 1)
        column.add(scores, labels)
        column.settled()
        assert size <= column.nbytes / 100_000 < size + 0.1
        column.add(np.full(100_000, 0.5), labels)
        column.add(np.full(300_000, 0.5), np.zeros(300_000, np.uint8))
        column.settled()
        assert column.nbytes / 100_000 < size + 4.1  # a count beside each key


def test_layouts_are_narrow_while_keys_fit() -> None:
    assert layout_for(32, 1, 1, None).form == layout_for(64, 1, 1, None).form == "planes"
    assert layout_for(32, 1, 2, None).form == "narrow"
    assert layout_for(64, 1, 2, None).form == "wide"
    assert layout_for(32, 1, 1, 2**31).form == "narrow"
    assert layout_for(32, 1, 1, 2**31 + 1).form == "wide"
    assert layout_for(32, 1, 17, 2**23).group_bits == 23
    assert layout_for(32, 1, 17, 2**23 + 1).form == "wide"
    assert layout_for(32, 1, 1, 5, layout_for(32, 1, 17, 2**24)).form == "wide"
    assert layout_for(32, 4, 1, None).form == "narrow"  # grades
    assert layout_for(64, 4, 1, 9).form == "wide"
    assert layout_for(32, 5, 1, 2**27).form == "narrow"  # grades, and one for not judged
    assert layout_for(32, 5, 1, 2**27 + 1).form == "wide"
    assert layout_for(64, 0, 1, 9).form == "wide"  # integers without labels


def test_integers_that_no_double_holds_stay_apart() -> None:
    rule = Rule("int64", 1, "integer", None)
    rows: list[Row] = [(0, 5, 2**53, 0), (0, 5, 2**53 + 1, 0), (0, 5, -(2**63), 0)]
    column = BagColumn(rule, 1)
    feed(column, rows, plain=True)
    assert held(column) == expected(rule, rows)


def test_each_state_has_its_own_bags() -> None:
    empty = MulticlassAUC(3, exact=True)._empty
    held, other = empty(2).bags, empty(2).bags
    for bags, score in ((held, 5.0), (other, 7.0)):  # score and slot in bag 0, another in bag 2
        values, labels = np.array([score, score, 1.0]), np.array([0, 1, 0], np.uint8)
        bags.add(values, labels, np.array([0, 0, 2]), np.array([0, 1, 1]), np.array([3, 4, 1]))
        bags.add(np.array([9.0]), np.array([0], np.uint8), np.array([1]))

    def scores(slot: int) -> list[list[float]]:
        taken = held.take(np.array([slot]))
        return [taken.bag(number).points()()[0].tolist() for number in range(3)]

    assert [scores(slot) for slot in (0, 1)] == [[[5], [9], []], [[5], [], [1]]]
    assert held.total_count == 9 and held.take(np.array([1])).bag(0).units == 4
    held.widen(4)
    held.merge(other.take(np.array([1, 0])), np.array([3, 3]))
    assert [scores(slot) for slot in (2, 3)] == [[[], [], []], [[7], [9], [1]]]
