"""What the README shows is what happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_programs_of_the_readme_print_what_their_comments_say(
    capsys: pytest.CaptureFixture[str],
) -> None:
    programs = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    for program in programs:
        exec(compile(program, "README.md", "exec"), {})  # our own text, not data from outside
    printed = capsys.readouterr().out.splitlines()
    said = re.findall(r"print\(.*?\)\s+# (Bounded.*)", programs[0])
    assert said == [printed[0]]
    assert printed[1].startswith("sha256:")
    interval, pvalue = printed[3:]
    assert "at 95 % (wilson, n = 10000)" in interval
    (told,) = re.findall(r"pvalue\)\s+# ([0-9.]+):", programs[1])
    assert f"{float(pvalue):.4f}" == told


def test_every_page_and_picture_that_the_readme_links_to_is_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_folder_of_tests_and_every_benchmark_that_the_readme_names_is_there() -> None:
    named = re.findall(r"`((?:tests|benchmarks)/[\w/.]*)`", README)
    modules = re.findall(r"-m (benchmarks\.\w+)", README)
    paths = [*named, *(m.replace(".", "/") + ".py" for m in modules)]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
