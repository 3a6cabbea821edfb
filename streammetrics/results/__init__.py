"""Frozen results of metrics: rates, curves, averages, each with its denominators.

The public names here read any result without knowledge of its metric.
"""

from streammetrics.core.bounded import Bounded
from streammetrics.core.interval import interval_of
from streammetrics.present.figures import figure_by_series, figure_of, kinds_of
from streammetrics.present.notebook import html_table
from streammetrics.present.views import (
    Direction,
    counts_of,
    direction_of,
    headlines_of,
    range_of,
    texts_of,
    views_of,
)
from streammetrics.results.join_results import ClosedRows, OutcomeDelays, PendingRows

__all__ = [
    "Bounded",
    "ClosedRows",
    "Direction",
    "OutcomeDelays",
    "PendingRows",
    "counts_of",
    "direction_of",
    "figure_by_series",
    "figure_of",
    "headlines_of",
    "html_table",
    "interval_of",
    "kinds_of",
    "range_of",
    "texts_of",
    "views_of",
]
