"""Gauges of what it takes to show a value: the functions that one call crosses, and its time."""

from __future__ import annotations

import contextlib
import gc
import io
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from types import CodeType, FrameType
from unittest.mock import patch

import numpy as np

from tests.house.figure import Figure
from tests.requirements import ROOT

PACKAGES = tuple(f"{ROOT / package}/" for package in ("streammetrics", "consumers"))
COST_KEYS, COST_ROWS = 300, 30_000


def with_profile(call: Callable[[], object], note: Callable[[FrameType], None]) -> None:
    """Call, and note each Python function of this repository that is entered.

    Garbage is collected before, not meanwhile: what others left ends in functions of its own, such
    as generators that are closed. What is left is not looked through again: the syntax trees of all
    files would take half a second each time.
    """
    root = str(ROOT)
    before = sys.getprofile()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            note(frame)

    gc.collect()
    gc.freeze()
    collects = gc.isenabled()
    gc.disable()
    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()


def crossed(call: Callable[[], object], folders: tuple[str, ...] = PACKAGES) -> Counter[str]:
    """The functions below some folders that a call enters, as `file:function`, with how often.

    What is nested in a function, such as a lambda or a comprehension, is part of it; resuming a
    generator enters it again. What runs when a module is imported does not count.
    """
    entered = Counter[str]()

    def note(frame: FrameType) -> None:
        code = frame.f_code
        if code.co_filename.startswith(folders) and not _of_module(code):
            name = code.co_qualname.partition(".<locals>")[0]
            entered[f"{Path(code.co_filename).relative_to(ROOT)}:{name}"] += 1

    with_profile(call, note)
    return entered


def _of_module(code: CodeType) -> bool:
    """Whether it is the body of a module or of a class."""
    return code.co_name == "<module>" or "__module__" in code.co_names


def warm(call: Callable[[], object], folders: tuple[str, ...] = PACKAGES) -> Counter[str]:
    """What the second of two equal calls crosses: the first one imports modules and fills caches,
    and so depends on what ran before."""
    call()
    return crossed(call, folders)


def _scores(n: int) -> tuple[np.ndarray, np.ndarray]:
    drawn = np.random.default_rng(19)
    return drawn.integers(0, 2, n).astype(np.uint8), drawn.random(n)


def of_interval() -> Counter[str]:
    """What `result.interval("auc")` crosses, of a fresh result of `HistogramAUC` with 100 rows."""
    from streammetrics import HistogramAUC

    metric = HistogramAUC()
    metric.update(*_scores(100))
    metric.compute().interval("auc")
    result = metric.compute()
    return crossed(lambda: result.interval("auc"))


def of_print() -> Counter[str]:
    """What `print(result)` crosses, of a fresh result of `HistogramAUC` with 100 rows."""
    from streammetrics import HistogramAUC

    metric = HistogramAUC()
    metric.update(*_scores(100))
    str(metric.compute())
    result = metric.compute()
    return crossed(lambda: print(result, file=io.StringIO()))


def of_users() -> Counter[str]:
    """What `result.interval("auc")` crosses, of a fresh result of `UserGroups(HistogramAUC())` with
    2,000 rows of 200 users."""
    from streammetrics import HistogramAUC, UserGroups

    metric = UserGroups(HistogramAUC())
    labels, scores = _scores(2000)
    metric.update(groups=np.arange(2000) % 200, labels=labels, scores=scores)
    metric.compute().interval("auc")
    result = metric.compute()
    return crossed(lambda: result.interval("auc"))


def of_results() -> Counter[str]:
    """What the command `streammetrics results STORE` crosses, after the process is warm, with the
    store that a worker filled from 100 events for four metrics.

    It shows no progress, as a quick command does: a busy machine would add what draws it."""
    from streammetrics_consumers.cli import progress
    from streammetrics_consumers.cli.main import main

    from tests.house.steps import filled_store

    with TemporaryDirectory() as folder, patch.object(progress, "QUICK_S", math.inf):
        url = filled_store(folder)

        def results() -> None:
            with contextlib.redirect_stdout(io.StringIO()):
                code = main(["results", url])
            if code:
                raise RuntimeError(f"results {url} ended with {code}")

        return warm(results)


def microseconds_a_value(keys: int = COST_KEYS, rows: int = COST_ROWS) -> float:
    """CPU microseconds of this process that a row of `PerKey(Panel of four).compute().to_frame()`
    takes: a value with its interval, or a count.

    The panel has an area, a confusion matrix, a ratio and a regression. Rows are spread evenly over
    the keys; each of three runs has a fresh result, and the least counts.
    """
    import streammetrics as sm

    panel = sm.Panel(
        {
            "auc": sm.HistogramAUC(),
            "confusion": sm.BinaryConfusion(),
            "ctr": sm.Ratio(),
            "mse": sm.Regression(),
        },
        inputs={"ctr": {"numerators": "labels"}},
    )
    metric = sm.PerKey(panel, max_keys=keys)
    labels, scores = _scores(rows)
    metric.update(np.arange(rows) % keys, labels=labels, scores=scores)
    metric.compute().to_frame("pandas").head()  # imports and caches
    costs = []
    for _ in range(3):
        result = metric.compute()
        began = process_time()
        values = len(result.to_frame("pandas"))
        costs.append((process_time() - began) / values * 1e6)
    return min(costs)


def figures() -> Iterator[Figure]:
    """The lines of this file that are quick."""
    for name, most, measure in (
        ('functions that interval("auc") crosses', 30, of_interval),
        ("functions that print(result) crosses", 60, of_print),
        ("functions that UserGroups(...).interval crosses", 80, of_users),
        ("functions that `results` of a store crosses", 400, of_results),
    ):
        entered = measure()
        yield Figure(name, len(entered), most, details=sorted(entered))
        if measure is of_print:
            yield Figure("calls of functions in print(result)", sum(entered.values()))


def slow_figures() -> Iterator[Figure]:
    """The line that takes seconds."""
    cost = microseconds_a_value()
    yield Figure("to_frame() by key: CPU of a value with its interval", cost, 2.0, "µs")
