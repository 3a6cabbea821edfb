"""One arm of a comparison: an estimate and its precision, read from a state."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final, Protocol, cast

from streammetrics.combine import Panel, PerKey, UserGroups, UserGroupsResult, Windows
from streammetrics.combine.clustered import growth, no_jackknife
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Kind
from streammetrics.estimators.quantile_evidence import QuantileEvidence
from streammetrics.experiments.arms import UNITS, Arm, ArmCounts, Precision, Traits, WithoutGroups
from streammetrics.experiments.masses import class_rows, masses_of
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.pooled_variance import (
    most_skewness_number,
    skewness_number,
)
from streammetrics.kernels.inference.proportions import share_variance
from streammetrics.kernels.inference.variances import GroupVariance
from streammetrics.present.estimand import Estimand, estimand_of
from streammetrics.present.value_rows import reason_of
from streammetrics.present.view import declared_views
from streammetrics.present.views import (
    counts_of,
    direction_of,
    range_of,
    view_of,
)
from streammetrics.results.has_intervals import HasIntervals, no_interval
from streammetrics.results.list_results import Averages

_CHOSEN: Final = (
    "the rows choose the threshold of this view, so no interval holds at all looks: fix the "
    "threshold beforehand and watch confusion(t)"
)
# Intervals with bounds of their own, from which those of a difference follow.
_BOUNDED: Final = ("wilson", "jackknife, wilson", "ranks", "woodruff")


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
    estimand = estimand_of(figures, chosen)
    counts, share = counts_of(figures), _share(plain, estimand)
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
    unsound = growing or no_jackknife(estimand) or estimand.over_users.scarce
    if grouped:
        pairs = zip(grouped.replicates(chosen), grouped.weights, strict=True)
        sound = math.nan if unsound else 1.0
        replicates = tuple(replicate * sound if weight else None for replicate, weight in pairs)
    unit = getattr(figures, "independent", "") or "rows"
    of_units = estimand.replicates if grouped is None else None
    if of_units is not None:
        unit = UNITS
        if independent is None:
            replicates, of_units = of_units, None
    bounded = interval.method in _BOUNDED
    rows = grouped.rows if grouped else counts.get("rows", plain.n)
    return Arm(
        view=chosen,
        value=Fraction(*share) if share and share[1] else interval.estimate,
        precision=Precision(
            variance=share_variance(*independent) if independent else interval.se * interval.se,
            df=interval.df,
            method=interval.method,
            n=interval.n,
            deff=interval.deff if grouped else 1.0,
            lower=interval.lower if bounded else -math.inf,
            upper=interval.upper if bounded else math.inf,
            resolution=interval.resolution,
            reason=interval.reason,
        ),
        counts=ArmCounts(
            kind=kind,
            counted=counted,
            rows=rows,
            counted_of=sum(counted) if kind == "rate" else rows,
            unit=unit,
            share=independent,
            masses=masses_of(kind, figures, plain.n, rows, grouped, interval.deff),
            skewness=_skewness(estimand, plain, replicates),
            largest_group=max(grouped.weights) / grouped.rows if grouped and grouped.rows else 0.0,
        ),
        without=WithoutGroups(
            replicates=replicates,
            of_units=of_units,
            together=grouped.group_estimate(chosen) if grouped else interval.estimate,
            no_jackknife=unsound,
            salt=getattr(state, "salt", ""),
        ),
        traits=Traits(
            direction=direction_of(figures, chosen),
            limits=range_of(figures, chosen),
            origin=estimand.origin,
            never=_CHOSEN if estimand.chosen else growing,
            effects=effects_of(figures),
            doubts=estimand.doubts,
        ),
        moments=None if grouped else _moments(independent, estimand),
        quantile=quantile,
        sides=estimand.sides,
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
    declared = declared_views(type(figures)).items()
    return tuple(sorted(name for name, view in declared if view.effect))


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


def _share(plain: Interval, estimand: Estimand) -> tuple[int, int] | None:
    """Successes and n if the estimate is a share of unweighted rows."""
    if plain.method == "wilson" and math.isfinite(plain.estimate):
        return round(plain.estimate * plain.n), plain.n  # a quotient of integers, rounded once
    return None if plain.n else estimand.successes


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
    quantile: QuantileEvidence | None,
    classes: tuple[int, int],
) -> tuple[Kind, tuple[int, ...]]:
    if quantile is not None:
        return "quantile", quantile.expected_rows
    if share is not None:
        return "rate", (share[0], share[1] - share[0])
    if cell is not None:
        return "cells", (cell,)
    if "positives" in counts and "rows" in counts:
        return "area", classes
    return "mean", (n,)


def quantile_arm(
    figures: object, view: str, grouped: UserGroupsResult[object] | None
) -> QuantileEvidence | None:
    """The arm of a view that is a quantile, with the rows that its sequence needs; else None."""
    estimand = estimand_of(figures, view)
    quantile = estimand.quantile
    if quantile is None or reason_of(figures, view):
        return None
    (p, ordered), rows = quantile, counts_of(figures)["rows"]
    if grouped is None:
        unweighted = not no_interval(cast("HasIntervals", figures), view)
        return QuantileEvidence(p, ordered, rows) if unweighted else None
    behind = estimand.over_users.behind
    if behind is None:
        return QuantileEvidence(p, ordered, rows, GroupVariance(math.nan, 0, ""))
    whole, shares = grouped.group_estimate(behind.view), grouped.replicates(behind.view)
    replicates = (
        share if weight else whole for share, weight in zip(shares, grouped.weights, strict=True)
    )
    users = grouped._variance_behind(behind).variance
    return QuantileEvidence(p, ordered, rows, users, tuple(replicates))
