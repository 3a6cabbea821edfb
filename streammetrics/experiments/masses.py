"""How much an estimate rests on: its masses, over which the variance of a difference is pooled.

A mean rests on its rows, and over users also on these: on their number where an experiment counts
them, else on (Σ n_u)² / Σ n_u², the effective number of users with n_u rows. The groups of users
show these sums.

An area rests on pairs of a positive and a negative row, so on PN / (P + N) of P and N rows. Over
users that holds for the part of its variance that independent rows would have. The rest is between
users, and rests on U⁺U⁻ / (U⁺ + U⁻), U⁺ the effective number of users by their positive rows, and
U⁻ likewise. All users are no mass of an area, because where one arm has ten times the positives of
the other, users without any would count as much.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from streammetrics.combine import UserGroupsResult
from streammetrics.combine.clustered import class_counts
from streammetrics.estimators.estimator import Kind
from streammetrics.experiments.arms import Basis
from streammetrics.kernels.inference.pooled_variance import (
    RowsAndUsers,
    effective_number,
    harmonic_number,
)
from streammetrics.results.areas import GroupedArea
from streammetrics.results.class_curves import ClassCurves
from streammetrics.results.score_curve import ScoreCurve
from streammetrics.results.uplift_curve import UpliftCurve

USERS: Final = "users"  # the name of the mass that an experiment counts, but for areas
_Users: TypeAlias = UserGroupsResult | None


def masses_of(
    kind: Kind, figures: object, n: int, rows: int, grouped: _Users, deff: float
) -> Mapping[str, Basis]:
    """The masses of a view by name. figures: the metric's own result; n: the values that the view
    is a mean of; rows: all rows; grouped: the result over users, None for independent rows; deff:
    of the view there, nan if unknown."""
    if kind == "quantile":
        return {}
    of_users = {} if grouped is None else {USERS: effective_number(grouped.weights)}
    if kind == "cells":
        return {"decided": float(n), "rows": float(rows), **of_users}
    areas = () if kind == "rate" else _areas(figures)
    if areas:
        of_rows = harmonic_number(areas)
        if isinstance(figures, GroupedArea) and figures._spread is not None:
            of_rows = figures._spread.effective
        if grouped is None:
            return {"classes": of_rows}
        users = harmonic_number(_effective(areas, grouped))
        return {USERS: RowsAndUsers(of_rows, users, _part_of_rows(deff, grouped))}
    if kind == "area":
        return {"classes": harmonic_number([class_counts(figures)]), **of_users}
    return {"rows": float(n or rows), **of_users}


def _part_of_rows(deff: float, grouped: UserGroupsResult) -> float:
    """The part of a variance over users that independent rows would have; of a view without a
    formula for these that of the headline, and 0 if that has none."""
    deff = deff if deff > 0 else grouped.deff
    return min(1.0, 1.0 / deff) if deff > 0 else 0.0


def class_rows(figures: object, rows: int, grouped: _Users) -> tuple[int, int]:
    """Positive and negative rows. Of weighted rows the part that is their part of the weight, and
    over users no more than the effective number of users who have some."""
    positives, negatives = class_counts(figures)
    units = positives + negatives
    if units in (0, rows):
        return positives, negatives
    counts = [positives * rows // units, negatives * rows // units]
    if grouped is not None:
        for i, parts in enumerate(grouped._added(class_counts)):
            counts[i] = min(counts[i], math.floor(effective_number(parts)))
    return counts[0], counts[1]


Sides: TypeAlias = tuple[int, ...]  # of an area: its positives and negatives, or a single number


def _areas(figures: object) -> tuple[Sides, ...]:
    """Of each area of which a rank view is the mean, both sides, in units of weight; () of others,
    and where they are no longer known."""
    match figures:
        case ScoreCurve():
            return () if figures.positives is None else (class_counts(figures),)
        case ClassCurves():
            return tuple(side for curve in figures.curves for side in _areas(curve))
        case UpliftCurve():
            treated, control = figures.treated, figures.control
            return () if treated is None or control is None else ((treated, control),)
        case GroupedArea():
            return () if figures._spread is None else ((figures._spread.n,),)
    return ()


def _effective(areas: tuple[Sides, ...], grouped: UserGroupsResult) -> list[tuple[float, ...]]:
    """Of each side the effective number of users."""
    parts = iter(grouped._added(lambda result: [n for sides in _areas(result) for n in sides]))
    return [tuple(effective_number(next(parts, ())) for _ in sides) for sides in areas]
