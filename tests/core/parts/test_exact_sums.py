"""A table of exact sums is so many exact sums, whichever path the values take."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import GroupedAUC, InputError, StateError
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.accumulator import WithoutRows, unlimited
from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.parts.exact_sums import ExactSums, ExactSumsColumn, add_whole, require_whole

Floats = NDArray[np.float64]
CELLS = 5


def samples() -> dict[str, Floats]:
    rng = np.random.default_rng(3)
    n = 70_000
    return {
        "probabilities": rng.random(n),
        "of both signs": rng.standard_normal(n),
        "negative": -rng.random(n),
        "float32": rng.random(n, np.float32).astype(np.float64),
        "zeros": np.zeros(n),
        "whole": rng.integers(0, 1000, n).astype(np.float64),
        "of all sizes": np.ldexp(rng.standard_normal(n), rng.integers(-900, 900, n)),
        "a tiny one late": np.where(np.arange(n) == n - 1, 5e-324, 0.75),
    }


def empty(width: int = 1) -> ExactSumsColumn:
    return ExactSums(CELLS).empty(None, width)  # type: ignore[arg-type]


def encoded(column: ExactSumsColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


@pytest.mark.parametrize("name", samples())
def test_each_cell_has_the_exact_sum_of_its_values(name: str) -> None:
    values = samples()[name]
    cells = np.random.default_rng(4).integers(0, CELLS, len(values))
    column = empty()
    column.add(values, cells)
    few = slice(0, 3000)
    small = empty()
    small.add(values[few], cells[few])
    for i, found in enumerate(small.fractions()):
        assert found == sum(map(Fraction, values[few][cells[few] == i].tolist()), Fraction(0))
    split = empty()
    for piece in (slice(100, None), slice(0, 100)):
        split.add(values[piece], cells[piece])
    assert encoded(split) == encoded(column)
    slotted = empty(3)
    slotted.add(values, cells, np.full(len(values), 1))
    assert encoded(slotted.take(np.array([1]))) == encoded(column)
    assert slotted.fractions(0) == (Fraction(0),) * CELLS


def test_states_widen_merge_and_come_back_from_bytes() -> None:
    one, two = empty(), empty(2)
    one.add(np.array([0.5, 0.25]), np.array([1, 4]))
    two.add(np.array([1.0, 2.0, 0.1]), np.array([0, 1, 4]), np.array([0, 1, 1]))
    one.widen(3)
    one.merge(two, np.array([2, 0]))
    tenth = Fraction(0.1)
    zero = Fraction(0)
    assert one.fractions(0) == (zero, Fraction(5, 2), zero, zero, Fraction(1, 4) + tenth)
    assert one.fractions(1) == (zero,) * 5
    assert one.fractions(2) == (Fraction(1), zero, zero, zero, zero)
    reader = Reader(encoded(one))
    back = ExactSums(CELLS).decode(None, 3, reader)  # type: ignore[arg-type]
    reader.finish()
    assert back.width == 3 and encoded(back) == encoded(one)
    assert back.total_count == 0 and back.nbytes > 0


def test_a_table_without_cells_has_as_many_states_and_no_bytes_of_sums() -> None:
    column = ExactSums(0, CELLS).empty(None, 2)  # type: ignore[arg-type]
    column.merge(column.take(np.array([1, 0])), np.array([0, 1]))
    column.widen(4)
    assert (
        column.width == 4 and column.fractions(3) == () and column.nbytes == column.total_count == 0
    )
    reader = Reader(encoded(column))
    back = ExactSums(0).decode(None, 4, reader)  # type: ignore[arg-type]
    reader.finish()
    assert back.width == 4 and encoded(back) == encoded(column) == encoded(empty(0))


def test_infinities_are_of_their_cell_and_state() -> None:
    column = empty(2)
    column.add(np.array([np.inf, 1.0]), np.array([3, 3]), np.array([1, 0]))
    assert not column.finite(3, 1) and column.finite(3) and column.finite(2, 1)


def table(cells: int) -> ExactSumsColumn:
    return ExactSumsColumn(ExactSumColumn(cells), cells, 1)


def test_integers_of_any_size_are_added_exactly() -> None:
    random, sums, total = Random(5), table(3), [0, 0, 0]
    for _ in range(50):
        values = [random.getrandbits(random.choice((0, 1, 53, 54, 160, 900))) for _ in range(3)]
        add_whole(sums, values)
        total = [a + b for a, b in zip(total, values, strict=True)]
    assert [int(value) for value in sums.fractions()] == total
    require_whole(sums)


@pytest.mark.parametrize("bad", [0.5, -1.0, float("inf")])
def test_other_numbers_are_damage(bad: float) -> None:
    sums = table(2)
    sums.add(np.array([bad]), np.array([1]))
    with pytest.raises(StateError, match="no whole numbers"):
        require_whole(sums)


def test_the_refusals_say_what_to_do() -> None:
    users = GroupedAUC()
    sealed = seal(users, Sealing("user", 1, "xxhash64", "today"))
    assert isinstance(sealed, WithoutRows)
    for refused in (sealed.update, sealed.check, users._totals().update):
        with pytest.raises(InputError, match="compute the whole scope again"):
            refused(labels=[1])
    assert "leave max_rows out" in str(unlimited(GroupedAUC(max_rows=3)))
