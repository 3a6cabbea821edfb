"""Metrics of labels and scores."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.classification.binary_confusion import BinaryConfusion
    from streammetrics.classification.calibration import Calibration
    from streammetrics.classification.exact_auc import ExactAUC
    from streammetrics.classification.histogram_auc import HistogramAUC
    from streammetrics.classification.multiclass_auc import MulticlassAUC
    from streammetrics.classification.multiclass_confusion import MulticlassConfusion
    from streammetrics.classification.multilabel_confusion import MultilabelConfusion
    from streammetrics.classification.ratio import Ratio
    from streammetrics.classification.regression import Regression
    from streammetrics.classification.sliding_auc import SlidingAUC

__all__ = [
    "BinaryConfusion",
    "Calibration",
    "ExactAUC",
    "HistogramAUC",
    "MulticlassAUC",
    "MulticlassConfusion",
    "MultilabelConfusion",
    "Ratio",
    "Regression",
    "SlidingAUC",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.classification.binary_confusion": "BinaryConfusion",
            "streammetrics.classification.calibration": "Calibration",
            "streammetrics.classification.exact_auc": "ExactAUC",
            "streammetrics.classification.histogram_auc": "HistogramAUC",
            "streammetrics.classification.multiclass_auc": "MulticlassAUC",
            "streammetrics.classification.multiclass_confusion": "MulticlassConfusion",
            "streammetrics.classification.multilabel_confusion": "MultilabelConfusion",
            "streammetrics.classification.ratio": "Ratio",
            "streammetrics.classification.regression": "Regression",
            "streammetrics.classification.sliding_auc": "SlidingAUC",
        },
    )
