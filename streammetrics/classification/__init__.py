"""Metrics of labels and scores: declaration, lift and result."""

from streammetrics.classification.binary_confusion import BinaryConfusion
from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.ratio import Ratio

__all__ = ["BinaryConfusion", "ExactAUC", "HistogramAUC", "Ratio"]
