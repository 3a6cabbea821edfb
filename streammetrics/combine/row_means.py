"""The means over rows by which `Paired` compares two models, and the error of their difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.rows import Terms
from streammetrics.estimators.estimator import RowValues
from streammetrics.kernels.inference.paired import PairedError, PairedSums
from streammetrics.present.estimand import estimand_of
from streammetrics.present.view import declared_views

RowTerms: TypeAlias = Callable[[Batch], Terms]


def row_means(metric: Accumulator) -> Mapping[str, RowTerms]:
    """The views of an empty metric that are means over rows, with what each row adds to them.

    They are the views whose estimators give the values of each row; without any, those that the
    metric itself names, such as the measures of lists.

    >>> from streammetrics import Moments, Quantiles
    >>> list(row_means(Moments())), list(row_means(Quantiles()))
    (['mean'], [])
    """
    views = declared_views(type(metric.compute()))
    means: dict[str, RowTerms] = {
        name: partial(_values, view.estimator.each, metric)
        for name, view in views.items()
        if view.estimator.each is not None
    }
    if means or metric._group_terms() is not None:
        return means
    return {name: partial(_terms, metric, i) for i, name in enumerate(metric._mean_views())}


def _values(row_values: RowValues, metric: Accumulator, batch: Batch) -> Terms:
    return Terms(row_values(metric, batch).astype(np.float64, copy=False))


def _terms(metric: Accumulator, i: int, batch: Batch) -> Terms:
    return metric._row_terms(batch)[i]


def mean_error(
    results: tuple[object, object], view: str, sums: PairedSums, unlike: int, units: str
) -> PairedError:
    """Of a mean over rows. results: of both models; unlike: rows whose weights differ."""
    error = sums.error(units)
    if unlike:
        why = f"{unlike} {units} weigh differently in both models; UserGroups have an interval"
        return PairedError(np.nan, np.nan, error.n, "t", units, why)
    if any(estimand_of(result, view).successes is None for result in results):
        return error
    d, _, dd, *_ = map(int, sums.sums)  # of a share, each d is -1, 0 or 1
    return replace(error, discordant=((dd + d) // 2, (dd - d) // 2))


def unlike_weights(a: Terms, b: Terms) -> NDArray[np.bool_]:
    """Whether the weights of a row differ between both models."""
    if a.weights is None or b.weights is None:
        return np.full(len(a.values), a.weights is not b.weights)
    unlike: NDArray[np.bool_] = a.weights != b.weights
    return unlike
