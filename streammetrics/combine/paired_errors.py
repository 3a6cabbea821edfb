"""The variance of the difference of two models in a view, from their joint counts or groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.row_means import unlike_weights
from streammetrics.core.accumulator import Accumulator
from streammetrics.kernels.inference.area_interval import paired_placements
from streammetrics.kernels.inference.paired import PairedError, PairedSums, table_variance
from streammetrics.present.estimand import estimand_of
from streammetrics.present.views import value_of

Errors: TypeAlias = Callable[[str], PairedError | None]  # of a view; None: no formula
Ints: TypeAlias = NDArray[np.int64]


def late_errors(errors: Callable[[], Mapping[str, PairedError]]) -> Errors:
    """From a function that returns all views with a formula; it is called once."""
    once = cache(errors)
    return lambda view: once().get(view)


def table_error(table: Ints, result: Callable[[Ints], object], view: str) -> PairedError:
    """Of a function of the cells, by the jackknife over rows.

    table: rows by label and both buckets, [2, k, k]. result: of one model, from [2, k].
    """
    labels, a, b, counts = cells_of(table)
    cells, n = list(zip(labels.tolist(), a.tolist(), b.tolist(), strict=True)), int(counts.sum())

    def difference(without: tuple[int, int, int] | None = None) -> float:
        left = table.copy()
        if without is not None:
            left[without] -= 1
        result_a, result_b = (result(left.sum(axis=axis)) for axis in (2, 1))
        return float(value_of(result_a, view)) - float(value_of(result_b, view))

    variance = table_variance(counts.tolist(), [difference(cell) for cell in cells])
    why = ""
    if not math.isfinite(variance) and math.isfinite(difference()):
        why = "the estimate is undefined without one of the rows"
    df = float(n - 1) if n > 1 else math.nan
    discordant = _discordant(table, result, view)
    return PairedError(variance, df, n, "jackknife", "rows", why, discordant)


def _discordant(table: Ints, result: Callable[[Ints], object], view: str) -> tuple[int, int] | None:
    """The rows that are a success of one model alone, of a share of all rows; None of others."""
    single = np.zeros(table.shape[:2], np.int64)
    success = np.zeros(table.shape[:2], np.int64)
    for cell in np.ndindex(*success.shape):
        single[cell] = 1
        counts = estimand_of(result(single), view).successes
        single[cell] = 0
        if counts is None or counts[1] != 1:
            return None
        success[cell] = counts[0]
    better = success[:, :, np.newaxis] - success[:, np.newaxis, :]
    return int(table[better > 0].sum()), int(table[better < 0].sum())


def cells_of(table: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Label, both buckets and rows of each occupied cell [n]; table: [2, k, k]."""
    labels, a, b = (indices.astype(np.int64) for indices in np.nonzero(table))
    return labels, a, b, table[labels, a, b]


def area_errors(labels: Ints, a: Ints, b: Ints, counts: Ints) -> Mapping[str, PairedError]:
    """Of areas under the ROC curve, by the views that these are."""
    placements = paired_placements(labels, a, b, counts)
    n = placements.positives + placements.negatives
    _, variance, df, *_ = placements.estimate
    area = PairedError(variance, df, n, "delong")
    return {"auc": area, "gini": PairedError(4 * variance, df, n, "delong")}


def group_errors(a: Accumulator, b: Accumulator, units: str) -> Mapping[str, PairedError]:
    """From states that hold their groups; {} for all others."""
    all_a, all_b = a._group_terms(), b._group_terms()
    if all_a is None or all_b is None:
        return {}
    errors = {}
    for view, terms_a, terms_b in zip(a._mean_views(), all_a, all_b, strict=True):
        if len(terms_a.values) != len(terms_b.values) or unlike_weights(terms_a, terms_b).any():
            why = f"the {units} of both models differ"
            errors[view] = PairedError(np.nan, np.nan, 0, "t", units, why)
        else:
            errors[view] = PairedSums.from_values(
                terms_a.values, terms_b.values, terms_a.weights
            ).error(units)
    return errors
