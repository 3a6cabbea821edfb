"""Frozen values that metrics give: rates, curves, averages, each with its denominators.

Public here is what reads any result without knowing its metric.
"""

from streammetrics.results.bounded import Bounded
from streammetrics.results.figures import counts_of, headlines_of, texts_of, views_of

__all__ = ["Bounded", "counts_of", "headlines_of", "texts_of", "views_of"]
