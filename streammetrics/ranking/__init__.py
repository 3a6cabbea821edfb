"""Metrics of ranked lists and of groups."""

from typing import TYPE_CHECKING

from streammetrics.lazy_names import lazy_names

if TYPE_CHECKING:
    from streammetrics.ranking.catalog import CatalogMetrics
    from streammetrics.ranking.grouped_auc import GroupedAUC
    from streammetrics.ranking.grouped_scores import GroupedScores
    from streammetrics.ranking.item_exposure import ItemExposure
    from streammetrics.ranking.list_similarity import IntraListSimilarity, register_similarity
    from streammetrics.ranking.measure import Measure
    from streammetrics.ranking.measures import (
        AP,
        CG,
        DCG,
        ERR,
        F1,
        HR,
        MRR,
        NDCG,
        RBP,
        Bpref,
        P,
        PooledHR,
        R,
        RPrec,
        parse_measure,
    )
    from streammetrics.ranking.ranking_metrics import RankingMetrics
    from streammetrics.ranking.subtopic_measures import ERRIA, AlphaNDCG, StRecall

__all__ = [
    "AP",
    "CG",
    "DCG",
    "ERR",
    "ERRIA",
    "F1",
    "HR",
    "MRR",
    "NDCG",
    "RBP",
    "AlphaNDCG",
    "Bpref",
    "CatalogMetrics",
    "GroupedAUC",
    "GroupedScores",
    "IntraListSimilarity",
    "ItemExposure",
    "Measure",
    "P",
    "PooledHR",
    "R",
    "RPrec",
    "RankingMetrics",
    "StRecall",
    "parse_measure",
    "register_similarity",
]

if not TYPE_CHECKING:  # so that type checkers still reject unknown names
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "streammetrics.ranking.catalog": "CatalogMetrics",
            "streammetrics.ranking.grouped_auc": "GroupedAUC",
            "streammetrics.ranking.grouped_scores": "GroupedScores",
            "streammetrics.ranking.item_exposure": "ItemExposure",
            "streammetrics.ranking.list_similarity": "IntraListSimilarity register_similarity",
            "streammetrics.ranking.measure": "Measure",
            "streammetrics.ranking.measures": (
                "AP CG DCG ERR F1 HR MRR NDCG RBP Bpref P PooledHR R RPrec parse_measure"
            ),
            "streammetrics.ranking.ranking_metrics": "RankingMetrics",
            "streammetrics.ranking.subtopic_measures": "ERRIA AlphaNDCG StRecall",
        },
    )
