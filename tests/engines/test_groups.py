from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streammetrics import InputError, Ratio, SettingsError
from streammetrics.core.buffer import NARROW
from streammetrics.core.tables import TableRequest
from streammetrics.engines import Positions, aggregate, partial, states_by_group
from streammetrics.engines.groups import user_buckets
from streammetrics.engines.partial import Counted, StatesOfGroups


def test_buckets_are_even_and_do_not_depend_on_the_type_of_the_integers() -> None:
    users = np.arange(100_000)
    buckets = np.array(user_buckets(pa.array(users), 64))
    counts = np.bincount(buckets, minlength=64)
    assert counts.min() > 1_400 and counts.max() < 1_750
    for column in (pa.array(users.astype(np.int32)), pa.array(users).dictionary_encode()):
        assert user_buckets(column, 64).to_pylist() == buckets.tolist()


def test_strings_have_one_bucket_however_they_are_coded() -> None:
    users = ["ann", "bo", "cäcilie", "ann", ""]
    plain = user_buckets(pa.array(users), 1000).to_pylist()
    for kind in (pa.large_string(), pa.dictionary(pa.int32(), pa.string())):
        assert user_buckets(pa.array(users, pa.string()).cast(kind), 1000).to_pylist() == plain
    assert plain[0] == plain[3]
    assert len(set(plain)) == 4


def test_buckets_never_change() -> None:
    assert user_buckets(pa.array([0, 1, 2, -1]), 1 << 20).to_pylist() == GOLDEN_INTEGERS
    assert user_buckets(pa.array(["", "ann", "5"]), 1 << 20).to_pylist() == GOLDEN_STRINGS


def test_what_is_no_user_is_refused() -> None:
    for column, got in (
        (pa.array([1, None]), "1 rows without a user"),
        (pa.array([0.5]), "a column of double"),
    ):
        with pytest.raises(InputError, match=got):
            user_buckets(column, 4)


@pytest.mark.parametrize("users", [["a", "b", "a"], [7, 8, 7]])
def test_users_that_no_row_has_change_nothing(users: list[Any]) -> None:
    expected = user_buckets(pa.array(users), 64)
    for unused in ([None], ["x" * 5_000] if users[0] == "a" else [None, 9]):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(users[:2] + unused))
        assert user_buckets(column, 64) == expected


def test_the_row_without_a_valid_user_is_named() -> None:
    with pytest.raises(InputError, match=r"users\[3\]") as refused:
        user_buckets(pa.array(["a", "a", "a", "x" * 5_000]), 8)
    assert refused.value.rows.tolist() == [3]
    for values in ([7, None], ["a", None]):
        column = pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(values))
        with pytest.raises(InputError, match="got 1 rows without a user"):
            user_buckets(column, 8)


def test_what_is_no_number_of_buckets_is_refused() -> None:
    wrong: list[Any] = [0, True, 1.0, (1 << 20) + 1]
    for n in wrong:
        with pytest.raises(SettingsError):
            user_buckets(pa.array([1]), n)


GOLDEN_INTEGERS = [433170, 948837, 341820, 1014005]
GOLDEN_STRINGS = [239270, 1008437, 257340]


def _hostile_texts(kind: pa.DataType) -> list[pa.RecordBatch]:
    """Batches in which groups are new, known, null, empty, in a slice, or of another type."""
    rng = np.random.default_rng(5)
    names = ["", "null", "é\u2028", "x" * 300, None, *(f"item-{i}" for i in range(9_000))]
    batches = []
    for most in (3, 9_005, 6, 9_005):
        texts = [names[i] for i in rng.integers(0, most, 2 * NARROW)]
        clicks = pa.array(rng.integers(0, 5, len(texts)))
        batch = pa.record_batch({"group": pa.array(texts, kind), "clicks": clicks})
        batches.append(batch.slice(130, 2 * NARROW - 900))
    cast_type = pa.large_string() if kind == pa.string() else pa.string()
    last = batches[1]
    column = last["group"].cast(cast_type)
    return [*batches, pa.record_batch({"group": column, "clicks": last["clicks"]}), batches[3]]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("where", [None, "clicks != 2"])
