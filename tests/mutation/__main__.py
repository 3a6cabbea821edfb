"""Which test kills which mutant: change the code, one small change at a time, and run its tests.

    python -m tests.mutation                               # two mutants of each function
    python -m tests.mutation streammetrics/kernels --all   # every mutant of one package
    python -m tests.mutation --report                      # of what has been found so far
    python -m tests.mutation --compare old.jsonl new.jsonl

The first run, and any after the code or the tests have changed, begins with a run of the tests
that notes which line each executes. Results are added to those that the file has: a run that was
stopped goes on where it was. Exit code 1 if `--compare` finds a mutant that was killed and is not
killed any more.
"""

from __future__ import annotations

import argparse
import functools
import os
import pickle
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FunctionType

import pytest

from tests.mutation import EQUIVALENT, KEPT, MARKED, SOURCES, TESTS, covering, report, running
from tests.mutation.covering import Covered
from tests.mutation.mutants import Mutant, files, mutants_of, mutated, sample
from tests.mutation.report import KILLED, NOT_COVERED, NOT_RUN, SURVIVED, Matrix, Result
from tests.mutation.running import Job, Outcome

QUIET = "-qq --no-header --no-summary -s -n0 -p no:cacheprovider --assert=plain --tb=native"
WITHOUT_MUTANT = 300.0  # seconds in which a test must end


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class Run:
    """The plugin that runs tests under mutants in place of pytest's own loop."""

    def __init__(self, arguments: argparse.Namespace, root: Path) -> None:
        self.arguments, self.root = arguments, root
        self.paths = files(arguments.sources, root)
        usual = files([source for source in SOURCES if (root / source).exists()], root)
        self.traced = sorted({*self.paths, *usual})  # so that the next run, of others, has them too
        self.sources = {path: (root / path).read_text(encoding="utf-8") for path in self.paths}
        self.covered_file = root / arguments.folder / "covered"
        self.error = ""

    def pytest_configure(self, config: pytest.Config) -> None:
        """Hypothesis tries the same examples each time, and does not look for smaller ones."""
        import hypothesis

        hypothesis.settings.register_profile(
            "mutants",
            parent=hypothesis.settings.default,
            derandomize=True,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Everything is collected: note who executes what, if need be, and run the mutants."""
        plugins = session.config.pluginmanager
        if plugins.has_plugin("every_case_is_read"):  # not by this process
            plugins.unregister(name="every_case_is_read")
        if session.testsfailed:
            self.error = "pytest could not collect every test"
            return True
        self.items = session.items
        self.functions = running.living_functions()
        covered = self._read_covered() or self._cover()
        if covered is not None:
            self._run(covered)
        return True

    # -- coverage ---------------------------------------------------------------------------

    def _read_covered(self) -> Covered | None:
        if not self.covered_file.exists():
            return None
        covered: Covered = pickle.loads(self.covered_file.read_bytes())
        now = covering.hashes([*self.paths, *self._files_of_tests()], self.root)
        same = covered.files.items() >= now.items() and self.arguments.tests == covered.arguments
        return covered if same else None

    def _files_of_tests(self) -> list[str]:
        return sorted({item.path.relative_to(self.root).as_posix() for item in self.items})

    def _cover(self) -> Covered | None:
        """Run each test as it is, with and without the tracer."""
        started = time.monotonic()
        hashes = covering.hashes([*self.traced, *self._files_of_tests()], self.root)
        parts = list(self._parts(2 * self.arguments.workers))
        timed = [Job("", part, self._unhurried, covering.clear_caches) for part in parts]
        passed: dict[int, float] = {}
        for _, outcome in running.run(self.items, iter(timed), self.arguments.workers):
            passed |= outcome.passed
        left_out = [item.nodeid for index, item in enumerate(self.items) if index not in passed]
        for file, times in sorted(Counter(name.partition("::")[0] for name in left_out).items()):
            say(f"{file}: {times} tests are left out, since they fail without a mutant")
        parts = [tests for part in parts if (tests := [test for test in part if test in passed])]
        took = time.monotonic() - started
        say(f"{len(passed):,} tests ran in {took:.0f} s; now with a tracer")
        lines: dict[str, set[tuple[str, int]]] = {}
        with tempfile.TemporaryDirectory() as folder:
            jobs = (self._traced(part, Path(folder)) for part in parts)
            for job, outcome in running.run(self.items, jobs, self.arguments.workers):
                if outcome.error or not Path(job.name).exists():
                    self.error = f"no coverage: {outcome.error or 'a child has died'}"
                    return None
                lines |= pickle.loads(Path(job.name).read_bytes())
        say(f"traced in {time.monotonic() - started - took:.0f} s")
        seconds = {self.items[test].nodeid: passed[test] for test in sorted(passed)}
        covered = Covered.from_lines(seconds, lines, hashes, self.arguments.tests)
        self.covered_file.parent.mkdir(parents=True, exist_ok=True)
        self.covered_file.write_bytes(pickle.dumps(covered))
        return covered

    def _parts(self, count: int) -> Iterator[list[int]]:
        """Tests in parts of about one size, those of a file in one part."""
        by_file: dict[str, list[int]] = {}
        for index, item in enumerate(self.items):
            by_file.setdefault(item.nodeid.partition("::")[0], []).append(index)
        groups = list(by_file.values())
        for part in range(count):
            if tests := [test for group in groups[part::count] for test in group]:
                yield tests

    def _traced(self, tests: Sequence[int], folder: Path) -> Job:
        tracer = covering.Tracer(str(self.root / path) for path in self.traced)
        place = folder / str(tests[0])
        prefix = f"{self.root}{os.sep}"

        def before() -> None:
            covering.clear_caches()
            self.items[0].config.pluginmanager.register(covering.Noting(tracer))
            tracer.start()

        def after() -> None:
            lines_by_test = {}
            for test in tests:
                name = self.items[test].nodeid
                lines = tracer.lines_of(name)
                lines_by_test[name] = {(path.removeprefix(prefix), line) for path, line in lines}
            place.write_bytes(pickle.dumps(lines_by_test))

        return Job(str(place), tests, self._unhurried, before, after)

    @staticmethod
    def _unhurried(_: int) -> float:
        return WITHOUT_MUTANT

    # -- mutants ----------------------------------------------------------------------------

    def _run(self, covered: Covered) -> None:
        matrix = Matrix.read(self.arguments.results)
        keys = {(result.path, result.key) for result in matrix.results}
        every = [
            candidate for path in self.paths for candidate in mutants_of(path, self.sources[path])
        ]
        chosen = sample(
            every, None if self.arguments.all else self.arguments.per_function, self.arguments.seed
        )
        chosen = [candidate for candidate in chosen if candidate.key not in EQUIVALENT]
        if self.arguments.sources == list(SOURCES):
            for key in sorted(EQUIVALENT.keys() - {candidate.key for candidate in every}):
                say(f"EQUIVALENT names a mutant of former code: {key}")
        todo = [candidate for candidate in chosen if (candidate.path, candidate.key) not in keys]
        outside = sum(not candidate.function for candidate in every)
        say(
            f"{len(every):,} mutants, of which {outside:,} outside of functions are never run;"
            f" {len(chosen):,} chosen, {len(todo):,} to run"
        )
        place = {item.nodeid: index for index, item in enumerate(self.items)}
        places = [place[name] for name in covered.seconds]
        took = {place[name]: seconds for name, seconds in covered.seconds.items()}
        jobs: dict[str, tuple[Mutant, int]] = {}
        started = time.monotonic()

        def ready() -> Iterator[Job]:
            for mutant in todo:
                tests = covered.tests_of(mutant.path, mutant.line, mutant.end)
                if not tests:
                    self._note(matrix, mutant, NOT_COVERED, why="no test executes it")
                    continue
                numbers = [places[test] for test in self._affordable(covered, tests)]
                name = f"{mutant.path} {mutant.key}"
                jobs[name] = mutant, len(tests)
                before = functools.partial(self._change, mutant)
                order = numbers if self.arguments.until_killed else sorted(numbers)
                yield Job(name, order, limit, before, until_killed=self.arguments.until_killed)

        def limit(test: int) -> float:
            return self.arguments.patience + 10 * took[test]

        begun = time.monotonic()
        ran = running.run(self.items, ready(), self.arguments.workers)
        for number, (job, outcome) in enumerate(ran, start=1):
            mutant, count = jobs.pop(job.name)
            self._judge(matrix, mutant, outcome, count, took)
            if time.monotonic() > begun + 20:
                begun = time.monotonic()
                say(f"{number:,} mutants have met their tests, after {begun - started:,.0f} s")
        say(f"{len(todo):,} mutants took {time.monotonic() - started:,.0f} s: {matrix.path}")

    def _affordable(self, covered: Covered, tests: Sequence[int]) -> Iterator[int]:
        """The narrow tests first, as many as fit into the time for one mutant."""
        spent, seconds = 0.0, list(covered.seconds.values())
        for test in tests:
            spent += seconds[test]
            if self.arguments.budget and spent > self.arguments.budget and test != tests[0]:
                return
            yield test

    def _change(self, mutant: Mutant) -> None:
        """Change the code of this process."""
        path, source = str(self.root / mutant.path), self.sources[mutant.path]
        new = compile(mutated(source, mutant.index), path, "exec", dont_inherit=True)
        old = compile(source, path, "exec", dont_inherit=True)
        functions: list[FunctionType] = self.functions.get(path, [])
        running.replace(functions, old, new)
        covering.clear_caches()

    def _judge(
        self, matrix: Matrix, mutant: Mutant, outcome: Outcome, count: int, took: dict[int, float]
    ) -> None:
        tests = [*outcome.passed, *outcome.failed, *outcome.hung]
        if outcome.error:
            return self._note(matrix, mutant, NOT_RUN, why=outcome.error, covering=count)
        numbers = matrix.numbers({self.items[test].nodeid: took[test] for test in tests})
        number = dict(zip(tests, numbers, strict=True))
        killers = sorted(number[test] for test in (*outcome.failed, *outcome.hung))
        seconds = sum(outcome.passed.values()) + sum(outcome.failed.values())
        self._note(
            matrix, mutant, KILLED if killers else SURVIVED, killers=killers,
            hung=[number[test] for test in outcome.hung], met=len(tests), covering=count,
            seconds=round(seconds, 3),
        )  # fmt: skip

    def _note(self, matrix: Matrix, mutant: Mutant, status: str, **more: object) -> None:
        matrix.add(Result(mutant.key, mutant.where, mutant.path, status, **more))  # type: ignore[arg-type]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make mutants ARGS=...",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("sources", nargs="*", default=list(SOURCES), help="files and folders")
    parser.add_argument("--per-function", type=int, default=2, metavar="N", help="mutants drawn")
    parser.add_argument("--all", action="store_true", help="every mutant, not some of a function")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tests", nargs="+", default=list(TESTS), help="what pytest collects")
    parser.add_argument("--marked", default=MARKED, help="which of them, as pytest's -m has it")
    parser.add_argument(
        "--budget", type=float, default=20.0, metavar="SECONDS",
        help="of tests for each mutant, those first that execute the fewest lines; 0: all",
    )  # fmt: skip
    parser.add_argument(
        "--until-killed", action="store_true",
        help="only the first test that kills: enough for --compare, and many times faster",
    )  # fmt: skip
    parser.add_argument(
        "--patience", type=float, default=5.0, metavar="SECONDS",
        help="what a test may take beyond ten times what it took without a mutant",
    )  # fmt: skip
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=Path(".cache/mutation"))
    parser.add_argument("--results", type=Path, metavar="FILE", help="FOLDER/results.jsonl")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("OLD", "NEW"))
    options = parser.parse_args(arguments)
    options.results = options.results or options.folder / "results.jsonl"
    options.tests = [*options.tests, "-m", options.marked]
    return options


def main() -> int:
    options, root = parse(), Path.cwd()
    if options.compare:
        alive, gone = report.compare(*map(Matrix.read, options.compare))
        for where in alive:
            say(f"was killed, and is not any more: {where}")
        say(f"{len(alive):,} survive that were killed; {len(gone):,} of the killed are not in it")
        return 1 if alive else 0
    if not options.report:
        os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
        try:
            run = Run(options, root)
        except FileNotFoundError as error:
            say(f"{error}")
            return 2
        covering.note_caches({"tests", *(part for path in run.traced for part in Path(path).parts)})
        ended = pytest.main([*QUIET.split(), *options.tests], plugins=[run])
        if run.error or ended not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            say(run.error or f"pytest ended with {ended!r}")
            return 2
    for line in report.text(Matrix.read(options.results), KEPT, options.until_killed):
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
