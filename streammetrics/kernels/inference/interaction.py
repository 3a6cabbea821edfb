"""Whether the effect of one experiment differs between the arms of another: four cells of units.

A unit u has a sum s_u of values and a weight w_u (its rows; 1 for a mean over units), and is in one
of four cells: control or treatment of one experiment, in one of two arms of the other. The estimate
of a cell is R = Σ s / Σ w, and the interaction

    θ = (R_11 - R_01) - (R_10 - R_00),

which does not depend on which of the two experiments is asked about. A unit's part in the error of
R is d_u = (s_u - R w_u) / (Σ w / n), so V_c = Σ d² / (n (n - 1)) of each cell (the delta method).
As in `pooled_variance`, a small cell that lacks its tail must not vouch for itself: with the masses
m_c of the cells, units and weights,

    V = max(Σ V_c, max over m of (Σ m_c² V_c / Σ m_c) Σ 1 / m_c),

the second term is what V would be if a unit of that mass had the pooled variance in all cells. Two
cells have the V of `difference_variance`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.inference.dirichlet_multinomial import log_sum
from streammetrics.kernels.inference.normal_mixture import gaussianised, log_e, tuned
from streammetrics.kernels.inference.tails import last_inside, normal_sf

Floats = NDArray[np.float64]

CELLS: Final = 4  # (0, 0), (0, 1), (1, 0), (1, 1): the arm of one experiment, and of the other
SIGNS: Final = (1.0, -1.0, -1.0, 1.0)
UNITS: Final = 100  # of each cell
NEEDED: Final = 10.0  # of each cell: `EXPECTED` events, or a skewness number of `SKEWNESS`
# The tunings of the mixtures, as shares of the planned information: a sample of a pair's units has
# less of it than the experiment by a factor that nobody can plan.
TUNINGS: Final = tuple(4.0**-k for k in range(6))

# Of Σ s²: a sum, R and their product are each off by 2**-53 at most, so d by less than 2**-50.
_ROUNDING: Final = 2.0**-100


@dataclass(frozen=True, slots=True)
class FourCells:
    """The estimates of four cells. values: each R less that of all units together, so that little
    is lost of differences between large R. numbers: what a verdict needs ten of in each: where all
    values are 0 or 1, expected events, and rows without one, over the design effect (is_share);
    else the skewness number, the lesser of its own and that which its units would have of all. df:
    the least effective number of units of a cell, by their weights, less 1."""

    values: tuple[float, ...]
    variances: tuple[float, ...]
    units: tuple[int, ...]
    weights: tuple[float, ...]
    numbers: tuple[float, ...]
    df: float
    is_share: bool = False

    @property
    def effect(self) -> float:
        """θ; nan if a cell is undefined."""
        return math.fsum(sign * value for sign, value in zip(SIGNS, self.values, strict=True))

    @property
    def variance(self) -> float:
        """V; nan if a cell has none, or no weight above 0."""
        if not all(v >= 0 for v in self.variances) or min(self.weights) <= 0:
            return math.nan
        variance = math.fsum(self.variances)
        for masses in (tuple(map(float, self.units)), self.weights):
            pooled = math.fsum(m * m * v for m, v in zip(masses, self.variances, strict=True))
            pooled *= math.fsum(1.0 / m for m in masses) / math.fsum(masses)
            variance = max(variance, pooled)
        return variance

    @property
    def few(self) -> int | None:
        """The cell that has the least of what it needs; None if all have enough."""
        needs = [
            min(n / UNITS, number / NEEDED)
            for n, number in zip(self.units, self.numbers, strict=True)
        ]
        least = min(needs)
        return needs.index(least) if least < 1.0 else None


def four_cells(sums: Floats, weights: Floats, cells: NDArray[np.intp]) -> FourCells:
    """The estimates of units with these sums and weights, [n] each, in these cells [n]; a unit is
    in each of the cells 0 to 3 once at most. A cell without weight is nan. The variance is 0 where
    the units of a cell differ by no more than float64 rounds."""
    units = np.bincount(cells, minlength=CELLS)
    total = np.bincount(cells, weights, CELLS).astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        center = float(sums.sum() / np.abs(weights).sum())
        center = center if math.isfinite(center) else 0.0
        expected = center * weights
        values, residuals = np.zeros(CELLS), sums - expected
        for _ in range(2):  # the second time takes out what the sums of the first were rounded by
            shifts = np.bincount(cells, residuals, CELLS) / total
            values, residuals = values + shifts, residuals - shifts[cells] * weights
        mean_weights = (total / units)[cells]
        d, sizes = residuals / mean_weights, (np.abs(sums) + np.abs(expected)) / mean_weights
        scale = math.ldexp(1.0, math.frexp(float(np.abs(d).max(initial=0.0)))[1])
        squares, cubes = (np.bincount(cells, (d / scale) ** k, CELLS) for k in (2, 3))
        alike = squares <= _ROUNDING * np.bincount(cells, (sizes / scale) ** 2, CELLS)
        squares[alike] = cubes[alike] = 0.0
        variances = squares / (units * (units - 1.0)) * scale * scale
        own_numbers = squares**3 / cubes**2
        of_all = squares.sum() ** 3 / cubes.sum() ** 2 * units / units.sum()
        effective = total**2 / np.bincount(cells, weights**2, CELLS)
    own_numbers[squares == 0] = np.inf
    numbers = np.fmin(np.where(cubes == 0, np.inf, own_numbers), of_all if cubes.sum() else np.inf)
    is_share = _are_shares(sums, weights)
    if is_share:
        numbers = _expected_counts(total, center + values, variances, center)
    return FourCells(
        tuple(values.tolist()),
        tuple(variances.tolist()),
        tuple(units.tolist()),
        tuple(total.tolist()),
        tuple(numbers.tolist()),
        float(effective.min()) - 1.0,
        is_share,
    )


def _are_shares(sums: Floats, weights: Floats) -> bool:
    """Whether the values may all be 0 or 1, over 1."""
    whole = np.array_equal(sums, np.floor(sums)) and np.array_equal(weights, np.floor(weights))
    return whole and bool(weights.any()) and bool(((sums >= 0) & (sums <= weights)).all())


def _expected_counts(rows: Floats, rates: Floats, variances: Floats, rate: float) -> Floats:
    """In each cell the events, or the rows without one if these are fewer, at the rate of all
    cells, divided by the largest design effect of a cell."""
    with np.errstate(all="ignore"):
        deff = variances / (rates * (1.0 - rates) / rows)
    return min(rate, 1.0 - rate) * rows / max(1.0, float(np.nanmax(deff, initial=1.0)))


def log_e_of_interaction(
    effect: float, variance: float, df: float, v_opt: float, alpha: float
) -> float:
    """The logarithm of the e-value against an interaction of 0: the mean of the normal mixtures
    that are tuned at each of `TUNINGS` of the planned information. 0 without a variance."""
    if not (math.isfinite(effect) and 0 < variance < math.inf and df > 0):
        return 0.0
    v, z = 1.0 / variance, gaussianised(effect / math.sqrt(variance), df)
    logs = [log_e(z, v, tuned(v_opt * share, alpha)) for share in TUNINGS]
    return log_sum((x, 1.0 / len(logs)) for x in logs)


def half_width(variance: float, df: float, v_opt: float, alpha: float) -> float:
    """How far an interaction may be from its estimate at all looks together: e is 1 / alpha there.
    Infinite without a variance."""
    if not (0 < variance < math.inf and df > 0):
        return math.inf
    goal, error = -math.log(alpha), math.sqrt(variance)

    def holds(z: float) -> bool:
        return log_e_of_interaction(z * error, variance, df, v_opt, alpha) < goal

    far = 8.0
    while holds(far):
        far *= 2.0
        if far > 1e6:
            return math.inf
    return last_inside(0.0, far, holds) * error


def one_look_p(effect: float, variance: float, df: float) -> float:
    """Two-sided, for one look only; nan without a variance."""
    if not (math.isfinite(effect) and 0 < variance < math.inf and df > 0):
        return math.nan
    return 2.0 * normal_sf(abs(gaussianised(effect / math.sqrt(variance), df)))
