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
    from streammetrics.combine import (
        Paired,
        Panel,
        PerKey,
        StoredPerKey,
        Units,
        UserGroups,
        Windows,
        drift,
    )
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
    from streammetrics.distributions import (
        ExactQuantiles,
        Moments,
        Quantiles,
        UnitMean,
        UnitRate,
    )
    from streammetrics.evaluation import compare_runs, evaluate
    from streammetrics.experiments import ConfidenceSequence, compare
    from streammetrics.join import END_OF_TIME, Joined, JoinRows, LabelDelays
    from streammetrics.kernels.tables.probabilities import recalibrated
    from streammetrics.machine import check_machine
    from streammetrics.policies import (
        ExactUplift,
        GroupedInterleaving,
        Interleaving,
        OffPolicy,
        Uplift,
        balanced_clicks,
        team_draft,
    )
    from streammetrics.ranking import (
        AP,
        CG,
        DCG,
        ERR,
        ERRIA,
        F1,
        HR,
        MRR,
        NDCG,
        RBP,
        AlphaNDCG,
        Bpref,
        CatalogMetrics,
        GroupedAUC,
        GroupedScores,
        IntraListSimilarity,
        ItemExposure,
        Measure,
        P,
        PooledHR,
        R,
        RankingMetrics,
        RPrec,
        StRecall,
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
    "ERRIA",
    "F1",
    "HR",
    "MRR",
    "NDCG",
    "RBP",
    "Accumulator",
    "AlphaNDCG",
    "BinaryConfusion",
    "Bounded",
    "Bpref",
    "Calibration",
    "CatalogMetrics",
    "ConfidenceSequence",
    "DictionaryColumn",
    "ExactAUC",
    "ExactQuantiles",
    "ExactUplift",
    "GroupedAUC",
    "GroupedInterleaving",
    "GroupedScores",
    "HashedIds",
    "HistogramAUC",
    "InputError",
    "Interleaving",
    "Interval",
    "IntraListSimilarity",
    "ItemExposure",
    "JoinRows",
    "Joined",
    "LabelDelays",
    "Measure",
    "Moments",
    "MulticlassAUC",
    "MulticlassConfusion",
    "MultilabelConfusion",
    "OffPolicy",
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
    "StRecall",
    "StateError",
    "StoredPerKey",
    "StreamMetricsError",
    "UnitMean",
    "UnitRate",
    "Units",
    "Uplift",
    "UserGroups",
    "Windows",
    "__version__",
    "balanced_clicks",
    "check_machine",
    "compare",
    "compare_runs",
    "drift",
    "evaluate",
    "hash_ids",
    "hash_texts",
    "load",
    "parse_measure",
    "recalibrated",
    "register_similarity",
    "team_draft",
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
            "streammetrics.combine": (
                "Paired Panel PerKey StoredPerKey Units UserGroups Windows drift"
            ),
            "streammetrics.core.accumulator": "Accumulator",
            "streammetrics.core.errors": (
                "InputError OverlapError SettingsError StateError StreamMetricsError"
            ),
            "streammetrics.core.ids.id_hashes": "HashedIds hash_ids hash_texts",
            "streammetrics.core.interval": "Interval",
            "streammetrics.core.provenance": "Provenance",
            "streammetrics.core.rows": "DictionaryColumn",
            "streammetrics.distributions": "ExactQuantiles Moments Quantiles UnitMean UnitRate",
            "streammetrics.evaluation": "compare_runs evaluate",
            "streammetrics.experiments": "ConfidenceSequence compare",
            "streammetrics.join": "END_OF_TIME Joined JoinRows LabelDelays",
            "streammetrics.kernels.tables.probabilities": "recalibrated",
            "streammetrics.machine": "check_machine",
            "streammetrics.policies": (
                "ExactUplift GroupedInterleaving Interleaving OffPolicy Uplift balanced_clicks "
                "team_draft"
            ),
            "streammetrics.ranking": (
                "AP CG DCG ERR ERRIA F1 HR MRR NDCG RBP AlphaNDCG Bpref CatalogMetrics "
                "GroupedAUC GroupedScores IntraListSimilarity ItemExposure Measure P PooledHR R "
                "RankingMetrics RPrec StRecall parse_measure register_similarity"
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
