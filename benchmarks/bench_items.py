"""The cost of a page by item and of a scrape: 50 metrics, 1,000 items and 3 windows.

The CPU time of a server in a process of its own, for one answer at a time: the first one, the first
after a commit of 100 events over all items, the same again, and scrapes while nothing is counted;
the bytes of the page's answer on the wire, and the most memory of the server.
`python -m benchmarks.bench_items`.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks import workloads
from benchmarks.answer import Answer, answer, figures, run_question
from benchmarks.bench_results import MAIN
from benchmarks.harness import Timing, timing

ITEMS: Final = 1_000
EVENTS: Final = 12_000
SCORES: Final = 20
DAY_S: Final = 86_400
CONFIG: Final = """\
[source]
kind = "file"
path = "events.jsonl"
[event]
time = "t"
time_unit = "s"
label = "l"
score = "s0"
user = "u"
[slices]
by = [["item"]]
[windows]
size_s = 86400
[store]
url = "store.db"
[metrics]
"""
METRICS: Final = (
    *(f'a{i} = {{ type = "HistogramAUC", resolution = 6, inputs = {{ scores = "s{i}" }} }}\n'
      for i in range(20)),
    *(f'r{i} = {{ type = "Ratio", inputs = {{ numerators = "s{i}" }} }}\n' for i in range(20)),
    *(f'c{i} = {{ type = "Calibration", inputs = {{ scores = "s{i}" }} }}\n' for i in range(10)),
)  # fmt: skip
PAGE: Final = "api/results?by=item&window=all&texts=tables&most=50"
COMMITS: Final = 5


def count(folder: Path, first: int, n: int) -> None:
    """Write events and count them; those after the first ones are of the last day."""
    drawn = random.Random(first)
    with (folder / "events.jsonl").open("a", encoding="utf-8") as file:
        for i in range(first, first + n):
            event = {"t": min(i * 3 * DAY_S // EVENTS, 3 * DAY_S - 1), "u": i,
                     "item": f"item {drawn.randrange(ITEMS) if first else i % ITEMS:04d}",
                     "l": int(drawn.random() < 0.3)}  # fmt: skip
            scores = {f"s{score}": round(drawn.random(), 4) for score in range(SCORES)}
            file.write(json.dumps({**event, **scores}) + "\n")
    words = ["run", str(folder / "config.toml"), "--until-end", "--no-serve"]
    subprocess.run([sys.executable, "-c", MAIN, *words], check=True, capture_output=True)


@contextmanager
def served(store: Path) -> Iterator[tuple[str, int]]:
    """The address of a server of this store, and its process."""
    words = [sys.executable, "-c", MAIN, "serve", str(store), "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "serving " in line)
        try:
            yield line.rpartition("serving ")[2].strip(), process.pid
        finally:
            process.terminate()


def cost(url: str, pid: int) -> tuple[float, int]:
    """The CPU nanoseconds of a process for one answer, and the bytes on the wire."""
    clock = ~pid << 3 | 2  # CLOCK_PROCESS_CPUTIME_ID of another process
    request = urllib.request.Request(url, headers={"accept-encoding": "gzip"})
    began = time.clock_gettime_ns(clock)
    with urllib.request.urlopen(request, timeout=600) as reply:
        nbytes = len(reply.read())
    return float(time.clock_gettime_ns(clock) - began), nbytes


def peak_mb(pid: int) -> float:
    """The most memory that a process held, in MB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii").split("\n")
    return next(float(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1000


def measured(folder: Path, commits: int) -> tuple[list[Timing], dict[str, float]]:
    """The lines, and the figures that are no times."""
    (folder / "config.toml").write_text(CONFIG + "".join(METRICS), encoding="utf-8")
    count(folder, 0, EVENTS)
    spent: dict[str, list[float]] = {}
    sent = 0

    def note(line: str, path: str) -> None:
        nonlocal sent
        nanoseconds, nbytes = cost(url + path, pid)
        spent.setdefault(line, []).append(nanoseconds)
        sent = max(sent, nbytes) if path == PAGE else sent

    with served(folder / "store.db") as (url, pid):
        note("a page by item, the first", PAGE)
        cost(url + "metrics", pid)
        for i in range(commits):
            count(folder, EVENTS + 100 * i, 100)
            note("a page by item, after a commit", PAGE)
            note("a scrape, after a commit", "metrics")
            for _ in range(3):
                note("a page by item, again", PAGE)
                note("a scrape, again", "metrics")
        figures = {"kB on the wire": sent / 1e3, "peak MB": peak_mb(pid)}
    return [timing(line, times) for line, times in spent.items()], figures


def ask(quick: bool) -> Answer:
    rows = 1_000_000
    report = answer(
        "items",
        "Answers of a server with 50 metrics, 1,000 items and 3 windows",
        rows=rows,
        arrays=[workloads.uniform_scores(rows)],
        unit="answer",
        rows_per_unit=rows,
    )
    with tempfile.TemporaryDirectory() as name:
        timings, sizes = measured(Path(name), 2 if quick else COMMITS)
    report.add(*timings)
    report.points.append({"series": "a page by item", **sizes})
    report.notes += [
        figures("answer", report.points),
        "The limits are those of a million float32. CPU time of the server's process; the page "
        "shows the first 50 items of each metric and window, with their texts, and a commit counts "
        "100 events of random items. The memory is that of the whole run, with its scrapes.",
    ]
    return report


if __name__ == "__main__":
    run_question(ask)
