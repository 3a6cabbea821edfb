"""Checks of rows: what is taken, in which form, and what is refused with all of its rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from streammetrics import (
    DictionaryColumn,
    ExactAUC,
    Expression,
    MulticlassAUC,
    MulticlassConfusion,
    Ratio,
)
from streammetrics.core.checks import (
    addends,
    binary_labels,
    booleans,
    grades,
    integers,
    numbers,
    probabilities,
    scores,
)
from streammetrics.core.class_checks import class_numbers, label_table, score_table
from streammetrics.core.errors import InputError

NAN, INF = float("nan"), float("inf")
HOLDS = 2**53  # up to which float64 holds every integer


class Frame:
    """What pandas, polars, pyarrow and CPU tensors have in common."""

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self.values = np.array(values, dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return self.values if dtype is None else self.values.astype(dtype)


class OnTheGpu:
    """A tensor whose values cannot be had."""

    def __init__(self, error: type[Exception]) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise self.error("can't convert cuda:0 device type tensor to numpy")


class NotAvailable:
    """A missing value whose comparison has no truth, as pandas.NA."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


def refused(check: Callable[..., Any], values: Any) -> InputError:
    try:
        check(values, name="name")
    except InputError as error:
        assert all((error.expected, error.got, error.hint)) and error.where.startswith("name")
        return error
    pytest.fail(f"{check} takes {values!r}")


# -- what is refused -------------------------------------------------------------------------------
def _positive(value: int | str) -> Callable[..., Any]:
    return partial(binary_labels, positive=value)


def _three(values: Any, name: str) -> Any:
    return class_numbers(values, 3, name)


ALL_CHECKS = [binary_labels, grades, scores, probabilities, numbers, integers]
COLUMNS: list[tuple[Callable[..., Any], Any, list[int]]] = [
    (binary_labels, np.array([0, 0.5], object), [1]),
    (binary_labels, np.array([1, -1, 0, -1], np.int8), [1, 3]),
    (binary_labels, np.array([0, 255], np.uint8), [1]),
    (binary_labels, np.array([0, 256, 1], np.int16), [1]),
    (binary_labels, np.array([0, 2**63], np.uint64), [1]),
    (binary_labels, np.array([NAN, 0, INF, -INF]), [0, 2, 3]),
    (binary_labels, [0, 2**70], [1]),
    (binary_labels, [True, 0.5], [1]),
    (_positive("yes"), [1, 2], [0, 1]),
    (_positive("yes"), [0.0, 1.0], [0, 1]),
    (_positive(2), ["yes", "no"], [0, 1]),
    *((_positive(2), np.array([2, NAN, INF, -INF], k), [1, 2, 3]) for k in ("f2", "f8", "O")),
    (_positive("yes"), ["yes", None], [1]),
    (_positive(2), [2, None, 2], [1]),
    (_positive(2), [2, "2"], [1]),
    (_positive("yes"), np.array([b"yes"]), [0]),
    (_positive("yes"), np.array(["no", "yes ", " yes"]), [1, 2]),
    (_positive("yes"), np.array(["a", "YES", "Yes"]), [1, 2]),
    (grades, np.array([0, -1], np.int8), [1]),
    (grades, np.array([16, 0, 255], np.uint8), [0, 2]),
    (grades, [0.5, 1.0, NAN, INF], [0, 2, 3]),
    (grades, [0, 2**70], [1]),
    (grades, np.array([0, 0.5, 1.0], object), [1]),
    (integers, [1.0, 2.0], [0, 1]),
    (integers, [1, 2.5], [1]),
    (integers, [2**63, 1], [0]),
    (integers, [2**64, 1], [0]),
    (integers, [-(2**63) - 1, 1], [0]),
    (integers, np.array([1, 2**63], np.uint64), [1]),
    (integers, np.array([1, 1.0, np.float32(1)], object), [1, 2]),
    *(
        (check, np.array([1, np.timedelta64(1, "D")], object), [1])
        for check in (*ALL_CHECKS, _positive(1), _positive(2), _three)
    ),
    (booleans, [1, 0], [0, 1]),
    (booleans, np.array([True, 1], object), [1]),
    (booleans, ["a"], [0]),
    *(
        (check, np.array([0, NAN, 1, NAN], kind), [1, 3])
        for check in (scores, probabilities)
        for kind in ("f2", "f4", ">f8", "f8")
    ),
    (scores, np.array([INF, -INF, NAN]), [2]),
    *((check, [0.5, sign * 10**400], [1]) for check in (scores, numbers) for sign in (1, -1)),
    *(
        (probabilities, np.array([0.5, bad, -0.0], kind), [1])
        for kind in (np.float32, np.float64)
        for bad in (-np.finfo(kind).smallest_subnormal, np.nextafter(kind(1), kind(2)), INF, -1)
    ),
    (probabilities, np.array([0.5, 7, 0.25, 7], np.float32)[1::2], [0, 1]),
    *(
        (check, values, [1])
        for check in (scores, addends)
        for values in (
            [HOLDS, HOLDS + 1],
            [0.5, HOLDS + 1],
            [1, 2**63 + 1],
            np.array([HOLDS, HOLDS + 1]),
            np.array([0, -HOLDS - 1]),
            np.array([HOLDS, HOLDS + 1], np.uint64),
            np.array([HOLDS, HOLDS + 1], object),
            [0, 2**70 + 1],
        )
    ),
    *((_three, np.array([0, -1, 2, 3], k), [1, 3]) for k in ("i1", ">i4", "i8", "f8", "O")),
    (_three, [1 << 70], [0]),
    (_three, np.array([2**63], np.uint64), [0]),
    (_three, np.array([1], "m8[s]"), [0]),
    (_three, [INF], [0]),
]


