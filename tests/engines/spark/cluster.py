"""A cluster of Spark on two loopback hosts, as a script: python -m tests.engines.spark.cluster.

Its argument is a folder. It has a process of its own, since a process has one JVM and that JVM one
Spark.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.engines.log_rows import (
    COLUMNS,
    SPEC,
    digests,
    digests_of,
    log_table,
    updated_states,
    write_shards,
)
from tests.engines.spark.daemons import await_port, daemon
from tests.engines.spark.faults import failing_once
from tests.ports import free_ports

DEPLOY = "org.apache.spark.deploy"
FAULTS = ("slow", "killed")


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of a master with two workers of a core each; all end with the block."""
    (port,) = free_ports(1)
    url, log = f"spark://127.0.0.1:{port}", folder / "cluster.log"
    with contextlib.ExitStack() as stack:

        def start(name: str, host: str, *arguments: str) -> None:
            command = (f"{DEPLOY}.{name}", "--host", host, "--webui-port", "0", *arguments)
            stack.enter_context(daemon(log, "spark-class", *command))

        start("master.Master", "127.0.0.1", "--port", str(port))
        await_port(port, log)
        for host in ("127.0.0.1", "127.0.0.2"):
            work = str(folder / f"work-{host}")
            start("worker.Worker", host, "--cores", "1", "--memory", "1g", "-d", work, url)
        yield url


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    from streammetrics.engines.spark import merge, states

    group_columns = ("variant", "phase")
    table = log_table(6_000, users=300)
    expected = digests(updated_states(table, SPEC, group_columns))
    with cluster(folder) as url:
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "spark.speculation": "true",
            "spark.speculation.interval": "100ms",
            "spark.speculation.quantile": "0.2",
            "spark.speculation.multiplier": "1.1",
            "spark.speculation.minTaskRuntime": "100ms",
            "spark.sql.shuffle.partitions": "3",
            "spark.ui.enabled": "false",
        }
        builder = SparkSession.builder.master(url)
        for name, value in settings.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        log = spark.read.parquet(write_shards(folder / "log", table)).repartition(6)
        for fault in FAULTS:
            rows = failing_once(log, fault, folder / f"{fault} rows")
            assert (
                digests_of(merge(states(rows, SPEC, group_columns, columns=COLUMNS))) == expected
            ), fault
            counted = states(log, SPEC, group_columns, columns=COLUMNS, user="user", n_buckets=6)
            bucket_states = failing_once(counted, fault, folder / f"{fault} states")
            assert digests_of(merge(bucket_states)) == expected, f"{fault}, after the buckets"
        spark.stop()
    sys.stdout.write("same digests\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
