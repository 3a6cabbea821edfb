"""The coarse form of a metric: the state of a group of users, for a variance alone."""

from __future__ import annotations

from typing import Final, TypedDict

from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.multiclass_auc import MulticlassAUC
from streammetrics.combine.panel import Panel
from streammetrics.core.accumulator import Accumulator
from streammetrics.distributions.quantiles import Quantiles
from streammetrics.policies.exact_uplift import ExactUplift
from streammetrics.policies.uplift import Uplift

ENOUGH: Final = 64  # buckets; a metric whose own grid has no more is its own coarse form
_OF_QUANTILES: Final = {"relative": 4, "equal": 8}  # the resolution, by the kind of grid


class _Grid(TypedDict, total=False):
    grid: str
    resolution: int
    range: str
    floor: float
    edges: tuple[float, ...]


# Steps of a half of a power of two, from 2**-16 to 1/2 and mirrored to 1: 63 buckets.
_PROBABILITIES: Final[_Grid] = {"resolution": 1, "floor": 2.0**-16}


def _edges_of_any_score() -> tuple[float, ...]:
    """Edges that separate log odds, and probabilities also near 0 and near 1: 61 buckets."""
    near_0 = [m * 2.0**-n for n in range(12, 1, -1) for m in (1.0, 1.5)]
    near_1 = [1 - x for x in near_0]
    above = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0]
    below = [-x for x in (0.5, *above)]
    return tuple(sorted({*below, *near_0, 0.5, *near_1, *above}))


# Parts of the rows are cut from them, so buckets of effects are narrower: of a relative width of
# 1/8, 771 of them. Few are occupied, since the scores of one model have similar sizes.
_EFFECTS: Final[_Grid] = {"resolution": 3}
_SHARES: Final[_Grid] = {"resolution": 3, "floor": 2.0**-16, "range": "probability"}
_ANY_SCORE: Final[_Grid] = {"grid": "edges", "range": "real", "edges": _edges_of_any_score()}


def coarse_form(metric: Accumulator) -> Accumulator:
    """An empty metric whose states in groups give the variance of the metric between them.

    It takes the rows from the metric's `check`. It is the metric itself, unless that keeps scores.

    >>> from streammetrics import HistogramAUC, Ratio
    >>> coarse_form(HistogramAUC()).buckets, coarse_form(Ratio())
    (63, Ratio())
    """
    match metric:
        case Quantiles() if metric.resolution > _OF_QUANTILES.get(metric.grid, metric.resolution):
            return _quantiles(metric)
        case HistogramAUC() if metric.buckets > ENOUGH:
            return _histogram(metric, _grid(metric.range))
        case ExactAUC():
            return _histogram(metric, _ANY_SCORE)
        case Panel():
            each = {name: coarse_form(m) for name, m in metric.metrics.items()}
            return Panel(each, metric.inputs)
        case MulticlassAUC() if metric.exact or metric.buckets > ENOUGH:
            return MulticlassAUC(
                metric.n_classes,
                weight_unit=metric.weight_unit,
                round_weights=metric.round_weights,
                **(_ANY_SCORE if metric.exact else _grid(metric.range)),
            )
        case ExactUplift():
            return _uplift(metric, _EFFECTS)
        case Uplift():
            within = metric.range == "probability"
            coarse = _uplift(metric, _SHARES if within else _EFFECTS)
            return coarse if coarse.buckets < metric.buckets else metric.empty()
    return metric.empty()


def _quantiles(metric: Quantiles) -> Quantiles:
    """The metric with fewer buckets, whose edges are edges of the metric's own."""
    settings = {**metric.settings(), "resolution": _OF_QUANTILES[metric.grid]}
    return Quantiles(**settings)  # type: ignore[arg-type]


def _histogram(metric: HistogramAUC | ExactAUC, grid: _Grid) -> HistogramAUC:
    """The coarse form on `grid`, which reads rows by the same settings as the metric."""
    return HistogramAUC(
        positive=metric.positive,
        weight_unit=metric.weight_unit,
        round_weights=metric.round_weights,
        **grid,
    )


def _uplift(metric: Uplift | ExactUplift, grid: _Grid) -> Uplift:
    """The coarse form on `grid`, as above."""
    return Uplift(
        treated_share=metric.treated_share,
        weight_unit=metric.weight_unit,
        round_weights=metric.round_weights,
        **grid,
    )


def _grid(range_: str) -> _Grid:
    return _PROBABILITIES if range_ == "probability" else _ANY_SCORE
