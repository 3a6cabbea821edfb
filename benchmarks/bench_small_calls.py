"""One row or one list a call, by kind of metric, and keyed calls of 256 rows.

Each line updates a state of its own, which counts its pending rows at the end. Plain arrays of
`HistogramAUC` are the floor: what any call costs. `python -m benchmarks.bench_small_calls`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, in_turns
from benchmarks.workloads import generator, labels
from streammetrics import (
    Accumulator,
    CatalogMetrics,
    GroupedAUC,
    HistogramAUC,
    ItemExposure,
    MultilabelConfusion,
    OffPolicy,
    Paired,
    Panel,
    PerKey,
    RankingMetrics,
    Ratio,
    UserGroups,
    Windows,
)

CALLS: Final = 4_000
KEYS: Final = 1_000
ROWS: Final = 256  # of a keyed call
FLOOR: Final = "plain arrays"
KEYED: Final = f"calls of {ROWS} rows by {KEYS:,} keys"
_NOW: Final = 1_700_000_000_000
_BOTH: Final = Panel({"auc": HistogramAUC(), "rate": Ratio()}, {"rate": {"numerators": "labels"}})

Kind = tuple[str, Accumulator, dict[str, Any]]
# The columns of one call as lists.
KINDS: Final[tuple[Kind, ...]] = (
    ("weighted", HistogramAUC(), {"labels": [1], "scores": [0.5], "weights": [2.0]}),
    ("keyed", PerKey(Ratio()), {"keys": ["a"], "numerators": [1]}),
    ("windowed", Windows(HistogramAUC(), 60), {"times_ms": [_NOW], "labels": [1], "scores": [0.5]}),
    ("grouped", UserGroups(Ratio()), {"groups": ["ann"], "numerators": [1]}),
    ("hashed ids", GroupedAUC(ids="hashed"), {"groups": ["ann"], "labels": [1], "scores": [0.5]}),
    ("paired", Paired(HistogramAUC()), {"labels": [1], "scores_a": [0.5], "scores_b": [0.25]}),
    ("panel", _BOTH, {"labels": [1], "scores": [0.5]}),
    ("multilabel", MultilabelConfusion(3), {"labels": [[1, 0, 1]], "scores": [[0.9, 0.1, 0.4]]}),
    ("off-policy", OffPolicy(), {"logged": [0.5], "target": [0.25], "rewards": [1.0]}),
    ("catalog", CatalogMetrics(100, 10), {"lists": [[*range(0, 100, 10)]]}),
    ("exposure", ItemExposure(100, 10), {"lists": [[*range(0, 100, 10)]]}),
    (
        "ranked list",
        RankingMetrics(["NDCG@10"]),
        {"labels": [[1, 0, 0, 2, 0]], "scores": [[0.9, 0.1, 0.4, 0.2, 0.3]]},
    ),
)


def one_row(metric: Accumulator, columns: dict[str, Any], calls: int) -> Callable[[], object]:
    """So many calls, and the count of the rows that are pending after them."""

    def feed() -> None:
        state = metric.empty()
        for _ in range(calls):
            state.update(**columns)
        state.copy()

    return feed


def arrays_of(columns: dict[str, Any]) -> dict[str, Any]:
    """The same columns as arrays, where they are of numbers; strings stay lists."""
    return {k: c if type(c[0]) is str else np.array(c) for k, c in columns.items()}


def keyed(calls: int) -> list[Timing]:
    """Calls of `ROWS` rows of `PerKey(Ratio())`, whose keys are integers or strings."""
    codes = generator(61).integers(0, KEYS, (calls, ROWS))
    clicks = labels(calls * ROWS, 0.3).reshape(codes.shape)
    names = np.array([f"item {i}" for i in range(KEYS)])
    forms = {"integers": [*codes], "strings": [names[row].tolist() for row in codes]}

    def feed(keys: list[Any]) -> Callable[[], object]:
        def run() -> None:
            state = PerKey(Ratio())
            for row, click in zip(keys, clicks, strict=True):
                state.update(row, numerators=click)
            state.copy()

        return run

    jobs = {f"{KEYED}, {form}": feed(keys) for form, keys in forms.items()}
    return in_turns(jobs, calls * ROWS)


def ask(quick: bool) -> Answer:
    calls = CALLS // 5 if quick else CALLS
    floor = {"labels": np.array([1], np.uint8), "scores": np.array([0.5])}
    jobs = {FLOOR: one_row(HistogramAUC(), floor, calls)}
    for name, metric, columns in KINDS:
        jobs[f"{name}, lists"] = one_row(metric, columns, calls)
        jobs[f"{name}, arrays"] = one_row(metric, arrays_of(columns), calls)
    report = answer("small-calls", "One row or one list a call", rows=calls, arrays=[])
    report.add(*in_turns(jobs, calls), *keyed(200 if quick else 1_000))
    report.notes.append(
        f"The lines of {KEYED} are for each row. Rows that pass cheap checks wait, and are counted "
        "together."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
