"""README and docs/labels.md give the results that they show; the links of all pages are right."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from streammetrics_consumers.cli.demo_configs import JOINED_CONFIG
from streammetrics_consumers.cli.main import main

from tests.requirements import ROOT

TOP = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "llms.txt")
PAGES = [*(ROOT / name for name in TOP), *sorted((ROOT / "docs").glob("*.md"))]
README = PAGES[0].read_text(encoding="utf-8")
LABELS = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")


def test_the_programs_of_the_readme_print_what_it_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert len(programs) == README.count("```python\n") > 0
    for program, shown in programs:
        exec(compile(program, "README.md", "exec"), {})  # our own text, not data from outside
        assert capsys.readouterr().out == shown


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 130


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_file_that_a_page_links_to_or_names_is_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text)
    paths = [page.parent / link for link in links if "://" not in link]
    paths += [ROOT / name for name in re.findall(r"`((?:tests|benchmarks|docs)/[\w/.]*)`", text)]
    modules = re.findall(r"-m ((?:benchmarks|docs|tests)\.\w+)", text)
    paths += [ROOT / (module.replace(".", "/") + ".py") for module in modules]
    missing = [path for path in paths if not path.exists() and not path.with_suffix("").exists()]
    assert missing == []


def test_llms_txt_lists_every_page_of_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    pages = {f"docs/{page}" for page in re.findall(r": ([\w/]+\.md)$", nav, re.MULTILINE)}
    assert len(pages) > 20
    linked = re.findall(r"\]\(([^)]+)\)", (ROOT / "llms.txt").read_text(encoding="utf-8"))
    assert pages - set(linked) == set()


def test_the_config_of_the_page_on_labels_is_that_of_the_demonstration() -> None:
    (config,) = re.findall(r"```toml\n(.*?)```", LABELS, re.DOTALL)
    assert tomllib.loads(config)["join"] == tomllib.loads(JOINED_CONFIG)["join"]


def test_the_table_of_the_page_on_labels_is_what_the_demonstration_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--once", "--join"]) == 0
    (shown,) = re.findall(r"```\n(joined, .*?)```", LABELS, re.DOTALL)
    assert shown in capsys.readouterr().out
