"""The cost of reading results by key: 10 metrics, 3 variants, and 1,000 or 10,000 slices.

Each command runs in a process of its own: the CPU time of the process beyond that of its imports,
and the most memory that it held at once, which includes the imports. `--beside PATH`
runs another checkout in turns with this one. `python -m benchmarks.bench_results [SLICES ...]`.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks import workloads

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
TARGETS: Final = "targets: a text of 1,000 slices 1 s, of 10,000 slices 6 s and 400 MB; JSON 150 MB"
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


def main() -> None:
    """Print a line for each number of slices and command."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("slices", type=int, nargs="*", default=[1_000, 10_000])
    asked.add_argument("--beside", type=Path, help="another checkout, run in turns")
    asked.add_argument("--rounds", type=int, default=2)
    given = asked.parse_args()
    checkouts = [None] if given.beside is None else [given.beside, None]
    print(TARGETS)
    print(f"{'slices':>7} {'command':58} {'CPU s':>7} {'peak MB':>8} {'MB out':>7}")
    for slices in given.slices:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            make_store(folder, slices)
            for command, *words in COMMANDS:
                for checkout, one in zip(
                    checkouts,
                    least([command, "store.db", *words], folder, checkouts, given.rounds),
                    strict=True,
                ):
                    said = " ".join([command, *words]) + (" (beside)" if checkout else "")
                    print(f"{slices:7,} {said:58} {one.cpu_s:7.2f} {one.peak_mb:8.0f}"
                          f" {one.nbytes / 1e6:7.1f}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
