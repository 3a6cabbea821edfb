"""Metrics of numbers: quantiles, moments, and means and rates over units."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.distributions.exact_quantiles import ExactQuantiles
    from streammetrics.distributions.moments import Moments
    from streammetrics.distributions.quantiles import Quantiles
    from streammetrics.distributions.unit_mean import UnitMean
    from streammetrics.distributions.unit_rate import UnitRate

__all__ = ["ExactQuantiles", "Moments", "Quantiles", "UnitMean", "UnitRate"]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.distributions.exact_quantiles": "ExactQuantiles",
            "streammetrics.distributions.moments": "Moments",
            "streammetrics.distributions.quantiles": "Quantiles",
            "streammetrics.distributions.unit_mean": "UnitMean",
            "streammetrics.distributions.unit_rate": "UnitRate",
        },
    )
