"""Columns that break things, as each argument of every public metric: whatever form they have, and
whatever waits, they count as the check of them alone says, or are refused."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from streammetrics import Accumulator, DictionaryColumn, InputError, StateError
from streammetrics.testing import Case
from tests.cases import CASES, drawn_rows
from tests.depth import classes_first, first_of_each_class

Given = dict[str, Any]
every_case = pytest.mark.parametrize("case", classes_first(CASES), ids=str)


def is_counted(state: Accumulator, columns: Given, *, waits: bool) -> bool:
    """Count these rows, which may wait; False if they are refused."""
    try:
        if waits:
            state.update(**columns)
        else:
            state.update_checked(state.check(**columns))
    except (InputError, StateError):  # the latter for weights whose sum is beyond an int64
        return False
    return True


def is_checked(case: Case[Any], columns: Given) -> bool:
    return is_counted(case.empty.empty(), columns, waits=False)


# -- numbers ------------------------------------------------------------------------------------
HOSTILE = (2**53 + 1, -(2**53) - 1, 2**63 - 1, True)


def with_number(column: object, number: float) -> Any:
    """The column with this in place of its first number; None if it has none."""
    if not isinstance(column, list | tuple):
        return None
    for i, value in enumerate(column):
        inner = number if isinstance(value, int | float) else with_number(value, number)
        if inner is not None:
            return [*column[:i], inner, *column[i + 1 :]]
    return None


def numbers_in_two_forms(column: object, number: float) -> Iterator[object]:
    values = with_number(column, number)
    if values is not None:
        yield values
        with suppress(ValueError):  # lists of different lengths
            yield np.array(values)


@every_case
def test_integers_that_no_float_holds_and_booleans_count_or_fail_whatever_waits(
    case: Case[Any],
) -> None:
    rows = drawn_rows(case, 2)
    good, single = dict(case.columns(rows)), dict(case.columns(rows[:1]))
    for name, column in good.items():
        for first in (column, with_number(column, 1), with_number(column, 0.5)):
            waiting, counted = case.empty.empty(), case.empty.empty()
            if not is_counted(counted, {**good, name: first}, waits=False):
                continue
            waiting.update(**{**good, name: first})
            for number in HOSTILE:
                for batch in (single, good) if number is True else (single,):
                    for form in numbers_in_two_forms(batch[name], number):
                        hostile = {**batch, name: form}
                        expected = is_counted(counted, hostile, waits=False)
                        assert is_counted(waiting, hostile, waits=True) == expected, hostile
            assert waiting.to_bytes() == counted.to_bytes(), name


# -- ids, keys and other columns that may be dictionary-encoded ------------------------------------
def coded(case: Case[Any], n: int) -> Iterator[tuple[str, Given, list[Any]]]:
    """The columns that a metric takes as codes too: their name, all columns, and theirs."""
    good = dict(case.columns(drawn_rows(case, n)))
    for name, column in good.items():
        if isinstance(column, list):
            codes = DictionaryColumn(np.arange(len(column)), tuple(column))
            if is_checked(case, {**good, name: codes}):
                yield name, good, column


def test_columns_that_may_be_codes_are_those_of_ids_keys_and_names() -> None:
    names = {name for case in first_of_each_class(CASES) for name, *_ in coded(case, 6)}
    assert names >= {
        *("arms", "event_ids", "experiments", "groups", "ids", "keys", "kinds"),
        *("labels", "outcomes", "teams", "units", "variant"),
    }


@every_case
def test_codes_that_are_no_indices_into_their_values_are_refused(case: Case[Any]) -> None:
    for name, good, column in coded(case, 6):  # of which joins read some
        n = len(column)
        for values in (tuple(column), (*column, *column * 4)):  # of a batch, and of more
            for codes in (
                np.full(n, -1),
                np.full(n, -1, np.int8),
                np.full(n, len(values)),
                np.full(n, 2**63, np.uint64),
                np.arange(float(n)),
                np.arange(n)[:, None],
                np.array(0),
            ):
                for state in (case.empty.empty(), case.fed(drawn_rows(case, 6))):
                    bad = {**good, name: DictionaryColumn(codes, values)}
                    assert not is_counted(state, bad, waits=True), bad
                assert state.to_bytes() == case.fed(drawn_rows(case, 6)).to_bytes()


@every_case
def test_a_boolean_that_is_no_id_as_an_object_is_none_in_any_form(case: Case[Any]) -> None:
    for name, good, column in coded(case, 2):
        ids = [id_ for id_ in (column[0], 5) if is_checked(case, {**good, name: [id_, id_]})]
        for first in ids:
            objects = [np.array([first, bad], object) for bad in (True, 1.5)]
            if any(is_checked(case, {**good, name: column}) for column in objects):
                continue  # labels, keys, or columns of other events
            for pair in (
                *([True, True], (first, True), [first, np.True_], [1, True]),
                *(np.array([True, True]), np.array([first, True], object)),
                DictionaryColumn(np.array([0, 1]), (first, True)),
            ):
                state, others = case.empty.empty(), case.empty.empty()
                for waiting in (None, *ids):
                    if waiting is not None:
                        state.update(**{**good, name: [waiting, waiting]})
                        others.update(**{**good, name: [waiting, waiting]})
                    assert not is_counted(state, {**good, name: pair}, waits=True), pair
                assert state.to_bytes() == others.to_bytes()
