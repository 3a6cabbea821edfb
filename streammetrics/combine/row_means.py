"""The means over rows by which `Paired` compares two models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.rows import Terms
from streammetrics.estimators.estimator import RowValues
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


def _values(each: RowValues, metric: Accumulator, batch: Batch) -> Terms:
    return Terms(each(metric, batch).astype(np.float64, copy=False))


def _terms(metric: Accumulator, i: int, batch: Batch) -> Terms:
    return metric._row_terms(batch)[i]
