"""Rows per unit of both arms, beside every mean and rate per row.

People decide about units, such as users, and rows are counted. Where the arms differ in the rows of
a unit, a mean per row compares other things than a mean per unit, and may move against it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from streammetrics.combine.units import UnitsResult
from streammetrics.combine.user_groups import UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.experiments.arm import Arm
from streammetrics.experiments.compared import error_of, not_ready
from streammetrics.experiments.comparison import compared
from streammetrics.experiments.plan import Horizon
from streammetrics.experiments.strata import by_epoch
from streammetrics.kernels.inference.normal_mixture import gaussianised, log_e, tuned
from streammetrics.kernels.inference.pooled_variance import skewness_number
from streammetrics.kernels.inference.variances import jackknife_variance
from streammetrics.present.notebook import Shown
from streammetrics.present.view import View

ALPHA: Final = 0.001  # of all looks together
UNITS: Final = 10_000.0  # the interval is about the narrowest at half of them, if none are planned
_NOT_GROUPED: Final = "rows are not counted by unit, so nothing says how much they vary"
_DIGITS: Final = range(3, 17)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowsPerUnit(Shown):
    """Rows per unit of control and treatment; nan if units or rows are not known.

    log_e: the evidence of this look that they differ, valid at all looks together. reason: why it
    is not known, or "".
    """

    control: float = field(metadata=View(of_error=True))
    treatment: float = field(metadata=View(of_error=True))
    log_e: float = field(default=0.0, metadata=View(of_error=True))
    reason: str = ""

    @property
    def differ(self) -> bool:
        """Whether they differ, at all looks together at 0.1 %."""
        return self.log_e >= -math.log(ALPHA)

    @property
    def text(self) -> str:
        """That they differ, and by how much; "" if that is not known.

        >>> RowsPerUnit(4.0812, 4.8799, 20.0).text
        'rows per unit differ (4.08 and 4.88)'
        """
        if not self.differ:
            return ""
        texts = [(f"{self.control:.{n}g}", f"{self.treatment:.{n}g}") for n in _DIGITS]
        a, b = next((pair for pair in texts if pair[0] != pair[1]), texts[-1])
        return f"rows per unit differ ({a} and {b})"


def arm_of_units(state: Accumulator, units: UnitsResult) -> Arm:
    """The rows of a state over these units, with a jackknife over the groups of a UserGroups."""
    n = units.units
    if not isinstance(state, UserGroups) or not n > 0:
        rows = getattr(state.compute(), "rows", math.nan)
        return _arm(float(rows) / n if n > 0 else math.nan, n, None, _NOT_GROUPED)
    rows = state.rows_of_groups()
    sizes = [size / units.share for size in units._sizes_of_groups(state.buckets, state.salt)]
    return _arm(sum(rows) / n, n, _without_each(rows, sizes))


def _without_each(rows: Sequence[int], units: Sequence[float]) -> tuple[float | None, ...]:
    """Rows per unit without each group; None for a group without any."""
    whole, users = sum(rows), math.fsum(units)
    return tuple(
        None if not (count or n) else (whole - count) / (users - n) if users > n else math.nan
        for count, n in zip(rows, units, strict=True)
    )


def _arm(
    value: float, n: float, replicates: tuple[float | None, ...] | None, reason: str = ""
) -> Arm:
    estimates = [replicate for replicate in replicates or () if replicate is not None]
    spread = jackknife_variance(estimates)
    count = 0 if math.isnan(n) else round(n)
    return Arm(
        view="rows per unit",
        value=value,
        variance=spread.variance,
        df=spread.df,
        method="jackknife",
        rows=count,
        n=count,
        deff=1.0,
        kind="mean",
        counted=(count,),
        counted_of=count,
        unit="units",
        masses={"units": float(count)},
        skewness=skewness_number(estimates) if estimates else math.nan,
        replicates=replicates,
        together=value,
        reason=reason or spread.reason,
    )


def rows_per_unit(
    arms: Mapping[str, tuple[Arm, Arm]], sizes: Mapping[str, int], horizon: Horizon
) -> RowsPerUnit:
    """Rows per unit of both arms, by epoch as in `strata.by_epoch`, and whether they differ.

    The clock of the evidence is n_c n_t / (n_c + n_t) in units, which no data change, narrowest
    where the horizon plans it; the variance is that of both arms together, with units as the mass.
    Where every unit of an arm has the same rows, as when a client sends each event twice, units are
    taken to vary by as much as the arms differ.
    """
    pair = by_epoch(arms, sizes)
    if pair is None:
        return RowsPerUnit(math.nan, math.nan, reason="no units")
    a, b = pair.control, pair.treatment
    if a.replicates is None or b.replicates is None:
        return RowsPerUnit(a.estimate, b.estimate, reason=a.reason or b.reason)
    share = horizon.treatment_share
    planned = (horizon.units or UNITS) * horizon.optimize_at * share * (1.0 - share)
    clock = a.n * b.n / (a.n + b.n)
    comparison = compared(pair, 1.0 - ALPHA)
    if a.variance == b.variance == 0.0:
        z = math.sqrt(clock) if comparison.effect_size else 0.0
    elif (waiting := not_ready(comparison, None)) is not None:
        return RowsPerUnit(a.estimate, b.estimate, reason=waiting.reason)
    else:
        error, df = error_of(comparison)
        z = gaussianised(comparison.effect_size / error, df)
    return RowsPerUnit(a.estimate, b.estimate, log_e(z, clock, tuned(planned, ALPHA)))
