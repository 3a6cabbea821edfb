from streammetrics.classification.binary_confusion import BinaryConfusion as BinaryConfusion
from streammetrics.classification.calibration import Calibration as Calibration
from streammetrics.classification.exact_auc import ExactAUC as ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC as HistogramAUC
from streammetrics.classification.multiclass_auc import MulticlassAUC as MulticlassAUC
from streammetrics.classification.multiclass_confusion import (
    MulticlassConfusion as MulticlassConfusion,
)
from streammetrics.classification.multilabel_confusion import (
    MultilabelConfusion as MultilabelConfusion,
)
from streammetrics.classification.ratio import Ratio as Ratio
from streammetrics.classification.regression import Regression as Regression
from streammetrics.classification.sliding_auc import SlidingAUC as SlidingAUC
