"""A pipeline that writes states to a folder, run as a script: IN OUT [LIVES].

With LIVES its process ends without a word (`os._exit`) in the task that reads table LIVES.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import apache_beam as beam
import pyarrow as pa
import pyarrow.parquet as pq
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from streammetrics.engines.beam import States
from tests.engines.log_rows import COLUMNS, SPEC

WRITTEN = pa.schema({"variant": pa.string(), "state": pa.binary()})


def read(number: int, folder: str, lives: int) -> tuple[int, pa.Table]:
    """A numbered table, or the end of the process."""
    if number == lives:
        os._exit(9)
    return number, pq.read_table(f"{folder}/{number}.parquet")


def run(source: str, target: str, lives: int = -1) -> None:
    """States of all tables, to one parquet file."""
    with beam.Pipeline(runner=FnApiRunner()) as pipeline:
        _ = (
            pipeline
            | beam.Create(range(len(list(Path(source).glob("*.parquet")))))
            | beam.Map(read, folder=source, lives=lives)
            | States(SPEC, ["variant"], columns=COLUMNS, job="day")
            | beam.Map(lambda pair: {"variant": pair[0][0], "state": pair[1]})
            | beam.io.WriteToParquet(f"{target}/states", WRITTEN, file_name_suffix=".parquet")
        )


if __name__ == "__main__":
    run(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
