"""Checks of rows: what is taken, in which form, and what is refused with all its rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics.core.checks import (
    binary_labels,
    booleans,
    class_numbers,
    grades,
    integers,
    label_table,
    numbers,
    probabilities,
    same_length,
    score_table,
    scores,
)
from streammetrics.core.errors import InputError

Check = Callable[..., Any]
NAN, INF = float("nan"), float("inf")


class Frame:
    """What pandas, polars, pyarrow and CPU tensors have in common."""

    def __init__(self, values: Any, dtype: Any = None) -> None:
        self.values = np.array(values, dtype)

    def __repr__(self) -> str:
        return f"Frame({self.values!r})"

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


def refused(check: Check, values: Any, **options: Any) -> InputError:
    try:
        check(values, "name", **options)
    except InputError as caught:
        error = caught
    else:
        pytest.fail(f"{check.__name__} takes {values!r}")
    assert all((error.expected, error.got, error.where, error.hint))
    assert error.where.startswith("name")
    return error


ALL_CHECKS = [binary_labels, grades, scores, probabilities, numbers, integers]
VECTOR_CHECKS = [binary_labels, scores, probabilities, numbers, integers]


@pytest.mark.parametrize(
    "values",
    [
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
    ],
    ids=repr,
)
def test_zeros_and_ones_of_every_kind_are_taken(values: Any) -> None:
    for check in ALL_CHECKS:
        made = check(values, "name")
        assert type(made) is np.ndarray
        assert made.dtype.isnative
        assert made.tolist() == [0, 1, 1]


@pytest.mark.parametrize("empty", [[], (), np.empty(0), np.empty(0, object), np.empty(0, "U1")])
def test_no_rows_are_rows_too(empty: Any) -> None:
    for check in ALL_CHECKS:
        assert len(check(empty, "name")) == 0


@pytest.mark.parametrize("error", [TypeError, ValueError, RuntimeError])
def test_a_column_whose_values_cannot_be_had_is_refused(error: type[Exception]) -> None:
    for check in ALL_CHECKS:
        assert "cuda" in refused(check, OnTheGpu(error)).got


@pytest.mark.parametrize(
    ("values", "got"),
    [
        *((1, "1"), (0.5, "0.5"), ("abc", "'abc'"), (None, "None"), ({"a": 1}, "a dict")),
        *(({1, 2}, "a set"), ([[0, 1]], "shape [1, 2]"), (np.ones((2, 1)), "shape [2, 1]")),
    ],
)
def test_what_has_not_one_axis_is_refused(values: Any, got: str) -> None:
    for check in VECTOR_CHECKS:
        assert refused(check, values).got == got


@pytest.mark.parametrize(
    "bad", [None, NotAvailable(), "x", b"x", 1j, Fraction(1, 3), [1], object()]
)
def test_an_object_that_is_no_number_is_refused_with_its_rows(bad: Any) -> None:
    for check in ALL_CHECKS:
        rows = np.empty(4, object)
        rows[:] = [0, bad, 1, bad]
        assert refused(check, rows).rows.tolist() == [1, 3]


def test_text_among_numbers_is_refused_and_not_its_neighbours() -> None:
    for check in ALL_CHECKS:
        assert refused(check, [0, "1", 1]).rows.tolist() == [1]
        assert refused(check, ["0", "1"]).rows.tolist() == [0, 1]
        assert refused(check, np.array(["0", "1"])).rows.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[s]", "c16", "S1", "V2"])
def test_arrays_of_what_is_no_number_are_refused(dtype: str) -> None:
    for check in ALL_CHECKS:
        refused(check, np.zeros(3, dtype))


def test_masked_values_are_missing_and_refused() -> None:
    for check in ALL_CHECKS:
        values = np.ma.array([0, 1, 1], mask=[False, True, True])
        assert refused(check, values).rows.tolist() == [1, 2]


# -- labels ---------------------------------------------------------------------------------


def test_labels_that_are_swapped_with_scores_are_recognised() -> None:
    error = refused(binary_labels, [0.73, 0.1, 1.0])
    assert error.got == "0.73"
    assert error.where == "name[0]"
    assert error.hint == "were labels and scores swapped?"
    assert error.rows.tolist() == [0, 1]
    assert refused(binary_labels, np.array([0, 0.5], object)).hint == error.hint


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.array([1, -1, 0, -1], np.int8), [1, 3]),
        (np.array([0, 255], np.uint8), [1]),
        (np.array([0, 256, 1], np.int16), [1]),
        (np.array([0, 2**63], np.uint64), [1]),
        (np.array([NAN, 0, INF, -INF]), [0, 2, 3]),
        ([0, 2], [1]),
        ([0, 2**70], [1]),
        ([0, -1], [1]),
        ([0, NAN], [1]),
        ([True, 0.5], [1]),
    ],
)
def test_labels_other_than_0_and_1_are_refused_with_all_their_rows(
    values: Any, rows: list[int]
) -> None:
    assert refused(binary_labels, values).rows.tolist() == rows


@pytest.mark.parametrize(
    ("values", "positive", "labels"),
    [
        ([2, 0, 1], 2, [1, 0, 0]),
        ([2.0, 3.0, -INF], 2, [1, 0, 0]),
        ([1, 0], 0, [0, 1]),
        (np.array([-1, 1], np.int8), -1, [1, 0]),
        (np.array([True, False]), 0, [0, 1]),
        (["yes", "no"], "yes", [1, 0]),
        (np.array(["yes", "no"], object), "yes", [1, 0]),
        (np.array(["yes", "no"], np.dtypes.StringDType()), "yes", [1, 0]),
        (np.array([2, np.int64(3)], object), 2, [1, 0]),
        ([0, 300], 300, [0, 1]),
        (np.array([0, 44], np.uint8), 300, [0, 0]),
        ([], "yes", []),
        ([], 2, []),
    ],
    ids=repr,
)
def test_a_positive_class_may_be_named(values: Any, positive: Any, labels: list[int]) -> None:
    made = binary_labels(values, "name", positive)
    assert made.dtype == np.uint8
    assert made.tolist() == labels


@pytest.mark.parametrize(
    ("values", "positive", "rows"),
    [
        ([1, 2], "yes", [0, 1]),
        ([0.0, 1.0], "yes", [0, 1]),
        (["yes", "no"], 2, [0, 1]),
        ([2.0, NAN], 2, [1]),
        (["yes", None], "yes", [1]),
        ([2, None, 2], 2, [1]),
        ([2, "2"], 2, [1]),
        (np.array([b"yes"]), "yes", [0]),
    ],
    ids=repr,
)
def test_labels_of_another_kind_than_the_positive_class_are_refused(
    values: Any, positive: Any, rows: list[int]
) -> None:
    assert refused(binary_labels, values, positive=positive).rows.tolist() == rows


# -- grades ---------------------------------------------------------------------------------


def test_grades_are_integers_from_0_to_15_in_any_shape() -> None:
    assert grades([[0, 15], [3, 1]]).tolist() == [[0, 15], [3, 1]]
    assert grades(np.array([0.0, 15.0], ">f4")).tolist() == [0, 15]
    assert grades(np.array([3, np.int8(4), True], object)).tolist() == [3, 4, 1]
    assert grades(np.empty((0, 5))).shape == (0, 5)


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        (np.array([0, -1], np.int8), [1]),
        (np.array([16, 0, 255], np.uint8), [0, 2]),
        ([0.5, 1.0, NAN, INF], [0, 2, 3]),
        ([0, 2**70], [1]),
        (np.array([0, 1.0], object), [1]),
    ],
)
def test_grades_out_of_range_are_refused(values: Any, rows: list[int]) -> None:
    assert refused(grades, values).rows.tolist() == rows


# -- integers -------------------------------------------------------------------------------


def test_integers_of_64_bits_are_kept() -> None:
    ends = [-(2**63), 2**63 - 1]
    assert integers(ends, "name").tolist() == ends
    assert integers(np.array(ends, object), "name").tolist() == ends
    assert integers(np.array([2**63 - 1], np.uint64), "name").tolist() == [2**63 - 1]
    values = np.array(ends)
    assert integers(values, "name") is values
    with pytest.raises(InputError, match="expected a one-dimensional array"):
        integers(np.zeros((2, 2), np.int64), "name")


@pytest.mark.parametrize(
    ("values", "rows"),
    [
        ([1.0, 2.0], [0, 1]),
        ([1, 2.5], [1]),
        ([2**63, 1], [0]),
        ([2**64, 1], [0]),
        ([-(2**63) - 1, 1], [0]),
        (np.array([1, 2**63], np.uint64), [1]),
        (np.array([1, 1.0, np.float32(1)], object), [1, 2]),
        (np.array([1, np.timedelta64(1, "s")], object), [1]),
    ],
    ids=repr,
)
def test_what_is_no_integer_of_64_bits_is_refused(values: Any, rows: list[int]) -> None:
    assert refused(integers, values).rows.tolist() == rows


# -- the rest -------------------------------------------------------------------------------


def test_a_column_of_another_length_is_refused() -> None:
    same_length(2, np.ones(2), "weights", "labels")
    with pytest.raises(InputError) as caught:
        same_length(2, np.ones(3), "weights", "labels")
    assert str(caught.value) == (
        "weights: expected 2 values, one for each row of labels, got 3; pass arrays of equal length"
    )


def test_booleans_are_true_and_false_alone() -> None:
    for column in ([True, False], np.array([True, False]), np.array([True, False], object)):
        found = booleans(column, "judged")
        assert found.dtype == np.bool_ and found.tolist() == [True, False]
    assert booleans([], "judged").dtype == np.bool_
    for bad, rows in (([1, 0], [0, 1]), (np.array([True, 1], object), [1]), (["a"], [0])):
        with pytest.raises(InputError, match=rf"judged\[{rows[0]}\]") as caught:
            booleans(bad, "judged")
        assert caught.value.rows.tolist() == rows


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("dtype", "wide"),
    [
        *(("f2", "f4"), (">f2", "f4"), ("f4", "f4"), (">f4", "f4"), ("f8", "f8"), (">f8", "f8")),
        *(("i1", "f8"), ("u2", "f8"), ("i8", "f8"), ("?", "f8"), ("O", "f8")),
    ],
)
def test_scores_are_float32_or_float64(dtype: str, wide: str) -> None:
    for check in [scores, probabilities, numbers]:
        made = check(np.array([0, 1, 1], dtype), "name")
        assert made.dtype == np.dtype(wide)
        assert made.dtype.isnative
        assert made.tolist() == [0, 1, 1]


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8", "f8"])
def test_nan_is_refused_with_all_its_rows(dtype: str) -> None:
    for check in [scores, probabilities]:
        error = refused(check, np.array([0, NAN, 1, NAN], dtype))
        assert error.rows.tolist() == [1, 3]
        assert error.got == "nan"
        assert error.where == "name[1]"
        assert refused(scores, np.array([INF, -INF, NAN], dtype)).rows.tolist() == [2]


def test_infinities_and_the_largest_floats_are_scores_without_a_warning() -> None:
    for dtype in ("f4", "f8"):
        top = np.finfo(dtype).max
        values = np.array([INF, -INF, top, top, -top, top], dtype)
        assert scores(values).tolist() == values.tolist()


def test_a_score_past_float64_is_refused() -> None:
    for check in (scores, probabilities, numbers):
        assert refused(check, [0.5, 10**400]).rows.tolist() == [1]
        assert refused(check, [0.5, -(10**400)]).rows.tolist() == [1]


@pytest.mark.parametrize("dtype", ["f2", "f4", ">f4", "f8", ">f8", "O"])
def test_minus_zero_is_the_probability_zero(dtype: str) -> None:
    made = probabilities(np.array([-0.0, 0.5, -0.0], dtype))
    assert np.signbit(made).tolist() == [False] * 3


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_probabilities_lie_from_0_to_1(dtype: str) -> None:
    kind = np.dtype(dtype).type
    least, one = np.finfo(kind).smallest_subnormal, kind(1)
    ends = np.array([0, least, np.nextafter(one, kind(0)), 1], dtype)
    assert probabilities(ends) is ends
    outside = [-least, np.nextafter(one, kind(2)), INF, -INF, -1]
    for bad in outside:
        error = refused(probabilities, np.array([0.5, bad, -0.0], dtype))
        assert error.rows.tolist() == [1]
        assert 'range="real"' in error.hint


def test_probabilities_of_a_stride_are_looked_at_one_by_one() -> None:
    values = np.array([0.5, 7, 0.25, 7], np.float32)
    assert probabilities(values[::2]).tolist() == [0.5, 0.25]
    assert refused(probabilities, values[1::2]).rows.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["u1", "i1", "<i2", ">i4", "u8", "f4", "O"])
def test_class_numbers_of_any_type_are_taken(kind: str) -> None:
    assert class_numbers(np.array([0, 2, 1], kind), 3, "labels").tolist() == [0, 2, 1]
    assert len(class_numbers(np.empty(0, kind), 3, "labels")) == 0


@pytest.mark.parametrize("kind", ["i1", ">i4", "i8", "f8", "O"])
def test_every_row_that_is_no_class_is_named(kind: str) -> None:
    with pytest.raises(InputError) as error:
        class_numbers(np.array([0, -1, 2, 3], kind), 3, "labels")
    assert error.value.rows.tolist() == [1, 3]
    assert error.value.where == "labels[1]"


def test_numbers_beyond_int64_and_times_are_no_classes() -> None:
    for bad in ([1 << 70], np.array([2**63], np.uint64), np.array([1], "m8[s]"), [np.inf]):
        with pytest.raises(InputError):
            class_numbers(bad, 3, "labels")


def test_a_cell_that_is_refused_is_named_by_row_and_column() -> None:
    scores = np.array([[0.5, 0.5], [0.5, np.nan], [np.nan, np.nan]])
    with pytest.raises(InputError) as error:
        score_table(scores, 2, "scores")
    assert (error.value.where, error.value.rows.tolist()) == ("scores[1, 1]", [1, 2])
    with pytest.raises(InputError, match=r"labels\[0, 1\]"):
        label_table(np.array([[1, 3]]), 2)


def test_tables_keep_their_precision_and_their_shape() -> None:
    assert score_table(np.zeros((0, 4), np.float32), 4, "scores").shape == (0, 4)
    assert score_table(np.zeros((2, 4), np.float32), 4, "scores").dtype == np.float32
    assert score_table(np.zeros((2, 4), np.int64), 4, "scores").dtype == np.float64
    turned = np.arange(6.0).reshape(2, 3).T
    assert score_table(turned, 2, "scores").tolist() == turned.tolist()
