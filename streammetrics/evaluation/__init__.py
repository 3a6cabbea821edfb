"""Runs of retrieval systems against relevance judgments: one run, or several compared."""

from streammetrics.evaluation.evaluate import Evaluation, evaluate
from streammetrics.evaluation.run_comparison import RunComparison, RunDifference, compare_runs

__all__ = ["Evaluation", "RunComparison", "RunDifference", "compare_runs", "evaluate"]
