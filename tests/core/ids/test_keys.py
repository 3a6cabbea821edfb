"""Keys: what may be one, its bytes, its hash, and columns of keys in every form."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.errors import InputError, StateError
from streammetrics.core.ids.keys import (
    MAX_KEY_BYTES,
    decode_key,
    dictionary_column,
    encode_key,
    group_ids,
    key_hash,
)
from streammetrics.core.rows import DictionaryColumn

scalars = st.none() | st.integers() | st.text(max_size=8)
keys = scalars | st.lists(scalars, max_size=3).map(tuple)


def column(keys: Any) -> list[Any]:
    """The keys of each row again."""
    dictionary = dictionary_column(keys)
    assert dictionary.codes.dtype == np.intp
    assert all(type(v) in (str, int, type(None), tuple) for v in dictionary.values)
    return [dictionary.values[code] for code in dictionary.codes]


@given(keys)
def test_a_key_leads_to_bytes_and_back(key: Any) -> None:
    data = encode_key(key)
    assert decode_key(data) == key
    assert type(decode_key(data)) is type(key)
    assert data == json.dumps(key, separators=(",", ":")).encode("ascii")


def test_bytes_that_no_key_has_are_refused() -> None:
    for data in (
        *(b"", b"tru", b"true", b"1.0", b"1e3", b"NaN", b"{}", b'{"a":1}', b"[[1]]", b"[true]"),
        *(b" 1", b"1 ", b"[1, 2]", b"01", b"-0", b'"\xc3\xbc"', b'"\\u0061"', b"\xff", b"[" * 4096),
        b"9" * 4301,
    ):
        with pytest.raises(StateError):
            decode_key(data)


def test_the_hash_of_a_key_never_changes() -> None:
    hashes = {key: key_hash(encode_key(key)) for key in ("a", 1, None, ("a", 1))}
    assert hashes == {
        "a": 0x3469E25BB7B33C2C,
        1: 0x10785A30FDE58E7D,
        None: 0x6284BB9A819E087F,
        ("a", 1): 0x8A2F5FBB8D63DE38,
    }


def test_columns_of_keys_in_every_form() -> None:
    key_list = ["a", 1, None, ("a", None, 3), 1, "a", 2**100, (), -1]
    assert column(key_list) == key_list
    assert column(tuple(key_list)) == key_list
    assert len(dictionary_column(key_list).values) == 7
    assert column(np.array(["b", "a", "b"])) == ["b", "a", "b"]
    assert column(np.array(["b", None, 1, ("x", 2)], object)) == ["b", None, 1, ("x", 2)]
    assert column(np.array(["b", "a"], np.dtypes.StringDType())) == ["b", "a"]
    assert column([np.int8(3), np.str_("a"), [1, np.str_("b")]]) == [3, "a", (1, "b")]
    for kind in ("M8[s]", "f8", "U1", object):
        assert column(np.empty(0, kind)) == []


def test_what_is_no_key_is_refused_with_its_row_and_no_other() -> None:
    # 1 and np.int64(1) are equal to True and 1.0, and must hide neither.
    for bad in (
        *(True, False, 1.0, float("nan"), b"a", 1 + 0j, {}, {1}, object(), [[1]], ([1],)),
        *((True,), (1.5,), ("a", (1,)), np.True_, np.float64(1), np.datetime64("2020-01-01")),
        *(np.timedelta64(5, "ns"), np.timedelta64(5, "s"), np.array([1]), range(2)),
    ):
        for rows in ([1, np.int64(1), "a", bad], ["a", np.str_("a"), None, bad, 1]):
            with pytest.raises(InputError) as caught:
                dictionary_column(rows)
            assert (caught.value.rows.tolist(), caught.value.where) == ([3], "keys[3]")
    for array in (
        *(np.array([1.0, 2.0]), np.array([True, False]), np.array([b"a", b"b"])),
        *(np.array(["2020-01-01", "2020-01-02"], "M8[ns]"), np.array([5, 6], "m8[ns]")),
    ):
        with pytest.raises(InputError) as caught:
            dictionary_column(array)
        assert caught.value.rows.tolist() == [0, 1]
    not_columns: list[Any] = [5, "a", np.array("a"), {"a": 1}, np.ones((2, 2), int)]
    for scalar in not_columns:
        with pytest.raises(InputError, match="one-dimensional"):
            dictionary_column(scalar)


def test_a_key_is_at_most_4096_bytes() -> None:
    pairs: list[tuple[Any, Any]] = [
        ("x" * (MAX_KEY_BYTES - 2), "x" * (MAX_KEY_BYTES - 1)),
        ("\ud800" * 682, "\ud800" * 683),
        ("\U0001f600" * 341, "\U0001f600" * 342),
        (10 ** (MAX_KEY_BYTES - 1), 10**MAX_KEY_BYTES),
        (-(10 ** (MAX_KEY_BYTES - 2)), -(10 ** (MAX_KEY_BYTES - 1))),
        ((None,) * 819, (None,) * 820),
        (("x",) * 1023 + (1,), ("x",) * 1024),
    ]
    for fits, too_long in pairs:
        assert len(encode_key(fits)) <= MAX_KEY_BYTES < len(encode_key(too_long))
        assert column([fits]) == [fits]
        with pytest.raises(InputError) as caught:
            dictionary_column(["a", too_long])
        assert caught.value.rows.tolist() == [1]
        assert len(str(caught.value)) < 400


def test_an_integer_too_long_to_be_printed_is_refused() -> None:
    with pytest.raises(InputError):
        dictionary_column([10**5000])


def test_a_dictionary_passes_and_names_its_bad_rows() -> None:
    dictionary = DictionaryColumn(np.array([1, 0, 1]), ("a", 7))
    assert column(dictionary) == [7, "a", 7]
    with pytest.raises(InputError) as caught:
        dictionary_column(DictionaryColumn(np.array([1, 0, 1]), ("a", 7.0)))  # type: ignore[arg-type]
    assert (caught.value.rows.tolist(), caught.value.where) == ([0, 2], "keys[0]")
    for codes in ([0, 2], [-1, 0], [0.0, 1.0], [[0, 1]]):
        with pytest.raises(InputError):
            dictionary_column(DictionaryColumn(np.array(codes), ("a", "b")))


def test_values_of_a_dictionary_that_no_row_has_do_not_matter() -> None:
    odd: Any = ("a", 7.0, [1], "x" * 5000, "b")
    assert column(DictionaryColumn(np.array([4, 0]), odd)) == ["b", "a"]
    assert dictionary_column(DictionaryColumn(np.array([4, 0]), odd)).values == ("a", "b")
    dictionary = dictionary_column(DictionaryColumn(np.array([700, 3, 700]), tuple(range(1000))))
    assert (dictionary.values, dictionary.codes.tolist()) == ((3, 700), [1, 0, 1])


def test_a_dictionary_of_strings_is_checked_as_their_list_is() -> None:
    pair, long = "\ud83d" + "\ude00", "😀" * 500
    for kind in ("hashed", "exact"):
        joined: Any = group_ids(DictionaryColumn(np.array([0, 1]), (pair, "a")), kind)
        expected: Any = group_ids(["😀", "a"], kind)
        if kind == "exact":
            joined, expected = joined.values, expected.values
        assert [*joined] == [*expected]
        for groups in ([long], DictionaryColumn(np.array([1]), ("a", long))):
            with pytest.raises(InputError, match=r"groups\[0\]: .*of at most 4096 bytes"):
                group_ids(groups, kind)
        unused: Any = group_ids(DictionaryColumn(np.array([0]), ("a", long)), kind)
        assert len(unused) == 1
        no_rows: Any = group_ids(DictionaryColumn(np.array([], np.intp), ("a",) * 9), kind)
        assert not len(no_rows)
    integers = DictionaryColumn(np.array([0]), (5, 2**63, True, "a"))
    assert [*group_ids(integers, "integer")] == [5]  # type: ignore[call-overload]


def test_integers_of_any_type_and_at_the_ends_of_their_range_are_keys() -> None:
    for dtype in ("i1", "u1", "<i4", ">i8", "u8", "i8"):
        assert column(np.array([3, 1, 3, 100], dtype)) == [3, 1, 3, 100], dtype
    low, high = -(2**63), 2**63 - 1
    for values in ([low, high], [low, low + 1], [high - 1, high], [-5, -5, -3], [7], []):
        assert column(np.array(values, np.int64)) == values
    for values in ([2**64 - 1, 2**63, 0], [2**64 - 1, 2**64 - 2]):
        assert column(np.array(values, np.uint64)) == values


@pytest.mark.parametrize("n", [1, 3, 200, 3_000])
def test_integers_far_apart_or_near_each_other_are_numbered_as_a_set_is(n: int) -> None:
    """On both sides of where they are marked in a table, and where differences overflow."""
    rng = np.random.default_rng(n)
    for span in (1, n, 16 * n + 1_023, 16 * n + 1_024, 16 * n + 1_025, 1 << 62, 1 << 63, 1 << 64):
        for first in {max(first, -(1 << 63)) for first in (0, -span // 2, (1 << 63) - span)}:
            last = min(first + span, 1 << 63) - 1
            array = rng.integers(first, last, n, np.int64, endpoint=True)
            array[[0, -1]] = first, last
            keys = dictionary_column(array)
            assert keys.values == tuple(sorted({*array.tolist()}))
            assert column(array) == array.tolist()
