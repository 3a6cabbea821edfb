"""The coarse form of a metric: the state of a group of users, for a variance alone."""

from __future__ import annotations

from typing import Final, TypedDict

from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.multiclass_auc import MulticlassAUC
from streammetrics.combine.panel import Panel
from streammetrics.core.accumulator import Accumulator

ENOUGH: Final = 64  # buckets; a metric whose own grid has no more is its own coarse form


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


_ANY_SCORE: Final[_Grid] = {"grid": "edges", "range": "real", "edges": _edges_of_any_score()}


def coarse_form(metric: Accumulator) -> Accumulator:
    """An empty metric whose states in groups give the variance of the metric between them.

    It takes the rows from the metric's `check`. It is the metric itself, unless that keeps scores.

    >>> from streammetrics import HistogramAUC, Ratio
    >>> coarse_form(HistogramAUC()).buckets, coarse_form(Ratio())
    (63, Ratio())
    """
    match metric:
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
    return metric.empty()


def _histogram(metric: HistogramAUC | ExactAUC, grid: _Grid) -> HistogramAUC:
    """The coarse form on `grid`, which reads rows by the same settings as the metric."""
    return HistogramAUC(
        positive=metric.positive,
        weight_unit=metric.weight_unit,
        round_weights=metric.round_weights,
        **grid,
    )


def _grid(range_: str) -> _Grid:
    return _PROBABILITIES if range_ == "probability" else _ANY_SCORE
