"""Spark with processes of its own: executors on two hosts, of which one is killed and one is slow
and runs twice; and Spark Connect, where the client has no JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import ROOT, absent


def printed(script: str, folder: Path, limit_s: float, **environ: str) -> str:
    """The output of a script of this folder, which must end well."""
    process = subprocess.run(
        [sys.executable, "-m", f"tests.engines.spark.{script}", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYSPARK_PYTHON": sys.executable, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=limit_s,
    )
    assert process.returncode == 0, process.stdout + process.stderr[-5000:]
    return process.stdout


@pytest.mark.cluster
def test_the_digests_stay_those_of_one_process(tmp_path: Path) -> None:
    assert "same digests" in printed("cluster", tmp_path, 500)
    happened = {path.name for path in tmp_path.iterdir()}
    assert happened >= {"killed rows", "killed states", "slow rows", "slow rows second"}


def test_the_same_states_and_results_come_over_connect(tmp_path: Path) -> None:
    try:
        import grpc  # noqa: F401 - only to say what is missing
    except ImportError as error:
        absent("spark", f"{error}, which the extra spark-connect brings")
    environ = {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    assert "the same over Connect" in printed("connected", tmp_path, 500, **environ)
