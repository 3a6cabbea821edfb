"""Provenance: what was counted, and that nothing is counted twice."""

from __future__ import annotations

import json
from itertools import pairwise, product
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics.core import provenance
from streammetrics.core.errors import InputError, OverlapError, StateError
from streammetrics.core.provenance import Provenance
from tests.toys import Tally


def provenance_of(*ranges: tuple[str, int, int] | tuple[str, int, int, str]) -> Provenance:
    result = Provenance()
    for row in ranges:
        result.add(*row)
    return result


def fed(cells: list[int], *ranges: tuple[str, int, int]) -> Tally:
    state = Tally()
    state.update(cells)
    for row in ranges:
        state.provenance.add(*row)
    return state


def test_random_ranges_agree_with_a_set_of_rows() -> None:
    for seed in range(5):
        random, ranges, rows = Random(seed), Provenance(), set()
        for _ in range(30):
            start = random.randrange(40)
            end = start + random.randrange(5)
            new = set(range(start, end))
            before = list(ranges)
            if new & rows:
                with pytest.raises(OverlapError):
                    ranges.add("a", start, end)
                assert list(ranges) == before
            else:
                ranges.add("a", start, end)
                rows |= new
            assert {i for _, _, s, e in ranges for i in range(s, e)} == rows
            assert all(a[3] < b[2] for a, b in pairwise(ranges))


def test_any_overlap_of_two_ranges_is_refused_and_nothing_else_is() -> None:
    for a, b, c, d in product(range(5), repeat=4):
        if a <= b and c <= d:
            ranges = provenance_of(("s", a, b))
            if set(range(a, b)) & set(range(c, d)):
                with pytest.raises(OverlapError):
                    ranges.add("s", c, d)
            else:
                ranges.add("s", c, d)


def test_different_pieces_of_one_range_unite_and_the_same_piece_refuses() -> None:
    ranges = provenance_of(("clicks/0", 0, 10, "window 1"), ("clicks/0", 0, 10, "window 2"))
    with pytest.raises(OverlapError) as caught:
        ranges.add("clicks/0", 9, 12, "window 2")
    assert caught.value.where == "clicks/0, window 2"
    assert caught.value.got == "[9, 10) twice"


def test_ranges_that_are_none_are_refused() -> None:
    rows: list[tuple[Any, ...]] = [
        *(("a", 3, 2), ("a", -1, 2), ("a", 0.0, 2), ("a", 0, "2"), ("a", 0, None)),
        *((None, 0, 2), (b"a", 0, 2), ("a", 0, 2, 7)),
    ]
    for row in rows:
        ranges = Provenance()
        with pytest.raises(InputError) as caught:
            ranges.add(*row)
        assert str(row[2]) in caught.value.got
        assert "offsets" in caught.value.expected or "start" in caught.value.expected
        assert not ranges


def test_json_leads_back_to_the_same_ranges() -> None:
    ranges = provenance_of(
        ("b", 1, 2), ("a", 5, 2**70), ("a", 1, 2, "ü\ud800"), ("a", np.int64(1), 2)
    )
    assert ranges.to_json() == (
        b'[["a","",1,2],["a","",5,1180591620717411303424],["a","\\u00fc\\ud800",1,2],["b","",1,2]]'
    )
    assert Provenance.from_json(ranges.to_json()) == ranges
    # Names are not run together.
    assert len(list(provenance_of(("a", 0, 1, "bc"), ("ab", 0, 1, "c")))) == 2
    assert (
        repr(provenance_of(("a", 0, 2), ("b", 1, 3, "w"))) == "Provenance(a: [0, 2), b w: [1, 3))"
    )


