"""What README.md and docs/engines.md show of Spark runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.requirements import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.parametrize("page", ["README.md", "docs/engines.md"])
def test_the_program_of_a_page_prints_a_row_for_each_variant(
    spark: SparkSession,
    page: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
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
