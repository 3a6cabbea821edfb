"""Figures as Vega-Lite specifications, made from plain values; each kind is defined once.

The page, the report and `.plot()` of every result show these. The results themselves are in
`streammetrics.results`.
"""

from streammetrics.exports import exports

__all__, __getattr__, __dir__ = exports(__name__)
