"""How large and how tangled the house is, beside what it should be: `python -m tests.house`.

Every figure is counted from the source or traced while the code runs; none is written down here.

Files and lines are those of the library and of the consumers, tests apart. The *way of a row* is
keyed where the metric is given a slot for each row, else buffered where functions of the buffer
keep it, else direct; any other set of the buffer's functions is a way of its own. `--details` says
which functions each call of `calls_of_update` crosses. *Shapes of
an event* are the classes in SHAPES, in the order in which an event takes them. A *worker step* is
the first one of a worker: it polls, decodes, counts and commits 100 events of a small panel, and
does all that is done at times. `sys.setprofile` notes which functions it enters: those of the
consumers have a goal, those of the library follow from the metrics. What is nested in a function
is part of it.

    python -m tests.house                    the table
    python -m tests.house --time check       also how long `make check` takes; may be repeated
    python -m tests.house --details          also what each figure consists of
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, FrameType

import numpy as np

from tests.python_source import sources_of
from tests.requirements import ROOT

PACKAGES = tuple(ROOT / package for package in ("streammetrics", "consumers"))
FEEDING = {"accumulator.py", "stage.py", "buffer.py"}  # of core: what a row passes on its way in

# The classes that an event takes on its way from Kafka to JSON. A test knows that they are there.
SHAPES = (
    "RecordBatch",  # of Kafka
    "PlainRecord",
    "Chunk",  # of messages, and of the events in them
    "Decoded",  # columns by role
    "Batch",  # checked, for a metric
    "Windows",  # of states
    "StateShard",  # of a state, to be stored
    "Commit",
    "DeltaMetadata",  # of a stored row
    "Result",  # a row of an answer
    "Results",  # the answer, as every surface shows it and as JSON has it
)
# Files that one writes or edits for a new simple metric, as far as they name the one here.
METRIC_FILES = (
    "streammetrics/classification/regression.py",  # the metric with its result
    "tests/calibration_cases.py",  # its case
    "tests/golden/results.json",  # written with its state by `python -m tests.golden.write`
    "docs/metrics.md",  # with interface.md and the exports, by `make docs`
)
METRIC_NAME = re.compile(r"Regression", re.IGNORECASE)


@dataclass(frozen=True)
class Figure:
    """One line of the table. `details` is what the figure consists of."""

    name: str
    now: float | str
    goal: str
    details: Sequence[str] = field(default=())

    def text(self) -> str:
        """The line."""
        return f"{self.name:<46} {self.now!s:>12}   {self.goal}"


def python_files(*folders: Path) -> list[Path]:
    """The Python files below folders, caches apart."""
    return sorted(path for folder in folders for path in folder.rglob("*.py"))


def lines_of(path: Path) -> int:
    """How many lines a file has."""
    return path.read_text(encoding="utf-8").count("\n")


def files_and_lines() -> Iterator[Figure]:
    """Sizes and names of the source files."""
    files = python_files(*PACKAGES)
    lines = {path: lines_of(path) for path in files}
    small = [str(path.relative_to(ROOT)) for path, n in lines.items() if n < 60]
    names = Counter(path.stem for path in files if path.stem != "__init__")
    twice = sorted(name for name, n in names.items() if n == 2)
    more = sorted(name for name, n in names.items() if n > 2)
    asserts = [
        f"{source.path}:{node.lineno}"
        for source in sources_of("streammetrics")
        for node in source.nodes
        if isinstance(node, ast.Assert)
        and any(isinstance(one, ast.Name) and one.id == "isinstance" for one in ast.walk(node))
    ]
    yield Figure("source files", len(files), "<= 320")
    yield Figure("source lines", sum(lines.values()), "<= 54000")
    yield Figure("files below 60 lines", len(small), "<= 30", small)
    yield Figure("base names that occur twice", len(twice), "few", twice)
    yield Figure("base names that occur three times or more", len(more), "0", more)
    yield Figure("assert isinstance in the library", len(asserts), "0", asserts)
    yield Figure("lines of tests", sum(map(lines_of, python_files(ROOT / "tests"))), "<= 50000")


# -- ways of a row -----------------------------------------------------------------------------
def calls_of_update() -> Iterator[tuple[str, object, Callable[[], object], Callable[[], object]]]:
    """A name, a metric, what feeds it before, and the call that is traced."""
    import streammetrics as sm

    drawn = np.random.default_rng(19)
    n = 100
    labels, scores = drawn.integers(0, 2, n).astype(np.uint8), drawn.random(n)
    many = np.tile(labels, 500), np.tile(scores, 500)
    few32 = labels, scores.astype(np.float32)
    keys = sm.DictionaryColumn(np.arange(n) % 3, ("a", "b", "c"))

    def none() -> None:
        pass

    def case(
        name: str, metric: sm.Accumulator, *args: object, first: bool = False, **columns: object
    ) -> tuple[str, object, Callable[[], object], Callable[[], object]]:
        def call() -> None:
            metric.update(*args, **columns)

        def twice() -> None:
            call()
            call()

        return name, metric, none if first else twice, call

    yield case("many rows", sm.HistogramAUC(), *many, first=True)
    yield case("the first few rows", sm.HistogramAUC(), labels, scores, first=True)
    yield case("few rows", sm.HistogramAUC(), labels, scores)
    yield case("few rows of float32", sm.HistogramAUC(), *few32)
    yield case("few rows as lists", sm.HistogramAUC(), labels.tolist(), scores.tolist())
    yield case("few weighted rows", sm.HistogramAUC(), labels, scores, weights=labels + 1)
    yield case("few rows of one column", sm.Ratio(), labels)
    yield case("few targets", sm.Regression(), scores, scores)
    yield case("few ids", sm.Units(), np.arange(n))
    panel = {"auc": sm.HistogramAUC(), "confusion": sm.BinaryConfusion()}
    yield case("few rows of a panel", sm.Panel(panel), labels=labels, scores=scores)
    yield case("few rows by key", sm.PerKey(sm.HistogramAUC()), keys, labels=labels, scores=scores)
    large = sm.DictionaryColumn(np.arange(50_000) % 3, ("a", "b", "c"))
    many_by_key = {"labels": many[0], "scores": many[1]}
    yield case("rows by key", sm.PerKey(sm.HistogramAUC()), large, **many_by_key, first=True)


def ways_of_a_row() -> Figure:
    """The different sets of functions that are handed a row on its way into a state."""
    from streammetrics.core.batch import Batch
    from streammetrics.core.rows import DictionaryColumn, Ragged

    ways: dict[frozenset[str], list[str]] = {}
    for name, metric, before, call in calls_of_update():
        before()
        crossed: set[str] = set()

        def note(frame: FrameType, crossed: set[str] = crossed) -> None:
            path = Path(frame.f_code.co_filename)
            rows = (np.ndarray, DictionaryColumn, Ragged, Batch)
            given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
            if any(isinstance(frame.f_locals.get(one), rows) for one in given):
                if path.parent.name == "core" and path.name in FEEDING:
                    crossed.add(frame.f_code.co_qualname)
                if frame.f_code.co_name in ("_absorb", "_accumulate"):
                    keyed = frame.f_locals.get("slots") is not None
                    crossed.add("by slot" if keyed else "to one state")

        with_profile(call, note)
        # What was buffered is counted now: whether by slot or not belongs to the way.
        with_profile(metric.to_bytes, note)  # type: ignore[attr-defined]
        ways.setdefault(frozenset(crossed), []).append(name)
    details = [f"{', '.join(names)}: {', '.join(sorted(way))}" for way, names in ways.items()]
    return Figure(
        "ways that one row can take through update", len({*map(_way, ways)}), "<= 3", details
    )


def _way(crossed: frozenset[str]) -> str:
    """The name of a way, by the functions that it crosses."""
    if "by slot" in crossed:
        return "keyed"
    kept = {name for name in crossed if re.search(r"\b(put|append)$", name)}
    if kept <= {"Buffer.put", "_appending.<locals>.append"}:
        return "buffered" if kept else "direct"
    return ", ".join(sorted(kept))


# -- one step of a worker ----------------------------------------------------------------------
def with_profile(call: Callable[[], object], note: Callable[[FrameType], None]) -> None:
    """Call, and note each function of ours that is entered."""
    ours = str(ROOT)
    before = sys.getprofile()

    def profile(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(ours):
            note(frame)

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(before)


def worker_step() -> Iterator[Figure]:
    """What one step of a worker crosses that counts 100 events and commits them."""
    names = sorted({function_of(code) for code in step_crosses()})
    shell = [name for name in names if not name.startswith("streammetrics/")]
    files = Counter(name.partition(":")[0] for name in shell)
    library = len(names) - len(shell)
    by_file = [f"{n:3} {name}" for name, n in sorted(files.items())]
    yield Figure("functions that one Worker.step crosses", len(shell), "<= 110", shell)
    yield Figure("files that one Worker.step crosses", len(files), "<= 25", by_file)
    yield Figure("functions of the library that it crosses", library, "")


def step_crosses() -> set[CodeType]:
    """The functions of ours, with those of the metrics, that a step enters."""
    from streammetrics_consumers.counting.options import Options
    from streammetrics_consumers.counting.worker import Worker
    from streammetrics_consumers.ledger.ledger import Ledger
    from streammetrics_consumers.model.partition import Partition
    from streammetrics_consumers.process.service import begin
    from streammetrics_consumers.process.stop import Stop

    from tests.consumers.memory_source import Deliver, Log, MemorySource
    from tests.consumers.small_config import config, event

    found, seconds = set[CodeType](), count()
    metrics = (
        'auc = { type = "HistogramAUC" }\nctr = { type = "Ratio" }\n'
        'confusion = { type = "BinaryConfusion" }\nmse = { type = "Regression" }'
    )
    made = config(metrics=metrics, rest='[store]\nurl = "unused.db"\ncommit_interval_s = 0.01')
    at = Partition("test", "events", "id", 0)
    values: list[bytes | None] = [event(label=i % 2, user=f"u{i}") for i in range(200)]
    with TemporaryDirectory() as folder:
        ledger = Ledger.open(f"{folder}/run.db", create=True)
        try:
            generation = begin(ledger, made).generation
            source = MemorySource({at: Log(values)}, [Deliver(), Deliver()])
            worker = Worker(
                made,
                ledger,
                generation,
                source,
                Options(),
                stop=Stop(),
                monotonic=lambda: float(next(seconds)),  # so whatever is done at times is due
            )
            worker.prepare()
            source.assign(worker)
            with_profile(worker.step, lambda frame: found.add(frame.f_code))
        finally:
            ledger.close()
    ours = [str(package) for package in PACKAGES]
    return {code for code in found if code.co_filename.startswith(tuple(ours))}


def function_of(code: CodeType) -> str:
    """The file and the function of some code; of what is nested in it too."""
    name = re.split(r"\.<locals>", code.co_qualname)[0]
    return f"{Path(code.co_filename).relative_to(ROOT)}:{name}"


# -- the rest ----------------------------------------------------------------------------------
def missing_shapes() -> list[str]:
    """The shapes of which there is no class."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in python_files(*PACKAGES))
    return [name for name in SHAPES if not re.search(rf"^class {name}\b", text, re.MULTILINE)]


