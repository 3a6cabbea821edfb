"""The folder of a newcomer, with the files of the day, and the scripts that run there."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from tests.newcomer.day import SCRIPTS, Ran, write_files


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the day."""
    into = tmp_path_factory.mktemp("newcomer")
    write_files(into)
    return into


@pytest.fixture
def ran(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Runs a script in that folder, and gives its names."""
    monkeypatch.chdir(folder)
    return lambda name: runpy.run_path(str(SCRIPTS / f"{name}.py"))
