"""A cluster of Spark on two loopback hosts, as a script: python -m tests.engines.spark.cluster.

Its arguments are the fault, "killed" or "slow", and a folder. It has a process of its own, since a
process has one JVM and that JVM one Spark.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.engines.log_rows import COLUMNS, SPEC, alone, digests, log_table, write_shards
from tests.engines.spark.faults import failing_once
from tests.engines.spark.reading import digests_of
from tests.kafka_broker import TIED, free_ports

DEPLOY = "org.apache.spark.deploy"
START_LIMIT_S = 60.0


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The URL of a master with two workers of a core each; all end with the block."""
    import pyspark

    home = Path(pyspark.__file__).parent
    (port,) = free_ports(1)
    url = f"spark://127.0.0.1:{port}"
    with contextlib.ExitStack() as stack:

        def start(name: str, host: str, *arguments: str) -> None:
            command = [str(home / "bin" / "spark-class"), f"{DEPLOY}.{name}", "--host", host]
            command += ["--webui-port", "0", *arguments]
            with (folder / "cluster.log").open("ab") as log:
                process = subprocess.Popen(
                    ["sh", "-c", TIED, "sh", *command],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    env={**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"},
                )
            assert process.stdin is not None
            stack.callback(process.wait)
            stack.callback(process.stdin.close)  # the watcher then ends the whole group

        start("master.Master", "127.0.0.1", "--port", str(port))
        limit = time.monotonic() + START_LIMIT_S
        while not _answers(port):
            assert time.monotonic() < limit, (folder / "cluster.log").read_text()
            time.sleep(0.1)
        for host in ("127.0.0.1", "127.0.0.2"):
            work = str(folder / f"work-{host}")
            start("worker.Worker", host, "--cores", "1", "--memory", "1g", "-d", work, url)
        yield url


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(fault: str, folder: Path) -> None:
    from pyspark.sql import SparkSession

    from streammetrics.engines.spark import merge, states

    by = ("variant", "phase")
    table = log_table()
    expected = digests(alone(table, SPEC, by))
    with cluster(folder) as url:
        settings = {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.executor.memory": "512m",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            "spark.speculation": str(fault == "slow").lower(),
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
        counted = states(failing_once(log, fault, folder / "rows"), SPEC, by, columns=COLUMNS)
        assert digests_of(merge(counted)) == expected, "counted where the fault happened"
        counted = states(log, SPEC, by, columns=COLUMNS, user="user", n_buckets=6)
        again = failing_once(counted, fault, folder / "states")
        assert digests_of(merge(again)) == expected, "after the buckets"
        spark.stop()
    sys.stdout.write("same digests\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
