"""Probabilities of a model that was trained on a sample of the negatives."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core import checks
from streammetrics.core.errors import InputError, shown


def recalibrated(scores: ArrayLike, rate: float) -> NDArray[np.float64]:
    """P / (p + (1 - p) / rate) for each score p; float64 [n].

    scores: [n] in [0, 1], of a model that saw all positives and the share `rate` of the negatives,
    0 < rate <= 1. Returned is what it says of all rows: 0 stays 0 and 1 stays 1, the order stays
    too. Each is within 4 units of its last place. InputError for scores or rates that are not
    such. (He et al. 2014, ADKDD, section 6.3.)

    >>> recalibrated([0.0, 0.5, 1.0], rate=0.25).tolist()
    [0.0, 0.2, 1.0]
    """
    given: object = rate
    known = isinstance(given, int | float | np.floating) and given is not True
    if not known or not 0 < rate <= 1:
        raise InputError(
            expected="a share of the negatives, above 0 and at most 1",
            came=shown(rate),
            where="rate",
            todo="pass 0.1 where one in ten negatives was kept",
        )
    p = checks.probabilities(scores, todo="pass probabilities, not logits")
    p = p.astype(np.float64, copy=False)
    kept = rate * p  # the same fraction without dividing by a small rate
    found: NDArray[np.float64] = kept / (kept + (1.0 - p))
    return found
