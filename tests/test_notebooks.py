"""The notebooks of examples/: they run, their outputs are those of today, and the site has them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.notebook_page import notebook_page
from tests.requirements import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
NAMES = [path.stem for path in NOTEBOOKS]
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=NAMES)


def shown(cells: list[Any]) -> list[tuple[str, str]]:
    """The outputs of all cells: their kinds, with what is printed; a picture is only there."""
    outputs = []
    for cell in cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {output["output_type"]: output.get("text", "")})
            outputs += [
                (kind, "" if kind == "image/png" else "".join(content))
                for kind, content in sorted(data.items())
            ]
    return outputs


@pytest.mark.docs
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=pytest.mark.xdist_group(f"notebook {path.stem}"))
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_and_its_stored_outputs_are_those_of_a_new_kernel(path: Path) -> None:
    pytest.importorskip("nbclient")
    from docs.notebooks import executed

    stored = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert shown(executed(path).cells) == shown(stored), "`make notebooks` rewrites the outputs"


@each_notebook
def test_a_notebook_names_no_folder_of_the_machine_where_it_ran(path: Path) -> None:
    text = re.sub(r'"image/png": "[^"]*"', "", path.read_text(encoding="utf-8"))
    assert re.findall(r"/(?:tmp|root|home|work|Users)/|site-packages", text) == []


@each_notebook
def test_a_notebook_is_a_page_of_the_site_with_its_pictures(path: Path) -> None:
    files = notebook_page(path)
    page = str(files.pop(f"examples/{path.stem}.md"))
    assert page.startswith("# ")
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+\.png)\)", page)
    assert len(pictures) >= 1
    assert files.keys() == {f"examples/{name}" for name in (path.name, *pictures)}
    pages = [target.partition("#")[0] for target in re.findall(r"\]\(([^)]+\.md[^)]*)\)", page)]
    assert len(pages) >= 3
    page_names = {f"{name}.md" for name in NAMES}
    absent = [
        target for target in pages if not (ROOT / "docs" / target.removeprefix("../")).exists()
    ]
    assert set(absent) <= page_names
