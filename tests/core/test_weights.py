"""Weights as whole numbers of a unit: exact for every float, and refused with what to do."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import BinaryConfusion
from streammetrics.core.batch import QUANTA, Batch
from streammetrics.core.errors import InputError, SettingsError
from streammetrics.core.weights import (
    ONE,
    add_surplus,
    rounded_rows,
    rounded_units,
    unit_of,
    units_of,
    weigh,
    weighed_rows,
)

TENTH = Fraction(1, 10)


def weighted(
    column: NDArray[Any], weights: Any, unit: Fraction = ONE, *, rounding: bool = False
) -> Batch:
    batch = Batch(len(column), {"labels": column})
    weigh(batch, weights, unit, rounding=rounding)
    return batch


def units(weights: Any, unit: Fraction = ONE) -> list[int]:
    unit_counts = units_of(weights, len(weights), unit)
    assert unit_counts is not None and unit_counts.dtype == np.int64
    return unit_counts.tolist()


def by_fractions(weight: np.floating, unit: Fraction) -> int | None:
    """The nearest number of units, or None where it is further off than half an ulp."""
    exact = Fraction(float(weight))
    n = round(exact / unit)
    fits = 2 * abs(exact - n * unit) <= Fraction(float(np.spacing(weight)))
    return n if fits and n < 1 << 63 else None


def test_a_float_counts_iff_it_is_within_half_an_ulp_of_a_multiple() -> None:
    random, tallies = Random(5), {True: 0, False: 0}
    for _ in range(1200):
        kind = random.choice([np.float32, np.float64])
        top = random.choice([1, 1, 3, 7, random.randint(1, 10 ** random.randint(1, 17))])
        bottom = random.choice([1, 2, 3, 10, 100, random.randint(1, 10 ** random.randint(1, 17))])
        unit = Fraction(top, bottom)
        weight = kind(float(random.randint(0, 10 ** random.randint(0, 17)) * unit))
        for _ in range(random.choice([0, 0, 1, 2])):
            weight = np.nextafter(weight, kind(random.choice([0, np.inf])))
        expected = by_fractions(weight, unit)
        tallies[expected is not None] += 1
        if expected is None:
            with pytest.raises(InputError):
                units(np.array([weight]), unit)
        else:
            assert units(np.array([weight]), unit) == [expected], (weight, unit)
            # Beside others, and beside one that is not the float nearest to its multiple.
            assert units(np.array([weight, 0, weight], kind), unit) == [expected, 0, expected]
    assert min(tallies.values()) > 200


def test_a_float32_below_the_middle_is_no_multiple_that_is_just_above_it() -> None:
    """The float64 of the multiple is that middle, which as float32 is this weight."""
    bottom = 2943378407
    for weight in (6.103530176915228e-05, 3.051765088457614e-05):
        unit, single = Fraction(1, bottom), np.float32(weight)
        n = round(Fraction(weight) / unit)
        assert np.float32(n / bottom) == single and by_fractions(single, unit) is None
        with pytest.raises(InputError):
            units(np.array([single]), unit)


def test_weights_of_every_kind() -> None:
    table: list[tuple[Any, ...]] = [
        ([0.1, 1.2, 0], TENTH, [1, 12, 0]),
        (np.array([0.1, 1.2, 7e5], np.float32), TENTH, [1, 12, 7_000_000]),
        ([1, 2, 0], ONE, [1, 2, 0]),
        (np.array([3, 250], np.uint8), Fraction(1, 1000), [3000, 250_000]),
        ([2**62], ONE, [2**62]),
        *(
            (make(weights), Fraction(1, 2), [2**54 + 2, 1])
            for make in (list, lambda weights: np.array(weights, object))
            for weights in ([2**53 + 1, 0.5], [np.int64(2**53 + 1), 0.5])
        ),
        (np.array([np.int64(2**53 + 1), np.uint64(1)], object), ONE, [2**53 + 1, 1]),
        ([2**63 - 1, 0, 0.0], ONE, [2**63 - 1, 0, 0]),
        ([2.0**60, 3.0], ONE, [2**60, 3]),
        ([True, False], ONE, [1, 0]),
        ([Fraction(1, 3), 1], Fraction(1, 3), [1, 3]),
        ([Decimal("0.7")], TENTH, [7]),
        ([3, 6], Fraction(3), [1, 2]),
        ([3.3, 6.6], Fraction(33, 10), [1, 2]),
        ([-0.0], ONE, [0]),
        ([], TENTH, []),
    ]
    for weights, unit, expected in table:
        assert units(weights, unit) == expected


NOISE = np.random.default_rng(5).lognormal(sigma=3, size=2000)


@pytest.mark.parametrize(
    ("weights", "unit", "fits"),
    [
        ([0.1, 0.25, 1e-7], ONE, "1/10000000"),
        (np.array([0.1, 0.25, 3], np.float32), ONE, "1/100"),
        (np.array([0.5, 0.75], np.float16), ONE, "1/100"),
        ([0.5, 1 / 3, 2 / 7], ONE, "1/42"),
        ([Fraction(1, 12_345), 2], ONE, "1/12345"),
        ([Decimal("0.125"), 1], Fraction(1, 3), "1/3000"),
        ([4, 6], Fraction(3), "1"),
        (NOISE, ONE, None),
        (NOISE.astype(np.float32), Fraction(1, 7), None),
        ([*NOISE, Fraction(1, 3)], ONE, None),
        (NOISE * 1e9, ONE, None),
        (NOISE * 1e-9, ONE, None),
    ],
)
def test_the_hint_for_weights_that_do_not_fit_has_settings_that_they_fit(
    weights: Any, unit: Fraction, fits: str | None
) -> None:
    columns = [1] * len(weights), [0.5] * len(weights)
    with pytest.raises(InputError) as error:
        BinaryConfusion(weight_unit=unit).update(*columns, weights=weights)
    hint = error.value.hint.removeprefix("pass ").partition(":")[0].replace(" and ", ", ")
    settings = eval(f"dict({hint})", {})
    metric = BinaryConfusion(**settings)
    metric.update(*columns, weights=weights)
    if fits is not None:
        assert settings == {"weight_unit": fits}
    else:
        exact = float(sum(map(float, weights)))
        assert float(metric.compute().weight) == pytest.approx(exact, rel=5e-7)
    state = metric.empty()  # the unit in use before still fits
    state.update([1], [0.5], weights=[unit])


def test_what_is_refused_says_where_and_what_to_do() -> None:
    table: list[tuple[Any, ...]] = [
        (
            [1, 0.25],
            ONE,
            r"weights\[1\]: expected multiples of weight_unit=1, got 0.25; pass"
            r" weight_unit=\"1/100\"",
        ),
        ([0.3], Fraction(1, 4), r"weight_unit=1/4, got 0.3; pass weight_unit=\"1/20\""),
        ([1, 1, -1], ONE, r"weights\[2\]: expected weights of at least 0, got -1"),
        ([1.0, -1.0], ONE, r"weights\[1\]: expected weights of at least 0, got -1.0"),
        ([1, -0.5], ONE, r"weights\[1\]: expected weights of at least 0, got -0.5"),
        ([float("nan")], ONE, "at least 0, got nan"),
        ([float("inf")], TENTH, "at least 0, got inf"),
        ([Decimal("nan")], TENTH, "at least 0"),
        ([1e30], ONE, r"below 2\*\*63 units"),
        ([2**62], TENTH, r"below 2\*\*63 units of 1/10"),
        ([1, 2], Fraction(3), "multiples of weight_unit=3, got 1"),
        ([5e-324], ONE, "got 5e-324; scale them"),
        (["1"], ONE, "numbers"),
        (np.array([np.timedelta64(5, "s")], object), ONE, "numbers"),
        ([Fraction(1, 2), np.timedelta64(5, "D")], ONE, r"weights\[1\]: expected numbers"),
        (np.array([Fraction(1, 2), []], object), ONE, r"weights\[1\]: expected numbers"),
        ([[1]], ONE, "one-dimensional"),
    ]
    for weights, unit, message in table:
        with pytest.raises(InputError, match=message):
            units(weights, unit)


def test_without_weights_each_row_weighs_one() -> None:
    assert units_of(None, 3, ONE) is None
    unit_counts = units_of(None, 3, TENTH)
    assert unit_counts is not None and unit_counts.tolist() == [10, 10, 10]
    with pytest.raises(InputError, match="divides 1"):
        units_of(None, 3, Fraction(2, 3))


def test_units_have_one_form_and_others_are_refused() -> None:
    for setting, unit in (
        *((1, ONE), (3, Fraction(3)), (TENTH, TENTH), ("1/10", TENTH), ("0.1", TENTH)),
        *(("5", Fraction(5)), ("2/2", ONE)),
    ):
        fraction = unit_of(setting, "M.weight_unit")
        assert type(fraction) is Fraction and fraction == unit
        assert (fraction is ONE) == (unit == 1)
    for setting in (
        *(0, -1, "0", "-1/2", "1/0", "1/00", "1e5", "", "a", True, None, (1, 2), 10**19),
        "1/" + 19 * "9",
    ):
        with pytest.raises(SettingsError, match=r"M\.weight_unit: expected a positive Fraction"):
            unit_of(setting, "M.weight_unit")
    with pytest.raises(
        SettingsError, match=r'got 0.1 \(float\); floats are inexact: pass weight_unit="1/10"$'
    ):
        unit_of(0.1, "M.weight_unit")


def test_rows_of_weight_zero_leave_with_their_slots() -> None:
    batch = weighted(np.array([5, 6, 7]), [0, 2.5, 1], Fraction(1, 2))
    assert (batch.n, batch.total) == (3, 7)
    positive_rows, slots = weighed_rows(batch, np.array([3, 4, 5]))
    assert positive_rows.quanta is not None and slots is not None
    assert (positive_rows.n, positive_rows.quanta.tolist(), slots.tolist()) == (2, [5, 2], [4, 5])
    assert positive_rows.labels.tolist() == [6, 7]
    plain = weighted(np.array([5, 6, 7]), None)
    assert (plain.quanta, plain.total) == (None, 3)


def test_excess_is_what_units_have_over_rows() -> None:
    surplus = np.array([5, 0])
    add_surplus(surplus, None, np.array([1, 3]))
    add_surplus(surplus, np.array([1, 1, 0]), np.array([2, 1, 1]))
    assert surplus.tolist() == [7, 1]


def test_a_rounded_weight_is_off_by_half_a_unit_at_most_and_said_to_be_rounded() -> None:
    random, tallies = Random(6), {True: 0, False: 0}
    for _ in range(500):
        top, bottom = (random.choice([1, 2, 3, 7, 10 ** random.randint(0, 8)]) for _ in range(2))
        unit = Fraction(top, bottom)
        amounts = [random.random() * 10 ** random.randint(-3, 9) for _ in range(3)]
        halves = [float(unit) * random.randint(0, 99) / 2 for _ in range(3)]
        weights = np.array(amounts + halves, random.choice([np.float32, np.float64]))
        unit_counts, off = rounded_units(weights, 6, unit)
        for weight, n, rounded_ in zip(weights, unit_counts.tolist(), off.tolist(), strict=True):
            miss = abs(Fraction(float(weight)) - n * unit)
            ulp = Fraction(float(np.spacing(weight)))
            assert miss <= (unit + ulp) / 2
            assert rounded_ == (miss > ulp / 2)
            tallies[rounded_] += 1
    assert min(tallies.values()) > 300


def test_weights_go_to_the_nearest_unit_and_halves_to_the_even_one() -> None:
    table: list[tuple[Any, ...]] = [
        ([0.5, 1.5, 2.5, 0.25, 0], ONE, [0, 2, 2, 0, 0], [1, 1, 1, 1, 0]),
        ([0.05, 0.15, 0.25, 0.2], TENTH, [0, 2, 2, 2], [1, 1, 1, 0]),
        ([1, 2, 3, 6], Fraction(2), [0, 1, 2, 3], [1, 0, 1, 0]),
        ([1, 2, 4, 5], Fraction(3), [0, 1, 1, 2], [1, 1, 1, 1]),
        ([Fraction(1, 3), 2**62 + 1], ONE, [0, 2**62 + 1], [1, 0]),
        (np.array([2**62 + 1, 0.75], object), ONE, [2**62 + 1, 1], [0, 1]),
        (None, Fraction(2), [0, 0], [1, 1]),
        (None, Fraction(2, 3), [2, 2], [1, 1]),
        (None, TENTH, [10, 10], [0, 0]),
    ]
    for weights, unit, expected, off in table:
        result = rounded_units(weights, len(expected), unit)
        assert (result[0].tolist(), result[1].tolist()) == (expected, [bool(x) for x in off])


def test_an_integer_is_rounded_alike_in_every_column() -> None:
    weights = [2**63, 2**53 + 1, 1, 0]
    for column in (weights, np.array(weights, object), [*weights[:3], 0.0]):
        rounded, off = rounded_units(column, 4, Fraction(2))  # type: ignore[arg-type]
        assert rounded.tolist() == [2**62, 2**52, 0, 0]
        assert off.tolist() == [False, True, True, False]


def test_rounding_still_refuses_what_is_no_weight() -> None:
    for bad in ([-0.1], [math.nan], [math.inf], ["1"], [Fraction(-1, 2)], [1e30]):
        with pytest.raises(InputError):
            rounded_units(bad, 1, ONE)


def test_rounded_rows_are_found_again_with_their_slots() -> None:
    batch = weighted(np.array([1, 0, 1, 0], np.uint8), [0.25, 2, 1.5, 0], rounding=True)
    assert batch.total == 4
    slots = np.array([3, 4, 5, 6])
    inexact_rows, row_slots = rounded_rows(batch, slots)
    assert row_slots is not None
    assert (inexact_rows.labels.tolist(), inexact_rows.quanta, row_slots.tolist()) == (
        [1, 1],
        None,
        [3, 5],
    )
    assert rounded_rows(batch, None)[1] is None
    positive_rows, row_slots = weighed_rows(batch, slots)
    assert positive_rows.quanta is not None and row_slots is not None
    assert (positive_rows.n, positive_rows.quanta.tolist(), row_slots.tolist()) == (
        2,
        [2, 2],
        [4, 5],
    )
    assert positive_rows.columns.keys() == {"labels", QUANTA}
