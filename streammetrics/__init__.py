"""Streaming, mergeable metrics: bit-identical however rows are split, with certain bounds.

>>> from streammetrics import HistogramAUC
>>> monday, tuesday = HistogramAUC(), HistogramAUC()
>>> monday.update(labels=[0, 1, 1], scores=[0.02, 0.07, 0.3])
>>> tuesday.update(labels=[0, 0, 1], scores=[0.01, 0.05, 0.04])
>>> auc = (monday + tuesday).compute().auc
>>> auc.low <= 8 / 9 <= auc.high
True
"""

import warnings
from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.classification import (
        BinaryConfusion,
        Calibration,
        ExactAUC,
        HistogramAUC,
        MulticlassAUC,
        MulticlassConfusion,
        MultilabelConfusion,
        Ratio,
        Regression,
        SlidingAUC,
    )
    from streammetrics.combine import Paired, Panel, PerKey, Units, UserGroups, Windows
    from streammetrics.core.accumulator import Accumulator
    from streammetrics.core.errors import (
        InputError,
        OverlapError,
        SettingsError,
        StateError,
        StreamMetricsError,
    )
    from streammetrics.core.ids.id_hashes import HashedIds, hash_ids, hash_texts
    from streammetrics.core.interval import Interval
    from streammetrics.core.provenance import Provenance
    from streammetrics.core.rows import DictionaryColumn
    from streammetrics.distributions import ExactQuantiles, Quantiles
    from streammetrics.evaluation import compare_runs, evaluate
    from streammetrics.experiments import ConfidenceSequence, compare
    from streammetrics.join import END_OF_TIME, Joined, JoinRows, LabelDelays
    from streammetrics.kernels.tables.probabilities import recalibrated
    from streammetrics.machine import check_machine
    from streammetrics.ranking import (
        AP,
        CG,
        DCG,
        ERR,
        HR,
        MRR,
        NDCG,
        RBP,
        Bpref,
        CatalogMetrics,
        GroupedAUC,
        GroupedScores,
        IntraListSimilarity,
        Measure,
        P,
        PooledHR,
        R,
        RankingMetrics,
        RPrec,
        parse_measure,
        register_similarity,
    )
    from streammetrics.registry import load
    from streammetrics.results import Bounded

__version__ = "0.1.0"

__all__ = [
    "AP",
    "CG",
    "DCG",
    "END_OF_TIME",
    "ERR",
    "HR",
    "MRR",
    "NDCG",
    "RBP",
    "Accumulator",
    "BinaryConfusion",
    "Bounded",
    "Bpref",
    "Calibration",
    "CatalogMetrics",
    "ConfidenceSequence",
    "DictionaryColumn",
    "ExactAUC",
    "ExactQuantiles",
    "GroupedAUC",
    "GroupedScores",
    "HashedIds",
    "HistogramAUC",
    "InputError",
    "Interval",
    "IntraListSimilarity",
    "JoinRows",
    "Joined",
    "LabelDelays",
    "Measure",
    "MulticlassAUC",
    "MulticlassConfusion",
    "MultilabelConfusion",
    "OverlapError",
    "P",
    "Paired",
    "Panel",
    "PerKey",
    "PooledHR",
    "Provenance",
    "Quantiles",
    "R",
    "RPrec",
    "RankingMetrics",
    "Ratio",
    "Regression",
    "SettingsError",
    "SlidingAUC",
    "StateError",
    "StreamMetricsError",
    "Units",
    "UserGroups",
    "Windows",
    "__version__",
    "check_machine",
    "compare",
    "compare_runs",
    "evaluate",
    "hash_ids",
    "hash_texts",
    "load",
    "parse_measure",
    "recalibrated",
    "register_similarity",
]


if TYPE_CHECKING:
    Coded = DictionaryColumn
else:  # so that type checkers still reject unknown names
    _find, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.classification": (
                "BinaryConfusion Calibration ExactAUC HistogramAUC MulticlassAUC "
                "MulticlassConfusion MultilabelConfusion Ratio Regression SlidingAUC"
            ),
            "streammetrics.combine": "Paired Panel PerKey Units UserGroups Windows",
            "streammetrics.core.accumulator": "Accumulator",
            "streammetrics.core.errors": (
                "InputError OverlapError SettingsError StateError StreamMetricsError"
            ),
            "streammetrics.core.ids.id_hashes": "HashedIds hash_ids hash_texts",
            "streammetrics.core.interval": "Interval",
            "streammetrics.core.provenance": "Provenance",
            "streammetrics.core.rows": "DictionaryColumn",
            "streammetrics.distributions": "ExactQuantiles Quantiles",
            "streammetrics.evaluation": "compare_runs evaluate",
            "streammetrics.experiments": "ConfidenceSequence compare",
            "streammetrics.join": "END_OF_TIME Joined JoinRows LabelDelays",
            "streammetrics.kernels.tables.probabilities": "recalibrated",
            "streammetrics.machine": "check_machine",
            "streammetrics.ranking": (
                "AP CG DCG ERR HR MRR NDCG RBP Bpref CatalogMetrics GroupedAUC GroupedScores "
                "IntraListSimilarity Measure P PooledHR R RankingMetrics RPrec parse_measure "
                "register_similarity"
            ),
            "streammetrics.registry": "load",
            "streammetrics.results": "Bounded",
        },
    )

    def __getattr__(name: str) -> object:
        """A public name, or the former one of `DictionaryColumn`, for one release."""
        if name != "Coded":
            return _find(name)
        warnings.warn("`Coded` is now `DictionaryColumn`", DeprecationWarning, stacklevel=2)
        return _find("DictionaryColumn")
