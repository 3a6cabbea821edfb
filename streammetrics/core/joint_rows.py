"""How `Paired` compares the rows of two models, as their metric declares it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch
from streammetrics.core.rows import Terms


class JointBuckets(NamedTuple):
    """Rows are counted by label and by the buckets of both models.

    buckets: how many there are. bucket_of: of checked rows, [n]. result: of one model, from the
    rows by label and bucket, [2, buckets], for views that are functions of these counts; None: the
    buckets only show areas.
    """

    buckets: int
    bucket_of: Callable[[Batch], NDArray[np.intp]]
    result: Callable[[NDArray[np.int64]], object] | None = None


class JointScores(NamedTuple):
    """Rows are kept by label and by the scores of both models. score_of: of checked rows, [n].
    max_rows: past which only their number is kept."""

    score_of: Callable[[Batch], NDArray[np.float64]]
    max_rows: int | None


class RowsInPairs:
    """What a metric says of rows that two models have in common: a base class of all metrics, of
    which nothing is known."""

    def _mean_views(self) -> tuple[str, ...]:
        """The views that are a mean, or a ratio of sums, over independent rows, lists or groups,
        but for those whose estimators give the value of each row: `Paired` compares two models by
        them. Override it with one of the next two methods."""
        return ()

    def _row_terms(self, batch: Batch) -> Sequence[Terms]:
        """For each of `_mean_views` the terms of checked rows: functions of each row alone."""
        return ()

    def _group_terms(self) -> Sequence[Terms] | None:
        """For each of `_mean_views` the terms of the groups of the state, in the order of their
        ids; None unless the metric has groups."""
        return None

    def _joint_rows(self) -> JointBuckets | JointScores | None:
        """How the rows of two models with common labels are counted together; None: each by itself,
        or by the views above."""
        return None
