"""Gauges of the paths of rows and events: the ways of a row through `update`, a step of a worker.

The *way of a row* is keyed where the metric is given a slot for each row, else buffered where
functions of the buffer keep it, else direct; any other set of the buffer's functions is a way of
its own. `--details` says which functions each call of `calls_of_update` crosses. A *worker step* is
the first one of a worker: it polls, decodes, counts and commits 100 events of a small panel, and
does all that is done at times. `sys.setprofile` notes which functions it enters: those of the
consumers have a goal, those of the library follow from the metrics.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import TYPE_CHECKING

import numpy as np

from tests.house.calls import crossed, with_profile
from tests.house.figure import Figure

if TYPE_CHECKING:
    from streammetrics_consumers.counting.worker import Worker

FEEDING = {"accumulator.py", "stage.py", "buffer.py"}  # of core: what a row passes on its way in


# -- ways of a row -----------------------------------------------------------------------------
def calls_of_update() -> Iterator[tuple[str, object, Callable[[], object], Callable[[], object]]]:
    """A name, a metric, what feeds it before, and the call that is traced."""
    import streammetrics as sm

    drawn = np.random.default_rng(19)
    n = 100
    labels, scores = drawn.integers(0, 2, n).astype(np.uint8), drawn.random(n)
    many = np.tile(labels, 500), np.tile(scores, 500)
    few32 = labels, scores.astype(np.float32)
    keys = sm.DictionaryColumn(np.arange(n) % 3, ("a", "b", "c"))

    def none() -> None:
        pass

    def case(
        name: str, metric: sm.Accumulator, *args: object, first: bool = False, **columns: object
    ) -> tuple[str, object, Callable[[], object], Callable[[], object]]:
        def call() -> None:
            metric.update(*args, **columns)

        def twice() -> None:
            call()
            call()

        return name, metric, none if first else twice, call

    yield case("many rows", sm.HistogramAUC(), *many, first=True)
    yield case("the first few rows", sm.HistogramAUC(), labels, scores, first=True)
    yield case("few rows", sm.HistogramAUC(), labels, scores)
    yield case("few rows of float32", sm.HistogramAUC(), *few32)
    yield case("few rows as lists", sm.HistogramAUC(), labels.tolist(), scores.tolist())
    yield case("few weighted rows", sm.HistogramAUC(), labels, scores, weights=labels + 1)
    yield case("few rows of one column", sm.Ratio(), labels)
    yield case("few targets", sm.Regression(), scores, scores)
    yield case("few ids", sm.Units(), np.arange(n))
    panel = {"auc": sm.HistogramAUC(), "confusion": sm.BinaryConfusion()}
    yield case("few rows of a panel", sm.Panel(panel), labels=labels, scores=scores)
    yield case("few rows by key", sm.PerKey(sm.HistogramAUC()), keys, labels=labels, scores=scores)
    large = sm.DictionaryColumn(np.arange(50_000) % 3, ("a", "b", "c"))
    many_by_key = {"labels": many[0], "scores": many[1]}
    yield case("rows by key", sm.PerKey(sm.HistogramAUC()), large, **many_by_key, first=True)


def ways_of_a_row() -> Figure:
    """The different sets of functions that are handed a row on its way into a state."""
    from streammetrics.core.batch import Batch
    from streammetrics.core.rows import DictionaryColumn, Ragged

    ways: dict[frozenset[str], list[str]] = {}
    for name, metric, before, call in calls_of_update():
        before()
        crossed: set[str] = set()

        def note(frame: FrameType, crossed: set[str] = crossed) -> None:
            path = Path(frame.f_code.co_filename)
            rows = (np.ndarray, DictionaryColumn, Ragged, Batch)
            arguments = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            if any(isinstance(frame.f_locals.get(argument), rows) for argument in arguments):
                if path.parent.name == "core" and path.name in FEEDING:
                    crossed.add(frame.f_code.co_qualname)
                if frame.f_code.co_name in ("_absorb", "_accumulate"):
                    keyed = frame.f_locals.get("slots") is not None
                    crossed.add("by slot" if keyed else "to one state")

        with_profile(call, note)
        # What was buffered is counted now: whether by slot or not belongs to the way.
        with_profile(metric.to_bytes, note)  # type: ignore[attr-defined]
        ways.setdefault(frozenset(crossed), []).append(name)
    details = [f"{', '.join(names)}: {', '.join(sorted(way))}" for way, names in ways.items()]
    number = len({*map(_way, ways)})
    return Figure("ways that one row can take through update", number, 3, details=details)


def _way(crossed: frozenset[str]) -> str:
    """The name of a way, by the functions that it crosses."""
    if "by slot" in crossed:
        return "keyed"
    writers = {name for name in crossed if re.search(r"\b(put|append)$", name)}
    if writers <= {"Buffer.put", "_appending.<locals>.append"}:
        return "buffered" if writers else "direct"
    return ", ".join(sorted(writers))


# -- one step of a worker ----------------------------------------------------------------------
@contextmanager
def counting_worker(folder: str) -> Iterator[tuple[Worker, str]]:
    """A worker that is about to count 100 events of a small panel, and the address of its store."""
    from streammetrics_consumers.counting.options import Options
    from streammetrics_consumers.counting.worker import Worker
    from streammetrics_consumers.ledger.ledger import Ledger
    from streammetrics_consumers.model.partition import Partition
    from streammetrics_consumers.process.service import begin
    from streammetrics_consumers.process.stop import Stop

    from tests.consumers.memory_source import Deliver, Log, MemorySource
    from tests.consumers.small_config import config, event

    seconds = count()
    metrics = (
        'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }\n'
        'confusion = { type = "BinaryConfusion" }\nmse = { type = "Regression" }'
    )
    small = config(metrics=metrics, rest='[store]\nurl = "unused.db"\ncommit_interval_s = 0.01')
    partition = Partition("test", "events", "id", 0)
    values: list[bytes | None] = [event(label=i % 2, user=f"u{i}") for i in range(200)]
    url = f"{folder}/run.db"
    ledger = Ledger.open(url, create=True)
    try:
        source = MemorySource({partition: Log(values)}, [Deliver(), Deliver()])
        worker = Worker(
            small,
            ledger,
            begin(ledger, small).generation,
            source,
            Options(),
            stop=Stop(),
            monotonic=lambda: float(next(seconds)),  # so whatever is done at times is due
        )
        worker.prepare()
        source.assign(worker)
        yield worker, url
    finally:
        ledger.close()


def step_crosses() -> Counter[str]:
    """The functions of ours, with those of the metrics, that a step enters, and how often."""
    with TemporaryDirectory() as folder, counting_worker(folder) as (worker, _):
        return crossed(worker.step)


def filled_store(folder: str) -> str:
    """The address of a store in which a worker has counted 100 events."""
    with counting_worker(folder) as (worker, url):
        worker.step()
    return url


def worker_step() -> Iterator[Figure]:
    """What one step of a worker crosses that counts 100 events and commits them."""
    names = sorted(step_crosses())
    shell = [name for name in names if not name.startswith("streammetrics/")]
    files = Counter(name.partition(":")[0] for name in shell)
    by_file = [f"{n:3} {name}" for name, n in sorted(files.items())]
    yield Figure("functions that one Worker.step crosses", len(shell), 110, details=shell)
    yield Figure("files that one Worker.step crosses", len(files), 25, details=by_file)
    yield Figure("functions of the library that it crosses", len(names) - len(shell))


def figures() -> Iterator[Figure]:
    """The lines of this file."""
    yield ways_of_a_row()
    yield from worker_step()
