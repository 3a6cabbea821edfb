"""One arm of a comparison: an estimate and its precision, read from a state."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Protocol, cast

from streammetrics.combine import Panel, PerKey, UserGroups, UserGroupsResult, Windows
from streammetrics.combine.clustered import growth, no_jackknife
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Replicates
from streammetrics.experiments.masses import Basis, Kind, class_rows, masses_of
from streammetrics.experiments.quantile_arms import QuantileArm, quantile_arm
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.pooled_variance import (
    ALONE,
    ALONE_ROWS,
    most_skewness_number,
    skewness_number,
)
from streammetrics.kernels.inference.proportions import share_variance
from streammetrics.present.estimand import Estimand, estimand_of
from streammetrics.present.view import NONE, Direction, Range, declared_views
from streammetrics.present.views import (
    counts_of,
    direction_of,
    range_of,
    view_of,
)
from streammetrics.results.has_intervals import doubts_of
from streammetrics.results.list_results import Averages
from streammetrics.results.sums import Quotient

GROUPS: Final = 16  # with rows, before an interval that holds at all looks

# The least counts of each arm of a comparison, and of a state that is compared with no other one.
BURN_IN: Final[dict[Kind, int]] = {"rate": 10, "cells": 10, "area": 10, "mean": 100, "quantile": 10}
ALONE_BURN_IN: Final[dict[Kind, int]] = {**BURN_IN, "area": 30}
_TOO_SKEW: Final = "the estimate rests on too few values: skewness number {:g}, needs {:g}"
_CHOSEN: Final = (
    "the rows choose the threshold of this view, so no interval holds at all looks: fix the "
    "threshold beforehand and watch confusion(t)"
)
NO_VARIANCE: Final = "the variance of an arm is 0, which says nothing about other rows"
# Intervals with bounds of their own, from which those of a difference follow.
_BOUNDED: Final = ("wilson", "jackknife, wilson", "ranks", "woodruff")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """An estimate, its variance, and the counts that show whether there are enough rows.

    value: the estimate, a fraction if it is a share. lower, upper: the bounds of a share or a
    quantile, from which those of the difference follow, else infinite. rows: the counted rows; n:
    the number of values that the estimate is a mean of. kind, counted: successes and failures of a
    rate; the smallest cell of a view of a confusion matrix; positives and negatives of an area, and
    of any other function of two classes; rows or lists of a mean; rows below and above a quantile.
    counted_of: the rows that they are counted of.
    share: successes and n, of independent rows. unit: what rows are called. masses: by name, of
    what the estimate is one, such as its rows and users, for the variance of a difference.
    skewness: the skewness number of the values of a mean, or a bound of it; nan if unknown.
    replicates: the estimate without each group of users, None for
    a group without rows and nan if undefined; None if rows are independent. together: the estimate
    of which they are replicates, `value` or that of coarser scores. direction: the direction in
    which the view is better, as its result declares it. limits: the least and the greatest value of
    the view. largest_group: the largest share of the rows in one group of users, 0 if unknown.
    never: why no interval of the view holds at all looks, or "". moments: of independent rows whose
    values are bounded by design, from which follows an interval that is exact at all looks; None
    for others. quantile: the rows, if the view is a quantile. sides: of a view that is itself an
    effect, the rows that each variant won. effects: the views of the result that are themselves
    effects. no_jackknife: why `replicates` do not show the variance, so that they are nan, as those
    of a quantile; "" if they do. known: the control of an effect,
    which is 0 without any rows. doubts: reasons to doubt the estimate although it is defined, such
    as weights of a policy that are not 1 on average.
    """

    view: str
    value: float | Fraction
    variance: float
    df: float
    lower: float = -math.inf
    upper: float = math.inf
    method: str
    rows: int
    n: int
    deff: float
    resolution: float = 0.0
    kind: Kind
    counted: tuple[int, ...]
    share: tuple[int, int] | None = None
    counted_of: int = 0
    unit: str = "rows"
    masses: Mapping[str, Basis] = field(default_factory=dict)
    skewness: float = math.inf
    replicates: Replicates | None = None
    together: float = math.nan
    reason: str = ""
    direction: Direction = NONE
    limits: Range = (-math.inf, math.inf)
    largest_group: float = 0.0
    never: str = ""
    moments: Moments | None = None
    quantile: QuantileArm | None = None
    sides: Successes | None = None
    effects: tuple[str, ...] = ()
    known: bool = False
    no_jackknife: str = ""
    of_units: Replicates | None = None
    doubts: tuple[str, ...] = ()

    @property
    def estimate(self) -> float:
        """The value as a float."""
        return float(self.value)

    @property
    def groups(self) -> int | None:
        """The number of groups that have rows; None if rows are independent."""
        if self.replicates is None:
            return None
        return sum(replicate is not None for replicate in self.replicates)

    @property
    def least(self) -> int:
        """The smallest of the counts, divided by the design effect if it is known."""
        least = min(self.counted)
        return math.floor(least / self.deff) if 1.0 < self.deff < math.inf else least

    @property
    def no_sequence(self) -> str:
        """Why there is no always-valid interval of this arm alone although there are enough rows,
        or "": the rows choose the view, or the estimate is too far from normal. Groups of users are
        judged by their skewness number, unless `least` suffices."""
        if self.never or self.known:
            return self.never
        if self.quantile is not None:
            return "" if self.quantile.known else NO_VARIANCE
        if self.variance == 0:
            return NO_VARIANCE
        if math.isnan(self.variance) or not self.is_skew:
            return ""  # without a variance there is no interval at all, and `reason` says why
        need = ALONE_ROWS if self.replicates is None else ALONE
        number = 0.0 if math.isnan(self.skewness) else _rounded_down(self.skewness)
        return _TOO_SKEW.format(number, need) if not self.skewness >= need else ""

    @property
    def is_skew(self) -> bool:
        """Whether the skewness number decides whether its rows suffice."""
        clustered = self.replicates is not None and math.isnan(self.deff)
        return self.quantile is None and (self.kind == "mean" or clustered)


class _Result(Protocol):
    def interval(self, view: str | None = ..., *, level: float = ...) -> Interval: ...


def arm_of(state: Accumulator, view: str | None, level: float, *, same_rows: bool = False) -> Arm:
    """One arm, from the current state; undefined if it has too few rows, with the reason.

    same_rows: whether the other arm has the same rows, so that a view may grow with their number.
    InputError for a view that the metric does not have, SettingsError for several metrics in one.
    """
    if not isinstance(state, Accumulator):
        raise InputError(
            expected="a state: a metric with its rows, which has the variance that a result lacks",
            got=type(state).__name__,
            where="state",
            hint="pass the metric itself, not its result",
        )
    result = state.compute()
    grouped = result if isinstance(result, UserGroupsResult) else None
    figures = grouped.value if grouped else result
    if not callable(getattr(figures, "interval", None)):
        raise SettingsError(
            expected="a metric, or UserGroups of a metric",
            got=type(state).__name__,
            where="compared states",
            hint=_one_metric(state),
        )
    chosen = view_of(figures, view).text
    plain = cast("_Result", figures).interval(chosen, level=level)
    interval = grouped.interval(chosen, level=level) if grouped else plain
    counts, share = counts_of(figures), _share(plain, figures, chosen)
    estimand = estimand_of(figures, chosen)
    cell = estimand.least_cell
    quantile = quantile_arm(figures, chosen, grouped)
    classes = class_rows(figures, counts.get("rows", 0), grouped)
    kind, counted = _counted(share, cell, counts, plain.n, quantile, classes)
    independent = share if share and not grouped and plain.method == "wilson" else None
    replicates = None
    growing = "" if same_rows else growth(estimand)
    if growing:
        interval = Interval.undefined(
            growing, level=level, method=interval.method, n=interval.n, estimate=interval.estimate
        )
    unsound = growing or no_jackknife(estimand) or estimand.scarce
    if grouped:
        pairs = zip(grouped.replicates(chosen), grouped.weights, strict=True)
        sound = math.nan if unsound else 1.0
        replicates = tuple(replicate * sound if weight else None for replicate, weight in pairs)
    unit = getattr(figures, "independent", "") or "rows"
    of_units = estimand.replicates if grouped is None else None
    if of_units is not None:
        unit = "units"
        if independent is None:
            replicates, of_units = of_units, None
    bounded = interval.method in _BOUNDED
    rows = grouped.rows if grouped else counts.get("rows", plain.n)
    return Arm(
        view=chosen,
        value=Fraction(*share) if share and share[1] else interval.estimate,
        variance=share_variance(*independent) if independent else interval.se * interval.se,
        df=interval.df,
        lower=interval.lower if bounded else -math.inf,
        upper=interval.upper if bounded else math.inf,
        method=interval.method,
        rows=rows,
        n=interval.n,
        deff=interval.deff if grouped else 1.0,
        resolution=interval.resolution,
        kind=kind,
        counted=counted,
        share=independent,
        counted_of=sum(counted) if kind == "rate" else rows,
        unit=unit,
        masses=masses_of(kind, figures, plain.n, rows, grouped, interval.deff),
        skewness=_skewness(estimand, plain, replicates),
        replicates=replicates,
        together=grouped.group_estimate(chosen) if grouped else interval.estimate,
        reason=interval.reason,
        direction=direction_of(figures, chosen),
        limits=range_of(figures, chosen),
        largest_group=max(grouped.weights) / grouped.rows if grouped and grouped.rows else 0.0,
        never=_CHOSEN if estimand.chosen else growing,
        moments=None if grouped else _moments(independent, estimand),
        quantile=quantile,
        sides=estimand.sides,
        effects=effects_of(figures),
        no_jackknife=unsound,
        doubts=doubts_of(figures, chosen),
        of_units=of_units,
    )


def _moments(share: tuple[int, int] | None, estimand: Estimand) -> Moments | None:
    """Those of a share, whose zeros and ones equal their squares, or of the result."""
    if share is not None:
        return Moments(share[1], share[0], share[0])
    return estimand.moments


def is_effect(result: object, view: str | None = None) -> bool:
    """Whether a view of a result, None the headline, is itself an effect."""
    effects = effects_of(result)
    figures = result.value if isinstance(result, UserGroupsResult) else result
    return bool(effects) and view_of(figures, view).text in effects


def effects_of(result: object) -> tuple[str, ...]:
    """The views of a result that are themselves effects."""
    figures = result.value if isinstance(result, UserGroupsResult) else result
    declared = declared_views(type(figures)).values()
    return tuple(sorted(view.name for view in declared if view.effect))


def without_effect(arm: Arm) -> Arm:
    """The control of an arm whose view is itself an effect: 0, known without any rows."""
    groups = arm.replicates
    return Arm(
        view=arm.view,
        value=Fraction(0),
        variance=0.0,
        df=math.inf,
        method=arm.method,
        rows=0,
        n=0,
        deff=1.0,
        kind=arm.kind,
        counted=arm.counted,
        replicates=groups and tuple(None if replicate is None else 0.0 for replicate in groups),
        together=0.0,
        direction=arm.direction,
        limits=(0.0, 0.0),
        known=True,
    )


def _one_metric(state: Accumulator) -> str:
    """The hint for a state of several metrics, keys or windows."""
    match state:
        case Panel():
            return f"compare one metric: state({next(iter(state.metrics))!r}) of each"
        case PerKey():
            keys = state.keys()
            return f"compare one key: state({shown(keys[0]) if keys else 'key'}) of each"
        case Windows():
            return "compare all windows, total_state() of each, or window_state(start_ms, end_ms)"
        case UserGroups(metric=Panel() as panel):
            return f"compare one metric: project({next(iter(panel.metrics))!r}) of each"
    return "compare the states of one metric and one key"


def no_arm(view: str) -> Arm:
    """An arm without a state."""
    nothing = math.nan
    return Arm(
        view=view,
        value=nothing,
        variance=nothing,
        df=nothing,
        method="",
        rows=0,
        n=0,
        deff=nothing,
        kind="mean",
        counted=(0,),
        reason="no rows",
    )


def _rounded_down(number: float) -> float:
    return number if math.isinf(number) else math.floor(10 * number) / 10


def _share(plain: Interval, figures: object, view: str) -> tuple[int, int] | None:
    """Successes and n if the estimate is a share of unweighted rows."""
    if isinstance(figures, Quotient) and view == "ratio":
        exact = figures.exact if figures.is_share else None
        return (int(exact[0]), figures.rows) if exact else None
    if plain.method == "wilson" and math.isfinite(plain.estimate):
        return round(plain.estimate * plain.n), plain.n  # a quotient of integers, rounded once
    return None


def _skewness(
    estimand: Estimand, plain: Interval, replicates: tuple[float | None, ...] | None
) -> float:
    """The skewness number of the values that an estimate is a mean of; where their cubes are
    unknown, the bound that follows from the squares, of measures in [0, 1] also of 1 - value."""
    if replicates is not None:
        return skewness_number([replicate for replicate in replicates if replicate is not None])
    number = estimand.skewness_number
    if not math.isnan(number):
        return number
    n, mean, variance = plain.n, plain.estimate, plain.se * plain.se
    ends = (
        [mean, 1.0 - mean] if isinstance(estimand.result, Averages) and 0 <= mean <= 1 else [mean]
    )
    return min(most_skewness_number(n, end, variance) for end in ends)


def _counted(
    share: tuple[int, int] | None,
    cell: int | None,
    counts: dict[str, int],
    n: int,
    quantile: QuantileArm | None,
    classes: tuple[int, int],
) -> tuple[Kind, tuple[int, ...]]:
    if quantile is not None:
        return "quantile", quantile.beyond
    if share is not None:
        return "rate", (share[0], share[1] - share[0])
    if cell is not None:
        return "cells", (cell,)
    if "positives" in counts and "rows" in counts:
        return "area", classes
    return "mean", (n,)
