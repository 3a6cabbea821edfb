"""A row is counted or refused for itself: alone, after another, and beside it in one column, of
whatever type numpy makes the two."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from streammetrics import BinaryConfusion, InputError
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import first_of_each_class
from tests.weighted_cases import WEIGHTED

_HOLDS: Final = 2**53  # up to which float64 holds every integer
_TIME: Final = np.datetime64("2026-01-01")
NEIGHBOURS: Final[list[Any]] = [0, 0.5, _HOLDS + 1, 2.0**53, np.uint64(1)]
VALUES: Final[list[Any]] = [
    *(*NEIGHBOURS, True, -_HOLDS - 1, 2**54, 2**63, 10**400, np.nan, np.inf, None, []),
    *(np.int64(1), np.int64(_HOLDS + 1), np.uint64(_HOLDS + 1), np.longdouble(1)),
    *(Decimal("0.5"), Fraction(1, 2), np.timedelta64(1, "s"), np.timedelta64(1, "D"), _TIME),
]
Cells = list[Any]


def as_list(cells: Cells) -> object:
    return cells


def as_objects(cells: Cells) -> object:
    column = np.empty(len(cells), object)
    for i, cell in enumerate(cells):
        column[i] = cell
    return column


def as_arrays(cells: Cells) -> object:
    """Each list as the array that numpy makes of it alone."""
    return [np.array(cell) if isinstance(cell, list | tuple) else cell for cell in cells]


def with_value(cells: Cells, value: Any) -> Cells:
    """The cells with another value in the first, or first in it if it is a list."""
    first = cells[0]
    if isinstance(first, list | tuple) and not isinstance(value, list):
        value = [value, *first[1:]]
    return [value, *cells[1:]]


def columns_of_rows(case: Case[Any], rows: Sequence[Any]) -> Iterator[tuple[str, Cells, Cells]]:
    """The columns that are those of both rows one after the other."""
    first, second, columns = (case.columns(some) for some in (rows[:1], rows[1:], rows))
    for name, column in columns.items():
        if isinstance(column, list) and first[name] and second[name]:
            cells: list[Cells] = [list(first[name]), list(second[name])]  # type: ignore[call-overload]
            if column == [*cells[0], *cells[1]]:
                yield name, *cells


def outcome(state: Any, columns: dict[str, object]) -> bytes | None:
    """The bytes after an update, or None if it is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            state.update(**columns)
        except InputError:
            return None
        return bytes(state.to_bytes())


def two_rows(case: Case[Any]) -> Sequence[Any]:
    """Rows of a case that are not its simplest ones."""
    drawn: list[Sequence[Any]] = []

    @settings(max_examples=5, phases=[Phase.generate], derandomize=True)
    @given(rows=st.lists(case.row, min_size=2, max_size=2))
    def draw(rows: Sequence[Any]) -> None:
        drawn.append(rows)

    draw()
    return drawn[-1]


COUNTED = [
    *first_of_each_class(CASES),
    *(case for case in WEIGHTED if isinstance(case.empty, BinaryConfusion)),
]


@pytest.mark.parametrize("case", COUNTED, ids=str)
def test_a_row_is_counted_or_refused_beside_others_as_it_is_alone(case: Case[Any]) -> None:
    rows = two_rows(case)
    others = [{**case.columns(some)} for some in (rows[:1], rows[1:], rows)]
    tables = [(name, *cells) for name, *cells in columns_of_rows(case, rows)]
    for form, (name, *cells) in product((as_list, as_objects, as_arrays), tables):
        if form is as_arrays and not isinstance(cells[0][0], list | tuple):
            continue
        alone: dict[tuple[int, int], bytes | None] = {}
        pairs = {*product(range(len(VALUES)), range(len(NEIGHBOURS)))}
        for i, j in sorted(pairs | {(w, v) for v, w in pairs}):
            pair = with_value(cells[0], VALUES[i]), with_value(cells[1], VALUES[j])
            for row, index in enumerate((i, j)):
                if (row, index) not in alone:
                    columns = {**others[row], name: form(pair[row])}
                    alone[row, index] = outcome(case.empty.empty(), columns)
            first, second = alone[0, i], alone[1, j]
            state = case.empty.empty()
            together = outcome(state, {**others[2], name: form([*pair[0], *pair[1]])})
            what = f"{name}, {form.__name__}: {pair[0]!r} and {pair[1]!r}"
            if first is None or second is None:
                assert together is None, what
                continue
            expected = (state.from_bytes(first) + state.from_bytes(second)).to_bytes()
            after = case.empty.empty()
            after.update(**{**others[0], name: form(pair[0])})
            assert outcome(after, {**others[1], name: form(pair[1])}) == expected, what
            if together is not None or (VALUES[i] is _TIME) == (VALUES[j] is _TIME):
                assert together == expected, what
