"""RankingMetrics: NDCG, MRR, HR and AP at 10 from lists of 20 to 100 items, and its peers.

Nanoseconds a list, for lists with and without scores, in one batch, in batches and one by one; the
cost of ties; and the merge of two states. The limits are those of the items of a list. Peers get
the same lists, as many as their speed allows. `python -m benchmarks.bench_ranking`.
"""

from __future__ import annotations

import numpy as np

from benchmarks import workloads
from benchmarks.answer import Answer, answer, run_question
from benchmarks.harness import Timing, measure
from benchmarks.list_peers import peers
from streammetrics import AP, HR, MRR, NDCG, AlphaNDCG, Measure, RankingMetrics

MEASURES = (NDCG @ 10, MRR @ 10, HR @ 10, AP @ 10)
TASKS = {"scored, float32": "four measures", "ranked already": "four measures, ranked"}
FEW = 2_000  # lists of the smallest batches


def whole(
    work: workloads.ScoredLists,
    scores: np.ndarray | None,
    measures: tuple[Measure, ...] = MEASURES,
    labels: np.ndarray | None = None,
) -> RankingMetrics:
    """A state after all lists at once. labels: instead of the grades."""
    metric = RankingMetrics(measures)
    metric.update(work.grades if labels is None else labels, scores, offsets=work.offsets)
    metric.compute()  # flushes the pending lists of small batches
    return metric


def batched(name: str, work: workloads.ScoredLists, size: int) -> Timing:
    """The time of all lists in batches of `size`, cut beforehand."""
    lists = len(work.offsets) - 1
    cuts = []
    for first in range(0, lists, size):
        offsets = work.offsets[first : first + size + 1]
        span = slice(offsets[0], offsets[-1])
        cuts.append((work.grades[span], work.scores[span], offsets - offsets[0]))

    def job() -> None:
        metric = RankingMetrics(MEASURES)
        for grades, scores, offsets in cuts:
            metric.update(grades, scores, offsets=offsets)
        metric.compute()

    return measure(name, lists, job, peak=True)


def with_subtopics(work: workloads.ScoredLists) -> Timing:
    """The time of α-nDCG, where a fifth of six subtopics is answered by each item."""
    answered = workloads.unit_floats(6 * len(work.grades), stream=35).reshape(-1, 6) < 0.2
    lists = len(work.offsets) - 1

    def job() -> None:
        metric = RankingMetrics([AlphaNDCG @ 10])
        metric.update(work.grades, work.scores, offsets=work.offsets, subtopics=answered)
        metric.compute()

    return measure("scored, α-nDCG alone, six subtopics", lists, job)


def with_positions(work: workloads.ScoredLists, lists: int) -> Timing:
    """The time of four measures of lists that weigh by their logged rank."""
    relevant = np.add.reduceat(work.relevant.astype(np.int64), work.offsets[:-1]) > 0
    positions = np.where(relevant, 1 + np.arange(lists) % 3, 0)

    def job() -> None:
        metric = RankingMetrics(MEASURES, examination=(1, 0.6, 0.3))
        metric.update(work.grades, work.scores, offsets=work.offsets, positions=positions)
        metric.compute()

    return measure("scored, float32, logged positions", lists, job)


def ask(quick: bool) -> Answer:
    lists = 50_000 if quick else 1_000_000
    work = workloads.scored_lists(lists)
    items = len(work.grades)
    report = answer(
        "ranking",
        f"RankingMetrics, NDCG, MRR, HR and AP at 10, {lists:,} lists of 20 to 100 items",
        rows=items,
        arrays=[work.scores, work.grades],
        unit="list",
        rows_per_unit=items // lists,
    )
    scores, few = work.scores, work.first(FEW)
    cases = {
        "scored, float32": scores,
        "scored, float64": workloads.unit_floats(items, stream=34),
        "scored, 11 different scores": np.round(scores, 1),
        "scored, all tied": np.full(items, 0.5, np.float32),
        "ranked already": None,
    }
    for name, case_scores in cases.items():
        task = TASKS.get(name, "")
        job = lambda column=case_scores: whole(work, column)  # noqa: E731
        report.add(measure(name, lists, job, task=task, peak=True))
    report.add(
        measure(
            "ranked already, grades 0 and 1",
            lists,
            lambda: whole(work, None, labels=work.relevant),
        ),
        measure(
            "scored, NDCG alone",
            lists,
            lambda: whole(work, scores, (NDCG @ 10,)),
            task="NDCG alone",
        ),
        with_subtopics(work.first(min(lists, 20_000))),
        with_positions(work, lists),
        batched("scored, batches of 1,000", work, 1_000),
        batched("scored, batches of 64", few, 64),
        batched("scored, one list an update", few, 1),
    )
    scored_state, ranked_state = whole(work, scores), whole(work, None)
    merge = measure("merge", 1, lambda: scored_state + ranked_state)
    report.notes.append(f"Merging two states takes {merge.median / 1000:.1f} µs.")
    report.add(*peers(work))
    return report


if __name__ == "__main__":
    run_question(ask)
