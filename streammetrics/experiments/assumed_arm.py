"""An arm from numbers that a person knows, in place of the state of an earlier period."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, fields
from typing import Final, NoReturn

from streammetrics.core.conversion import numeric
from streammetrics.core.errors import SettingsError, shown
from streammetrics.estimators.estimator import Kind
from streammetrics.experiments.arms import Arm, ArmCounts, Precision, Traits
from streammetrics.present.view import Range

_ROWS: Final = 10**12  # an arm without a state: counts of its rows are as exact as the numbers


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a person knows of a quantity beside its value; None of what is not given.

    std: the standard deviation of a unit, of a ratio that of numerator - ratio · denominator;
    denominator: its mean. positives: the share of positive rows. skewness: of the values of a unit.
    deff: the design effect.
    """

    std: float | None = None
    denominator: float | None = None
    positives: float | None = None
    skewness: float | None = None
    deff: float | None = None


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A kind of quantity. limits: of its value, which lies between them if they are finite. origin:
    what a lift is relative to. needs, takes: the numbers that it must have, and may have."""

    kind: Kind
    unit: str
    limits: Range
    origin: float = 0.0
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ("deff",)


_SHARE: Final[Range] = (0.0, 1.0)
_ANY: Final[Range] = (-math.inf, math.inf)
_QUANTITIES: Final = {
    "rate": _Quantity("rate", "units", _SHARE),
    "mean": _Quantity("mean", "units", _ANY, 0.0, ("std",), ("skewness", "deff")),
    "ratio": _Quantity("mean", "units", _ANY, 0.0, ("std",), ("denominator", "skewness", "deff")),
    "auc": _Quantity("area", "rows", _SHARE, 0.5, ("positives",)),
}
_BELOW_1: Final = math.nextafter(1.0, 0.0)
_RANGES: Final[dict[str, tuple[Range, str]]] = {  # a number lies between these
    "std": ((0.0, math.inf), "the standard deviation of a unit, above 0"),
    "positives": (_SHARE, "the share of positive rows, between 0 and 1"),
    "denominator": ((0.0, math.inf), "a mean above 0"),
    "skewness": (_ANY, "a finite number"),
    "deff": ((_BELOW_1, math.inf), "a design effect of at least 1"),
}


def assumed_arm(name: str, value: float, assumed: Assumed) -> Arm:
    """The arm of a rate, mean, ratio or auc, of very many units. SettingsError for numbers that are
    out of range, missing, or of another quantity.

    >>> arm = assumed_arm("auc", 0.75, Assumed(positives=0.5))
    >>> round(arm.precision.variance * arm.counts.rows, 4)  # of one row
    0.2357
    """
    quantity = _QUANTITIES[name]
    low, high = quantity.limits
    if not low < numeric(value) < high:
        expected = "a number between 0 and 1" if low == 0 else "a finite number"
        _refuse(name, expected, value, "pass that of an earlier period")
    check_assumed(name, assumed, quantity.needs, quantity.takes)
    deff = 1.0 if assumed.deff is None else assumed.deff
    counted: tuple[int, ...] = (_ROWS,)
    skewness = math.inf
    if quantity.needs == ("positives",):
        counted, variance = _sides(assumed.positives), area_variance(value, assumed.positives or 0)
    elif quantity.needs:
        deviation = (assumed.std or 0.0) / (assumed.denominator or 1.0)
        variance = deviation * deviation
        skewness = _skewness_number(assumed.skewness)
    else:
        counted, variance = _sides(value), value * (1.0 - value)
    return Arm(
        view=name,
        value=value,
        precision=Precision(
            variance=variance * deff / _ROWS, df=math.inf, method="", n=_ROWS, deff=deff
        ),
        counts=ArmCounts(
            kind=quantity.kind,
            counted=counted,
            rows=_ROWS,
            counted_of=_ROWS,
            unit=quantity.unit if deff == 1 else "rows",
            skewness=skewness,
        ),
        traits=Traits(limits=quantity.limits, origin=quantity.origin),
    )


def check_assumed(
    name: str, assumed: Assumed, needs: Collection[str] = (), takes: Collection[str] = ()
) -> None:
    """Raise SettingsError for a number that is missing, out of range, or not one of this quantity.

    >>> check_assumed("rate", Assumed(deff=2.0), takes=("deff",))
    """
    for field in fields(Assumed):
        number = getattr(assumed, field.name)
        if field.name not in (*needs, *takes):
            if number is not None:
                expected = (
                    f"none, for a {name}" if needs or takes else "none, since the state has it"
                )
                _refuse(field.name, expected, number, "leave it out")
        elif number is not None or field.name in needs:
            (low, high), expected = _RANGES[field.name]
            if not low < numeric(number) < high:
                _refuse(field.name, expected, number, f"pass {field.name}=")


def _skewness_number(skewness: float | None) -> float:
    if skewness is None:
        return math.nan
    return _ROWS / skewness / skewness if skewness else math.inf


def area_variance(area: float, positives: float) -> float:
    """The variance of an area under the ROC curve times its rows, of which there are many, with
    exponential scores of both classes. (Hanley and McNeil 1982, Radiology 143, 29-36.)

    With Q₁ = A / (2 - A) and Q₂ = 2A² / (1 + A) it is (Q₁ - A²) / (1 - π) + (Q₂ - A²) / π, π the
    share of positives.

    >>> round(area_variance(0.5, 0.5), 4)
    0.3333
    """
    square = area * area
    of_positives, of_negatives = area / (2.0 - area), 2.0 * square / (1.0 + area)
    return (of_positives - square) / (1.0 - positives) + (of_negatives - square) / positives


def _sides(share: float | None) -> tuple[int, int]:
    """Of both sides the number of rows, at least one."""
    side_rows = min(max(round((share or 0.0) * _ROWS), 1), _ROWS - 1)
    return side_rows, _ROWS - side_rows


def _refuse(where: str, expected: str, got: object, hint: str) -> NoReturn:
    raise SettingsError(expected=expected, got=shown(got), where=f"plan_test({where})", hint=hint)
