"""Merging: a thousand states from bytes, and grouped states of a hundred shards, and peers.

Each state has its own rows. The time of a merge includes reading the bytes, and for grouped states
the area at the end, because a merge defers work to the first read.
`python -m benchmarks.bench_merging`.
"""

from __future__ import annotations

import functools
import math
import operator

import numpy as np

from benchmarks.answer import Answer, Found, answer, run_question
from benchmarks.area_peers import missing
from benchmarks.group_peers import in_polars
from benchmarks.harness import Timing, measure
from benchmarks.torch_child import ABSENT, PYTHON, Task, timed_answers
from benchmarks.workloads import generator, labels_of, uniform_scores
from streammetrics import Accumulator, ExactAUC, GroupedAUC, HistogramAUC, Ratio
from streammetrics.engines import merged

STATES = 1_000
BUCKETS = 4_096
TASK = "areas of 4,096 buckets"


def both_ways(
    name: str, empty: Accumulator, stored: list[bytes], task: str = "", *, envelopes: bool = False
) -> list[Timing]:
    """The times to merge all states from bytes into one: together, and one by one."""
    kind = type(empty)
    read = kind.from_file_bytes if envelopes else kind.from_bytes

    def one_by_one() -> Accumulator:
        total = empty.empty()
        for data in stored:
            total.merge(read(data))
        return total

    assert merged(stored) == one_by_one()
    assert merged(stored).provenance == one_by_one().provenance
    return [
        measure(name, len(stored), lambda: merged(stored).compute(), task=task, peak=True),
        measure(f"{name}, one by one", len(stored), lambda: one_by_one().compute(), peak=True),
    ]


def stored(empty: Accumulator, rows: int, states: int) -> list[bytes]:
    """The bytes of `states` states of `rows` rows each."""
    payloads = []
    for i in range(states):
        state, scores = empty.empty(), uniform_scores(rows, 100 + i)
        if isinstance(state, Ratio):
            state.update(scores.astype(np.float64))
        else:
            state.update(labels_of(scores), scores)
        payloads.append(state.to_bytes())
    return payloads


def enveloped(empty: Accumulator, stored: list[bytes]) -> list[bytes]:
    """The same states in envelopes, each with its own range as provenance."""
    payloads = []
    for i, data in enumerate(stored):
        state = type(empty).from_bytes(data)
        state.provenance.add("clicks/0", i * 20_000, (i + 1) * 20_000)
        payloads.append(state.to_file_bytes())
    return payloads


def shards(count: int, users: int) -> list[Found]:
    """Merging grouped states with a row or two per user; polars gets all rows instead."""
    states, rows = [], []
    for i in range(count):
        ids = generator(3_000 + i).integers(0, 2 * users, users)
        scores = uniform_scores(users, 5_000 + i)
        state = GroupedAUC()
        rows.append((labels_of(scores, 0.3), scores, ids))
        state.update(*rows[-1][:2], groups=ids)
        state.compute()
        states.append(state)
    keys = count * users
    name = "GroupedAUC, shards, a key"

    def one_by_one() -> object:
        total = GroupedAUC()
        for state in states:
            total.merge(state)
        return total.compute()

    def chained() -> object:
        return functools.reduce(operator.add, states).compute()

    assert one_by_one() == chained()
    truth, all_scores, ids = (np.concatenate(column) for column in zip(*rows, strict=True))
    return [
        measure(name, keys, one_by_one, task="shards", peak=True),
        measure(f"{name}, by +", keys, chained, peak=True),
        missing("polars") or in_polars(truth, all_scores, ids, "shards"),
    ]


def ask(quick: bool) -> Answer:
    states = STATES // 10 if quick else STATES
    area = HistogramAUC(grid="equal", resolution=12)
    table = np.zeros(2 * BUCKETS, np.int64)
    report = answer(
        "merging", f"Merging {states:,} states from bytes", rows=1, arrays=[table], unit="state"
    )
    report.sort = report.sort.times(0)  # sorting one float is no limit here
    auc, exact = HistogramAUC(), ExactAUC()
    name, areas = "HistogramAUC, 4,096 buckets", stored(area, 20_000, states)
    report.add(
        *both_ways(name, area, areas, TASK),
        *both_ways(f"{name}, envelopes", area, enveloped(area, areas), envelopes=True),
        *both_ways("HistogramAUC, default", auc, stored(auc, 20_000, states)),
        *both_ways("Ratio", Ratio(), stored(Ratio(), 1_000, states)),
        *both_ways("ExactAUC, 1,000 rows", exact, stored(exact, 1_000, states)),
    )
    count, users = (20, 10_000) if quick else (100, 100_000)
    report.add(*shards(count, users))
    report.notes.append(
        f"Each of the {count} shards has {users:,} rows of some of {2 * users:,} users. A key is a "
        "row: one score of one user."
    )
    report.add(_sketches(states))
    if not PYTHON.is_file():
        report.add(ABSENT)
    name = f"torchmetrics, tables of {BUCKETS:,} thresholds"
    arguments = {"states": states, "bins": BUCKETS}
    for _, peer_value, timing in timed_answers(
        [Task("merging", arguments, name, TASK, "torchmetrics")]
    ):
        total = HistogramAUC(grid="equal", resolution=12)
        for i in range(states):
            scores = uniform_scores(1_000, 100 + i)
            total.update(labels_of(scores), scores)
        value = total.compute().auc
        assert abs(getattr(value, "value", value) - peer_value) < 1e-3, (value, peer_value)
        report.add(timing)
    return report


def _sketches(states: int) -> Found:
    """KLL sketches of the scores of both classes; the medians are checked."""
    if why := missing("datasketches"):
        return why
    from datasketches import kll_floats_sketch

    stored: list[list[bytes]] = [[], []]
    for i in range(states):
        scores = uniform_scores(20_000, 100 + i)
        truth = labels_of(scores, 0.5)
        for label in (0, 1):
            sketch = kll_floats_sketch(200)
            sketch.update(scores[truth == label])
            stored[label].append(sketch.serialize())

    def job() -> list[float]:
        medians = []
        for of_label in stored:
            total = kll_floats_sketch(200)
            for data in of_label:
                total.merge(kll_floats_sketch.deserialize(data))
            medians.append(float(total.get_quantile(0.5)))
        return medians

    # The chance of a positive grows with the score x: x² of positives and (1 - x)² of negatives
    # are uniform.
    expected = (1 - math.sqrt(0.5), math.sqrt(0.5))
    assert np.allclose(job(), expected, atol=0.03), job()
    return measure("KLL sketches, of both classes", states, job, task=TASK, peer="KLL sketch")


if __name__ == "__main__":
    run_question(ask)
