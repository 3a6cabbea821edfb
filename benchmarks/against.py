"""Update times beside those of a git revision: `make bench-against REV=...`, or of the last tag.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.answer import digits, markdown
from streammetrics.testing import Case
from tests.update_jobs import batches_as_json, cases

ROOT: Final = Path(__file__).resolve().parent.parent
CHECKOUTS: Final = ROOT / ".cache" / "against"
CLOCK: Final = "time.process_time_ns"
LIMIT: Final = 1.05
SIZES: Final = (1, 10, 100, 1_000, 100_000)
LISTS_UP_TO: Final = 1_000  # rows in batches of Python's lists
ROUNDS: Final = 7
AGAIN: Final = 2  # how often a ratio above the limit is measured again
REPEAT_NS: Final = 8_000_000  # the time of one repeat, for which the number of updates is chosen
FEW: Final = 8  # updates by which that number is chosen
MOST_UPDATES: Final = 8_192


@dataclass(frozen=True, slots=True)
class Job:
    """Updates of a metric class with the batches in a file, of so many rows, as "arrays" or
    "lists"."""

    metric: str
    file: Path
    rows: int
    form: str


class Unmeasured(Exception):
    """A version does not accept a job; the message is its error's."""


class Version:
    """A process that runs jobs with the library of one checkout."""

    def __init__(self, checkout: Path, clock: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
        child = Path(__file__).with_name("against_child.py")
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(child), clock],
            env={**environment, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        library = str(self._answer()["library"])
        if not Path(library).is_relative_to(checkout):
            raise SystemExit(f"{library} was imported, not the library of {checkout}")

    def accepts(self, job: Job) -> bool:
        """Whether the version can run a job."""
        try:
            self.spent(job, 1)
        except Unmeasured:
            return False
        return True

    def spent(self, job: Job, updates: int) -> int:
        """Nanoseconds of these updates; Unmeasured if the version refuses them."""
        assert self._process.stdin
        request = json.dumps([str(job.file), job.form, updates])
        self._process.stdin.write(f"{request}\n")
        self._process.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise Unmeasured(answer["error"])
        return int(str(answer["ns"]))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _answer(self) -> Mapping[str, object]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process of a version ended with code {self._process.wait()}")
        answer: dict[str, object] = json.loads(line)
        return answer


@dataclass(frozen=True, slots=True)
class Line:
    """Nanoseconds a row of both versions, and the ratio of new to old."""

    old: float
    new: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """The measured jobs, and those that a version refuses, each with its error."""

    limit: float
    lines: Mapping[Job, Line]
    skipped: Mapping[Job, str]

    @property
    def slower(self) -> list[Job]:
        """The jobs whose ratio is above the limit."""
        return [job for job, line in self.lines.items() if line.ratio > self.limit]

    def text(self) -> str:
        """The table, in which ✗ marks a ratio above the limit; then what was skipped, and why."""
        head = ["metric", "columns", "rows a batch", "old, ns a row", "new, ns a row", "new / old"]
        body = [
            [
                *(job.metric, job.form, f"{job.rows:,}", digits(line.old), digits(line.new)),
                f"{line.ratio:.2f}" + " ✗" * (job in self.slower),
            ]
            for job, line in self.lines.items()
        ]
        reasons = {job.metric: error for job, error in self.skipped.items()}
        skipped = [f"skipped {metric}: {error}" for metric, error in reasons.items()]
        counts = f"{len(self.slower)} of {len(self.lines)} ratios are above {self.limit:g}"
        return "\n".join([markdown([head, *body]), "", *skipped, counts])


def jobs(
    names: Iterable[str], sizes: Sequence[int], folder: Path, accepts: Callable[[Job], bool]
) -> list[Job]:
    """The jobs of these metric classes; their batches are written to the folder. Of each class the
    first case that the other version accepts, or the first one, whose error is then shown."""
    cases_of, job_list = cases(), []
    for name in names:
        number = 0
        for number, case in enumerate(cases_of[name]):
            if accepts(_jobs(case, f"{name} {number}", sizes[:1], folder)[0]):
                break
        else:
            number = 0
        job_list += _jobs(cases_of[name][number], f"{name} {number}", sizes, folder)
    return job_list


def _jobs(case: Case[Any], stem: str, sizes: Sequence[int], folder: Path) -> list[Job]:
    job_list = []
    for rows in sizes:
        file = folder / f"{stem} {rows}.json"
        file.write_text(batches_as_json(case, rows), encoding="utf-8")
        forms = ("arrays", "lists")[: 1 + (rows <= LISTS_UP_TO)]
        job_list += [Job(type(case.empty).__name__, file, rows, form) for form in forms]
    return job_list


def compared(
    old: Path, new: Path, all_jobs: Sequence[Job], limit: float = LIMIT, clock: str = CLOCK
) -> Comparison:
    """Each job in the libraries of two checkouts; again while its ratio is above the limit, and
    the least ratio counts."""
    comparison = Comparison(limit, {}, {})
    lines: dict[Job, Line] = {}
    skipped: dict[Job, str] = {}
    suspects = all_jobs
    for _ in range(1 + AGAIN):
        with ExitStack() as processes:
            versions = Version(old, clock), Version(new, clock)
            for version in versions:
                processes.callback(version.close)
            for job in suspects:
                try:
                    line = _line(*versions, job)
                except Unmeasured as error:
                    skipped[job] = str(error)
                    continue
                if job not in lines or line.ratio < lines[job].ratio:
                    lines[job] = line
        comparison = Comparison(limit, lines, skipped)
        suspects = comparison.slower
        if not suspects:
            break
    return comparison


def _line(old: Version, new: Version, job: Job) -> Line:
    for version in (new, old):
        version.spent(job, 1)  # a warm-up, and whether it accepts the job
    few = FEW if job.rows <= LISTS_UP_TO else 1
    updates = max(1, min(MOST_UPDATES, few * REPEAT_NS // max(1, old.spent(job, few))))
    spent: dict[Version, list[int]] = {old: [], new: []}
    for _ in range(ROUNDS):
        for version in (old, new, new, old):
            spent[version].append(version.spent(job, updates))
    ratios = [
        sum(spent[new][i : i + 2]) / sum(spent[old][i : i + 2]) for i in range(0, 2 * ROUNDS, 2)
    ]
    of_old, of_new = (statistics.median(spent[v]) / updates / job.rows for v in (old, new))
    return Line(of_old, of_new, statistics.median(ratios))


def checkout_of(revision: str) -> Path:
    """The library of a git revision, in a folder that later runs use again."""
    name = _git("rev-parse", "--verify", f"{revision}^{{commit}}").decode().strip()
    folder = CHECKOUTS / name
    if not folder.is_dir():
        files = _git("archive", name, "streammetrics")
        half = CHECKOUTS / f"{name}.{os.getpid()}"
        half.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", str(half)], input=files, check=True)
        half.rename(folder)
    return folder


def last_version(repository: Path = ROOT) -> str:
    """The last tag before HEAD; without one, the newest commit on its first parents that is at
    least a day old, and on the first day the oldest one."""
    tags = _git("tag", "--merged", "HEAD", "--sort=-creatordate", repository=repository).split()
    parents = ("rev-list", "--first-parent", "HEAD")
    aged = _git(*parents, "--max-count=1", "--before=1 day ago", repository=repository).split()
    return (tags[:1] or aged or _git(*parents, repository=repository).split()[-1:])[0].decode()


def _git(*words: str, repository: Path = ROOT) -> bytes:
    ran = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=False)
    if ran.returncode:
        raise SystemExit(ran.stderr.decode().strip())
    return ran.stdout


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The options of the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument(
        "revision",
        nargs="?",
        help="the git revision to compare with (default: the last tag, or "
        "without tags the newest commit that is at least a day old)",
    )
    parser.add_argument("--limit", type=float, default=LIMIT, help="the greatest ratio allowed")
    parser.add_argument("--only", nargs="+", choices=[*cases()], help="only these metric classes")
    parser.add_argument("--rows", nargs="+", type=int, default=SIZES, help="the sizes of batches")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a ratio is above the limit each time."""
    options = arguments(argv)
    revision = options.revision or last_version()
    print(f"compared with {revision}", flush=True)
    old = checkout_of(revision)
    with tempfile.TemporaryDirectory() as folder:
        probe = Version(old, CLOCK)
        asked_jobs = jobs(options.only or cases(), options.rows, Path(folder), probe.accepts)
        probe.close()
        comparison = compared(old, ROOT, asked_jobs, options.limit)
    print(comparison.text())
    return int(bool(comparison.slower))


if __name__ == "__main__":
    sys.exit(main())
