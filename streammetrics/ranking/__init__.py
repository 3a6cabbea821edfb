"""Metrics of ranked lists and of groups."""

from streammetrics.ranking.catalog import CatalogMetrics
from streammetrics.ranking.grouped_auc import GroupedAUC
from streammetrics.ranking.grouped_scores import GroupedScores
from streammetrics.ranking.list_similarity import IntraListSimilarity, register_similarity
from streammetrics.ranking.measure import Measure
from streammetrics.ranking.measures import (
    AP,
    CG,
    DCG,
    ERR,
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

__all__ = [
    "AP",
    "CG",
    "DCG",
    "ERR",
    "HR",
    "MRR",
    "NDCG",
    "RBP",
    "Bpref",
    "CatalogMetrics",
    "GroupedAUC",
    "GroupedScores",
    "IntraListSimilarity",
    "Measure",
    "P",
    "PooledHR",
    "R",
    "RPrec",
    "RankingMetrics",
    "parse_measure",
    "register_similarity",
]
