"""Every block of the tutorials, guides and essays runs, and prints what the page shows.

The pages that compare with a peer, or that need one, run in its environment: `make peers` and
`make site` make these. A page without an environment runs in that of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs import metrics_page
from tests import site_blocks
from tests.requirements import ROOT, absent

DOCS = ROOT / "docs"
FOLDERS = ("tutorials", "how_to", "coming_from", "essays")
PAGES = sorted([*(page for one in FOLDERS for page in (DOCS / one).glob("*.md")), DOCS / "faq.md"])
PAGES.append(DOCS / "index.md")
NAMES = {page: str(page.relative_to(DOCS)) for page in PAGES}
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
ON_KAFKA = DOCS / "tutorials" / "live_test.md"
# What installs something, or does not end: only these lines do not run.
INSTALLS = ("pip install ", "make ", "docker run ", "streammetrics run ")


def ran(page: Path, folder: Path) -> None:
    """Fails unless the blocks of a page run in its environment, and print what it shows."""
    environment = site_blocks.environment_of(page.read_text(encoding="utf-8"))
    python = ROOT / ".cache" / environment / "bin" / "python" if environment else sys.executable
    if not Path(python).exists():
        absent(environment, f".cache/{environment} is not there")
    done = subprocess.run(
        [python, site_blocks.__file__, page], cwd=folder, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'consumers'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=NAMES.values())
def test_each_block_of_a_page_is_of_a_kind_that_a_test_runs(page: Path) -> None:
    for block in site_blocks.blocks(TEXTS[page]):
        assert block.kind in {"python", "bash", "text", "sh"} or block.title, block
        assert max(map(len, block.text.splitlines())) <= 100, block  # a laptop shows no more
        if block.kind == "sh":
            assert all(line.startswith(INSTALLS) for line in block.text.splitlines()), block


@pytest.mark.docs
@pytest.mark.parametrize("page", [one for one in PAGES if one != ON_KAFKA], ids=NAMES.get)
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page: Path, tmp_path: Path) -> None:
    ran(page, tmp_path)


@pytest.mark.docs
@pytest.mark.kafka
def test_the_tutorial_on_kafka_runs_with_a_broker(kafka: str, tmp_path: Path) -> None:
    text = TEXTS[ON_KAFKA]
    assert text.count("localhost:9092") >= 3
    page = tmp_path / "page.md"
    page.write_text(text.replace("localhost:9092", kafka), encoding="utf-8")
    ran(page, tmp_path)


def test_a_block_that_prints_something_else_is_found_and_can_be_written(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n", encoding="utf-8")
    (wrong,) = site_blocks.run(str(page))
    assert "prints\n2\nand the page says\n3" in wrong
    site_blocks.write(str(page))
    assert "```text\n2\n```\n" in page.read_text(encoding="utf-8")


@pytest.mark.docs
@pytest.mark.xdist_group("site")
def test_the_site_is_built_without_a_warning_and_has_a_page_for_each_metric(site: Path) -> None:
    found = {page.parent.name for page in (site / "reference").glob("*/index.html")}
    modules = {name for name in found if name.islower()}  # tests/test_reference_pages.py
    assert found - modules == set(metrics_page.metrics())
    for name in found - modules:  # its settings, its arguments and its result, from the docstrings
        text = (site / "reference" / name / "index.html").read_text(encoding="utf-8")
        assert all(f">{heading}<" in text for heading in ("update", "compute", "Rows")), name
