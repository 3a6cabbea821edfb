"""Metrics and measures by name: ours, those of entry points, and module:Class."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streammetrics import Ratio, SettingsError, StateError, authoring, load, parse_measure
from streammetrics.core import entry_points
from streammetrics.core.codec import STATE_MAGIC, Writer, frame
from streammetrics.core.parts.counts import CountsColumn
from streammetrics.ranking.measure import Measure
from streammetrics.ranking.measures import MEASURES, register_measure
from streammetrics.registry import metric_names, metric_type
from tests.requirements import ROOT

GOOD = """
from streammetrics.authoring import Accumulator, Counts, Inputs, Real

class Seen(Accumulator, schema="entry-points-seen/1"):
    rows = Counts(1)
    inputs = Inputs(values=Real())
    def _accumulate(self, batch, slots): ...
    def compute(self): ...
"""


@pytest.fixture
def package(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A package with modules good, taken and broken, and entry points of all; its name."""
    name = f"entry_points_{request.node.name.partition('[')[0][-20:]}"
    source = tmp_path / name
    source.mkdir()
    (source / "__init__.py").touch()
    good = GOOD.replace("entry-points-seen", f"{name}-seen")
    (source / "good.py").write_text(good, encoding="utf-8")
    (source / "taken.py").write_text(GOOD.replace("entry-points-seen/1", "ratio/2"), "utf-8")
    (source / "broken.py").write_text("import no_such_module_at_all", encoding="utf-8")
    metadata = tmp_path / f"{name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n", "utf-8"
    )
    points = f"[{entry_points.METRICS}]\nBroken = {name}.broken:X\nSeen = {name}.good:Seen\n"
    points += f"Ratio = {name}.broken:Ratio\n[{entry_points.MEASURES}]\nX = {name}.broken:X\n"
    points += "Taken = streammetrics:NDCG\n"
    (metadata / "entry_points.txt").write_text(points, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    for cached in (entry_points.entry_points_of, entry_points.load_all):
        cached.cache_clear()
    yield name
    for cached in (entry_points.entry_points_of, entry_points.load_all):
        cached.cache_clear()


def test_a_name_is_ours_or_that_of_an_entry_point_which_nothing_imports_before(
    package: str,
) -> None:
    assert metric_names()[-2:] == ("Broken", "Seen")
    assert metric_type("Ratio") is Ratio  # an entry point takes no name of ours
    assert f"{package}.good" not in sys.modules
    assert metric_type("Seen") is metric_type(f"{package}.good:Seen")


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("Rato", r"type: expected one of .*, or module:Class, got 'Rato'; did you mean 'Ratio'\?"),
        ("no.such:X", "expected a module that Python finds, got no.such: .*; install its package"),
        ("{}.broken:X", "a module that can be imported, got .*no_such_module_at_all.*; correct"),
        ("{}.good:Sen", r"expected a class of .*good, got 'Sen'; did you mean 'Seen'\?"),
        ("{}.good:Counts", r"expected a class made as `class M\(Accumulator, schema=...\)`"),
        ("{}.good:Accumulator", r"with all of its methods, got .*good:Accumulator"),
        ("{}.taken:Seen", r"Seen\(schema\): expected a schema .*, got 'ratio/2', that of streamm"),
        ("Broken", "a module that can be imported, got .*broken: ModuleNotFoundError"),
    ],
)
def test_a_name_of_no_metric_says_what_is_wrong(package: str, place: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        metric_type(place.format(package))


def test_bytes_find_an_installed_metric_beside_a_broken_one_and_import_nothing_else(
    package: str,
) -> None:
    unknown = frame(STATE_MAGIC, f'["{package}.taken:Seen",{{}}]'.encode(), b"")
    failed = f"import the module .*; these entry points of {entry_points.METRICS} failed: Broken = "
    with pytest.raises(StateError, match=failed):
        load(unknown)
    assert f"{package}.taken" not in sys.modules
    empty = Writer()
    CountsColumn((1,), 1).encode(empty)
    state_bytes = frame(STATE_MAGIC, f'["{package}-seen/1",{{}}]'.encode(), empty.bytes_())
    assert type(load(state_bytes)) is sys.modules[f"{package}.good"].Seen


def test_a_text_names_no_measure_that_is_not_registered(package: str) -> None:
    with pytest.raises(
        SettingsError, match=rf"got 'X'; .*X = {package}.broken:X.*got NDCG; choose"
    ):
        parse_measure("X@3")
    for measure, message in (
        (MEASURES["NDCG"], "and is none of NDCG, DCG"),
        (MEASURES["NDCG"] @ 3, "register the measure without `@`"),
        ("NDCG", "expected a measure without a cut"),
    ):
        with pytest.raises(SettingsError, match=re.escape(message)):
            register_measure(measure)  # type: ignore[arg-type]


def test_a_registered_name_stays_that_of_its_class() -> None:
    measure, rival = (type(n, (type(MEASURES["HR"]),), {"name": "Mine"})() for n in ("_A", "_B"))
    assert isinstance(measure, Measure)
    for _ in range(2):
        register_measure(measure)
    assert parse_measure("Mine(rel=2)@3") == measure(rel=2) @ 3
    with pytest.raises(SettingsError, match=r"expected the registered Mine, .*\._A, got"):
        register_measure(rival)


def test_authoring_has_all_of_the_core_that_simple_metrics_of_ours_import() -> None:
    for kind in ("ratio", "binary_confusion"):
        path = ROOT / "streammetrics" / "classification" / f"{kind}.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
                "streammetrics.core"
            ):
                assert {alias.name for alias in node.names} <= set(authoring.__all__), node.module


def test_authoring_is_imported_without_hypothesis_and_without_looking_for_packages() -> None:
    script = "import sys, streammetrics.authoring; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not {"hypothesis", "importlib.metadata"} & set(loaded.stdout.split())


def test_a_first_metric_imports_nothing_that_only_figures_files_or_errors_need() -> None:
    script = (
        "import sys, numpy; before = set(sys.modules)\n"
        "import streammetrics; streammetrics.HistogramAUC()\n"
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    rare = {"streammetrics.present.figures", "difflib", "html", "hashlib", "pathlib"}
    assert not rare & set(loaded.stdout.split())
