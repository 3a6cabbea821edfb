"""What docs/write_a_metric.md shows of Spark runs where workers have the package installed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.newcomer import BLOCKS, run, written


def test_the_program_of_the_page_counts_a_metric_of_ones_own(tmp_path: Path) -> None:
    (program,) = (text for _, text in BLOCKS if text.startswith("# spark\n"))
    folder = written(tmp_path)
    (folder / "in_spark.py").write_text(program, encoding="utf-8")
    here = f"PYSPARK_PYTHON={sys.executable} SPARK_LOCAL_IP=127.0.0.1"
    printed = run(folder, f"{here} {sys.executable} in_spark.py")
    assert re.search(r"\| *bts\| *ScrollDepth\| *mean\| *0\.875\|", printed), printed
