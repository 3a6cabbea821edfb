"""Metrics of labels and scores."""

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
