"""Updating by key: the cost of a distinct key, of a state that fills, and of many experiments.

All times are the least of several rounds of CPU time, or of one where a state grows.
`python -m benchmarks.bench_by_key`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.answer import Answer, answer, digits, markdown, run_question
from benchmarks.harness import timing
from benchmarks.workloads import click_scores, generator, labels_of
from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    DictionaryColumn,
    HistogramAUC,
    Panel,
    PerKey,
    Ratio,
    UserGroups,
)

EXPERIMENTS = 20
ROUNDS = 5
BATCHES = (1_000, 10_000, 100_000)
KEYS = 1_000  # of the state that fills
Columns = dict[str, "np.ndarray | DictionaryColumn"]

FORMS: Mapping[str, Callable[[np.ndarray, tuple[str, ...]], object]] = {
    "integers": lambda codes, names: codes,
    "sparse integers": lambda codes, names: codes * 987_654_321_987,
    "dictionary of strings": DictionaryColumn,
    "list of strings": lambda codes, names: [names[code] for code in codes.tolist()],
    "list of tuples": lambda codes, names: [(names[code], code) for code in codes.tolist()],
}


def spent(job: Callable[[], object]) -> float:
    """Seconds of CPU time."""
    started = time.process_time()
    job()
    return time.process_time() - started


def a_distinct_key(form: str, batch: int) -> tuple[float, float]:
    """Nanoseconds a row with ten keys, and for each distinct key of a batch of nearly as many."""
    costs, distinct = [], []
    clicks = labels_of(click_scores(batch))
    for keys in (10, 10 * batch):
        codes = generator(keys).integers(0, keys, batch)
        key_column = FORMS[form](codes, tuple(f"slice-{code}" for code in range(keys)))
        state = PerKey(Ratio(), max_keys=10 * keys)

        def job(state: PerKey = state, column: object = key_column) -> None:
            for _ in range(100_000 // batch):
                state.update(column, numerators=clicks)  # type: ignore[arg-type]

        job()
        times = 100_000 // batch
        costs.append(min(spent(job) for _ in range(ROUNDS)) / times * 1e9)
        distinct.append(len(np.unique(codes)))
    return costs[0] / batch, (costs[1] - costs[0]) / (distinct[1] - distinct[0])


def a_filling_state(rows: int, batch: int) -> list[float]:
    """Nanoseconds a row of a PerKey of 1,000 HistogramAUC, in each fifth of the rows."""
    state, rng, costs = PerKey(HistogramAUC()), generator(7), []
    for fifth in range(5):
        seconds = 0.0
        for i in range(rows // 5 // batch):
            scores = click_scores(batch, 1_000 * fifth + i)
            labels, keys = labels_of(scores), rng.integers(0, KEYS, batch)
            seconds += spent(lambda k=keys, y=labels, s=scores: state.update(k, labels=y, scores=s))  # type: ignore[misc]
        costs.append(seconds / (rows // 5) * 1e9)
    return costs


def stream(n: int) -> Columns:
    """Events with a user, an arm for each experiment, a label, ten scores and ten numbers."""
    rng = generator(8)
    users = rng.integers(0, n // 5, n) * 7919 + 10**12
    columns: Columns = {"user": users}
    for i in range(EXPERIMENTS):
        arms = (users * 0x9E3779B97F4A7C1 >> (i + 3) & 1).astype(np.intp)
        columns[f"arm{i}"] = DictionaryColumn(arms, ("control", "treatment"))
    for i in range(10):
        columns[f"score{i}"] = scores = click_scores(n, 50 + i)
        columns[f"click{i}"] = labels_of(scores, 0.1, 70 + i)
    return columns


def fifty() -> Panel:
    """Ten areas, ten calibrations, ten confusions, and twenty ratios."""
    metrics: dict[str, Accumulator] = {}
    inputs = {}
    kinds = {"auc": HistogramAUC(), "calibration": Calibration(), "confusion": BinaryConfusion(0.1)}
    for i in range(10):
        for name, metric in kinds.items():
            metrics[f"{name}{i}"] = metric
            inputs[f"{name}{i}"] = {"labels": "click0", "scores": f"score{i}"}
        metrics[f"ctr{i}"] = metrics[f"revenue{i}"] = Ratio()
        inputs[f"ctr{i}"] = {"numerators": f"click{i}"}
        inputs[f"revenue{i}"] = {"numerators": f"score{i}", "denominators": f"click{i}"}
    return Panel(metrics, inputs=inputs)


def experiments(metric: Panel, rows: int, batch: int) -> tuple[float, float]:
    """Microseconds an event of 20 clustered experiments: one after another, and together."""
    arms = [f"arm{i}" for i in range(EXPERIMENTS)]
    batches = [
        {name: _cut(column, slice(i, i + batch)) for name, column in stream(rows).items()}
        for i in range(0, rows, batch)
    ]
    takes = [name for name in metric.arguments() if name in batches[0]]
    apart = {name: PerKey(UserGroups(metric)) for name in arms}
    together = PerKey(UserGroups(metric))

    def one_after_another() -> None:
        for columns in batches:
            read = {name: columns[name] for name in takes}
            for name, state in apart.items():
                state.update(columns[name], groups=columns["user"], **read)
        for state in apart.values():
            state.keys()  # counts the pending rows

    def at_once() -> None:
        for columns in batches:
            read = {name: columns[name] for name in takes}
            keys = {name: columns[name] for name in arms}
            together.update(keys, groups=columns["user"], **read)
        together.keys()

    least = [min(spent(job) for _ in range(3)) for job in (one_after_another, at_once)]
    return least[0] / rows * 1e6, least[1] / rows * 1e6


def _cut(column: np.ndarray | DictionaryColumn, rows: slice) -> np.ndarray | DictionaryColumn:
    if isinstance(column, DictionaryColumn):
        return DictionaryColumn(column.codes[rows], column.values)
    return column[rows]


def ask(quick: bool) -> Answer:
    rows = 1_000_000
    clicks, codes = labels_of(click_scores(rows)), generator(9).integers(0, KEYS, rows)
    report = answer("by-key", "Updating by key", rows=rows, arrays=[clicks, codes])
    table = []
    for form in FORMS:
        cells = []
        for batch in BATCHES:
            row, key = a_distinct_key(form, batch)
            cells.append(digits(row))
            report.add(timing(f"{form}, batches of {batch:,}, a distinct key", [key]))
        table.append([form, *cells])
    fifths = a_filling_state(2_000_000 if quick else 20_000_000, 10_000)
    report.add(
        timing("a state that fills, a row of the first two fifths", [sum(fifths[:2]) / 2]),
        timing("a state that fills, a row of the last two fifths", [sum(fifths[3:]) / 2]),
    )
    area = Panel({"auc": HistogramAUC()}, inputs={"auc": {"labels": "click0", "scores": "score0"}})
    for name, metric in (("HistogramAUC", area), ("50 metrics", fifty())):
        for batch in BATCHES[1:]:
            if quick and metric is not area and batch == BATCHES[-1]:
                continue
            n = 100_000 if metric is area or batch == BATCHES[-1] else 20_000
            apart, together = experiments(metric, n, batch)
            line = f"{name} in {EXPERIMENTS} experiments, batches of {batch:,}"
            report.add(timing(line, [1e3 * together]), timing(f"{line}, one by one", [1e3 * apart]))
    report.notes += [
        markdown([["ns a row with ten keys", *(f"batches of {n:,}" for n in BATCHES)], *table]),
        "A distinct key is its share of a batch of nearly as many keys as rows, for "
        f"`PerKey(Ratio())`. The state that fills is a `PerKey` of {KEYS:,} `HistogramAUC`. "
        "Experiments are of two arms and of users in groups: `PerKey(UserGroups(Panel))`.",
    ]
    return report


if __name__ == "__main__":
    run_question(ask)
