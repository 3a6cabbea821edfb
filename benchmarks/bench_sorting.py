"""Sorting, and metrics that sort, with numpy's AVX-512 and without, as on AMD's Zen 4.

There numpy's AVX-512 sorts use an instruction that takes the processor some hundred cycles. Each
way is a process of its own, in turns; the setting is that of `streammetrics.check_machine()`, or
where it gives none, all of AVX-512 that numpy found. `python -m benchmarks.bench_sorting`.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import numpy as np

from benchmarks import workloads
from benchmarks.answer import Answer, answer, figures
from benchmarks.harness import versions
from streammetrics import (
    NDCG,
    Accumulator,
    ExactAUC,
    ExactQuantiles,
    GroupedAUC,
    HistogramAUC,
    RankingMetrics,
)

VARIABLE: Final = "NPY_DISABLE_CPU_FEATURES"
ROWS: Final = 1_000_000
_WORTH: Final = 1.5  # least speed-up for which advice is given
_FEATURES: Final = "from benchmarks.bench_sorting import wide_features; print(*wide_features())"


def wide_features() -> list[str]:
    """The AVX-512 features that numpy found and uses, by its own names."""
    config = cast("Mapping[str, Mapping[str, Any]]", np.show_config(mode="dicts"))
    features = config["SIMD Extensions"].get("found", [])
    return [name for name in features if name == "X86_V4" or name.startswith("AVX512")]


def sort_ns() -> float:
    """Nanoseconds a row of sorting random uint32."""
    rows = workloads.generator(1).integers(0, 1 << 32, ROWS, np.uint32)
    return 1e9 * min(_spent(lambda: np.sort(rows)) for _ in range(5)) / ROWS


def printed(code: str, disabled: str) -> str:
    """The output of Python in a new process, in which numpy does not use these features."""
    environment = {name: text for name, text in os.environ.items() if name != VARIABLE}
    environment |= {VARIABLE: disabled} if disabled else {}
    words = [sys.executable, "-W", "ignore", "-c", code]
    return subprocess.run(
        words, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def disabled_features() -> str:
    """The setting that disables features of numpy, as in the environment; "" if there is none."""
    names = os.environ.get(VARIABLE)
    return f'{VARIABLE}="{names}"' if names else ""


def advice() -> str:
    """Advice to disable AVX-512 if sorting is much faster without it; else ""."""
    features = " ".join(wide_features())
    if not features:
        return ""
    code = "from benchmarks.bench_sorting import sort_ns; print(sort_ns())"
    wide, narrow = sort_ns(), float(printed(code, features))
    if wide < _WORTH * narrow:
        return ""
    return (
        f"np.sort takes {wide:.1f} ns a row here, but {narrow:.1f} without AVX-512. This library "
        f'sorts by it, so set: export {VARIABLE}="{features}"'
    )


def jobs(rows: int) -> dict[str, Callable[[], object]]:
    """What is timed both ways, by name."""
    scores, clicks = workloads.uniform_scores(rows), workloads.click_scores(rows)
    wide, ids = workloads.unit_floats(rows), workloads.generator(8).integers(0, 1 << 62, rows)
    truth, users = workloads.labels_of(clicks), workloads.users(rows, rows // 20)
    work = workloads.scored_lists(rows // 60)

    area: Mapping[str, np.ndarray] = {"labels": truth, "scores": clicks}
    grouped = {**area, "groups": users}

    def update(
        empty: Accumulator, columns: Mapping[str, np.ndarray], size: int = rows
    ) -> Callable[[], object]:
        batches = workloads.cut(size, *columns.values())

        def run() -> object:
            state = empty.empty()
            for batch in batches:
                state.update(**dict(zip(columns, batch, strict=True)))
            return state.compute()

        return run

    def rank() -> object:
        state = RankingMetrics([NDCG @ 10])
        state.update(work.grades, work.scores, offsets=work.offsets)
        return state.compute()

    sorts = {"float32": scores, "float64": wide, "int64": ids}
    return {
        **{f"np.sort {name}": lambda a=a: np.sort(a) for name, a in sorts.items()},  # type: ignore[misc]
        **{f"np.argsort {name}": lambda a=a: np.argsort(a) for name, a in sorts.items()},  # type: ignore[misc]
        "np.exp float64": lambda: np.exp(wide),
        "ExactAUC": update(ExactAUC(), area),
        "ExactAUC, batches of 10,000": update(ExactAUC(), area, 10_000),
        "ExactAUC, float64": update(ExactAUC(), {"labels": truth, "scores": wide}),
        "ExactQuantiles, float64": update(ExactQuantiles(), {"values": wide}),
        "GroupedAUC": update(GroupedAUC(), grouped),
        "GroupedAUC, batches of 10,000": update(GroupedAUC(), grouped, 10_000),
        "RankingMetrics, NDCG, an item": rank,
        "HistogramAUC": update(HistogramAUC(), area),
        "HistogramAUC, batches of 10,000": update(HistogramAUC(), area, 10_000),
    }


def timed(rows: int) -> dict[str, float]:
    """The least nanoseconds a row of each job, in this process."""
    times = {}
    for name, run in jobs(rows).items():
        run()
        times[name] = 1e9 * min(_spent(run) for _ in range(3)) / rows
    return times


def ask(quick: bool) -> Answer:
    rows = ROWS // 10 if quick else ROWS
    report = answer(
        "sorting",
        f"Sorting with numpy's AVX-512 and without, {rows:,} rows",
        rows=rows,
        arrays=[workloads.uniform_scores(rows)],
    )
    features = printed(_FEATURES, "").strip()
    if not features:
        report.notes.append("numpy has no AVX-512 on this processor.")
        return report
    code = (
        f"import json; from benchmarks.bench_sorting import timed; print(json.dumps(timed({rows})))"
    )
    spent: dict[str, dict[str, list[float]]] = {"": {}, features: {}}
    for _ in range(2 if quick else 3):
        for disabled, times in spent.items():
            for name, ns in json.loads(printed(code, disabled)).items():
                times.setdefault(name, []).append(ns)
    for name, with_them in spent[""].items():
        wide, narrow = statistics.median(with_them), statistics.median(spent[features][name])
        report.points.append(
            {
                "series": name,
                "with, ns": wide,
                "without, ns": narrow,
                "times as long": wide / narrow,
            }
        )
    report.notes += [
        figures("AVX-512", report.points),
        f'Without is with {VARIABLE}="{features}". Metrics end with their result. '
        "The library calls no `np.exp`, which is here for programs of your own.",
    ]
    return report


def _spent(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


if __name__ == "__main__":
    print(f"{versions()}\n\n{ask('--quick' in sys.argv).text()}")
    print(advice() or "numpy does not sort much faster here without AVX-512")
