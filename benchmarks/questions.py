"""The questions in the order of the page, by key: one module each, whose `ask` answers it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

QUESTIONS: Final[Mapping[str, str]] = {
    "sorting": "bench_sorting",
    "histogram-auc": "bench_histogram_auc",
    "exact-auc": "bench_exact_auc",
    "grouped-auc": "bench_grouped_auc",
    "ranking": "bench_ranking",
    "confusion": "bench_confusion",
    "classes": "bench_classes",
    "exact-sum": "bench_exact_sum",
    "calibration": "bench_calibration",
    "merging": "bench_merging",
    "sliding-auc": "bench_sliding_auc",
    "shared-states": "bench_shared_states",
    "panel": "bench_panel",
    "by-key": "bench_by_key",
    "small-calls": "bench_small_calls",
    "user-groups": "bench_user_groups",
    "exposures": "bench_exposures",
    "compute-by-key": "bench_compute_by_key",
    "many-groups": "bench_many_groups",
    "decoding": "bench_decoding",
    "consumer": "bench_consumer",
    "results": "bench_results",
    "items": "bench_items",
    "eval": "bench_eval",
    "store": "bench_store",
    "workers": "bench_workers",
    "growth": "bench_growth",
    "memory": "bench_memory",
}


def other_benchmarks() -> list[str]:
    """The benchmarks that print their own tables and are not part of the page."""
    files = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    return [name for name in files if name not in QUESTIONS.values()]
