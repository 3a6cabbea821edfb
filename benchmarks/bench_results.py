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
from benchmarks.answer import Answer, answer, figures, run_question
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
# The peak of a process is at least that of the process which started it: so a small one does.
LAUNCH: Final = """
import os, sys
pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:])
_, status, used = os.wait4(pid, 0)
with open("spent", "w") as file:
    seconds = used.ru_utime + used.ru_stime
    print(os.waitstatus_to_exitcode(status), seconds, used.ru_maxrss, file=file)
"""


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
             folder)  # fmt: skip
    return folder / "store.db"


def spent_by(words: list[str], folder: Path) -> Spent:
    """The cost of one process."""
    root = Path(__file__).parent.parent
    env = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'consumers'}"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled files are kept, as everywhere
    with (folder / "out").open("wb") as out:
        launched = [sys.executable, "-S", "-c", LAUNCH, *words]
        subprocess.run(
            launched, cwd=folder, stdout=out, stderr=subprocess.DEVNULL, env=env, check=True
        )
    code, seconds, peak = (folder / "spent").read_text(encoding="utf-8").split()
    if code != "0":
        raise SystemExit(f"{' '.join(words)}: exit code {code}")
    return Spent(float(seconds), float(peak) / 1000, (folder / "out").stat().st_size)


def least(words: list[str], folder: Path, rounds: int) -> Spent:
    """The least CPU time of a command beyond that of its imports."""
    imports, python = [sys.executable, "-c", IMPORTS], [sys.executable, "-c", MAIN]
    start = min(spent_by(imports, folder).cpu_s for _ in range(rounds))
    best = min(spent_by([*python, *words], folder) for _ in range(rounds))
    return Spent(best.cpu_s - start, best.peak_mb, best.nbytes)


def starts(folder: Path, rounds: int) -> list[Timing]:
    """Whole processes that do next to nothing, in turns."""
    first = "the first metric"
    processes = {
        "import numpy": "import numpy",
        "import streammetrics": "import streammetrics",
        first: "from streammetrics import HistogramAUC; HistogramAUC()",
        "status": MAIN,
        "results of one slice": MAIN,
        "report of one slice": MAIN,
    }
    spent: dict[str, list[float]] = {name: [] for name in processes}
    for _ in range(rounds):
        for name, code in processes.items():
            words = [name.split()[0], "store.db"] if code is MAIN else []
            words += ["-o", "report.html"] if words[:1] == ["report"] else []
            cost = spent_by([sys.executable, "-c", code, *words], folder)
            spent[name].append(1e9 * cost.cpu_s)
    pairs = zip(spent[first], spent["import numpy"], strict=True)
    spent[f"{first}, beyond numpy"] = [metric - numpy for metric, numpy in pairs]
    return [timing(name, times) for name, times in spent.items()]


def ask(quick: bool) -> Answer:
    rows = 1_000_000
    report = answer(
        "results",
        "Commands, each in a process of its own",
        rows=rows,
        arrays=[workloads.uniform_scores(rows)],
        unit="process",
        rows_per_unit=rows,
    )
    with tempfile.TemporaryDirectory() as name:
        make_store(Path(name), 1)
        report.add(*starts(Path(name), 3 if quick else 9))
    for slices in (1_000,) if quick else (1_000, 10_000):
        with tempfile.TemporaryDirectory() as name:
            make_store(Path(name), slices)
            for command, *words in COMMANDS[: 2 if quick else 3 if slices > 1_000 else 4]:
                rounds = 1 if quick or "--json" in words else 2
                cost = least([command, "store.db", *words], Path(name), rounds)
                line = f"{slices:,} slices: {' '.join([command, *words])}"
                report.add(timing(line, [1e9 * cost.cpu_s]))
                report.points.append(
                    {"series": line, "peak MB": cost.peak_mb, "MB printed": cost.nbytes / 1e6}
                )
    report.notes += [
        figures("process", report.points),
        "The limits are those of a million float32. Lines with a number of slices are what a "
        "process takes beyond its imports, which the peak includes; the others are whole "
        f"processes. Stores have 10 metrics and {len(VARIANTS)} variants of each slice.",
    ]
    return report


if __name__ == "__main__":
    run_question(ask)
