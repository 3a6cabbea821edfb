"""One look at a column for several metrics: what passes it, `check` takes, whole or in parts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    Ratio,
    Regression,
    Units,
    registry,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.ids.id_hashes import hash_ids
from streammetrics.core.looks import Look, joined, keeper, look_at
from tests.cases import CASES

ALL: Final = list(Look)
NUMBERS: Final = [Look.NUMBERS, Look.FINITE, Look.UNIT, Look.BINARY]
# Columns that are just what a look says, at its ends.
MOST: Final[dict[Look, list[NDArray[Any]]]] = {
    Look.INTEGERS: [np.array([0, -(2**63), 2**63 - 1, 7])],
    Look.NUMBERS: [
        np.array([-np.inf, np.inf, -0.0, 5e-324, 1e308]),
        np.array([np.inf, -3.5], np.float32),
        np.array([0, -(2**53), 2**53]),
        np.array([0, 255], np.uint8),
        np.array([2**53, 0], np.uint64),
    ],
    Look.FINITE: [np.array([1e308, -1e308, -0.0]), np.array([-3, 4], np.int16)],
    Look.UNIT: [np.array([0.0, 1.0, 5e-324]), np.array([1, 1e-45, 0], np.float32)],
    Look.BINARY: [
        np.array([0, 1, 1], np.uint8),
        np.array([1, 0]),
        np.array([True, False]),
        np.array([0.0, 1.0, -0.0]),
        np.array([1.0, 0.0], np.float32),
    ],
}
KINDS: Final = [np.dtype(kind) for kind in ("?", "u1", "i1", "i8", "u8", "f4", "f8", ">f8")]
SURE: Final = {
    repr(metric): metric
    for metric in (case.empty for case in CASES)
    if metric._looks and metric._looks.keys() <= metric.arguments().keys()
}


@pytest.mark.parametrize("look", ALL)
def test_a_column_passes_the_look_that_it_just_meets_and_keeps_its_values(look: Look) -> None:
    for column in MOST[look]:
        for some in (column, column[::-1], np.repeat(column, 2)[::2]):
            found = look_at(some, look)
            assert found is not None
            assert found.tolist() == some.tolist()


def test_labels_become_one_type() -> None:
    for column in MOST[Look.BINARY]:
        found = look_at(column, Look.BINARY)
        assert found is not None
        assert found.dtype == np.uint8


@pytest.mark.parametrize(
    ("look", "column"),
    [
        (Look.INTEGERS, np.array([1.0])),
        (Look.INTEGERS, np.array([1], np.uint64)),
        (Look.INTEGERS, np.array([1]).astype(">i8")),
        (Look.INTEGERS, hash_ids(["a"])),
        (Look.NUMBERS, np.array([1.0, np.nan])),
        (Look.NUMBERS, np.array([np.nan, 1.0], np.float32)),
        (Look.NUMBERS, np.array([1.0], np.float16)),
        (Look.NUMBERS, np.array([1.0], np.longdouble)),
        (Look.NUMBERS, np.array(["1"])),
        (Look.NUMBERS, np.array([0, 2**53 + 1])),
        (Look.NUMBERS, np.array([0, -(2**53) - 1])),
        (Look.NUMBERS, np.array([2**53 + 1], np.uint64)),
        (Look.NUMBERS, np.array([1], object)),
        (Look.NUMBERS, np.array([1], "m8[s]")),
        (Look.FINITE, np.array([0.0, np.inf])),
        (Look.FINITE, np.array([-np.inf, 0.0], np.float32)),
        (Look.FINITE, np.array([0.0, np.nan])),
        (Look.UNIT, np.array([0.5, -0.0])),
        (Look.UNIT, np.array([0.5, np.nextafter(1, 2)])),
        (Look.UNIT, np.array([0.5, -5e-324])),
        (Look.UNIT, np.array([0.5, np.nan], np.float32)),
        (Look.UNIT, np.array([0, 1])),
        (Look.BINARY, np.array([0, 2], np.uint8)),
        (Look.BINARY, np.array([0, -1])),
        (Look.BINARY, np.array([0.0, 0.5])),
        (Look.BINARY, np.array([1.0, np.nan])),
        (Look.BINARY, np.array(["0", "1"])),
    ],
    ids=range(27),
)
def test_a_column_that_is_something_else_does_not(look: Look, column: NDArray[Any]) -> None:
    assert look_at(column, look) is None
    for kind in (column.dtype, *KINDS):
        assert keeper(look, kind)(column) is None


@pytest.mark.parametrize("look", ALL)
def test_what_is_no_array_of_one_dimension_with_a_row_is_left_to_the_check(look: Look) -> None:
    for column in ([0, 1], None, "labels", 1, np.zeros(0, np.int64), np.zeros((2, 1), np.int64)):
        assert look_at(column, look) is None
    for kind, shape in product(KINDS, [(0,), (2, 1), ()]):
        for held in (kind, np.dtype(np.uint8)):
            assert not keeper(look, held)(np.zeros(shape, kind))


def test_each_kind_of_numbers_is_all_of_those_before_it() -> None:
    for at, look in enumerate(NUMBERS):
        for column, before in product(MOST[look], NUMBERS[:at]):
            found = look_at(column, look)
            assert found is not None
            assert look_at(found, before) is not None or before is Look.UNIT  # of integers


def test_several_looks_are_the_strongest_unless_one_is_of_ids() -> None:
    assert joined({Look.UNIT, Look.NUMBERS}) is Look.UNIT
    assert joined({Look.FINITE, Look.BINARY, Look.UNIT}) is Look.BINARY
    assert joined({Look.INTEGERS}) is Look.INTEGERS
    assert joined({Look.INTEGERS, Look.BINARY}) is None


def drawn(look: Look, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """A column that passes a look, of any that the strongest ones do."""
    kinds = [look] if look is Look.INTEGERS else [k for k in NUMBERS if k >= look]
    among = [(column, kind) for kind in kinds for column in MOST[kind]]
    column, kind = among[rng.integers(len(among))]
    found: NDArray[Any] | None = look_at(rng.choice(column, n), kind)
    assert found is not None
    return found


@pytest.mark.parametrize("metric", SURE.values(), ids=SURE)
def test_what_passes_all_looks_of_a_metric_is_taken_by_it_whole_and_in_parts(
    metric: Accumulator,
) -> None:
    rng = np.random.default_rng(1)
    required = [name for name, needed in metric.arguments().items() if needed]
    for i in range(60):
        names = required if i % 2 else list(metric._looks)
        columns = {name: drawn(metric._looks[name], 7, rng) for name in names}
        rows = metric.check(**columns)
        assert (rows.n, rows.mass) == (7, 7)
        whole, parts, lists = metric.empty(), metric.empty(), metric.empty()
        whole.update(**columns)
        for at in (slice(0, 3), slice(3, 4), slice(4, 7)):
            parts.update(**{name: column[at] for name, column in columns.items()})
            lists.update(**{name: column[at].tolist() for name, column in columns.items()})
        assert whole == parts == lists


@pytest.mark.parametrize("n", [1, 128, 129])
@pytest.mark.parametrize("look", ALL)
def test_what_is_kept_of_a_column_are_the_bytes_of_what_the_look_finds(look: Look, n: int) -> None:
    for column in MOST[look]:
        some = np.resize(column, n)
        found = look_at(some, look)
        assert found is not None
        for one in (some, np.repeat(some, 2)[::2]):
            assert keeper(look, found.dtype)(one) == found.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_another_type_than_waits_is_kept_only_as_float64_of_integers(
    kind: np.dtype[Any],
) -> None:
    for look in ALL:
        for column in MOST[look]:
            found = look_at(column, look)
            assert found is not None
            kept = found.tobytes() if found.dtype is kind else None
            if kind is np.dtype(np.float64) and found.dtype.kind in "iu" and found.itemsize > 1:
                kept = found.astype(np.float64).tobytes()
            assert keeper(look, kind)(column) == kept


@pytest.mark.parametrize("metric", SURE.values(), ids=SURE)
def test_what_waits_by_looks_is_bit_for_bit_what_the_check_makes(metric: Accumulator) -> None:
    rng = np.random.default_rng(2)
    required = [name for name, needed in metric.arguments().items() if needed]
    taken = 0
    for i in range(300):
        names = required if i % 2 else list(metric._looks)
        first, then = ({name: drawn(metric._looks[name], n, rng) for name in names} for n in (3, 9))
        state = metric.empty()
        for at in (slice(0, 1), slice(1, 3)):
            state.update(**{name: column[at] for name, column in first.items()})
        if state._stage.take_looked(*then.values()):
            taken += 1
            waits = state._stage.empty()
            assert (waits.n, waits.mass) == (12, 12)
            for here, there in zip(waits.columns, metric.check(**then).columns, strict=True):
                assert (here is None) is (there is None)
                if isinstance(here, np.ndarray) and isinstance(there, np.ndarray):
                    assert here.dtype is there.dtype
                    assert here[3:].tobytes() == there.tobytes()
    # Rows whose weights may be rounded have columns of their own, which no look makes.
    assert (taken == 0) if metric.settings().get("round_weights") else (taken > 30)


def test_rows_that_weigh_other_units_and_classes_with_names_are_for_the_check_alone() -> None:
    kinds = {type(metric) for metric in SURE.values()}
    assert kinds >= {HistogramAUC, ExactAUC, BinaryConfusion, Calibration, GroupedAUC}
    assert kinds >= {Ratio, Regression, Units}
    for kind in kinds - {Ratio, Units}:
        assert not registry.metric(kind.__name__, {"weight_unit": Fraction(1, 10)})._looks
    for kind in (HistogramAUC, ExactAUC, BinaryConfusion):
        assert not registry.metric(kind.__name__, {"positive": 2})._looks
    for ids in ("hashed", "exact"):
        assert not GroupedAUC(ids=ids)._looks
