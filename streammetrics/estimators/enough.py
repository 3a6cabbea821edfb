"""Enough: what each arm must have, by the kind of quantity, before there is a verdict on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streammetrics.estimators.estimator import Kind
from streammetrics.kernels.inference.pooled_variance import SKEWNESS

GROUPS: Final = 16  # of users with rows, before an interval that holds at all looks


@dataclass(frozen=True, slots=True)
class Enough:
    """What is counted of a kind of quantity, and how much of it is enough.

    need: of each count, in each arm of a comparison; alone: of a state that is compared with no
    other one. quantity: what cannot be judged before. few: what there is too little of. labels: of
    the counts; those of a mean are its rows. expected: whether the counts are those that an arm
    would have at the rate of both arms. each: whether both counts are judged, each by itself.
    advice: what an arm must have, with places for its name, the unit and what users add.
    """

    quantity: str
    few: str
    advice: str
    labels: tuple[str, ...] = ()
    expected: bool = False
    each: bool = False
    need: int = 10
    alone: int = 10

    def words(self, unit: str, grouped: bool) -> str:
        """What an arm must have, with a place for its name; grouped: whether its rows, or its
        units, are in groups.

        >>> ENOUGH["area"].words("rows", True)
        '{} has 10 positives and 10 negatives, and users in 16 groups'
        """
        by_users = grouped and unit != "units"
        return self.advice.format(
            arm="{}",
            need=self.need,
            unit=unit,
            rows=f"effective {unit}" if by_users else unit,
            deff=", divided by the design effect," * by_users,
            comma="," * grouped,
            users=f"{' and users' * by_users} in {GROUPS} groups" * grouped,
            skewness=f"{SKEWNESS:g}",
        )


ENOUGH: Final[Mapping[Kind, Enough]] = {
    "rate": Enough(
        "rate",
        "events, or rows without one",
        "{arm} has {need} expected events and {need} expected {unit} without one{deff}{users}",
        ("events", "rows without an event"),
        expected=True,
    ),
    "cells": Enough(
        "metric",
        "rows that decide the metric",
        "{arm} has {need} expected {unit} that decide it{deff}{users}",
        ("rows that decide it",),
        expected=True,
    ),
    "area": Enough(
        "area",
        "positives or negatives",
        "{arm} has {need} positives and {need} negatives{comma}{users}",
        ("positives", "negatives"),
        each=True,
        alone=30,
    ),
    "mean": Enough(
        "mean",
        "rows or lists",
        "{arm} has {need} {rows}{users}{comma} and a skewness number of at least {skewness}",
        need=100,
        alone=100,
    ),
    "quantile": Enough(
        "quantile",
        "rows below or above the quantile",
        "{arm} has {need} {rows} below it and {need} above it{comma}{users}",
        ("rows below or above it",),
    ),
}
