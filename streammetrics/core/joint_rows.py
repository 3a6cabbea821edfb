"""How two models' rows of two classes are counted together, as their metric declares it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.batch import Batch


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
