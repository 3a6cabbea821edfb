"""`make generated` adds a metric or measure to every list of names, and changes nothing else."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from streammetrics import Ratio
from streammetrics.ranking.measures import MEASURES
from streammetrics.registry import metric_types
from tests.requirements import ROOT


def script() -> ModuleType:
    """The script that writes the lists."""
    spec = importlib.util.spec_from_file_location("new", ROOT / "docs" / "new_metrics.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_metric_of_the_two_packages_is_found_in_its_file() -> None:
    module = script()
    names = {
        name
        for package in module.PACKAGES
        for path in (ROOT / "streammetrics" / package).glob("*.py")
        for name in module.declared(path.read_text(encoding="utf-8"))
    }
    packages = tuple(f"streammetrics.{package}" for package in module.PACKAGES)
    assert names == {
        n for n, kind in metric_types().items() if kind.__module__.startswith(packages)
    }


NEW_METRIC = '''"""FirstShare: a metric that a newcomer adds."""

from streammetrics.authoring import Accumulator, ExactSum, Inputs, Real


class FirstShare(Accumulator, schema="first-share/1"):
    """The sum of numbers."""

    inputs = Inputs(values=Real())
    total = ExactSum()

    def _accumulate(self, batch, slots):
        self.total.add(batch.values.astype(float), slots)

    def compute(self):
        self._flush()
        return self.total.value()
'''


PACKAGES = ("ranking", "classification", "distributions", "policies")


@pytest.mark.parametrize("package", [*PACKAGES])
def test_a_new_metric_is_imported_when_it_is_first_used(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a copy of the library, since the script writes; an eager import would load numpy too."""
    module = script()
    copy = tmp_path / "streammetrics"
    shutil.copytree(ROOT / "streammetrics", copy, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (copy / package / "first_share.py").write_text(NEW_METRIC, encoding="utf-8")
    monkeypatch.setattr(module, "ROOT", tmp_path)
    module.write_exports()

    changed = {
        path.relative_to(copy).as_posix()
        for path in copy.rglob("*.py*")
        if path.name != "first_share.py"
        and path.read_bytes() != (ROOT / path.relative_to(tmp_path)).read_bytes()
    }
    assert changed == {f"{package}/__init__.pyi"}
    printed = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, streammetrics\n"
            f"import streammetrics.{package} as package\n"
            "print('numpy' in sys.modules, 'FirstShare' in streammetrics.__all__)\n"
            "print(streammetrics.FirstShare is package.FirstShare, 'numpy' in sys.modules)",
        ],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.split() == ["False", "True", "True", "True"]

    before = {path: path.read_bytes() for path in copy.rglob("__init__.pyi")}
    module.write_exports()
    assert {path: path.read_bytes() for path in before} == before


def test_a_page_without_a_metric_gets_the_rows_that_a_hand_wrote() -> None:
    module, metrics = script(), {"Ratio": Ratio}
    page = module.METRICS.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines(keepends=True) if "| `Ratio." in line]
    without = page.replace("".join(rows), "")
    assert len(rows) == 1 and without != page
    assert "| ratio | `Ratio.ratio` | | | | | |\n" in module.usual_names(without, metrics)
    assert module.usual_names(page, metrics) == page


def test_a_page_without_a_measure_gets_the_rows_that_a_hand_wrote() -> None:
    module, measures = script(), {"StRecall": MEASURES["StRecall"]}
    page = module.METRICS.read_text(encoding="utf-8")
    assert module.measure_lines(page, MEASURES) == page
    lines = page.splitlines(keepends=True)
    rows = [line for line in lines if re.match(r"\| .*`StRecall(@k)?` \|", line)]
    assert len(rows) == 2
    without = "".join(line for line in lines if line not in rows)
    new_page = module.measure_lines(without, measures)
    assert "| StRecall | `StRecall` | | | | | | |\n\n" in new_page
    assert (
        "| `StRecall@k` | Subtopic recall: the share of subtopics that one of the first" in new_page
    )