def test_a_column_is_refused_with_all_of_its_bad_rows() -> None:
    for check, values, rows in COLUMNS:
        error = refused(check, values)
        assert (error.rows.tolist(), error.where) == (rows, f"name[{rows[0]}]"), (check, values)


def test_what_is_no_column_of_numbers_is_refused_by_every_check() -> None:
    for check in ALL_CHECKS:
        for error in (TypeError, ValueError, RuntimeError):
            assert "cuda" in refused(check, OnTheGpu(error)).got
        for bad in (None, NotAvailable(), "x", b"x", 1j, Fraction(1, 3), [1], object()):
            rows = np.empty(4, object)
            rows[:] = [0, bad, 1, bad]
            assert refused(check, rows).rows.tolist() == [1, 3]
        for values, bad_rows in (
            ([0, "1", 1], [1]),  # and not its neighbours
            (["0", "1"], [0, 1]),
            (np.array(["0", "1"]), [0, 1]),
            (np.ma.array([0, 1, 1], mask=[False, True, True]), [1, 2]),
        ):
            assert refused(check, values).rows.tolist() == bad_rows
        for kind in ("M8[s]", "m8[s]", "c16", "S1", "V2"):
            refused(check, np.zeros(3, kind))
        if check is not grades:  # which may have any shape
            for values, got in (
                *((0.5, "0.5"), ("abc", "'abc'"), ({"a": 1}, "a dict")),
                *(([[0, 1]], "shape [1, 2]"), (np.ones((2, 1)), "shape [2, 1]")),
                (Frame([[0, 1]]), "shape [1, 2]"),
            ):
                assert refused(check, values).got == got
    with pytest.raises(InputError, match="expected a one-dimensional array"):
        integers(np.zeros((2, 2), np.int64), "name")


def test_a_cell_that_is_refused_is_named_by_row_and_column() -> None:
    with pytest.raises(InputError) as error:
        score_table(np.array([[0.5, 0.5], [0.5, NAN], [NAN, NAN]]), 2, "scores")
    assert (error.value.where, error.value.rows.tolist()) == ("scores[1, 1]", [1, 2])
    with pytest.raises(InputError, match=r"labels\[0, 1\]"):
        label_table(np.array([[1, 3]]), 2)


def test_a_batch_that_is_refused_leaves_the_state_as_it_was() -> None:
    metric = ExactAUC(positive="yes")
    with pytest.raises(InputError):
        metric.update(["yes", "YES"], [0.1, 0.2])
    assert metric == ExactAUC(positive="yes")


# -- what is taken ---------------------------------------------------------------------------------


def test_zeros_and_ones_of_every_kind_are_taken() -> None:
    for values in (
        [0, 1, 1],
        (0, 1, 1),
        [False, True, True],
        np.array([0, 1, 1], np.int8),
        np.array([0, 1, 1], np.uint8),
        np.array([0, 1, 1], ">i2"),
        np.array([0, 1, 1], ">i8"),
        np.array([0, 1, 1], np.uint64),
        np.array([0, 1, 1], object),
        np.array([False, True, True]),
        np.array([0, 5, 1, 5, 1], np.int32)[::2],
        np.array([1, 1, 0], np.int8)[::-1],
        [np.int64(0), np.uint8(1), np.True_],
        np.ma.array([0, 1, 1]),
        Frame([0, 1, 1]),
        Frame([0, 1, 1], object),
        Frame([False, True, True]),
    ):
        for check in ALL_CHECKS:
            array = check(values, "name")
            assert type(array) is np.ndarray and array.dtype.isnative
            assert array.tolist() == [0, 1, 1]


