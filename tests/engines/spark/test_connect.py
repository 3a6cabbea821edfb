"""Over Spark Connect, where the client has no JVM, the states are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements import ROOT, absent


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_same_states_and_results_come_over_connect(tmp_path: Path) -> None:
    try:
        import grpc  # noqa: F401 - only to say what is missing
    except ImportError as error:
        absent("spark", f"{error}, which the extra spark-connect brings")
    done = subprocess.run(
        [sys.executable, "-m", "tests.engines.spark.connected", str(tmp_path)],
        cwd=ROOT,
        env={
            **os.environ,
            "PYSPARK_PYTHON": sys.executable,
            "PYTHONPATH": str(ROOT),
            "SPARK_LOCAL_IP": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr[-5000:]
    assert "the same over Connect" in done.stdout
