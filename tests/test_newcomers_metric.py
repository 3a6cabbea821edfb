"""A newcomer adds a metric as CONTRIBUTING says, in a copy of the repository: the gates pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import ROOT

pytestmark = pytest.mark.slow

METRIC = '''"""ScrollDepth: how far visitors scroll down a page."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Inputs, Probability
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.parts.part import Slots
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.present.view import HIGHER, View
from streammetrics.results.has_intervals import HasIntervals


@dataclass(frozen=True, repr=False)
class Depth(HasIntervals):
    """The mean depth, and the share of visits that went deep."""

    mean: float = field(metadata=View(better=HIGHER))
    read: float = field(metadata=View(better=HIGHER))
    rows: int


class ScrollDepth(Accumulator, schema="scroll-depth/1"):
    """The mean depth, in [0, 1], and the share of visits with a depth of at least `enough`.

    Settings
        enough: the depth from which on a visit was read.
    State
        An exact sum and two counts.
    Result
        Depth.
    Undefined
        nan without rows.
    Exactness
        Exact; each value is rounded once.
    Cost
        5 ns a row; about 100 bytes.
    Source
        The mean of numbers.

    >>> from streammetrics import ScrollDepth
    >>> depths = ScrollDepth()
    >>> depths.update([0.5, 1.0])
    >>> depths.compute().mean
    0.75
    """

    enough: float = 0.9
    inputs = Inputs(depths=Probability())
    total = ExactSum()
    visits = Counts(2)

    if TYPE_CHECKING:

        def update(self, depths: ArrayLike) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        depths = batch.depths.astype(np.float64)
        self.total.add(depths, slots)
        self.visits.add((depths >= self.enough).astype(np.intp), slots)

    def compute(self) -> Depth:
        """The mean and the share."""
        self._flush()
        less, deep = self.visits.dense().tolist()
        n = less + deep
        return Depth(ratio(self.total.fraction(), n), ratio(deep, n), n)
'''
CASE = """
DEPTHS = [
    Case(
        ScrollDepth(),
        st.tuples(strategies.probabilities()),
        strategies.columns("depths"),
        refused=[{"depths": [1.5]}, {"depths": ["deep"]}],
        others=[ScrollDepth(enough=0.5)],
        oracle=lambda rows: {
            "mean": sum((Fraction(depth) for (depth,) in rows), Fraction(0)) / len(rows)
            if rows
            else None
        },
        small=[(0.0,), (0.25,), (0.9,), (1.0,)],
    )
]


PLAIN: list"""
BY_HAND = {"streammetrics/classification/scroll_depth.py", "tests/plain_cases.py"}
WRITTEN = {
    *("streammetrics/__init__.pyi", "streammetrics/classification/__init__.pyi"),
    *("docs/interface.md", "docs/metrics.md"),
    *("tests/golden/results.json", "tests/golden/scroll-depth.state"),
}
GATES = [
    *("tests/interface/test_library.py", "tests/test_new_metrics.py", "tests/test_exports.py"),
    *("tests/laws/test_golden.py", "tests/laws/test_refused_settings.py", "tests/typing"),
    *("tests/core/test_inputs.py", "tests/test_metrics_page.py", "tests/present/test_shapes.py"),
]


def files(root: Path) -> dict[str, bytes]:
    """Each file below a folder with its content, but for compiled ones."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and not {"__pycache__", ".cache", ".ruff_cache"} & {*path.parts}
    }


def test_a_metric_is_added_by_two_files_and_the_documented_commands(tmp_path: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("not a git checkout. To enable: clone the repository")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name)
    before = files(tmp_path)
    paths = os.pathsep.join([str(tmp_path), str(tmp_path / "consumers")])
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}

    def python(*words: str) -> str:
        run = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert run.returncode == 0, f"{words}\n{run.stdout}\n{run.stderr}"
        return run.stdout

    (tmp_path / "streammetrics/classification/scroll_depth.py").write_text(METRIC, encoding="utf-8")
    makefile = (tmp_path / "Makefile").read_text(encoding="utf-8")
    docs = re.search(r"^docs:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    assert docs is not None
    commands = re.findall(r"^\t\$\(BIN\)/python (.*)$", docs[1], re.MULTILINE)
    assert commands[0] == "docs/new_metrics.py"
    for command in commands:  # `make docs`, but for the site
        python(*command.split())

    cases = tmp_path / "tests/plain_cases.py"
    text = cases.read_text(encoding="utf-8")
    text = text.replace("    Ratio,\n)", "    Ratio,\n    ScrollDepth,\n)", 1)
    text = text.replace("\nPLAIN: list", CASE, 1).replace(
        "    *RATIOS,\n", "    *RATIOS,\n    *DEPTHS,\n", 1
    )
    cases.write_text(text, encoding="utf-8")
    python("-m", "tests.golden.write")

    after = files(tmp_path)
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed == BY_HAND | WRITTEN
    loaded = python(
        "-c", "import sys, streammetrics; print('numpy' in sys.modules, streammetrics.ScrollDepth)"
    )
    assert loaded.startswith("False")
    python("-m", "ruff", "check", *BY_HAND, *(name for name in WRITTEN if name.endswith(".py")))
    python("-m", "ruff", "format", "--check", *BY_HAND)
    python("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", "-m", "not slow", *GATES)
    laws = "tests/laws/test_laws.py"
    python("-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", laws, "-k", "ScrollDepth")