def test_no_rows_are_rows_too() -> None:
    for empty in ([], (), np.empty(0), np.empty(0, object), np.empty(0, "U1")):
        for check in ALL_CHECKS:
            assert len(check(empty, "name")) == 0
    assert booleans([], "judged").dtype == np.bool_


def test_a_positive_class_may_be_named() -> None:
    rows: list[tuple[Any, int | str, list[int]]] = [
        ([2, 0, 1], 2, [1, 0, 0]),
        ([2.0, 3.0, -4.0], 2, [1, 0, 0]),
        ([1, 0], 0, [0, 1]),
        (np.array([-1, 1], np.int8), -1, [1, 0]),
        (np.array([True, False]), 0, [0, 1]),
        (["yes", "no"], "yes", [1, 0]),
        (np.array(["yes", "no"], object), "yes", [1, 0]),
        (np.array(["yes", "no"], np.dtypes.StringDType()), "yes", [1, 0]),
        (np.array([2, np.int64(3)], object), 2, [1, 0]),
        (np.array([0, 44], np.uint8), 300, [0, 0]),
        (np.array([2048], np.float16), 2049, [0]),
        (np.array([2**24, 2**24 + 2], np.float32), 2**24 + 1, [0, 0]),
        (np.array([2.0**53]), HOLDS + 1, [0]),
        ([HOLDS + 1, 2.0**53], HOLDS + 1, [1, 0]),
        ([HOLDS + 1, 2.0**53], HOLDS, [0, 1]),
        (np.array([np.float32(2**24), 2], object), 2**24 + 1, [0, 0]),
        (np.array([6.0, 2.0**1000]), 10**400, [0, 0]),
        (np.array([6.0], np.float16), 10**6, [0]),
        ([], "yes", []),
        ([], 2, []),
    ]
    for values, positive, labels in rows:
        array = binary_labels(values, "name", positive)
        assert array.dtype == np.uint8
        assert array.tolist() == labels, (values, positive)


@pytest.mark.parametrize("code", [-1, 2])
def test_codes_of_a_column_are_indices_into_its_values(code: int) -> None:
    column = DictionaryColumn(np.array([0, code]), (0, 1))
    for read in (binary_labels, lambda column, name: Expression(name).evaluate({name: column})):
        with pytest.raises(
            InputError, match=f"x.codes.1..*expected codes from 0 to 1.*got {code};"
        ):
            read(column, "x")


def test_grades_are_integers_from_0_to_15_in_any_shape() -> None:
    assert grades([[0, 15], [3, 1]]).tolist() == [[0, 15], [3, 1]]
    assert grades(np.array([0.0, 15.0], ">f4")).tolist() == [0, 15]
    assert grades(np.array([3, np.int8(4), True], object)).tolist() == [3, 4, 1]
    assert grades(np.empty((0, 5))).shape == (0, 5)


def test_integers_of_64_bits_are_kept() -> None:
    ends = [-(2**63), 2**63 - 1]
    assert integers(ends, "name").tolist() == ends
    assert integers(np.array(ends, object), "name").tolist() == ends
    assert integers(np.array([2**63 - 1], np.uint64), "name").tolist() == [2**63 - 1]
    values = np.array(ends)
    assert integers(values, "name") is values


def test_booleans_are_true_and_false_alone() -> None:
    for column in ([True, False], np.array([True, False]), np.array([True, False], object)):
        array = booleans(column, "judged")
        assert array.dtype == np.bool_ and array.tolist() == [True, False]


def test_scores_are_float32_or_float64() -> None:
    for check in (scores, probabilities, numbers):
        for kind in ("f2", ">f2", "f4", ">f4", "f8", ">f8", "i1", "u2", "i8", "?", "O"):
            array = check(np.array([0, 1, 1], kind), "name")
            assert array.dtype == (np.float32 if kind[-2:] in ("f2", "f4") else np.float64)
            assert array.dtype.isnative
            assert array.tolist() == [0, 1, 1]


def test_infinities_and_the_largest_floats_are_scores_without_a_warning() -> None:
    for kind in ("f4", "f8"):
        top = np.finfo(kind).max
        values = np.array([INF, -INF, top, top, -top, top], kind)
        assert scores(values).tolist() == values.tolist()


