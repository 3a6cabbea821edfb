"""What holds at all looks reads from a comparison, and whether it is enough for an interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from streammetrics.experiments.arm import BURN_IN, GROUPS
from streammetrics.experiments.evidence import Shortage
from streammetrics.experiments.masses import Kind
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.quantile_arms import QuantileArms
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments


class Compared(Protocol):
    """The values that a confidence sequence reads from a comparison; a missing one is None.

    effect_size: treatment - control. df: of the standard error, inf if it is not from groups.
    anytime_error, anytime_df: the same of both arms together, which what holds at all looks rests
    on; nan: std_error and df. least_count: the smallest burn-in count of either arm: expected
    events, and other rows, of a rate, positives and negatives of an area, units of a mean.
    shortage: of which arm, and what would be enough. no_sequence: why there is no always-valid
    interval of an arm, such as an estimate that is too far from normal, or "". groups: of users,
    None if rows are independent. successes: by epoch.
    moments: of control and treatment, values with bounds known by design. kind: the quantity that
    a burn-in counts. quantiles: both arms of a quantile, which has no standard error. resolution:
    how far buckets may have moved the effect, or 0. reason: why the effect is undefined, or "".
    """

    @property
    def effect_size(self) -> float: ...
    @property
    def std_error(self) -> float: ...
    @property
    def df(self) -> float: ...
    @property
    def anytime_error(self) -> float: ...
    @property
    def anytime_df(self) -> float: ...
    @property
    def least_count(self) -> int: ...
    @property
    def shortage(self) -> Shortage | None: ...
    @property
    def no_sequence(self) -> str: ...
    @property
    def groups(self) -> int | None: ...
    @property
    def successes(self) -> tuple[Successes, ...] | None: ...
    @property
    def moments(self) -> tuple[Moments, Moments] | None: ...
    @property
    def kind(self) -> Kind | None: ...
    @property
    def quantiles(self) -> QuantileArms | None: ...
    @property
    def resolution(self) -> float: ...
    @property
    def reason(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The values of `Compared` as plain fields."""

    effect_size: float = math.nan
    std_error: float = math.nan
    df: float = math.inf
    anytime_error: float = math.nan
    anytime_df: float = math.inf
    least_count: int = 0
    shortage: Shortage | None = None
    no_sequence: str = ""
    groups: int | None = None
    successes: tuple[Successes, ...] | None = None
    moments: tuple[Moments, Moments] | None = None
    kind: Kind | None = None
    quantiles: QuantileArms | None = None
    resolution: float = 0.0
    reason: str = ""


_LEAST: Final = 10  # of a comparison whose kind is unknown
_COUNTED: Final[Mapping[Kind, str]] = {
    "rate": "events, or rows without one",
    "cells": "rows that decide the metric",
    "area": "positives or negatives",
    "mean": "rows or lists",
    "quantile": "rows below or above the quantile",
}


def information(found: Compared) -> float:
    """The clock v = 1 / V."""
    error, _ = error_of(found)
    return 1.0 / error / error


def error_of(found: Compared) -> tuple[float, float]:
    """√V, which what holds at all looks rests on, and its degrees of freedom."""
    if math.isnan(found.anytime_error):
        return found.std_error, found.df
    return found.anytime_error, found.anytime_df


def not_ready(found: Compared, min_count: int | None) -> Anytime | None:
    """Why there is no asymptotic interval yet: undefined, or before the burn-in; None if ready.
    min_count: None for that of the kind."""
    error, df = error_of(found)
    is_known = found.quantiles is not None or (0 < error < math.inf and df > 0)
    if not (math.isfinite(found.effect_size) and is_known):
        why = found.reason or found.no_sequence or "the effect or its standard error is undefined"
        return Anytime(gated=True, reason=why)
    if found.groups is not None and found.groups < GROUPS:
        why = f"an arm has too few groups of users: {found.groups}, needs {GROUPS}"
        return Anytime(gated=True, reason=why)
    need = min_count
    if need is None:
        need = BURN_IN[found.kind] if found.kind else _LEAST
    if found.least_count < need and found.shortage is not None:
        return Anytime(gated=True, reason=found.shortage.reason(need))
    if found.least_count < need:
        effective = "" if found.groups is None else "effective "
        counted = f"few {effective}{_COUNTED[found.kind]}" if found.kind else "low a burn-in count"
        why = f"an arm has too {counted}: {found.least_count}, needs {need}"
        return Anytime(gated=True, reason=why)
    return Anytime(gated=True, reason=found.no_sequence) if found.no_sequence else None
