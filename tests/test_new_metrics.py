"""`make docs` adds a new metric to every list of names, and changes nothing that is there."""

from __future__ import annotations

import importlib.util
from types import ModuleType

from streammetrics import Ratio
from streammetrics.registry import metric_types
from tests.requirements import ROOT


def script() -> ModuleType:
    """The script that writes the lists."""
    spec = importlib.util.spec_from_file_location("new", ROOT / "docs" / "new_metrics.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_public_metric_of_the_two_packages_is_found_in_its_file() -> None:
    made = script()
    found = {
        name
        for package in made.PACKAGES
        for path in (ROOT / "streammetrics" / package).glob("*.py")
        for name in made.declared(path.read_text(encoding="utf-8"))
    }
    of = tuple(f"streammetrics.{package}" for package in made.PACKAGES)
    assert found == {n for n, kind in metric_types().items() if kind.__module__.startswith(of)}


def test_a_metric_is_exported_once() -> None:
    text = '"""Doc."""\n\nfrom streammetrics.a import A\n\n__all__ = [\n    "A",\n]\n'
    once = script().exported(text, "streammetrics.b", "B")
    assert "\nfrom streammetrics.b import B\nfrom streammetrics.a" in once
    assert '__all__ = [\n    "B",\n    "A",\n]' in once
    assert script().exported(once, "streammetrics.b", "B") == once


def test_a_page_without_a_metric_gets_the_rows_that_a_hand_wrote() -> None:
    made, metrics = script(), {"Ratio": Ratio}
    page = made.INTERFACE.read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| `Ratio("))
    without = page.replace(f"{row}\n", "").replace("`Ratio` `GroupedAUC`", "`GroupedAUC`")
    again = made.interface(without, metrics)
    assert f"\n{row}\n| `Panel(" in again
    assert "`ItemExposure` `Ratio` | metrics |\n" in again
    assert made.interface(page, metrics) == page

    page = made.METRICS.read_text(encoding="utf-8")
    rows = [line for line in page.splitlines(keepends=True) if "| `Ratio." in line]
    without = page.replace("".join(rows), "")
    assert len(rows) == 1 and without != page
    assert "| ratio | `Ratio.ratio` | | | | | |\n" in made.usual_names(without, metrics)
    assert made.usual_names(page, metrics) == page
