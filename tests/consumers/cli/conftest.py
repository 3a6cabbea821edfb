"""Fixtures of the tests of the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def spawn(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the command line in a process of its own, in a folder of its own."""

    def start(*words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "streammetrics_consumers.cli", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start
