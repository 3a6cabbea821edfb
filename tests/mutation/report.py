"""The matrix of tests and mutants: what a run found, kept line by line in a file, and what follows.

A line is a test with the number that stands for it, or a mutant with the tests that killed it. So
a run can be stopped and continued, and what it has found so far can be read at any time.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

KILLED, SURVIVED, NOT_COVERED, NOT_RUN = "killed", "survived", "not covered", "not run"


@dataclass(frozen=True)
class Result:
    """A mutant, and what became of it."""

    key: str
    where: str
    path: str
    status: str
    killers: Sequence[int] = ()  # the numbers of tests
    hung: Sequence[int] = ()  # killers too: the tests that did not end, or ended the process
    met: int = 0
    covering: int = 0  # more than were met where a budget, or tests that hang, ended it
    seconds: float = 0.0
    why: str = ""


@dataclass
class Matrix:
    """The results of a run."""

    path: Path
    tests: dict[int, str] = field(default_factory=dict)  # those that met a mutant
    seconds: dict[int, float] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Matrix:
        """What a file has; a last line that was cut off is taken away."""
        matrix = cls(path)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            os.truncate(path, path.stat().st_size - len(lines.pop()))
        for line in lines:
            record: dict[str, Any] = json.loads(line)
            if "test" in record:
                matrix.tests[record["test"]] = record["id"]
                matrix.seconds[record["test"]] = record["seconds"]
            else:
                matrix.results.append(Result(**record))
        return matrix

    def numbers(self, tests: Mapping[str, float]) -> list[int]:
        """The numbers of tests; new ones are written down with their seconds."""
        numbers = {name: number for number, name in self.tests.items()}
        new = [name for name in tests if name not in numbers]
        for number, name in enumerate(new, start=len(self.tests)):
            numbers[name], self.tests[number], self.seconds[number] = number, name, tests[name]
            self._write({"test": number, "id": name, "seconds": round(tests[name], 4)})
        return [numbers[name] for name in tests]

    def add(self, result: Result) -> None:
        """Write a result down."""
        self.results.append(result)
        self._write(asdict(result))

    def _write(self, record: Mapping[str, object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


def needless(matrix: Matrix, patterns: Sequence[str]) -> list[str]:
    """Tests without which every mutant is still killed, slow ones first.

    Only those whose folders mirror the files that were mutated: others may hold other code.
    """
    kills = defaultdict(list)
    for result in matrix.results:
        for number in result.killers:
            kills[number].append(result.key)
    killers = Counter(key for keys in kills.values() for key in keys)
    folders = {part for result in matrix.results for part in Path(result.path).parts}
    names = []
    for number in sorted(matrix.tests, key=lambda test: -matrix.seconds[test]):
        name = matrix.tests[number]
        top, *mirrored, _ = Path(_file(name)).parts
        judged = top == "tests" and mirrored and folders.issuperset(mirrored)
        if not judged or any(fnmatch(name, pattern) for pattern in patterns):
            continue
        if all(killers[key] > 1 for key in kills[number]):
            killers.subtract(kills[number])
            names.append(name)
    return names


def text(matrix: Matrix, patterns: Sequence[str], until_killed: bool = False) -> Iterator[str]:
    """The report, in Markdown; needless tests only if every mutant has met all of its tests."""
    yield from _table(matrix)
    yield from _not_killed(matrix)
    if not until_killed:
        names = needless(matrix, patterns)
        yield f"\nOf {len(matrix.tests):,} tests, {len(names):,} kill nothing of their own:\n"
        for file in sorted(set(map(_file, names))):
            of_file = [name.partition("::")[2] for name in names if _file(name) == file]
            functions = dict.fromkeys(name.partition("[")[0] for name in of_file)
            yield f"- {file}: {', '.join(functions)}"


def compare(old: Matrix, new: Matrix) -> tuple[list[str], list[str]]:
    """Mutants that were killed and are no more; killed ones that are not in the new run."""
    after: dict[str, list[str]] = defaultdict(list)
    for result in new.results:
        after[result.key].append(result.status)
    alive, gone = [], []
    for result in old.results:
        if result.status == KILLED:
            if result.key not in after:
                gone.append(result.where)
            elif KILLED not in after[result.key]:
                alive.append(f"{result.where} ({after[result.key][0]})")
    return alive, gone


def _table(matrix: Matrix) -> Iterator[str]:
    columns = (KILLED, SURVIVED, NOT_COVERED, NOT_RUN)
    yield f"| file | mutants | {' | '.join(columns)} | tests for each mutant | killers of each |"
    yield "|---" * (len(columns) + 4) + "|"
    groups: dict[str, list[Result]] = defaultdict(list)
    for result in matrix.results:
        groups[result.path].append(result)
    for name, results in (*sorted(groups.items()), ("all", matrix.results)):
        counts = Counter(result.status for result in results)
        tests = sum(result.met for result in results) / max(1, counts[KILLED] + counts[SURVIVED])
        killers = sum(len(result.killers) for result in results) / max(1, counts[KILLED])
        numbers = " | ".join(str(counts[column]) for column in columns)
        yield f"| {name} | {len(results)} | {numbers} | {tests:.0f} | {killers:.0f} |"


def _not_killed(matrix: Matrix) -> Iterator[str]:
    for status in (SURVIVED, NOT_COVERED, NOT_RUN):
        results = [result for result in matrix.results if result.status == status]
        if results:
            yield from ("", f"{status}:", "")
        for entry in sorted(results, key=lambda row: row.where):
            cut = f", of {entry.covering} that execute it" if entry.met < entry.covering else ""
            tests = f"{entry.met} tests{cut}" if entry.met else entry.why
            yield f"- {entry.where} ({tests}) `{entry.key}`"


def _file(test: str) -> str:
    return test.partition("::")[0]
