"""The memory of states: bytes a row of exact ones, and whether `nbytes` is correct.

tracemalloc measures the memory that Python and numpy hold for a state: after it was fed, after it
was read, of a copy, and of a state read from bytes. `nbytes` must be within 5 % of it if the state
takes more than 128 KB; below that, Python objects matter, which `nbytes` leaves out.
`python -m benchmarks.bench_memory`.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import _lru_cache_wrapper

import numpy as np

from benchmarks.answer import Answer, answer, digits, markdown, run_question
from benchmarks.workloads import generator, labels_of, uniform_scores, unit_floats
from streammetrics import (
    NDCG,
    Accumulator,
    CatalogMetrics,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    HistogramAUC,
    ItemExposure,
    MulticlassAUC,
    PerKey,
    RankingMetrics,
    Ratio,
    Units,
    UserGroups,
    Windows,
    load,
)

BATCH = 10_000
FLOOR = 1 << 17  # bytes, below which Python objects matter
WITHIN = 0.05
Fed = Callable[[Accumulator, slice], None]


@dataclass(frozen=True, slots=True)
class Held:
    """A state's bytes at one moment: by `nbytes`, and as measured."""

    name: str
    moment: str
    rows: int
    said: int
    measured: int

    @property
    def off(self) -> float:
        """The excess of the measured bytes over `nbytes`, as a share of the measured bytes."""
        return 1 - self.said / max(self.measured, 1)

    @property
    def right(self) -> bool:
        """Whether `nbytes` is correct."""
        return self.measured < FLOOR or abs(self.off) <= WITHIN


def traced(make: Callable[[], Accumulator]) -> tuple[Accumulator, int]:
    """A state, and the bytes held for it."""
    gc.collect()
    tracemalloc.start()
    try:
        state = make()
        gc.collect()
        return state, tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def empty_caches() -> None:
    """Empty the caches of the library, so that the keys of a state are held by it alone."""
    modules = [module for name, module in sys.modules.items() if name.startswith("streammetrics")]
    for module in modules:
        for value in [*vars(module).values()]:
            if isinstance(value, _lru_cache_wrapper):
                value.cache_clear()


def moments(name: str, empty: Accumulator, rows: int, feed: Fed) -> list[Held]:
    """The state at each moment, after a first run that fills all caches."""

    def fed() -> Accumulator:
        state = empty.empty()
        for start in range(0, rows, BATCH):
            feed(state, slice(start, min(start + BATCH, rows)))
        return state

    def read() -> Accumulator:
        state = fed()
        state.compute()
        return state

    def loaded() -> Accumulator:
        empty_caches()
        state = load(data)
        empty_caches()
        return state

    before = read()
    load(before.to_bytes()).compute()
    data = before.to_bytes()
    jobs = {
        "fed": fed,
        "read": read,
        "copied": lambda: read().copy(),  # the original is freed, because copies may share memory
        "from bytes": loaded,
    }
    results = []
    for moment, job in jobs.items():
        state, measured = traced(job)
        results.append(Held(name, moment, rows, state.nbytes, measured))
        del state
    return results


