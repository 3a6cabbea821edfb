"""Streaming, mergeable metrics: bit-identical however rows are split, with certain bounds.

>>> from streammetrics import HistogramAUC
>>> monday, tuesday = HistogramAUC(), HistogramAUC()
>>> monday.update(labels=[0, 1, 1], scores=[0.02, 0.07, 0.3])
>>> tuesday.update(labels=[0, 0, 1], scores=[0.01, 0.05, 0.04])
>>> auc = (monday + tuesday).compute().auc
>>> auc.low <= 8 / 9 <= auc.high
True
"""

from streammetrics.exports import exports

__version__ = "0.1.0"
_names, __getattr__, __dir__ = exports(__name__)
__all__ = ["__version__", *_names]