def test_json_that_no_provenance_writes_is_refused() -> None:
    values: list[object] = [
        *(None, 3, {}, {"a": 1}, [3], [[]], [["a", "", 1]], [["a", "", 1, 2, 3]]),
        *([["a", "", 1, 1]], [["a", "", 2, 1]], [["a", "", -1, 1]], [["a", "", 1.0, 2]]),
        *([["a", "", False, 2]], [[1, "", 1, 2]], [["a", None, 1, 2]]),
        [["a", "", 1, 3], ["a", "", 2, 4]],
        [["a", "", 1, 3], ["a", "", 3, 4]],
        [["b", "", 1, 3], ["a", "", 3, 4]],
    ]
    as_json = [json.dumps(value, separators=(",", ":")).encode() for value in values]
    for data in (*as_json, b"", b"[", b"[ ]", b"\xff", b"[" * 100_000):
        with pytest.raises(StateError, match="provenance that") as caught:
            Provenance.from_json(data)
        assert caught.value.where == "state file"


def test_it_stands_beside_a_state_and_a_state_file_keeps_it() -> None:
    plain, sourced = fed([1, 2]), fed([1, 2], ("a", 0, 2), ("b", 5, 9))
    assert plain == sourced
    assert plain.to_bytes() == sourced.to_bytes()
    assert plain.to_file_bytes() != sourced.to_file_bytes()
    back = Tally.from_file_bytes(sourced.to_file_bytes())
    assert back == sourced
    assert list(back.provenance) == [("a", "", 0, 2), ("b", "", 5, 9)]
    assert not Tally.from_bytes(sourced.to_bytes()).provenance


def test_megabytes_of_ranges_fit_into_a_state_file() -> None:
    state = Tally()
    for i in range(5_000):
        state.provenance.add(f"a topic of a long name/{i % 12}", i, i + 1, piece=f"{i:0200}")
    assert len(state.to_file_bytes()) > 1 << 20
    assert Tally.from_file_bytes(state.to_file_bytes()).provenance == state.provenance


def test_the_same_rows_by_two_routes_are_refused_and_change_nothing() -> None:
    a, b = fed([1, 2], ("s", 0, 2)), fed([2, 3], ("t", 0, 9), ("s", 1, 3))
    first, second = fed([2], ("s", 2, 3)), fed([3], ("s", 0, 1))
    before, old_ranges = a.digest(), list(a.provenance)
    for refused in (
        lambda: a.merge(b),
        lambda: a + b,
        lambda: a.merge(iter([first, fed([3], ("s", 3, 4)), fed([3], ("s", 3, 4))])),
        lambda: a.merge([first, second]),
    ):
        with pytest.raises(OverlapError):
            refused()
    assert (a.digest(), list(a.provenance)) == (before, old_ranges)


def test_a_merge_looks_at_the_pieces_that_it_adds_and_at_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    total = fed([])
    for i in range(1_000):
        total.provenance.add("s", 3 * i, 3 * i + 2, piece=str(i))
    looked: list[object] = []
    unite = provenance._unite
    monkeypatch.setattr(provenance, "_unite", lambda *a: looked.append(a) or unite(*a))
    addend = Tally()
    addend.provenance.add("s", 2, 3, piece="0")
    looked.clear()
    total.merge(addend)
    assert len(looked) == 1
    assert next(iter(total.provenance)) == ("s", "0", 0, 3)


def test_what_is_wholly_counted_is_covered() -> None:
    ranges = provenance_of(("a", 0, 5), ("a", 7, 9), ("b", 0, 3, "p"))
    for inside in ((), (("a", 0, 5),), (("a", 1, 2), ("a", 8, 9), ("b", 0, 3, "p"))):
        assert ranges.covers(provenance_of(*inside))
    for outside in (("a", 4, 6), ("a", 5, 7), ("b", 0, 3), ("c", 0, 1), ("a", 0, 9)):
        assert not ranges.covers(provenance_of(outside))
    assert not Provenance().covers(ranges) and Provenance().covers(Provenance())


def test_copies_have_their_own_and_empty_states_have_none() -> None:
    a = fed([1], ("s", 0, 1))
    twin = a.copy()
    twin.provenance.add("s", 1, 2)
    assert (list(a.provenance), list(twin.provenance)) == ([("s", "", 0, 1)], [("s", "", 0, 2)])
    assert a.provenance != twin.provenance and not a.empty().provenance