def cases(rows: int) -> dict[str, tuple[Accumulator, Fed]]:
    """Every kind of growing state, with the function that feeds it the rows of a slice."""
    uniform, wide = uniform_scores(rows), unit_floats(rows)
    truth = labels_of(uniform)
    ids = generator(60).integers(0, 1 << 62, rows // 20)[
        generator(61).integers(0, rows // 20, rows)
    ]
    keys = generator(62).integers(0, 1_000, rows)
    people = generator(61).integers(0, rows // 20, rows).tolist()
    places = generator(63).integers(0, 10, (rows, 10))
    times = np.arange(rows, dtype=np.int64) * 10

    def plain(scores: np.ndarray) -> Fed:
        return lambda state, span: state.update(truth[span], scores[span])

    def grouped(state: Accumulator, batch: slice) -> None:
        state.update(truth[batch], uniform[batch], groups=ids[batch])

    def feed_strings(state: Accumulator, batch: slice) -> None:
        # New strings, which only the state holds.
        state.update(truth[batch], uniform[batch], groups=[f"user-{i}" for i in people[batch]])

    def keyed(state: Accumulator, batch: slice) -> None:
        state.update(keys[batch], labels=truth[batch], scores=uniform[batch])

    digits_of_four = np.round(uniform, 4)
    return {
        "ExactAUC, float32": (ExactAUC(score_type="float32"), plain(uniform)),
        "ExactAUC, float32, 4 digits": (ExactAUC(score_type="float32"), plain(digits_of_four)),
        "ExactAUC, float64": (ExactAUC(), plain(wide)),
        "GroupedAUC": (GroupedAUC(), grouped),
        "GroupedAUC, float64": (GroupedAUC(score_type="float64"), grouped),
        "GroupedAUC, strings": (GroupedAUC(ids="exact"), feed_strings),
        "GroupedAUC, hashed strings": (GroupedAUC(ids="hashed"), feed_strings),
        "GroupedAUC, on a grid": (GroupedAUC(grid="relative"), grouped),
        "GroupedScores": (
            GroupedScores((NDCG @ 10,)),
            lambda state, span: state.update(truth[span], uniform[span], groups=ids[span]),
        ),
        "MulticlassAUC, exact, 10 classes": (
            MulticlassAUC(10, exact=True),
            lambda state, span: state.update(places[span, 0], places[span] + wide[span, None]),
        ),
        "HistogramAUC": (HistogramAUC(), plain(uniform)),
        "Units": (Units(), lambda state, span: state.update(ids[span])),
        "PerKey of 1,000 HistogramAUC": (PerKey(HistogramAUC(), max_keys=1_000), keyed),
        "PerKey of 1,000 Ratio": (
            PerKey(Ratio(), max_keys=1_000),
            lambda state, span: state.update(keys[span], numerators=wide[span]),
        ),
        "UserGroups of HistogramAUC": (
            UserGroups(HistogramAUC()),
            lambda state, span: state.update(ids[span], labels=truth[span], scores=uniform[span]),
        ),
        "Windows of HistogramAUC": (
            Windows(HistogramAUC(), size_s=60),
            lambda state, span: state.update(times[span], labels=truth[span], scores=uniform[span]),
        ),
        "CatalogMetrics of 100,000 items": (
            CatalogMetrics(100_000, 1),
            lambda state, span: state.update((ids[span] % 100_000)[:, None]),
        ),
        "ItemExposure of 100,000 items": (
            ItemExposure(100_000, 1),
            lambda state, span: state.update((ids[span] % 100_000)[:, None]),
        ),
        "RankingMetrics": (
            RankingMetrics((NDCG @ 10,)),
            lambda state, span: state.update(places[span] % 2, None),
        ),
    }


def ask(quick: bool) -> Answer:
    rows = 200_000 if quick else 1_000_000
    scores = uniform_scores(rows)
    title = f"Memory of states after {rows:,} rows in batches of {BATCH:,}"
    report = answer("memory", title, rows=rows, arrays=[labels_of(scores), scores])
    results = [
        result
        for name, case in cases(rows).items()
        for result in moments(name, case[0], rows, case[1])
    ]
    lines = []
    for name in dict.fromkeys(result.name for result in results):
        metric_results = [result for result in results if result.name == name]
        last = metric_results[-1]
        cells = [
            f"{100 * result.off:+.1f} %" + ("" if result.right else " ✗")
            for result in metric_results
        ]
        lines.append([name, digits(last.measured / rows), digits(last.said / rows), *cells])
    head = ["bytes a row", "measured", "`nbytes`", *(result.moment for result in metric_results)]
    wrong = sum(not result.right for result in results)
    report.notes += [
        markdown([head, *lines]),
        "The first two columns are of a state from bytes, the others how far the memory at each "
        f"moment exceeds `nbytes`. {wrong} of {len(results)} differ by more than 5 %"
        + (", marked ✗." if wrong else "."),
    ]
    report.points = [
        {
            "series": result.name,
            "moment": result.moment,
            "nbytes": result.said,
            "measured": result.measured,
        }
        for result in results
    ]
    return report


if __name__ == "__main__":
    run_question(ask)
