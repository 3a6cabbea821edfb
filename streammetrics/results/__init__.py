"""Frozen values that metrics give: rates, curves, averages, each with its denominators.

Public here is what reads any result without knowing its metric.
"""

from streammetrics.core.interval import interval_of
from streammetrics.results.bounded import Bounded
from streammetrics.results.direction import Direction, direction_of
from streammetrics.results.drawn import figure_by_series, figure_of, kinds_of
from streammetrics.results.figures import counts_of, headlines_of, texts_of, views_of
from streammetrics.results.html_table import html_table
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
    "texts_of",
    "views_of",
]
