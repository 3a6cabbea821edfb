"""The variance of a smooth function of counts, from what one more row of each kind changes.

With counts n_c of cells c and a function g of them, ψ_c = ∂g/∂n_c; of independent rows
Var g = Σ n ψ² - (Σ n ψ)² / Σ n. Where g does not change when all counts are doubled, as with
every rate, Σ n ψ is 0. (Bishop, Fienberg and Holland 1975, "Discrete Multivariate Analysis",
section 14.6.)

Floats here are multiplied cell by cell and summed exactly, so that the order of rows, and the
processor, change no bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def counts_variance(counts: Ints, psi: Floats) -> float:
    """Σ n ψ² - (Σ n ψ)² / Σ n over cells of any shape; nan where there are no rows.

    counts: int64 of any shape, psi: float64 of the same; a cell without rows may have ψ nan.

    >>> round(counts_variance(np.array([3, 7]), np.array([0.07, -0.03])), 15)  # 3 of 10
    0.021
    """
    met = counts > 0
    n, psi = counts[met].astype(np.float64), psi[met]
    if not len(n):
        return math.nan
    first = n * psi
    sum_, rows = math.fsum(first.tolist()), int(counts[met].sum())
    return max(math.fsum((first * psi).tolist()) - sum_ / rows * sum_, 0.0)


def cells_number(counts: Ints, psi: Floats) -> int:
    """The skewness number of Σ n ψ, (Σ n ψ²)³ / (Σ n |ψ|³)², rounded down; 0 where ψ is 0.

    How many rows decide the estimate. counts, psi: as in `counts_variance`.

    >>> cells_number(np.array([3, 997]), np.array([0.997, -0.003]))
    3
    """
    met = counts > 0
    n, psi = counts[met].astype(np.float64), np.abs(psi[met])
    if not len(psi) or not np.isfinite(psi).all() or not psi.max() > 0:
        return 0
    psi = psi / psi.max()
    squares = math.fsum((n * psi * psi).tolist())
    cubes = math.fsum((n * psi * psi * psi).tolist())
    return math.floor(squares * squares * squares / (cubes * cubes))


def group_influence(counts: Ints, psi: Floats) -> list[float]:
    """What each group adds to the linearised estimate: Z_g = Σ_c n_gc ψ_c. For `spread_variance`.

    counts: int64 [groups, cells], psi: float64 [cells], of the totals of all groups.

    >>> group_influence(np.array([[1, 0], [0, 2]]), np.array([0.5, -0.25]))
    [0.5, -0.5]
    """
    met = (counts > 0).any(axis=0)
    return [math.fsum(row) for row in (counts[:, met] * psi[met]).tolist()]
