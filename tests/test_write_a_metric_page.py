"""What docs/write_a_metric.md builds, outside of the repository, works as the page says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.own_package import BLOCKS, FILES, run, written

SCRIPTS = [text for kind, text in BLOCKS if kind == "python" and ">>>" in text]
COMMANDS = [text for kind, text in BLOCKS if kind == "bash"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the page, and the package that they make, as `pip install .` leaves it."""
    return written(tmp_path_factory.mktemp("own_package"))


def test_each_file_of_the_page_has_fewer_than_60_lines() -> None:
    modules = {name: text for name, text in FILES.items() if name.endswith(".py")}
    assert len(modules) == 2
    assert max(text.count("\n") for text in modules.values()) < 60


@pytest.mark.slow
@pytest.mark.parametrize("text", SCRIPTS)
def test_a_program_of_the_page_prints_what_it_says(folder: Path, text: str) -> None:
    (folder / "program.txt").write_text(text, encoding="utf-8")
    run(folder, f"{sys.executable} -m doctest program.txt")


# The page's own tests try as many examples as one does at home; here a few show that they run.
FEW = """
from streammetrics import testing
testing.check_laws.__kwdefaults__["examples"] = 8
"""


@pytest.mark.slow
def test_the_laws_of_the_page_hold(folder: Path) -> None:
    commands = [text.split() for text in COMMANDS if "pytest" in text]
    assert [words[0] for words in commands] == ["pytest", "pytest"]
    (folder / "conftest.py").write_text(FEW, encoding="utf-8")
    files = " ".join(name for _, *names in commands for name in names)
    said = run(folder, f"{sys.executable} -m pytest {files} -q -p no:cacheprovider")
    assert "2 passed" in said


@pytest.mark.slow
def test_the_log_of_the_page_has_the_results_that_it_says(folder: Path) -> None:
    (command,) = [text for text in COMMANDS if "streammetrics" in text]
    (results,) = [text for kind, text in BLOCKS if kind == "text"]
    said = [line.rstrip() for line in run(folder, command).splitlines()]
    assert said == results.splitlines()
    run(folder, "streammetrics verify visits.toml")
    # The name of the entry point is the same metric: nothing that was counted differs.
    config = FILES["visits.toml"].replace("my_package.scroll_depth:", "")
    assert config != FILES["visits.toml"]
    (folder / "named.toml").write_text(config, encoding="utf-8")
    run(folder, "streammetrics run named.toml --until-end --no-serve")

    # Without them a store says what is missing, and its bytes import nothing.
    with pytest.raises(AssertionError, match=r"got 'my-package\.scroll-depth/1'; import"):
        run(folder, "PYTHONPATH= streammetrics results visits.sqlite")
