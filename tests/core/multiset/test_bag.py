"""Bags of rows: how they are laid out, what memory they take, their groups and their limits.

That they hold their rows, whatever is done with them, is in parts/test_every_part.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streammetrics import ExactAUC, MulticlassAUC
from streammetrics.core.multiset import bag_table
from streammetrics.core.multiset.bag import BagColumn
from streammetrics.core.multiset.bag_keys import _entries
from streammetrics.core.multiset.bag_layout import Rule, layout_for
from streammetrics.core.multiset.bag_table import _ascend, _rows, _sums, _sums_of_runs
from streammetrics.core.parts.score_bits import integers_of, scores_of
from tests.core.multiset.bags import (
    RULES,
    contents,
    expected,
    feed,
    fitted,
    names,
    some_rows,
)


def test_counts_past_32_bits_are_counts() -> None:
    for rule in RULES:
        three = ((0, 0.5, 0), (0, 0.75, 1), (1, 2.0, 1))
        rows = fitted(rule, [(0, names(rule)[i], s, y) for i, s, y in three])
        column, bystander = BagColumn(rule, 1), BagColumn(rule, 1)
        feed(column, rows, plain=True)
        feed(bystander, fitted(rule, [(0, names(rule)[1], 3.0, 0)] * 5), plain=True)
        for _ in range(40):
            column.merge(column.take(np.zeros(1, np.intp)), np.zeros(1, np.intp))
        column.merge(bystander, np.zeros(1, np.intp))
        counts = contents(column)
        assert counts == Counter(
            dict.fromkeys(expected(rule, rows), 2**40) | dict(contents(bystander))
        )
        assert column.total_count == column.total == 3 * 2**40 + 5 and column.nbytes < 10_000


def test_few_rows_that_repeat_among_many_that_do_not_are_counted() -> None:
    scores, times = np.arange(2_000) / 2_000, np.zeros((2, 2_000), int)
    times[0, ::2], times[1, 1::2] = 1, 1
    times[:, 7], times[:, 900] = (40, 300), (3, 0)
    state = ExactAUC()
    for label in (0, 1):
        state.update(np.full(times[label].sum(), label), np.repeat(scores, times[label]))
    copy = ExactAUC.from_bytes(state.to_bytes())
    for version in (state, copy):
        assert version.compute().counts.tolist() == times.tolist()


def test_a_state_past_max_rows_holds_no_more_than_an_empty_one() -> None:
    for rule in RULES:
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
    assert layout_for(32, 0, 1, None).form == layout_for(64, 0, 1, None).form == "plain"
    assert layout_for(32, 0, 1, None, layout_for(32, 0, 2, None)).form == "narrow"


def test_each_state_has_its_own_bags() -> None:
    empty = MulticlassAUC(3, exact=True)._empty
    first_bags, second_bags = empty(2).bags, empty(2).bags
    for bags, score in (
        (first_bags, 5.0),
        (second_bags, 7.0),
    ):  # score and slot in bag 0, another in bag 2
        values, labels = np.array([score, score, 1.0]), np.array([0, 1, 0], np.uint8)
        bags.add(values, labels, np.array([0, 0, 2]), np.array([0, 1, 1]), np.array([3, 4, 1]))
        bags.add(np.array([9.0]), np.array([0], np.uint8), np.array([1]))

    def scores(slot: int) -> list[list[float]]:
        slot_bags = first_bags.take(np.array([slot]))
        return [slot_bags.bag(number).points()()[0].tolist() for number in range(3)]

    assert [scores(slot) for slot in (0, 1)] == [[[5], [9], []], [[5], [], [1]]]
    assert first_bags.total_count == 9 and first_bags.take(np.array([1])).bag(0).units == 4
    first_bags.widen(4)
    first_bags.merge(second_bags.take(np.array([1, 0])), np.array([3, 3]))
    assert [scores(slot) for slot in (2, 3)] == [[[], [], []], [[7], [9], [1]]]


# -- groups ----------------------------------------------------------------------------------------


def names_of(column: BagColumn) -> list[object]:
    """The id of each index."""
    ids = getattr(column.ids, "names", None)
    return ids or column.ids.ids.tolist()  # type: ignore[union-attr]


def test_groups_hold_their_rows_in_ascending_order() -> None:
    for rule in RULES:
        for times in (1, 5) if rule.ids else ():  # of 5 keys have counts
            column = BagColumn(rule, 1)
            rows = some_rows(rule, 60, 1, np.random.default_rng(3)) * times
            feed(column, rows, plain=True)
            decoded = integers_of if rule.values == "int64" else scores_of
            by_group: dict[object, list[tuple[object, int]]] = defaultdict(list)
            for (_, name, value, label), n in contents(column).items():
                by_group[name] += [(value, label)] * n
            groups, group_names = column.groups(), names_of(column)
            assert len(groups) == len(by_group) and int(groups.sizes.sum()) == column.total
            for i, index in enumerate(groups.indices.tolist()):
                codes, labels = groups.rows(np.array([i]))
                pairs = list(zip(decoded(codes).tolist(), labels.tolist(), strict=True))
                assert pairs == sorted(by_group[group_names[index]])
                assert len(pairs) == groups.sizes[i]
            ends = np.array([0, len(groups) - 1])
            assert len(groups.rows(ends)[0]) == groups.sizes[ends].sum()
            twice = {row[1] for row, n in expected(rule, rows).items() if n > 1}
            repeats = {group_names[i] for i in groups.indices[groups.repeated()].tolist()}
            assert repeats == twice and len(groups.repeated()) == len(twice)


def test_an_empty_bag_has_no_groups() -> None:
    for rule in RULES:
        if rule.ids:
            groups = BagColumn(rule, 1).groups()
            assert len(groups) == 0 and len(groups.repeated()) == 0
            assert len(groups.rows(np.empty(0, np.intp))[0]) == 0


@pytest.mark.parametrize("labels", [1, 2, 3, 5, 8])
def test_entries_of_a_table_are_what_each_label_counts_row_by_row(labels: int) -> None:
    """Whether rows have one label or several, and counts one byte or eight."""
    rng = np.random.default_rng(labels)
    for n in (1, 2, 300):
        for most in (1, 200, 1 << 62):
            for share in (0.0, 0.5, 1.0):  # of further labels
                table = rng.integers(1, most, (n, labels), np.uint64, endpoint=True)
                table[rng.random((n, labels)) >= share] = 0
                first = rng.integers(0, labels, n)
                table[np.arange(n), first] = rng.integers(1, most, n, endpoint=True)
                expected = [(i, j, c) for (i, j), c in np.ndenumerate(table) if c]
                counts = [column.astype(np.min_scalar_type(column.max())) for column in table.T]
                rows, of_rows, amounts = _entries(counts, (labels - 1).bit_length())
                every = np.arange(n)[rows].tolist()
                assert [*zip(every, of_rows.tolist(), amounts.tolist(), strict=True)] == expected


def test_sums_of_spans_are_those_of_each_span() -> None:
    """Of few spans with several amounts, of many, and of none; amounts of one byte or eight."""
    rng = np.random.default_rng(6)
    for n in (1, 2, 300):
        for most in (1, 255, 1 << 60):  # the sum of two bytes needs more than one
            amounts = rng.integers(0, most, n, np.uint64, endpoint=True)
            for share in (0.0, 0.02, 0.5, 1.0):  # of the amounts that begin no span
                starts = np.flatnonzero(np.append(True, rng.random(n - 1) >= share))
                if most == 1 << 60 and n > 2 and len(starts) == 1:
                    continue  # no state holds 2**63 rows
                ends = np.append(starts[1:], n)
                repeats = np.flatnonzero(ends - starts > 1)
                narrow = amounts.astype(np.min_scalar_type(most))
                sums = _sums(narrow, starts, ends, repeats).tolist()
                whole = narrow.tolist()
                assert sums == [sum(whole[a:b]) for a, b in zip(starts, ends, strict=True)]


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_sums_of_runs_are_those_of_each_run_wherever_chunks_end(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bag_table, "_CHUNK", chunk)
    rng = np.random.default_rng(0)
    for _ in range(30):
        sizes = rng.integers(0, 6, 7)
        counts = [rng.integers(1, 256, sizes.sum()).astype(np.uint8) for _ in range(3)]
        values = np.sum(counts, axis=0, dtype=np.int64)
        runs = np.split(values, np.cumsum(sizes)[:-1])
        sums = _sums_of_runs(_rows(counts, np.dtype(np.uint16)), sizes)
        assert sums.tolist() == [int(run.sum()) for run in runs]


@pytest.mark.parametrize("chunk", [1, 2, 3, 8])
def test_codes_ascend_within_groups_wherever_chunks_end(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bag_table, "_CHUNK", chunk)
    rng = np.random.default_rng(1)
    for _ in range(300):
        ends = np.cumsum(rng.integers(0, 5, rng.integers(1, 6)))
        codes = np.concatenate(
            [
                np.sort(group)
                for group in np.split(
                    rng.integers(0, 1 << 32, ends[-1]).astype(np.uint32), ends[:-1]
                )
            ]
        )
        if len(codes) and rng.random() < 0.7:  # one is as great as another, or any
            position, source = rng.integers(0, len(codes), 2)
            codes[position] = codes[source] if rng.random() < 0.5 else 7
        groups = [group.tolist() for group in np.split(codes, ends[:-1])]
        ascend = all(a < b for group in groups for a, b in pairwise(group))
        assert _ascend(codes, ends) == ascend