def files_of_a_metric() -> Figure:
    """The files of METRIC_FILES that are there and name the metric of the list."""
    there = [
        name
        for name in METRIC_FILES
        if (ROOT / name).exists() and METRIC_NAME.search((ROOT / name).read_text(encoding="utf-8"))
    ]
    return Figure("files to touch for a new simple metric", len(there), "<= 4", there)


def layered() -> Figure:
    """Whether the layers of both halves stand in the page that a test reads."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    names = re.findall(r"`((?:streammetrics|consumers|streammetrics_consumers)\.[a-z_.]+)`", page)
    rows = [line for line in page.partition("## Layers")[2].splitlines() if line.startswith("| `")]
    shell = [row for row in rows if re.match(r"\| `(consumers|streammetrics_consumers)\.", row)]
    halves = 2 if shell and names else 1
    return Figure("halves whose layers a program checks", halves, "2")


def figures(targets: Sequence[str] = ()) -> Iterator[Figure]:
    """All of them."""
    yield from files_and_lines()
    yield ways_of_a_row()
    shapes = [name for name in SHAPES if name not in missing_shapes()]
    yield Figure("shapes that an event takes from Kafka to JSON", len(shapes), "<= 9", shapes)
    yield from worker_step()
    yield layered()
    yield files_of_a_metric()
    goals = {"check": "<= 40 s", "test": "<= 300 s"}
    for target in targets:
        began_s = time.monotonic()
        code = subprocess.run(["make", target], cwd=ROOT, stdout=subprocess.DEVNULL).returncode
        took = f"{time.monotonic() - began_s:.0f} s" + (f" (exit {code})" if code else "")
        yield Figure(f"make {target}", took, goals.get(target, ""))


def main(words: Sequence[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.house", description=__doc__)
    parser.add_argument("--details", action="store_true", help="what each figure consists of")
    parser.add_argument("--time", action="append", default=[], metavar="TARGET", help="time it")
    asked = parser.parse_args(words)
    sys.stdout.write(Figure("", "now", "goal").text() + "\n")
    for figure in figures(asked.time):
        details = [f"      {one}" for one in figure.details] if asked.details else []
        sys.stdout.write("\n".join([figure.text(), *details]) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
