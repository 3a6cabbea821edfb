"""Columns of Arrow batches as what metrics take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    CatalogMetrics,
    DictionaryColumn,
    GroupedAUC,
    HistogramAUC,
    InputError,
    MulticlassAUC,
    PerKey,
    RankingMetrics,
    Ratio,
    Units,
    UserGroups,
    Windows,
    hash_ids,
)
from streammetrics.core.ids.id_hashes import TextColumn
from streammetrics.core.ids.keys import group_ids
from streammetrics.core.ids.unit_hashes import unit_words
from streammetrics.core.tables.arrow_values import arrow_column, encoded_values
from streammetrics.engines import merged, partial, update_from

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: pip install '.[parquet]' in a clone")


def test_texts_lists_and_times_reach_the_metrics() -> None:
    batch = pa.record_batch(
        {
            "label": pa.array(["yes", "no", "yes"]),
            "score": pa.array([0.5, 0.7, 0.2]),
            "user": pa.array(["ann", "bo", "ann"]).dictionary_encode(),
            "class": pa.array([0, 2, 1], pa.int8()),
            "shares": pa.array([[0.1, 0.2, 0.7]] * 3, pa.list_(pa.float32(), 3)),
            "open": pa.array([[0.1, 0.2, 0.7]] * 3, pa.list_(pa.float32())),
            "grades": pa.array([[1, 0], [0, 1, 2], []], pa.list_(pa.int8())),
            "ranks": pa.array([[0.1, 0.2], [0.3, 0.1, 0.2], []], pa.list_(pa.float64())),
            "at": pa.array([1_000_000, 61_000_000, 999], pa.timestamp("us", "UTC")),
        }
    )

    def fed(spec: Accumulator, **columns: str) -> Accumulator:
        state = spec.empty()
        update_from(state, batch, columns)
        (output,) = partial([batch.slice(0, 1), batch.slice(1)], spec, columns=columns)
        assert merged(output["state"].to_pylist()) == state
        return state

    confusion = fed(BinaryConfusion(positive="yes"), labels="label", scores="score")
    assert confusion.compute().tp == 1
    assert fed(Units(), units="user").compute().units == 2
    for column in ("shares", "open"):
        assert fed(MulticlassAUC(n_classes=3), labels="class", scores=column).compute().rows == 3
    lists = fed(RankingMetrics(["MRR"]), labels="grades", scores="ranks")
    assert (lists.compute().rows, lists.compute()["MRR"]) == (3, 0.5)
    assert fed(CatalogMetrics(3, 2), lists="grades").compute().lists_kept == 2
    windows = fed(Windows(Ratio(), size_s=60), times_ms="at", numerators="score")
    assert list(windows.compute()) == [(0, 60_000), (60_000, 120_000)]
    assert len(fed(PerKey(Ratio()), keys="label", numerators="score").compute()) == 2


@pytest.mark.parametrize(
    ("column", "why"),
    [
        (pa.array([[0.1], [0.2, 0.3]]), "lists of equal length"),
        (pa.array([[0.1, 0.9], None]), "without nulls"),
        (pa.array([[0.1, None], [0.2, 0.3]]), "without nulls"),
        (pa.array([["a", "b"], ["c", "d"]]), "lists of numbers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_that_are_no_table_are_refused(column: Any, why: str) -> None:
    batch = pa.record_batch({"labels": pa.array([0, 1]), "scores": column})
    with pytest.raises(InputError, match=why):
        update_from(MulticlassAUC(n_classes=2), batch)


def test_lists_of_other_lengths_than_each_other_and_times_without_a_zone_are_refused() -> None:
    lists = pa.record_batch({"labels": pa.array([[1, 0]]), "scores": pa.array([[0.5]])})
    with pytest.raises(InputError, match="as long as those of other columns"):
        update_from(RankingMetrics(["MRR"]), lists)
    for times in (
        pa.array([1, 2], pa.timestamp("ms")),
        pa.array([1, None], pa.timestamp("ms", "UTC")),
    ):
        batch = pa.record_batch({"times_ms": times, "numerators": pa.array([1, 0])})
        with pytest.raises(InputError, match="column 'times_ms'"):
            update_from(Windows(Ratio(), size_s=60), batch)


def test_states_do_not_keep_the_engines_buffers() -> None:
    memory = bytearray(np.arange(8, dtype=np.float64).tobytes())
    scores = pa.Array.from_buffers(pa.float64(), 8, [None, pa.py_buffer(memory)])
    batch = pa.record_batch([pa.array([0, 1] * 4), scores], ["labels", "scores"])
    state = HistogramAUC(range="real")
    update_from(state, batch)
    memory[:] = bytes(len(memory))
    fresh = HistogramAUC(range="real")
    fresh.update([0, 1] * 4, np.arange(8.0))
    assert state == fresh


@pytest.mark.parametrize("kind", ["bool_", "int8", "uint64", "float16", "float32", "float64"])
def test_a_slice_of_numbers_has_the_rows_of_the_slice(kind: str) -> None:
    labels = np.random.default_rng(3).integers(0, 2, 70).tolist()
    column = pa.array(labels).cast(getattr(pa, kind)())
    for start, end in ((0, 0), (0, 70), (3, 3), (3, 8), (7, 9), (8, 16), (9, 70), (63, 65)):
        by_value, by_slice = PerKey(Ratio()), PerKey(Ratio())
        places = list(range(end - start))
        by_value.update(places, numerators=labels[start:end])
        by_slice.update_from(
            {"place": places, "label": column.slice(start, end - start)},
            keys="place",
            numerators="label",
        )
        assert by_slice == by_value


HOSTILE_TEXTS = ("", "a", "\x00", "ab" * 64, "c" * 129, "é", "日本語", "\U0001f600", "1", "01", " ")


def many_texts(kind: pa.DataType) -> pa.Array:
    """Texts of more rows than wait, of all lengths, most of them once."""
    drawn = np.random.default_rng(3)
    short = [f"user {number}" for number in drawn.integers(0, 1 << 40, 19_000).tolist()]
    odd = [HOSTILE_TEXTS[i] for i in drawn.integers(0, len(HOSTILE_TEXTS), 1000).tolist()]
    return pa.array([*HOSTILE_TEXTS, *short, *odd], kind)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("start", [0, 7])
def test_the_hashes_of_many_texts_are_those_of_their_strings(kind: pa.DataType, start: int) -> None:
    array = many_texts(kind)[start:-3]
    column = arrow_column(array, "user")
    names = array.to_pylist()
    assert isinstance(column, TextColumn)
    hashes = hash_ids(names)
    assert np.array_equal(group_ids(column, "hashed"), hashes)
    assert np.array_equal(unit_words(column, "user"), hashes.view(np.uint64))
    assert len(column) == len(names)
    assert [column.values[i] for i in column.codes.tolist()] == names
    expected = group_ids(encoded_values(array, "user"), "exact")
    exact = group_ids(column, "exact")
    assert isinstance(exact, DictionaryColumn)
    assert isinstance(expected, DictionaryColumn)
    assert (exact.values, exact.codes.tolist()) == (expected.values, expected.codes.tolist())
    with pytest.raises(InputError, match="integers"):
        group_ids(column, "integer")


def test_many_texts_count_as_their_strings_do() -> None:
    array = many_texts(pa.string())
    labels = np.arange(len(array)) % 3 == 0
    scores = np.random.default_rng(5).random(len(array))
    table = pa.table({"labels": labels, "scores": scores, "groups": array})
    strings = encoded_values(array, "groups")
    by_column, by_strings = GroupedAUC(ids="hashed"), GroupedAUC(ids="hashed")
    by_column.update_from(table)
    by_strings.update(labels, scores, groups=strings)
    assert by_column == by_strings
    of_users, of_strings = UserGroups(Ratio()), UserGroups(Ratio())
    of_users.update_from(table, numerators="labels", groups="groups")
    of_strings.update(groups=strings, numerators=labels)
    assert of_users == of_strings


def test_a_long_one_of_many_texts_is_checked_as_in_a_list() -> None:
    names = [str(row) for row in range(20_000)]
    for long in ("x" * 400, "é" * 340):
        column = arrow_column(pa.array([*names, long]), "user")
        assert isinstance(column, TextColumn)
        assert np.array_equal(group_ids(column, "hashed"), hash_ids([*names, long]))
    column = arrow_column(pa.array([*names, "x" * 5000]), "user")
    assert isinstance(column, TextColumn)
    with pytest.raises(InputError, match=r"user\[20000\]: .*of at most 4096 bytes"):
        unit_words(column, "user")


def texts_of(octets: list[bytes]) -> Any:
    """Texts of these bytes, as other programs write them, whether they are UTF-8 or not."""
    ends = np.cumsum([0, *map(len, octets)], dtype=np.int32)
    data = pa.py_buffer(b"".join(octets))
    return pa.StringArray.from_buffers(len(octets), pa.py_buffer(ends), data)


def test_texts_that_are_not_utf8_are_refused_with_their_column_and_rows() -> None:
    few = texts_of([b"a", b"caf\xe9", b"b", b"\xff", b"caf\xe9"])
    many = texts_of([*(b"%d" % row for row in range(20_000)), b"caf\xe9"])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 3, 5]), few)
    for column, rows in (
        (few, [1, 3, 4]),
        (few[1:], [0, 2, 3]),
        (few.dictionary_encode(), [1, 3, 4]),
        (pa.chunked_array([few[:1], few[3:]]), [1, 2]),
        (many, [20_000]),
        (lists, [2, 3]),
    ):
        with pytest.raises(InputError, match=rf"^user\[{rows[0]}\]: .*text in UTF-8, got b'") as e:
            arrow_column(column, "user")
        assert e.value.rows.tolist() == rows, column
    table = pa.table({"user": few, "click": [1, 0, 1, 1, 0]})
    for where in (None, "user == 'a'"):
        state = PerKey(Ratio())
        with pytest.raises(InputError, match=r"^user\[1\]: .*caf"):
            state.update_from(table, key="user", numerators="click", where=where)
        assert state == PerKey(Ratio())


def test_a_text_of_a_dictionary_that_no_row_has_is_not_read() -> None:
    texts = texts_of([b"a", b"\xff", b"b"])
    column = pa.DictionaryArray.from_arrays(pa.array([2, None, 0, 2]), texts)
    read = encoded_values(column, "user")
    assert [read.values[code] for code in read.codes.tolist()] == ["b", None, "a", "b"]


def test_dictionaries_of_chunks_are_combined_where_arrow_cannot() -> None:
    with_nulls = [pa.array(v).dictionary_encode("encode") for v in (["a", None], [None, "b"])]
    numbers = [pa.array(v).dictionary_encode("encode") for v in ([7, None], [None, 5])]
    small = pa.dictionary(pa.int8(), pa.string())
    many = [[f"{half}{i}" for i in range(100)] for half in "xy"]
    for chunks in (with_nulls, numbers, [pa.array(v, small) for v in many]):
        keys = [key for chunk in chunks for key in chunk.to_pylist()]
        by_key, expected = PerKey(Ratio()), PerKey(Ratio())
        ones = [1] * len(keys)
        by_key.update_from({"k": pa.chunked_array(chunks), "n": ones}, key="k", numerators="n")
        expected.update(keys, numerators=ones)
        assert by_key == expected


def test_texts_with_nulls_long_texts_and_those_that_repeat_are_a_dictionary() -> None:
    names = [str(row) for row in range(20_000)]
    long, repeated = [f"{name:>65}" for name in names], [name[-3:] for name in names]
    for texts in (names[:10], long, repeated, [*names, None]):
        column = arrow_column(pa.array(texts, pa.string()), "user")
        assert type(column) is DictionaryColumn
