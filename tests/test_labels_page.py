"""What docs/labels.md shows is what happens."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from streammetrics_consumers.demo import JOINED_CONFIG, main

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8")


def test_the_config_of_the_page_is_that_of_the_demonstration() -> None:
    (config,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert tomllib.loads(config)["join"] == tomllib.loads(JOINED_CONFIG)["join"]


def test_every_page_picture_and_test_that_it_names_is_there() -> None:
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    paths = [ROOT / "docs" / link for link in links]
    paths += [ROOT / name for name in re.findall(r"`(tests/[\w/.]+)`", PAGE)]
    assert len(paths) > 8
    assert [path for path in paths if not path.exists()] == []


@pytest.mark.slow
def test_the_table_of_the_page_is_what_the_demonstration_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["--once", "--join"]) == 0
    (shown,) = re.findall(r"```\n(joined, .*?)```", PAGE, re.DOTALL)
    assert shown in capsys.readouterr().out
