"""What methods of results take: every kind of number, and what they say of anything else."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from streammetrics import HistogramAUC
from streammetrics.core.conversion import FLOAT64, as_float, exact, plain, whole
from streammetrics.core.errors import InputError
from streammetrics.results.rates import Rates
from streammetrics.results.score_curve import ScoreCurve

CURVE = ScoreCurve(np.arange(3.0), np.array([[1, 1, 0], [0, 1, 1]]), True, 4)
RATES = Rates(tp=3, fp=1, fn=2, tn=4)


@pytest.mark.parametrize(
    "half", [np.float32(0.5), np.float64(0.5), np.float16(0.5), Fraction(1, 2), Decimal("0.5")]
)
def test_every_kind_of_number_is_taken_as_the_float_that_it_is(half: Any) -> None:
    assert CURVE.partial_auc(half) == CURVE.partial_auc(0.5)
    assert CURVE.confusion(half) == CURVE.confusion(0.5)
    assert CURVE.best("accuracy", positives_share=half) == CURVE.best(
        "accuracy", positives_share=0.5
    )
    assert RATES.f_beta(half) == RATES.f_beta(0.5)
    assert RATES.f_alpha(half) == RATES.f_alpha(0.5)


def test_every_kind_of_integer_is_a_number_of_parts() -> None:
    for two in (np.int64(2), np.uint8(2)):
        assert CURVE.gain(two) == CURVE.gain(2)  # type: ignore[arg-type]
        assert CURVE.lift(two) == CURVE.lift(2)  # type: ignore[arg-type]


REFUSED: list[tuple[Callable[[], object], str]] = [
    (
        lambda: RATES.f_beta("1"),  # type: ignore[arg-type]
        "Rates.f_beta(b): expected a number of at least 0, got '1'; "
        "pass 1 where both weigh the same",
    ),
    (
        lambda: RATES.f_alpha(None),  # type: ignore[arg-type]
        "Rates.f_alpha(a): expected a share from 0 to 1, got None; pass another value",
    ),
    (
        lambda: RATES.f_beta(1, zero_division=0.5),
        "Rates.f_beta(zero_division): expected 0, 1 or nan, got 0.5; pass one of these",
    ),
    (
        lambda: CURVE.confusion(10**400),
        f"ScoreCurve.confusion(t): expected {FLOAT64}, got 1{'0' * 58}…; pass another value",
    ),
    (
        lambda: CURVE.rela_impr(0.7),  # type: ignore[arg-type]
        "ScoreCurve.rela_impr(base): expected a ScoreCurve, got 0.7; "
        "pass the result of the other model, not its area",
    ),
    (
        lambda: CURVE.lift(0),
        "ScoreCurve.lift(k): expected a number of parts, 1 or more, got 0; "
        "pass 10 for tenths of the rows",
    ),
    (
        lambda: CURVE.partial_auc(2),
        "ScoreCurve.partial_auc(max_fpr): expected a rate above 0 and at most 1, got 2; "
        "if it is in per cent, pass 2 / 100",
    ),
    (
        lambda: CURVE.confusion(2**53 + 1),
        f"ScoreCurve.confusion(t): expected {FLOAT64}, got 9007199254740993; pass another value",
    ),
    (
        lambda: CURVE.best("f1"),  # type: ignore[arg-type]
        'ScoreCurve.best(by): expected "youden", "product", "distance" or "accuracy", got \'f1\'; '
        "choose one of these; the F of a threshold t is in confusion(t)",
    ),
    (
        lambda: CURVE.best("KS"),  # type: ignore[arg-type]
        'ScoreCurve.best(by): expected "youden", "product", "distance" or "accuracy", got \'KS\'; '
        'pass "youden", which is TPR - FPR',
    ),
    (
        lambda: CURVE.best("youden", positives_share=0.25),
        'ScoreCurve.best(positives_share): expected None, since by="youden", got 0.25; '
        'leave it out, or pass by="accuracy"',
    ),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_what_is_none_is_refused_in_four_parts(call: Callable[[], object], said: str) -> None:
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == said


def test_an_average_precision_without_a_negative_above_a_positive_is_exactly_1() -> None:
    for labels in ([1, 1, 1], [0, 1, 1]):
        for grid in ({}, {"grid": "equal", "resolution": 2}):
            metric = HistogramAUC(**grid)  # type: ignore[arg-type]
            metric.update(labels, [0.2, 0.75, 0.9])
            for found in (metric.compute().ap, metric.compute().pr_auc_trapezoid):
                assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.float32(0.1), 0.10000000149011612),
        (np.float16(0.5), 0.5),
        (np.int8(-3), -3),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        ((np.int64(1), (np.float32(0.5), "x")), (1, (0.5, "x"))),
        ([np.int64(1)], [1]),
    ],
)
def test_scalars_of_numpy_become_those_of_python_exactly(value: object, found: object) -> None:
    made = plain(value)
    assert made == found and type(made) is type(found)


def test_all_else_stays_as_it_is() -> None:
    for value in (np.longdouble(1), np.timedelta64(1, "s"), np.ones(2), None, object(), {"a": 1}):
        assert type(plain(value)) is type(value)


def test_whole_numbers_are_of_any_integer_type_and_no_others() -> None:
    assert [whole(v) for v in (3, np.int64(3), np.uint8(3), np.array(3))] == [3] * 4
    for value in (True, np.bool_(True), 3.0, "3", None, np.timedelta64(3), np.ones(2)):
        assert whole(value) is None


def test_exact_numbers_are_finite() -> None:
    half = Fraction(1, 2)
    for value in (0.5, np.float32(0.5), half, Decimal("0.5")):
        assert exact(value) == half
    nones: list[object] = [True, "0.5", None, math.nan, math.inf, Decimal("sNaN"), 1j]
    for none in nones:
        assert exact(none) is None
    assert exact(10**400) == 10**400


def test_floats_are_the_nearest_and_of_the_range() -> None:
    assert as_float(np.float32(0.1)) == float(np.float32(0.1))
    assert as_float(Fraction(1, 3)) == 1 / 3
    assert (as_float(-math.inf), str(as_float(-0.0))) == (-math.inf, "0.0")
    for value in (10**400, Fraction(10**400), math.nan, Decimal("sNaN"), True, "1", None, 1j):
        assert as_float(value) is None
