"""The matrix of tests and mutants: what a run found, kept line by line in a file, and what follows.

A line is a test with the number that stands for it, or a mutant with the tests that killed it. So
a run can be stopped and continued, and what it has found so far can be read at any time.
"""

from __future__ import annotations

import ast
import heapq
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from tests.mutation.mutants import mutants_of

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
        found = cls(path)
        lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith(b"\n"):
            os.truncate(path, path.stat().st_size - len(lines.pop()))
        for line in lines:
            said: dict[str, Any] = json.loads(line)
            if "test" in said:
                found.tests[said["test"]] = said["id"]
                found.seconds[said["test"]] = said["seconds"]
            else:
                found.results.append(Result(**said))
        return found

    def numbers(self, tests: Mapping[str, float]) -> list[int]:
        """The numbers of tests; new ones are written down with their seconds."""
        known = {name: number for number, name in self.tests.items()}
        new = [name for name in tests if name not in known]
        for number, name in enumerate(new, start=len(self.tests)):
            known[name], self.tests[number], self.seconds[number] = number, name, tests[name]
            self._write({"test": number, "id": name, "seconds": round(tests[name], 4)})
        return [known[name] for name in tests]

    def add(self, result: Result) -> None:
        """Write a result down."""
        self.results.append(result)
        self._write(asdict(result))

    def _write(self, said: Mapping[str, object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(said) + "\n")

    @property
    def kills(self) -> dict[int, set[int]]:
        """By test, the places of the results that it has killed."""
        found = defaultdict(set)
        for at, result in enumerate(self.results):
            for number in result.killers:
                found[number].add(at)
        return found


def enough(matrix: Matrix, kept: Sequence[str], root: Path) -> tuple[set[int], set[int]]:
    """Tests that kill all that is killed: those that are kept anyway, and a few quick others.

    A test is kept too if its folder mirrors a package that the run did not mutate as a whole.
    """
    kills, folders = matrix.kills, _whole_folders(matrix, root)
    stay = {
        at
        for at, name in matrix.tests.items()
        if any(fnmatch(name, one) for one in kept) or not set(_folders(name)) <= folders
    }
    left = set().union(*kills.values()) - set().union(*(kills.get(one, set()) for one in stay))

    def price(test: int) -> float:
        return (matrix.seconds[test] + 0.001) / (len(kills[test] & left) or 1e-9)

    queue = [(price(test), test) for test in kills if test not in stay]
    heapq.heapify(queue)
    chosen: list[int] = []
    while left:
        _, test = heapq.heappop(queue)
        if queue and price(test) > queue[0][0]:  # what others were chosen for counts no more
            heapq.heappush(queue, (price(test), test))
            continue
        chosen.append(test)
        left -= kills[test]
    counts = Counter(at for test in (*stay, *chosen) for at in kills.get(test, ()))
    for test in sorted(chosen, key=lambda one: -matrix.seconds[one]):
        if all(counts[at] > 1 for at in kills[test]):
            chosen.remove(test)
            counts.subtract(kills[test])
    return stay, set(chosen)


def text(
    matrix: Matrix, kept: Sequence[str], root: Path, until_killed: bool = False
) -> Iterator[str]:
    """The report, in Markdown; needless tests only if every mutant has met all of its tests."""
    yield from _table(matrix)
    yield from _not_killed(matrix)
    if until_killed:
        return
    stay, chosen = enough(matrix, kept, root)
    needless = {name for at, name in matrix.tests.items() if at not in stay | chosen}
    yield ""
    yield (
        f"{len(matrix.tests):,} tests met a mutant; {len(stay):,} of them are kept anyway, and"
        f" {len(chosen):,} others kill the rest. {len(needless):,} kill nothing of their own:"
    )
    yield ""
    yield "| file | tests of it | lines that could go | functions, * with all of their parameters |"
    yield "|---|---|---|---|"
    rows = []
    needed = set(matrix.tests.values()) - needless
    for file in sorted({_file(name) for name in needless}):
        functions = Counter(_function(name) for name in needless if _file(name) == file)
        whole = functions.keys() - {_function(name) for name in needed if _file(name) == file}
        spans = _spans(root / file)
        lines = sum(spans.get(name, 0) for name in whole)
        names = (f"{name}{'*' if name in whole else ''}" for name in sorted(functions))
        rows.append((lines, f"| {file} | {functions.total()} | {lines} | {', '.join(names)} |"))
    yield from (row for _, row in sorted(rows, reverse=True))
    yield f"| all | {len(needless)} | {sum(lines for lines, _ in rows)} | |"


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
        met = sum(result.met for result in results) / max(1, counts[KILLED] + counts[SURVIVED])
        killers = sum(len(result.killers) for result in results) / max(1, counts[KILLED])
        numbers = " | ".join(str(counts[column]) for column in columns)
        yield f"| {name} | {len(results)} | {numbers} | {met:.0f} | {killers:.0f} |"


def _not_killed(matrix: Matrix) -> Iterator[str]:
    for status in (SURVIVED, NOT_COVERED, NOT_RUN):
        found = [result for result in matrix.results if result.status == status]
        if found:
            yield from ("", f"{status}:", "")
        for one in sorted(found, key=lambda one: one.where):
            cut = f", of {one.covering} that execute it" if one.met < one.covering else ""
            tests = f"{one.met} tests{cut}" if one.met else one.why
            yield f"- {one.where} ({tests}) `{one.key}`"


def _whole_folders(matrix: Matrix, root: Path) -> set[str]:
    """The names of folders of which every file that can have mutants has some."""
    paths = {result.path for result in matrix.results}
    found: set[str] = set()
    for folder in {Path(path).parent for path in paths}:
        files = [file.relative_to(root).as_posix() for file in (root / folder).glob("*.py")]
        others = (mutants_of(one, (root / one).read_text("utf-8")) for one in {*files} - paths)
        if not any(mutant.function for mutants in others for mutant in mutants):
            found.update(folder.parts)
    return found


def _folders(test: str) -> Sequence[str]:
    return Path(_file(test)).parts[1:-1]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _function(test: str) -> str:
    return test.partition("[")[0].partition("::")[2]


def _spans(path: Path) -> dict[str, int]:
    """How many lines each function of a file of tests has, with its decorators."""
    try:
        body = ast.parse(path.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError):
        return {}
    return dict(_lines(body, ""))


def _lines(body: Iterable[ast.stmt], inside: str) -> Iterator[tuple[str, int]]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _lines(node.body, f"{inside}{node.name}::")
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield f"{inside}{node.name}", (node.end_lineno or first) - first + 1
