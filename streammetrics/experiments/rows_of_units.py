"""Rows per unit of both arms, from their states and their counted units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from streammetrics.combine.units import UnitsResult
from streammetrics.combine.user_groups import UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.experiments.arms import Arm, ArmCounts, Precision, WithoutGroups
from streammetrics.experiments.confidence_sequence import not_ready
from streammetrics.experiments.difference import compared
from streammetrics.experiments.horizon import Horizon
from streammetrics.experiments.rows_per_unit import ALPHA, RowsPerUnit
from streammetrics.experiments.strata import epoch_strata
from streammetrics.kernels.inference.normal_mixture import gaussianised, log_e, tuned
from streammetrics.kernels.inference.pooled_variance import skewness_number
from streammetrics.kernels.inference.variances import jackknife_variance

UNITS: Final = 10_000.0  # the interval is about the narrowest at half of them, if none are planned
_NOT_GROUPED: Final = "rows are not counted by unit, so nothing says how much they vary"


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
        precision=Precision(
            variance=spread.variance,
            df=spread.df,
            method="jackknife",
            n=count,
            deff=1.0,
            reason=reason or spread.reason,
        ),
        counts=ArmCounts(
            kind="mean",
            counted=(count,),
            rows=count,
            counted_of=count,
            unit="units",
            masses={"units": float(count)},
            skewness=skewness_number(estimates) if estimates else math.nan,
        ),
        without=WithoutGroups(replicates=replicates, together=value),
    )


def rows_per_unit(
    arms: Mapping[str, tuple[Arm, Arm]], sizes: Mapping[str, int], horizon: Horizon
) -> RowsPerUnit:
    """Rows per unit of both arms, by epoch as in `strata.epoch_strata`, and whether they differ.

    The clock of the evidence is n_c n_t / (n_c + n_t) in units, which no data change, narrowest
    where the horizon plans it; the variance is that of both arms together, with units as the mass.
    Where every unit of an arm has the same rows, as when a client sends each event twice, units are
    taken to vary by as much as the arms differ.
    """
    pair = epoch_strata(arms, sizes)
    if pair is None:
        return RowsPerUnit(math.nan, math.nan, reason="no units")
    a, b = pair.control, pair.treatment
    if a.without.replicates is None or b.without.replicates is None:
        return RowsPerUnit(a.estimate, b.estimate, reason=a.precision.reason or b.precision.reason)
    share = horizon.treatment_share
    planned = (horizon.units or UNITS) * horizon.optimize_at * share * (1.0 - share)
    clock = a.precision.n * b.precision.n / (a.precision.n + b.precision.n)
    comparison = compared(pair, 1.0 - ALPHA)
    if a.precision.variance == b.precision.variance == 0.0:
        z = math.sqrt(clock) if comparison.effect_size else 0.0
    elif (waiting := not_ready(comparison.evidence, None)) is not None:
        return RowsPerUnit(a.estimate, b.estimate, reason=waiting.reason)
    else:
        evidence = comparison.evidence
        z = gaussianised(evidence.effect_size / evidence.std_error, evidence.df)
    return RowsPerUnit(a.estimate, b.estimate, log_e(z, clock, tuned(planned, ALPHA)))
