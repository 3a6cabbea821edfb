"""1/rank and its running sums, as pairs."""

from __future__ import annotations

from typing import Final

import numpy as np

from streammetrics.kernels.double_double import Pair, quotient, running
from streammetrics.kernels.growing import Growing


def _reciprocals(n: int) -> Pair:
    return quotient(np.ones(n), np.arange(1, n + 1, dtype=np.float64))


def _harmonics(n: int) -> Pair:
    return running(_reciprocals(n - 1))


reciprocals: Final = Growing(_reciprocals)  # 1/(i + 1) for i = 0, 1, ...
harmonics: Final = Growing(_harmonics)  # the sum of the first i of them