def test_large_batches_have_the_groups_of_small_ones(kind: pa.DataType, where: str | None) -> None:
    batches = _hostile_texts(kind)
    small = [batch.slice(i, 999) for batch in batches for i in range(0, batch.num_rows, 999)]
    columns = {"numerators": "clicks"}
    large, expected = (
        [*states_by_group(pieces, Ratio(), ["group"], columns=columns, where=where)]
        for pieces in (batches, small)
    )
    assert len(large) > 8_900
    assert [group for group, _ in large] == [group for group, _ in expected]
    assert all(a == b for (_, a), (_, b) in zip(large, expected, strict=True))


def test_texts_of_a_view_are_groups_and_users_as_texts_are() -> None:
    texts = pa.array(["a", None, "b", "a"])
    clicks = pa.array([1, 0, 1, 1])
    tables = [
        aggregate(
            [pa.record_batch({"group": column, "clicks": clicks})],
            Ratio(),
            ["group"],
            columns={"numerators": "clicks"},
        )
        for column in (texts, texts.cast(pa.string_view()))
    ]
    assert tables[0].equals(tables[1])
    users = texts.drop_null()
    assert user_buckets(users.cast(pa.string_view()), 64) == user_buckets(users, 64)


@pytest.mark.parametrize("by", [None, 7, [None], [["group"]]])
def test_what_is_no_list_of_columns_is_no_by(by: Any) -> None:
    batch = pa.record_batch({"group": ["a"], "numerators": [1]})
    for count in (partial, aggregate, states_by_group):
        with pytest.raises(SettingsError, match="by: expected the names of columns"):
            list(count([batch], Ratio(), by))  # type: ignore[operator]
    assert aggregate([batch], Ratio(), "group") == aggregate([batch], Ratio(), ["group"])


def test_a_table_in_place_of_its_batches_is_refused() -> None:
    batch = pa.record_batch({"numerators": [1, 0]})
    table = pa.table(batch)
    wrong: list[Any] = [table, [table], batch, ["numerators"]]
    for batches in wrong:
        with pytest.raises(InputError, match=r"aggregate\(batches\): expected record batches"):
            aggregate(batches, Ratio())


def test_two_columns_of_one_name_are_no_group_and_no_position() -> None:
    columns = [pa.array([1]), pa.array([2]), pa.array([1])]
    batch = pa.RecordBatch.from_arrays(columns, ["twice", "twice", "numerators"])
    with pytest.raises(InputError, match="by: expected one column of this name"):
        aggregate([batch], Ratio(), ["twice"])
    with pytest.raises(InputError, match="counted: expected one column of this name"):
        list(partial([batch], Ratio(), counted=Positions((), "twice")))


def test_a_long_text_of_a_large_batch_is_refused_and_counts_nothing() -> None:
    states = StatesOfGroups(
        Ratio(), ["group"], TableRequest({}, "partial", {"numerators": "clicks"}, None)
    )
    first, second = _hostile_texts(pa.string())[:2]
    states.update(first)
    before = states.per_key.digest()
    texts = pa.array([*second["group"].to_pylist()[:-1], "x" * 5_000])
    with pytest.raises(InputError, match="of at most 4096 bytes"):
        states.update(pa.record_batch({"group": texts, "clicks": second["clicks"]}))
    assert states.per_key.digest() == before
    states.update(second)
    assert len(states.groups()) > 7_000


def test_groups_sources_and_users_that_are_not_utf8_are_refused_with_their_rows() -> None:
    n = 2 * NARROW
    octets = b"a" * (n - 2) + b"\xff" + b"a"
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int32))
    texts = pa.StringArray.from_buffers(n, ends, pa.py_buffer(octets))
    large = pa.record_batch({"item": texts, "clicks": pa.array([1] * n)})
    for batch in (large, large.slice(n - 9)):
        row = batch.num_rows - 2
        for by in (["item"], ["item", "clicks"]):
            request = TableRequest({}, "partial", {"numerators": "clicks"}, None)
            with pytest.raises(InputError, match=rf"item\[{row}\]: .*UTF-8, got b'\\xff'") as e:
                StatesOfGroups(Ratio(), by, request).update(batch)
            assert e.value.rows.tolist() == [row]
        with pytest.raises(InputError, match=rf"item\[{row}\]: "):
            Counted(Positions(("item",), "clicks")).see(batch)
        with pytest.raises(InputError, match=rf"users\[{row}\]: "):
            user_buckets(batch["item"], 8)
