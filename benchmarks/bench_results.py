"""The cost of reading results by key: 10 metrics, 3 variants, and 1,000 or 10,000 slices.

Each command runs in a process of its own: the CPU time of the process beyond that of its imports,
and the most memory that it held at once, which includes the imports. Before them, what processes
cost that do next to nothing. `python -m benchmarks.bench_results`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import workloads
from benchmarks.answer import Answer, alone, answer, figures
from benchmarks.harness import Timing, timing

ROWS: Final = 3  # of each variant and slice
VARIANTS: Final = ("a", "b", "c")
CONFIG: Final = """\
[source]
kind = "file"
path = "events.csv"
[event]
time = "t"
time_unit = "s"
variant = "variant"
label = "label"
score = "score"
[slices]
by = [[], ["variant"], ["variant", "country"]]
max_keys = 100000
[store]
url = "store.db"
[metrics]
"""
METRICS: Final = (
    *(f'ratio_{i} = {{ type = "Ratio" }}\n' for i in range(4)),
    *(f'confusion_{i} = {{ type = "BinaryConfusion" }}\n' for i in range(2)),
    *(f'auc_{i} = {{ type = "HistogramAUC" }}\n' for i in range(2)),
    *(f'calibration_{i} = {{ type = "Calibration" }}\n' for i in range(2)),
)
BY: Final = ("--by", "variant,country")
COMMANDS: Final = (
    ("results", *BY),
    ("results", *BY, "--metric", "ratio_0"),
    ("results", *BY, "--json", "--views", "headline"),
    ("results", *BY, "--json", "--views", "all"),
)
IMPORTS: Final = (
    "import streammetrics_consumers.cli.main, streammetrics_consumers.cli.read_commands, "
    "sqlalchemy.dialects.sqlite"
)
MAIN: Final = "import sys; from streammetrics_consumers.cli.main import main; sys.exit(main())"


class Spent(NamedTuple):
    """The CPU seconds of a process, its most memory in MB, and the bytes that it printed."""

    cpu_s: float
    peak_mb: float
    nbytes: int


def make_store(folder: Path, slices: int) -> Path:
    """A store of that many slices, made by `run`."""
    n = slices * len(VARIANTS) * ROWS
    drawn = workloads.generator(slices)
    scores = drawn.random(n).round(4).tolist()
    labels = (drawn.random(n) < 0.3).astype(int).tolist()
    lines = (
        f"{i},{VARIANTS[i % 3]},slice {i // 3 % slices:05d},{label},{score}\n"
        for i, (label, score) in enumerate(zip(labels, scores, strict=True))
    )
    with (folder / "events.csv").open("w", encoding="utf-8") as file:
        file.write("t,variant,country,label,score\n")
        file.writelines(lines)
    (folder / "config.toml").write_text(CONFIG + "".join(METRICS), encoding="utf-8")
    spent_by([sys.executable, "-c", MAIN, "run", "config.toml", "--until-end", "--no-serve"],
             folder, None)  # fmt: skip
    return folder / "store.db"


def spent_by(words: list[str], folder: Path, checkout: Path | None) -> Spent:
    """The cost of one process; checkout: the code that it imports, or None for this one."""
    at = Path(__file__).parent.parent if checkout is None else checkout
    env = {**os.environ, "PYTHONPATH": f"{at}{os.pathsep}{at / 'consumers'}"}
    with (folder / "out").open("wb") as out:
        child = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.DEVNULL, env=env)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(words)}: exit code {child.returncode}")
    seconds = used.ru_utime + used.ru_stime
    return Spent(seconds, used.ru_maxrss / 1000, (folder / "out").stat().st_size)


def least(words: list[str], folder: Path, checkouts: list[Path | None], rounds: int) -> list[Spent]:
    """The least CPU time of each checkout, in turns, beyond that of its imports."""
    python = [sys.executable, "-c", MAIN]
    found = []
    for checkout in checkouts:
        imports = [sys.executable, "-c", IMPORTS]
        start = min(spent_by(imports, folder, checkout).cpu_s for _ in range(rounds))
        found.append((start, list[Spent]()))
    for _ in range(rounds):
        for checkout, (_, spent) in zip(checkouts, found, strict=True):
            spent.append(spent_by([*python, *words], folder, checkout))
    best = [(start, min(spent)) for start, spent in found]
    return [Spent(one.cpu_s - start, one.peak_mb, one.nbytes) for start, one in best]


def starts(folder: Path, rounds: int) -> list[Timing]:
    """Whole processes that do next to nothing, in turns."""
    python = [sys.executable, "-c"]
    processes = {
        "import numpy": [*python, "import numpy"],
        "import streammetrics": [*python, "import streammetrics"],
        "status": [*python, MAIN, "status", "store.db"],
        "results of one slice": [*python, MAIN, "results", "store.db"],
    }
    spent: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(rounds):
        for name, words in processes.items():
            spent[name].append(1e9 * spent_by(words, folder, None).cpu_s)
    found = [timing(name, each) for name, each in spent.items()]
    more = found[1].median - found[0].median
    return [*found, timing("import streammetrics, beyond numpy", [more])]


def ask(quick: bool) -> Answer:
    rows = 1_000_000
    found = answer(
        "results",
        "Commands, each in a process of its own",
        rows=rows,
        arrays=[workloads.uniform_scores(rows)],
        unit="process",
        of=rows,
    )
    with tempfile.TemporaryDirectory() as name:
        make_store(Path(name), 1)
        found.add(*starts(Path(name), 3 if quick else 9))
    for slices in (1_000,) if quick else (1_000, 10_000):
        with tempfile.TemporaryDirectory() as name:
            make_store(Path(name), slices)
            for command, *words in COMMANDS:
                [one] = least([command, "store.db", *words], Path(name), [None], 1 if quick else 2)
                line = f"{slices:,} slices: {' '.join([command, *words])}"
                found.add(timing(line, [1e9 * one.cpu_s]))
                found.points.append(
                    {"series": line, "peak MB": one.peak_mb, "MB printed": one.nbytes / 1e6}
                )
    found.notes += [
        figures("process", found.points),
        "The limits are those of a million float32. Lines with a number of slices are what a "
        "process takes beyond its imports, which the peak includes; the others are whole "
        f"processes. Stores have 10 metrics and {len(VARIANTS)} variants of each slice.",
    ]
    return found


if __name__ == "__main__":
    alone(ask)
