"""Rows that have several keys: each key's state is that of the metric fed with its rows alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from streammetrics import Accumulator, Moments, PerKey, Regression, UnitMean, UnitRate, UserGroups

SIZES = [0, 1, 40, 3_000]
SCALES = np.array([1.0, 1.0, 1.0, 1e-200, 1e200, 2**-40])


def numbers(rng: np.random.Generator, n: int, kind: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Small whole numbers, ordinary ones, or those of every size."""
    if kind == "whole":
        return rng.integers(-3, 9, n).astype(float)
    return rng.normal(size=n) * (rng.choice(SCALES, n) if kind == "any" else 1.0)


def rows_of(metric: str, kind: str, n: int) -> tuple[Accumulator, Mapping[str, Any]]:
    rng = np.random.default_rng(n)
    values, users = numbers(rng, n, kind), rng.integers(0, 30, n)
    scores = values + numbers(rng, n, kind)
    if kind == "any" and n > 9:
        scores[3] = np.inf
    match metric:
        case "regression":
            return Regression(), {"labels": values, "scores": scores}
        case "weighted regression":
            rows = {"labels": values, "scores": scores, "weights": rng.integers(0, 4, n)}
            return Regression(), rows
        case "regression of users":
            return UserGroups(Regression()), {"groups": users, "labels": values, "scores": scores}
        case "moments":
            return Moments(), {"values": values}
        case "moments of users":
            return UserGroups(Moments()), {"groups": users, "values": values}
        case "unit mean":
            return UnitMean(), {"units": users, "values": values}
        case "unit mean of a share":
            return UnitMean(share=0.3), {"units": users, "values": values}
        case _:
            return UnitRate(max_units=12), {"units": users, "values": scores}


METRICS = (
    *("regression", "weighted regression", "regression of users", "moments", "moments of users"),
    *("unit mean", "unit mean of a share", "unit rate"),
)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["whole", "ordinary", "any"])
@pytest.mark.parametrize("name", METRICS)
def test_a_row_counts_once_for_each_of_its_keys(name: str, kind: str, n: int) -> None:
    metric, rows = rows_of(name, kind, n)
    rng = np.random.default_rng(7)
    users = np.random.default_rng(n).integers(0, 30, n)
    columns = {f"e{i}": np.array(["a", "b"])[rng.integers(0, 2, 30)[users]] for i in range(9)}
    columns["each"] = np.array([f"k{k}" for k in rng.integers(0, 5, n)], object)
    together = PerKey(metric)
    together.update(columns, **rows)
    for column, keys in columns.items():
        for key in {*keys.tolist()}:
            indices = np.flatnonzero(keys == key)
            state = metric.empty()
            state.update(**{argument: values[indices] for argument, values in rows.items()})
            assert together.state((column, key)) == state
