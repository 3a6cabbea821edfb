"""Metrics of ranked lists and of groups: declaration, lift and result."""

from streammetrics.ranking.grouped_auc import GroupedAUC
from streammetrics.ranking.measures import DCG, HR, MRR, NDCG, Measure, parse_measure
from streammetrics.ranking.ranking_metrics import RankingMetrics

__all__ = ["DCG", "HR", "MRR", "NDCG", "GroupedAUC", "Measure", "RankingMetrics", "parse_measure"]
