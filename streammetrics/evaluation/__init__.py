"""Runs of retrieval systems against relevance judgments, and scores of samples: one, or several
compared."""

from streammetrics.evaluation.evaluate import Evaluation, evaluate
from streammetrics.evaluation.run_comparison import RunComparison, RunDifference, compare_runs
from streammetrics.evaluation.sample_logs import SampleLog, is_sample_log, read_sample_log
from streammetrics.evaluation.scored_samples import compare_samples, evaluate_samples

__all__ = [
    "Evaluation",
    "RunComparison",
    "RunDifference",
    "SampleLog",
    "compare_runs",
    "compare_samples",
    "evaluate",
    "evaluate_samples",
    "is_sample_log",
    "read_sample_log",
]
