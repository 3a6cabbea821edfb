from __future__ import annotations

import numpy as np
import pytest

from streammetrics.core.class_checks import class_numbers, label_table, score_table
from streammetrics.core.errors import InputError


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
