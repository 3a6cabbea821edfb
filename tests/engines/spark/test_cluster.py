"""Executors on two hosts (both of this machine): one is killed, one is slow and runs twice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.cluster, pytest.mark.timeout(600)]


def test_the_digests_stay_those_of_one_process(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.cluster", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert "same digests" in done.stdout
    happened = {path.name for path in tmp_path.iterdir()}
    assert happened >= {"killed rows", "killed states", "slow rows", "slow rows second"}
