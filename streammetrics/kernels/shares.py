"""Shares of counts as floats, rounded once."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.double_double import divided, whole

_FLOATS: Final = 1 << 53


def shares(parts: NDArray[np.int64], of: NDArray[np.int64] | int) -> NDArray[np.float64]:
    """Each part over what it is of: float64 [n], correctly rounded (from 100 bits where a count is
    2**53 or more); nan where that is 0.

    >>> import numpy as np
    >>> shares(np.array([1, 2]), 3).tolist()
    [0.3333333333333333, 0.6666666666666666]
    """
    every = np.full(len(parts), of, parts.dtype) if isinstance(of, int) else of
    zero = every == 0
    below = np.where(zero, 1, every)
    if parts.dtype != object and int(below.max(initial=0)) < _FLOATS:
        found = parts.astype(np.float64) / below.astype(np.float64)
    else:
        found = divided(whole(parts), whole(below)).high
    return np.where(zero, np.nan, found)
