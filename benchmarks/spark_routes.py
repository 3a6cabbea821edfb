"""The cost of a row in Spark, by route: `.cache/spark/bin/python -m benchmarks.spark_routes`.

It runs in the environment of Spark, which `make test-spark` makes. Wall time on two cores, the best
of three after a warm-up, for rows read from parquet; the first line is the time of Spark alone to
read and sum the columns.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from streammetrics import GroupedAUC, HistogramAUC, Panel, Ratio
from streammetrics.engines.spark import aggregate, counts, merge, states

SHARDS = 8
GROUPS = 20_000
AREAS = Panel({"auc": HistogramAUC(), "ctr": Ratio()}, inputs={"ctr": {"numerators": "labels"}})
PLAIN = HistogramAUC(grid="equal", resolution=12)
BOTH = Panel({"auc": HistogramAUC(), "gauc": GroupedAUC()}, inputs={"gauc": {"groups": "users"}})
ITEMS = "Spark alone: the sums of 20,000 groups"
OF_ITEMS = "AUC and click rate of 20,000 groups"
NAMES = {"labels": "label", "scores": "score"}
USERS = {**NAMES, "users": "user"}


def write(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(8)
    per = rows // SHARDS
    for shard in range(SHARDS):
        score = rng.random(per, np.float32)
        columns = {
            "variant": pa.array(np.array(["a", "b"])[rng.integers(0, 2, per)]).dictionary_encode(),
            "item": np.array([f"item-{i}" for i in range(GROUPS)])[rng.integers(0, GROUPS, per)],
            "user": pa.array(rng.integers(0, rows // 25, per)),
            "label": pa.array((rng.random(per) < score).astype(np.int16)),
            "score": pa.array(score),
        }
        pq.write_table(pa.table(columns), folder / f"{shard}.parquet")


def routes(log: DataFrame) -> dict[str, Callable[[], object]]:
    grouping = ["variant"]

    def read() -> object:
        return log.groupBy(*grouping).agg(F.sum("user"), F.sum("label"), F.sum("score")).toArrow()

    def read_items() -> object:
        return log.groupBy("item").agg(F.sum("label"), F.sum("score"), F.count("score")).toArrow()

    return {
        "Spark alone: the sums of three columns": read,
        "states of an equal grid": lambda: merge(
            states(log, PLAIN, grouping, columns=NAMES)
        ).toArrow(),
        "counts of an equal grid, in SQL": lambda: merge(
            counts(log, PLAIN, grouping, columns=NAMES)
        ).toArrow(),
        "AUC and GAUC, tasks as they are": lambda: merge(
            states(log, BOTH, grouping, columns=USERS)
        ).toArrow(),
        "AUC and GAUC, 8 buckets of users, sealed": lambda: merge(
            states(log, BOTH, grouping, columns=USERS, user="user", n_buckets=8, scope="bench")
        ).toArrow(),
        ITEMS: read_items,
        OF_ITEMS: lambda: aggregate(log, AREAS, ["item"], columns=NAMES).toArrow(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--items", action="store_true", help="only the routes of 20,000 groups")
    arguments = parser.parse_args()
    rows, only = arguments.rows, (ITEMS, OF_ITEMS) if arguments.items else None
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.shuffle.partitions", "8")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        seconds: dict[str, float] = {}
        for name, route in routes(spark.read.parquet(folder)).items():
            if only is not None and name not in only:
                continue
            took = []
            for _ in range(4):
                start = time.perf_counter()
                route()
                took.append(time.perf_counter() - start)
            seconds[name] = min(took[1:])
            print(f"{name:<45}{seconds[name] / rows * 1e9:7.0f} ns a row", flush=True)
        ratio = seconds[OF_ITEMS] / seconds[ITEMS]
        print(f"{GROUPS:,} groups cost {ratio:.1f} times their sums in SQL, at most 8")
    spark.stop()


if __name__ == "__main__":
    main()
