"""Metrics of numbers: quantiles and other figures of how values are distributed."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.distributions.exact_quantiles import ExactQuantiles
    from streammetrics.distributions.moments import Moments
    from streammetrics.distributions.quantiles import Quantiles

__all__ = ["ExactQuantiles", "Moments", "Quantiles"]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.distributions.exact_quantiles": "ExactQuantiles",
            "streammetrics.distributions.moments": "Moments",
            "streammetrics.distributions.quantiles": "Quantiles",
        },
    )
