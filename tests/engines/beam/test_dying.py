"""A process that dies in a task leaves no number, and the next run the right one."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from streammetrics import OverlapError
from streammetrics.engines import merged
from tests.engines.beam.pipelines import shards
from tests.engines.log_rows import SPEC, digests, log_table, updated_states
from tests.patience import LIMIT_S
from tests.requirements import ROOT


def pipeline(*arguments: object) -> int:
    process = subprocess.run(
        [sys.executable, "-m", "tests.engines.beam.dying", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    return process.returncode


def test_a_process_that_dies_in_a_task_leaves_no_number_and_the_next_run_the_right_one(
    tmp_path: Path,
) -> None:
    rows, first, second = (tmp_path / name for name in ("rows", "first", "second"))
    rows.mkdir()
    for number, shard in enumerate(shards(log_table(), 5, 1)):
        pq.write_table(shard, rows / f"{number}.parquet")
    assert pipeline(rows, first, 3) == 9
    assert not list(first.glob("*.parquet"))
    assert pipeline(rows, first) == 0
    assert pipeline(rows, second) == 0
    states = defaultdict(list)
    for row in pq.read_table(first).to_pylist():
        states[row["variant"],].append(row["state"])
    whole = digests(updated_states(log_table(), SPEC, ["variant"]))
    assert {group: merged(group_states).digest() for group, group_states in states.items()} == whole
    # Whoever keeps the output of both runs is told so.
    second_row = pq.read_table(second).to_pylist()[0]
    with pytest.raises(OverlapError, match="twice"):
        merged([*states[second_row["variant"],], second_row["state"]])
