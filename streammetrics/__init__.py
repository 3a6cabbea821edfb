"""Streaming, mergeable metrics: the same bits however rows are split, with certain bounds.

>>> from streammetrics import HistogramAUC
>>> monday, tuesday = HistogramAUC(), HistogramAUC()
>>> monday.update(labels=[0, 1, 1], scores=[0.02, 0.07, 0.3])
>>> tuesday.update(labels=[0, 0, 1], scores=[0.01, 0.05, 0.04])
>>> auc = (monday + tuesday).compute().auc
>>> auc.low <= 8 / 9 <= auc.high
True
"""

from streammetrics.classification import BinaryConfusion, ExactAUC, HistogramAUC, Ratio
from streammetrics.combine import Panel, PerKey, Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import (
    InputError,
    OverlapError,
    SettingsError,
    StateError,
    StreamMetricsError,
)
from streammetrics.core.provenance import Provenance
from streammetrics.core.rows import Coded
from streammetrics.ranking import (
    DCG,
    HR,
    MRR,
    NDCG,
    GroupedAUC,
    Measure,
    RankingMetrics,
    parse_measure,
)
from streammetrics.registry import load
from streammetrics.results import Bounded

__all__ = [
    "DCG",
    "HR",
    "MRR",
    "NDCG",
    "Accumulator",
    "BinaryConfusion",
    "Bounded",
    "Coded",
    "ExactAUC",
    "GroupedAUC",
    "HistogramAUC",
    "InputError",
    "Measure",
    "OverlapError",
    "Panel",
    "PerKey",
    "Provenance",
    "RankingMetrics",
    "Ratio",
    "SettingsError",
    "StateError",
    "StreamMetricsError",
    "Windows",
    "load",
    "parse_measure",
]
