"""The programs of the pages run in Spark as they stand."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.own_package import BLOCKS, run, written
from tests.requirements import ROOT


def test_the_program_of_the_page_prints_a_row_for_each_variant(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = "docs/engines.md"
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```[a-z]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (program,) = (block for block in blocks if "import aggregate" in block)
    rng = np.random.default_rng(1)
    rows = {"variant": pa.array(["a", "b"] * 300), "user": rng.integers(0, 50, 600)}
    rows |= {"label": rng.integers(0, 2, 600), "score": rng.random(600)}
    (tmp_path / "day").mkdir()
    pq.write_table(pa.table(rows), tmp_path / "day" / "0.parquet")
    program = program.replace('parquet("day")', f'parquet("{tmp_path}/day")')
    program = program.replace("n_buckets=200", "n_buckets=2")
    exec(compile(program, page, "exec"), {"spark": spark})  # our own text, not data from outside
    printed = capsys.readouterr().out
    assert re.search(r"\| +a\| *(HistogramAUC|auc)\| +auc\| *0\.\d+", printed), printed


def test_the_program_of_the_page_counts_a_metric_of_ones_own(tmp_path: Path) -> None:
    (program,) = (text for _, text in BLOCKS if text.startswith("# spark\n"))
    folder = written(tmp_path)
    (folder / "in_spark.py").write_text(program, encoding="utf-8")
    environment = f"PYSPARK_PYTHON={sys.executable} SPARK_LOCAL_IP=127.0.0.1"
    printed = run(folder, f"{environment} {sys.executable} in_spark.py")
    assert re.search(r"\| *bts\| *ScrollDepth\| *mean\| *0\.875\|", printed), printed
