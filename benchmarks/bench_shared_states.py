"""Each metric that stores its rows as another does, beside that other: quantiles and areas, uplift
and areas, moments and squared errors, interleaving and confusions, measures of lists.

Every job begins with an empty state and ends with its bytes, for which pending rows are sorted; the
metrics take turns.
`python -m benchmarks.bench_shared_states`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from benchmarks import workloads
from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, in_turns, measure
from streammetrics import (
    ERRIA,
    F1,
    NDCG,
    Accumulator,
    AlphaNDCG,
    BinaryConfusion,
    ExactAUC,
    ExactQuantiles,
    ExactUplift,
    GroupedAUC,
    GroupedInterleaving,
    HistogramAUC,
    Interleaving,
    ItemExposure,
    Measure,
    Moments,
    OffPolicy,
    P,
    Quantiles,
    R,
    RankingMetrics,
    Regression,
    StRecall,
    Uplift,
    drift,
)
from streammetrics import CatalogMetrics as Catalog

Columns: TypeAlias = dict[str, np.ndarray]
Jobs: TypeAlias = Mapping[str, Callable[[], object]]
SIZES: Final = (1_000_000, 10_000, 1_000)
EXACT_SIZES: Final = (1_000_000, 10_000)
ITEMS: Final = 10_000
SHOWN: Final = 10  # items a list
SET_LISTS: Final = 10_000  # whose items have Python's sets of subtopics


def job(empty: Accumulator, size: int, columns: Columns) -> Callable[[], object]:
    """All rows in batches of one size, which are cut now, and the bytes of the state."""
    rows = len(next(iter(columns.values())))
    cuts = [slice(i, i + size) for i in range(0, rows, size)]
    work = [{name: column[span] for name, column in columns.items()} for span in cuts]

    def run() -> object:
        state = empty.empty()
        for batch in work:
            state.update(**batch)
        return state.to_bytes()

    return run


def of_rows(rows: int, size: int) -> Jobs:
    """The metrics of rows, by name."""
    effects = (workloads.generator(41).standard_normal(rows) / 8).astype(np.float32)
    truth = workloads.labels_of(np.abs(effects).clip(0, 1), 0.1)
    treated = workloads.labels(rows, 0.5, 42)
    users = workloads.users(rows, rows // 20)
    numbers = workloads.generator(31).standard_normal(rows)
    near = numbers + workloads.generator(32).standard_normal(rows) / 4
    logged, target = 0.02 + 0.98 * workloads.unit_floats(rows, 35), workloads.unit_floats(rows, 36)
    area: Columns = {"labels": truth, "scores": effects}
    policy: Columns = {"logged": logged, "target": target, "rewards": near}
    predicted: Columns = {"predicted_logged": numbers, "predicted_target": numbers / 2}
    teams: Columns = {"labels": truth, "teams": treated, "groups": users}
    clicks: Columns = {"clicks_a": truth.astype(float), "clicks_b": treated.astype(float)}
    wide: Columns = {"labels": truth.astype(float), "scores": near}
    cases: dict[str, tuple[Accumulator, Columns]] = {
        "HistogramAUC": (HistogramAUC(range="real"), area),
        "Quantiles": (Quantiles(), {"values": effects}),
        "Uplift": (Uplift(), {**area, "treated": treated}),
        "Regression": (Regression(), {"labels": numbers, "scores": near}),
        "Moments": (Moments(), {"values": numbers}),
        "OffPolicy, inverse propensities": (OffPolicy(), policy),
        "OffPolicy, doubly robust": (OffPolicy(), {**policy, **predicted}),
        "BinaryConfusion": (BinaryConfusion(0.1), wide),
        "Interleaving": (Interleaving(), clicks),
    }
    if size in EXACT_SIZES:
        cases |= {
            "ExactAUC": (ExactAUC(), area),
            "ExactQuantiles": (ExactQuantiles(), {"values": effects}),
            "ExactQuantiles, float64": (ExactQuantiles(), {"values": numbers}),
            "ExactUplift": (ExactUplift(), {**area, "treated": treated}),
            "GroupedAUC": (GroupedAUC(), {**area, "groups": users}),
            "GroupedInterleaving": (GroupedInterleaving(), teams),
        }
    return {
        f"{name}, batches of {size:,}": job(empty, size, columns)
        for name, (empty, columns) in cases.items()
    }


def of_lists(lists: int) -> Jobs:
    """The measures of lists, by name, each of all lists at once."""
    work = workloads.scored_lists(lists)
    plain = {"labels": work.grades, "scores": work.scores, "offsets": work.offsets}
    topics = workloads.unit_floats(6 * len(work.grades), 43).reshape(-1, 6) < 0.2
    relevant = np.add.reduceat(work.relevant.astype(np.int64), work.offsets[:-1]) > 0
    positions = np.where(relevant, 1 + np.arange(lists) % 3, 0)
    shown = workloads.generator(44).integers(0, ITEMS // SHOWN, (lists, SHOWN)) * SHOWN
    shown += np.arange(SHOWN)  # the items of a list differ

    def ranked(*measures: Measure, **columns: np.ndarray) -> Callable[[], object]:
        examination = (1, 0.6, 0.3) if "positions" in columns else None

        def run() -> object:
            state = RankingMetrics(measures, examination=examination, complete_lists=True)
            state.update(**plain, **columns)  # type: ignore[arg-type]
            return state.to_bytes()

        return run

    return {
        "NDCG": ranked(NDCG @ 10),
        "NDCG, logged positions": ranked(NDCG @ 10, positions=positions),
        "α-nDCG": ranked(AlphaNDCG @ 10, subtopics=topics),
        "ERR-IA": ranked(ERRIA @ 10, subtopics=topics),
        "subtopic recall": ranked(StRecall @ 10, subtopics=topics),
        "precision and recall": ranked(P @ 10, R @ 10),
        "F1": ranked(F1 @ 10),
        "np.bincount of the items of lists": lambda: np.bincount(shown.ravel(), minlength=ITEMS),
        "CatalogMetrics": job(Catalog(ITEMS, SHOWN), lists, {"lists": shown}),
        "ItemExposure": job(ItemExposure(ITEMS, SHOWN), lists, {"lists": shown}),
    }


def of_subtopics() -> Jobs:
    """α-nDCG by the form of subtopics, NDCG of the same lists, and the least that reading Python's
    sets can take: a pass over their ids, which checks and keeps nothing."""
    work = workloads.scored_lists(SET_LISTS)
    plain = {"labels": work.grades, "scores": work.scores, "offsets": work.offsets}
    topics = workloads.unit_floats(6 * len(work.grades), 43).reshape(-1, 6) < 0.2
    items, ids = np.nonzero(topics)
    ends = np.searchsorted(items, np.arange(len(topics) + 1))
    column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(ids))
    numbers = [set(row) for row in column.to_pylist()]
    texts = [{f"subtopic {topic}" for topic in row} for row in numbers]

    def ranked(measure: Measure, subtopics: object = None) -> Callable[[], object]:
        def run() -> object:
            state = RankingMetrics([measure], complete_lists=True)
            state.update(**plain, subtopics=subtopics)  # type: ignore[arg-type]
            return state.to_bytes()

        return run

    return {
        f"NDCG, {SET_LISTS:,} lists": ranked(NDCG @ 10),
        "α-nDCG, a table of subtopics": ranked(AlphaNDCG @ 10, topics),
        "α-nDCG, Arrow lists of subtopics": ranked(AlphaNDCG @ 10, column),
        "α-nDCG, sets of integers": ranked(AlphaNDCG @ 10, numbers),
        "α-nDCG, sets of strings": ranked(AlphaNDCG @ 10, texts),
        "a pass over the sets of integers": lambda: deque(chain.from_iterable(numbers), 0),
        "a pass over the sets of strings": lambda: deque(chain.from_iterable(texts), 0),
    }


def views(rows: int) -> list[Timing]:
    """Readings of states of that many rows, each computed anew."""
    scores = workloads.uniform_scores(rows)
    truth = workloads.labels_of(scores, 0.3)
    timings: list[Timing] = []
    for empty in (HistogramAUC(), ExactAUC()):
        name, half = type(empty).__name__, rows // 2
        first_state, second_state = empty.empty(), empty.empty()
        rows_of_one: Columns = {"labels": truth[:half], "scores": scores[:half]}
        first_state.update(**rows_of_one)
        second_state.update(labels=truth[half:], scores=scores[half:])
        jobs: Jobs = {
            f"{name}, an update": job(
                empty, half, {"labels": truth[:half], "scores": scores[:half]}
            ),
            f"{name}, its AUC": lambda s=first_state: s.compute().auc,  # type: ignore[misc]
            f"{name}, precision at a recall": lambda s=first_state: s.compute().best(  # type: ignore[misc]
                by="precision", recall_at_least=0.8
            ),
            f"{name}, threshold of a share": lambda s=first_state: s.compute().threshold_for(  # type: ignore[misc]
                predicted_positive=0.05
            ),
            f"{name}, drift of two": lambda s=first_state, t=second_state: drift(s, t).psi,  # type: ignore[misc]
        }
        timings += [measure(name, 1, run) for name, run in jobs.items()]
    return timings


def ask(quick: bool) -> Answer:
    rows, lists = (200_000, 20_000) if quick else (1_000_000, 100_000)
    report = answer(
        "shared-states",
        f"Metrics that share a state, {rows:,} rows or {lists:,} lists",
        rows=rows,
        arrays=[workloads.uniform_scores(rows), workloads.labels(rows)],
        unit="row, list or reading",
    )
    for size in SIZES[1:] if quick else SIZES:
        report.add(*in_turns(of_rows(rows, size), rows))
    report.add(*in_turns(of_lists(lists), lists), *in_turns(of_subtopics(), SET_LISTS))
    report.add(*views(rows))
    report.notes.append(
        "Scores and values are float32 of either sign; those of Regression, Moments, OffPolicy, "
        "BinaryConfusion and Interleaving are float64. Lists have 20 to 100 scored items, each of "
        "which answers a fifth of six subtopics, but for CatalogMetrics and ItemExposure, whose "
        f"lists have {SHOWN} of {ITEMS:,} items. The last lines are readings of a state, of half "
        "of the rows, beside the update of these; drift reads two."
    )
    return report


if __name__ == "__main__":
    run_question(ask)
