"""Update times beside those of a git revision: `make bench-against REV=...`.

A child process for each version (same interpreter, another `PYTHONPATH`) runs the updates of every
metric class in batches of each size, in turns: old, new, new, old. The ratio of a line is the
median of the ratios of its rounds. One above the limit is measured again in other processes, since
two processes of one version differ by a few percent; the exit code is 1 if it is above each time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import dumps
from types import TracebackType
from typing import Final, Self

from benchmarks.against_jobs import SIZES, Job, jobs
from benchmarks.answer import digits, markdown

ROOT: Final = Path(__file__).resolve().parent.parent
CHECKOUTS: Final = ROOT / ".cache" / "against"
CLOCK: Final = "time.process_time_ns"
LIMIT: Final = 1.05
ROUNDS: Final = 7
AGAIN: Final = 2  # how often a ratio above the limit is measured again
REPEAT_NS: Final = 8_000_000  # the time of one repeat, for which the number of updates is chosen
MOST_UPDATES: Final = 8_192


class Unmeasured(Exception):
    """A version does not accept a job; the message is its error's."""


class Version:
    """A process that runs the jobs with the library of one checkout."""

    def __init__(self, checkout: Path, jobs_file: Path, clock: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        child = Path(__file__).with_name("against_child.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(child), str(jobs_file), clock],
            env={**environment, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        library = str(self._answer()["library"])
        if not Path(library).is_relative_to(checkout):
            raise SystemExit(f"{library} was imported, not the library of {checkout}")

    def spent(self, job: int, updates: int) -> int:
        """Nanoseconds of these updates; Unmeasured if the version refuses them."""
        assert self._process.stdin
        self._process.stdin.write(f"{job} {updates}\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise Unmeasured(answer["error"])
        return int(str(answer["ns"]))

    def _answer(self) -> Mapping[str, object]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of a version ended with code {self._process.wait()}")
        answer: dict[str, object] = json.loads(line)
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        self._process.communicate()


@dataclass(frozen=True, slots=True)
class Line:
    """Nanoseconds a row of both versions, and the ratio of new to old."""

    job: Job
    old: float
    new: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The measured lines, and the jobs that a version refuses, with its error."""

    lines: Mapping[int, Line]
    skipped: Mapping[int, str]


def compared(
    checkouts: tuple[Path, Path], chosen: Sequence[Job], limit: float, clock: str = CLOCK
) -> Comparison:
    """Each job in both versions; again while its ratio is above the limit, of which the least
    counts."""
    lines: dict[int, Line] = {}
    skipped: dict[int, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        jobs_file = Path(folder) / "jobs"
        jobs_file.write_bytes(dumps([job.packed for job in chosen]))
        suspects = list(range(len(chosen)))
        for attempt in range(1 + AGAIN):
            with _versions(checkouts, jobs_file, clock) as (old, new):
                for number in suspects:
                    try:
                        line = _line(old, new, number, chosen[number], ROUNDS * (1 + attempt))
                    except Unmeasured as error:
                        skipped[number] = str(error)
                        continue
                    if number not in lines or line.ratio < lines[number].ratio:
                        lines[number] = line
            suspects = [number for number, line in lines.items() if line.ratio > limit]
    return Comparison(dict(sorted(lines.items())), skipped)


@contextmanager
def _versions(
    checkouts: tuple[Path, Path], jobs_file: Path, clock: str
) -> Iterator[tuple[Version, Version]]:
    old, new = checkouts
    with Version(old, jobs_file, clock) as first, Version(new, jobs_file, clock) as second:
        yield first, second


def _line(old: Version, new: Version, number: int, job: Job, rounds: int) -> Line:
    for version in (old, new):
        version.spent(number, 1)  # a warm-up, and whether it accepts the job
    few = 8 if job.rows < 1_000 else 1
    updates = max(1, min(MOST_UPDATES, few * REPEAT_NS // max(1, old.spent(number, few))))
    spent: dict[Version, list[int]] = {old: [], new: []}
    for _ in range(rounds):
        for version in (old, new, new, old):
            spent[version].append(version.spent(number, updates))
    ratios = [
        (spent[new][i] + spent[new][i + 1]) / (spent[old][i] + spent[old][i + 1])
        for i in range(0, 2 * rounds, 2)
    ]
    medians = [statistics.median(spent[v]) / updates / job.rows for v in (old, new)]
    return Line(job, medians[0], medians[1], statistics.median(ratios))


def table(comparison: Comparison, limit: float) -> str:
    """The lines as a table; ✗ marks a ratio above the limit."""
    head = ["metric", "columns", "rows a batch", "old, ns a row", "new, ns a row", "new / old"]
    body = [
        [
            *(line.job.metric, line.job.form, f"{line.job.rows:,}"),
            *(digits(line.old), digits(line.new)),
            f"{line.ratio:.2f}" + " ✗" * (line.ratio > limit),
        ]
        for line in comparison.lines.values()
    ]
    return markdown([head, *body])


def verdict(comparison: Comparison, chosen: Sequence[Job], limit: float) -> str:
    """What was skipped, and how many ratios are above the limit."""
    skipped = {chosen[number].metric: error for number, error in comparison.skipped.items()}
    lines = [f"skipped {metric}: {error}" for metric, error in skipped.items()]
    slow = sum(line.ratio > limit for line in comparison.lines.values())
    return "\n".join([*lines, f"{slow} of {len(comparison.lines)} ratios are above {limit:g}"])


def checkout_of(revision: str) -> Path:
    """The files of a git revision, in a folder of its own that later runs use again."""
    name = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = CHECKOUTS / name
    if not folder.is_dir():
        CHECKOUTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CHECKOUTS) as made:
            files = _git("archive", name, "streammetrics")
            subprocess.run(["tar", "-x", "-C", made], input=files, check=True)
            Path(made).rename(folder)
            Path(made).mkdir()  # which is then removed
    return folder


def _git(*words: str) -> bytes:
    ran = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr.decode().strip())
    return ran.stdout


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("revision", help="the git revision to compare with")
    parser.add_argument("--limit", type=float, default=LIMIT, help="the greatest ratio allowed")
    parser.add_argument("--only", nargs="+", metavar="METRIC", help="only these metric classes")
    parser.add_argument("--rows", nargs="+", type=int, default=SIZES, help="the sizes of batches")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a ratio is above the limit each time."""
    from tests.cases import CASES  # its metrics are every class

    asked = arguments(given)
    old = checkout_of(asked.revision)
    firsts = {type(case.empty).__name__: case for case in reversed(CASES)}
    unknown = set(asked.only or ()) - set(firsts)
    if unknown:
        raise SystemExit(f"no metric class is called {', '.join(sorted(unknown))}")
    names = asked.only or sorted(firsts)
    chosen = list(jobs([firsts[name] for name in names], asked.rows))
    comparison = compared((old, ROOT), chosen, asked.limit)
    print(table(comparison, asked.limit), verdict(comparison, chosen, asked.limit), sep="\n\n")
    return int(any(line.ratio > asked.limit for line in comparison.lines.values()))


if __name__ == "__main__":
    sys.exit(main())
