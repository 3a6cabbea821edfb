"""Declared inputs: what passes a validator, `check` takes as it is, whole or in parts."""

from __future__ import annotations

from fractions import Fraction
from inspect import signature
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import (
    GroupedAUC,
    InputError,
    SettingsError,
    registry,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.buffer import Buffer, Placed
from streammetrics.core.ids.id_hashes import hash_ids
from streammetrics.core.inputs import Binary, Inputs, Real, Weights
from streammetrics.core.parts.counts import Counts
from streammetrics.core.validators import VALIDATORS, Validator, strongest, validated
from tests.cases import CASES

ALL: Final = list(Validator)
NUMBERS: Final = [validator for validator in Validator if validator is not Validator.INTEGERS]
# Columns that are just what a validator says, at its bounds.
MOST: Final[dict[Validator, list[NDArray[Any]]]] = {
    Validator.INTEGERS: [np.array([0, -(2**63), 2**63 - 1, 7])],
    Validator.NUMBERS: [
        np.array([-np.inf, np.inf, -0.0, 5e-324, 1e308]),
        np.array([np.inf, -3.5], np.float32),
        np.array([0, -(2**53), 2**53]),
        np.array([0, 255], np.uint8),
        np.array([2**53, 0], np.uint64),
    ],
    Validator.FINITE: [np.array([1e308, -1e308, -0.0]), np.array([-3, 4], np.int16)],
    Validator.AMOUNTS: [
        np.array([0.0, 1.7976931348623157e308, 5e-324]),
        np.array([0.0, 3.4028234663852886e38], np.float32),
        np.array([0, 2**53]),
    ],
    Validator.UNIT: [
        np.array([0.0, 1.0, 5e-324]),
        np.array([1, 1e-45, 0], np.float32),
        np.array([-0.0, 1.0]),
    ],
    Validator.BINARY: [
        np.array([0, 1, 1], np.uint8),
        np.array([1, 0]),
        np.array([True, False]),
        np.array([0.0, 1.0, -0.0]),
        np.array([1.0, 0.0], np.float32),
    ],
}
KINDS: Final = [np.dtype(kind) for kind in ("?", "u1", "i1", "i8", "u8", "f4", "f8", ">f8")]
SURE: Final = {  # one metric of each class and set of validators
    f"{type(metric).__name__} {[*map(int, metric._validators.values())]}": metric
    for metric in (case.empty for case in CASES)
    if metric._validators and metric._validators.keys() <= metric.arguments().keys()
}


def buffered_bytes(validator: Validator, kind: Any, column: Any) -> bytes | None:
    """The bytes that a buffer keeps of a column where a row of this type is pending."""
    buffer = Buffer()
    batch = Batch(1, {"a": np.zeros(1, kind)})
    assert buffer.put(batch, {"a": VALIDATORS[validator]}) is Placed.PENDING
    if not buffer.append(column):
        return None
    return buffer.take_all().a[1:].tobytes()


def test_columns_of_another_kind_are_left_to_the_check() -> None:
    for validator, column in (
        (Validator.INTEGERS, np.array([1.0])),
        (Validator.INTEGERS, np.array([1], np.uint64)),
        (Validator.INTEGERS, np.array([1]).astype(">i8")),
        (Validator.INTEGERS, hash_ids(["a"])),
        (Validator.NUMBERS, np.array([1.0, np.nan])),
        (Validator.NUMBERS, np.array([np.nan, 1.0], np.float32)),
        (Validator.NUMBERS, np.array([1.0], np.float16)),
        (Validator.NUMBERS, np.array([1.0], np.longdouble)),
        (Validator.NUMBERS, np.array(["1"])),
        (Validator.NUMBERS, np.array([0, 2**53 + 1])),
        (Validator.NUMBERS, np.array([0, -(2**53) - 1])),
        (Validator.NUMBERS, np.array([2**53 + 1], np.uint64)),
        (Validator.NUMBERS, np.array([1], object)),
        (Validator.NUMBERS, np.array([1], "m8[s]")),
        (Validator.FINITE, np.array([0.0, np.inf])),
        (Validator.FINITE, np.array([-np.inf, 0.0], np.float32)),
        (Validator.FINITE, np.array([0.0, np.nan])),
        (Validator.AMOUNTS, np.array([0.5, -0.0])),
        (Validator.AMOUNTS, np.array([0.5, np.inf])),
        (Validator.AMOUNTS, np.array([0.5, np.inf], np.float32)),
        (Validator.AMOUNTS, np.array([np.nan, 0.5])),
        (Validator.AMOUNTS, np.array([0.5, -5e-324])),
        (Validator.AMOUNTS, np.array([0, -1])),
        (Validator.UNIT, np.array([0.5, np.nextafter(1, 2)])),
        (Validator.UNIT, np.array([0.5, -5e-324])),
        (Validator.UNIT, np.array([0.5, np.nan], np.float32)),
        (Validator.UNIT, np.array([0, 1])),
        (Validator.BINARY, np.array([0, 2], np.uint8)),
        (Validator.BINARY, np.array([0, -1])),
        (Validator.BINARY, np.array([0.0, 0.5])),
        (Validator.BINARY, np.array([1.0, np.nan])),
        (Validator.BINARY, np.array(["0", "1"])),
        (Validator.BINARY, np.ones(1, np.longdouble)),
    ):
        assert validated(column, validator) is None
        for kind in (column.dtype, *KINDS):
            assert buffered_bytes(validator, kind, column) is None
    for validator in ALL:  # and so is what is no column of rows
        for value in (
            *(None, "labels", 1, {0: 1}, range(2), [], [[0], [1]], [[0], [1, 2]], ["0"], [None]),
            *([0.5, 2**53 + 1], [np.float32(1), np.int64(-(2**53))], [0, 2**64], hash_ids(["a"])),
            *(np.zeros(0, np.int64), np.zeros((2, 1), np.int64)),
        ):
            assert validated(value, validator) is None
            assert buffered_bytes(validator, np.int64, value) is None
        for kind, shape in product(KINDS, [(0,), (2, 1), ()]):
            for dtype in (kind, np.dtype(np.uint8)):
                assert buffered_bytes(validator, dtype, np.zeros(shape, kind)) is None


def test_several_validators_are_the_strongest_unless_one_is_of_ids() -> None:
    assert strongest({Validator.UNIT, Validator.NUMBERS}) is Validator.UNIT
    assert strongest({Validator.FINITE, Validator.BINARY, Validator.UNIT}) is Validator.BINARY
    assert strongest({Validator.INTEGERS}) is Validator.INTEGERS
    assert strongest({Validator.INTEGERS, Validator.BINARY}) is None


def drawn(validator: Validator, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """A column that passes a validator, of any that the strongest ones do."""
    same = [validator]
    kinds = same if validator is Validator.INTEGERS else [k for k in NUMBERS if k >= validator]
    among = [(column, kind) for kind in kinds for column in MOST[kind]]
    column, kind = among[rng.integers(len(among))]
    array: NDArray[Any] | None = validated(rng.choice(column, n), kind)
    assert array is not None
    return array


def test_the_bytes_of_what_a_validator_finds_are_kept() -> None:
    for validator, n in product(ALL, (1, 128, 129)):
        for column in MOST[validator]:
            rows = np.resize(column, n)
            array = validated(rows, validator)
            assert array is not None
            for form in (rows, np.repeat(rows, 2)[::2]):
                assert buffered_bytes(validator, array.dtype, form) == array.tobytes()


def test_a_list_is_validated_as_the_array_of_its_numbers() -> None:
    for validator in ALL:
        for column in MOST[validator]:
            numbers = column.tolist()
            wide = column.astype(np.float64 if column.dtype.kind == "f" else np.int64)
            expected = validated(wide, validator)
            for form in (numbers, tuple(numbers)):
                array = validated(form, validator)
                assert (array is None) == (expected is None)
                if array is not None and expected is not None:
                    assert array.dtype is expected.dtype
                    assert array.tobytes() == expected.tobytes()
                    assert buffered_bytes(validator, array.dtype, form) == expected.tobytes()


def test_a_column_of_another_type_than_is_pending_is_kept_only_as_float64_of_integers() -> None:
    for kind, validator in product(KINDS, ALL):
        for column in MOST[validator]:
            array = validated(column, validator)
            assert array is not None
            expected = array.tobytes() if array.dtype is kind else None
            if kind is np.dtype(np.float64) and array.dtype.kind in "iu" and array.itemsize > 1:
                expected = array.astype(np.float64).tobytes()
            assert buffered_bytes(validator, kind, column) == expected


@pytest.mark.parametrize("name", SURE)
def test_what_is_appended_is_bit_for_bit_what_the_check_makes(name: str) -> None:
    metric = SURE[name]
    rng = np.random.default_rng(2)
    required = [name for name, needed in metric.arguments().items() if needed]
    taken = 0
    for i in range(80):
        names = required if i % 2 else list(metric._validators)
        first, second = (
            {name: drawn(metric._validators[name], n, rng) for name in names} for n in (3, 9)
        )
        state = metric.empty()
        for section in (slice(0, 1), slice(1, 3)):
            state.update(**{name: column[section] for name, column in first.items()})
        arguments: dict[str, Any] = (
            {k: c.tolist() for k, c in second.items()} if i % 3 else {**second}
        )
        if state._buffer.append(*arguments.values()):
            taken += 1
            pending, checked = state._buffer.take_all(), metric.check(**arguments)
            assert (pending.n, pending.total) == (12, 12)
            assert pending.columns.keys() == checked.columns.keys()
            for name in checked.columns:
                pending_column, checked_column = getattr(pending, name), getattr(checked, name)
                assert pending_column.dtype is checked_column.dtype
                assert pending_column[3:].tobytes() == checked_column.tobytes()
    assert taken > 4


def test_rows_that_weigh_other_units_and_classes_with_names_are_for_the_check_alone() -> None:
    kinds = {type(metric) for metric in SURE.values()}
    for setting, value in (("weight_unit", Fraction(1, 10)), ("positive", 2)):
        having = [kind for kind in kinds if setting in kind._settings]
        assert len(having) > 2
        for kind in having:
            assert not registry.metric(kind.__name__, {setting: value})._validators
    for ids in ("hashed", "exact"):
        assert not GroupedAUC(ids=ids)._validators


class Hits(Accumulator, schema="test-hits/1"):
    """Rows by label."""

    inputs = Inputs(labels=Binary(), scores=Real(), weights=Weights())
    weight_unit: Fraction | int | str = 1
    round_weights: bool = False
    counts = Counts(2)
    rounded = Counts("round_weights")

    def _accumulate(self, batch: Batch, slots: Any) -> None:
        self.counts.add(batch.labels.astype(np.intp), slots, batch.quanta)

    def _accumulate_rounded(self, batch: Batch, slots: Any) -> None:
        self.rounded.add(np.zeros(batch.n, np.intp), slots)

    def compute(self) -> tuple[int, ...]:
        self._flush()
        return tuple(self.counts.dense().tolist() + self.rounded.dense().tolist())


def test_a_metric_gets_quanta_of_at_least_one_and_rounded_rows_apart() -> None:
    metric = Hits(weight_unit="1/2", round_weights=True)
    metric.update([1, 1, 0, 0], [0, 0, 0, 0], weights=[1.5, 0.1, 0, 0.7])
    assert metric.compute() == (1, 3, 2)
    plain = Hits()
    plain.update([1, 0, 0], [0, 0, 0], weights=[2, 0, 1])
    plain.update([1, 0], [0, 0])
    assert plain.compute() == (2, 3)


def test_settings_of_weights_are_checked_where_weights_are_declared() -> None:
    assert Hits(weight_unit="1/2").weight_unit == Fraction(1, 2)
    with pytest.raises(SettingsError, match=r"Hits\.weight_unit"):
        Hits(weight_unit=0)
    with pytest.raises(SettingsError, match=r"Hits\.round_weights"):
        Hits(round_weights=1)  # type: ignore[arg-type]


def test_a_metric_without_settings_of_weights_takes_whole_weights() -> None:
    class Heavy(Accumulator, schema="test-heavy/1"):
        inputs = Inputs(labels=Binary(), weights=Weights())
        counts = Counts(2)

        def _accumulate(self, batch: Batch, slots: Any) -> None:
            self.counts.add(batch.labels.astype(np.intp), slots, batch.quanta)

        def compute(self) -> list[int]:
            self._flush()
            totals: list[int] = self.counts.dense().tolist()
            return totals

    metric = Heavy()
    metric.update([1, 0, 1], weights=[2, 0, 3])
    metric.update([0])
    assert metric.compute() == [1, 5]
    with pytest.raises(InputError, match="multiples of weight_unit=1"):
        metric.update([1], weights=[0.5])


def test_arguments_are_those_that_are_declared() -> None:
    assert Hits().arguments() == {"labels": True, "scores": True, "weights": False}
    assert str(signature(Hits.update)) == "(self, labels, scores, *, weights=None)"
    assert str(signature(Hits.check)) == "(self, labels, scores, *, weights=None)"
    with pytest.raises(TypeError, match="expected the arguments labels, scores, got no scores"):
        Hits().update([1])


def test_a_metric_with_a_check_of_its_own_is_asked_for_every_batch() -> None:
    class Careful(Accumulator, schema="test-careful/1"):
        inputs = Inputs(scores=Real())
        counts = Counts(1)

        def check(self, scores: Any) -> Batch:
            if len(scores) > 2:
                raise InputError(expected="few", got="many", where="scores", hint="pass fewer")
            return self._check({"scores": scores})

        def _accumulate(self, batch: Batch, slots: Any) -> None:
            self.counts.add(np.zeros(batch.n, np.intp), slots)

        def compute(self) -> int:
            self._flush()
            return int(self.counts.dense()[0])

    metric = Careful()
    for _ in range(3):
        metric.update(np.ones(2))
    with pytest.raises(InputError):
        metric.update(np.ones(3))
    assert metric.compute() == 6


def test_a_name_that_means_something_else_is_no_input() -> None:
    for name in ("self", "class", "two words", "n", "columns", "take", "quanta"):
        with pytest.raises(TypeError, match=f"no input can be called {name!r}"):
            Inputs(**{name: Real()})
    with pytest.raises(TypeError, match="called weights"):
        Inputs(labels=Binary(), heavy=Weights())