def test_large_integers_that_float64_holds_are_numbers() -> None:
    for values in (
        [HOLDS, HOLDS + 2, -HOLDS - 2, 0],
        np.array([HOLDS, HOLDS + 2, -(2**63), 2**62]),
        np.array([2**63, 2**64 - 2**11, 0, HOLDS + 2], np.uint64),
        [2**100, 1, 0, -(2**70)],
        np.array([2.0**53, 2.0**53 + 2, 1e300, 0]),
    ):
        ratio = Ratio()
        ratio.update(values)
        assert ratio.compute().numerator == float(sum(map(int, values)))


def test_probabilities_are_taken_as_they_are_but_minus_zero() -> None:
    for kind in (np.float32, np.float64):
        least, unit = np.finfo(kind).smallest_subnormal, kind(1)
        ends = np.array([0, least, np.nextafter(unit, kind(0)), 1], kind)
        assert probabilities(ends) is ends
    for name in ("f2", "f4", ">f4", "f8", ">f8", "O"):
        array = probabilities(np.array([-0.0, 0.5, -0.0], name))
        assert np.signbit(array).tolist() == [False] * 3
    assert probabilities(np.array([0.5, 7, 0.25, 7], np.float32)[::2]).tolist() == [0.5, 0.25]


def test_class_numbers_of_any_type_are_taken() -> None:
    for kind in ("u1", "i1", "<i2", ">i4", "u8", "f4", "O"):
        assert _three(np.array([0, 2, 1], kind), "labels").tolist() == [0, 2, 1]
        assert len(_three(np.empty(0, kind), "labels")) == 0


@pytest.mark.parametrize(
    ("kind", "n_classes", "negative"),
    [("i1", 300, -1), ("i1", 130, -127), ("<i2", 40_000, -30_000)],
)
def test_a_negative_class_is_refused_where_its_bytes_are_the_number_of_a_class(
    kind: str, n_classes: int, negative: int
) -> None:
    largest = int(np.iinfo(kind).max)
    assert class_numbers(np.array([0, largest], kind), n_classes, "labels").tolist() == [0, largest]
    with pytest.raises(
        InputError, match=rf"labels\[1\]: expected a class number .* got {negative};"
    ):
        class_numbers(np.array([0, negative], kind), n_classes, "labels")


def test_tables_keep_their_precision_and_their_shape() -> None:
    assert score_table(np.zeros((0, 4), np.float32), 4, "scores").shape == (0, 4)
    assert score_table(np.zeros((2, 4), np.float32), 4, "scores").dtype == np.float32
    assert score_table(np.zeros((2, 4), np.int64), 4, "scores").dtype == np.float64
    turned = np.arange(6.0).reshape(2, 3).T
    assert score_table(turned, 2, "scores").tolist() == turned.tolist()


def test_a_list_is_refused_for_the_rows_that_are_refused_alone() -> None:
    hostile = (0, 1, True, 0.5, -0.0, -1.0, HOLDS, HOLDS + 1, -HOLDS - 1, 2.0**60, 2**60, NAN, INF)
    for check in (scores, numbers, probabilities, addends):
        single_results: dict[int, float | None] = {}
        for i, value in enumerate(hostile):
            try:
                single_results[i] = check([value], "x").item()
            except InputError:
                single_results[i] = None
        for i, j, k in product(range(len(hostile)), repeat=3):
            values = [hostile[i], hostile[j], hostile[k]]
            expected = [single_results[i], single_results[j], single_results[k]]
            if None in expected:
                with pytest.raises(InputError):
                    check(values, "x")
            else:
                assert repr(check(values, "x").tolist()) == repr([float(v) for v in expected])


def test_an_integer_of_a_table_is_refused_whatever_numbers_are_beside_it() -> None:
    large, exact = HOLDS + 1, HOLDS + 2
    columns = {"a": [1, large], "b": [0.5, 1.0]}
    tables: list[Any] = [
        *(pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns)),
        pd.DataFrame(columns).astype({"a": "Int64", "b": "Float64"}),
        [[large, 1], [0.5, 1]],
        [[0.5, 1], [1.5, large]],
        [(large, 2.0**53)],
        [np.array([large, 1]), np.array([0.5, 1.0])],
        [np.array([large, 1]), np.array([0, 1], np.uint64)],
    ]
    for rows in tables:
        for metric in (MulticlassAUC(2, exact=True), MulticlassConfusion(2, (1,))):
            with pytest.raises(InputError, match=f"float64 holds exactly.* got {large};"):
                metric.update([0] * len(rows), rows)
            assert metric == metric.empty()
    in_floats, of_integers = (MulticlassAUC(2, exact=True) for _ in range(2))
    in_floats.update([0, 1], [[exact, 1], [0.5, 1]])
    of_integers.update([0], [[exact, 1]])
    of_integers.update([1], [[0.5, 1.0]])
    assert in_floats == of_integers
