"""A client of Spark Connect, as a script: python -m tests.engines.spark.connected FOLDER.

It has a process of its own, since a process is a client of Connect or holds a Spark.
"""

from __future__ import annotations

import contextlib
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
from tests.ports import free_ports

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


@contextlib.contextmanager
def server(folder: Path) -> Iterator[str]:
    """The URL of a server with two cores."""
    (port,) = free_ports(1)
    log = folder / "server.log"
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": port,
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 2,
    }
    arguments = [f"--conf={name}={value}" for name, value in settings.items()]
    command = ("--class", SERVER, "--master", "local[2]", *arguments, "spark-internal")
    with daemon(log, "spark-submit", *command, memory="1g"):
        await_port(port, log)
        yield f"sc://127.0.0.1:{port}"


def main(folder: Path) -> None:
    from pyspark.sql import SparkSession

    from streammetrics.engines import results_rows
    from streammetrics.engines.spark import aggregate, merge, states

    table = log_table(4_000, users=200)
    whole = updated_states(table, SPEC, ["variant"])
    files = write_shards(folder / "log", table, shards=2)
    with server(folder) as url:
        spark = SparkSession.builder.remote(url).getOrCreate()
        assert type(spark).__module__.startswith("pyspark.sql.connect"), type(spark)
        log = spark.read.parquet(files)
        counted = states(log, SPEC, ["variant"], columns=COLUMNS)
        assert digests_of(merge(counted)) == digests(whole), "tasks"
        users = {"columns": COLUMNS, "user": "user", "n_buckets": 3}
        assert digests_of(merge(states(log, SPEC, ["variant"], **users))) == digests(whole), "users"
        rows = aggregate(log, SPEC, ["variant"], scope="june", **users).toArrow().to_pylist()
        row_texts = sorted(repr(tuple(row.values())) for row in rows)
        expected = [
            (*key, *figure) for key, state in whole.items() for figure in results_rows(state)
        ]
        assert row_texts == sorted(map(repr, expected)), "sealed"
        spark.stop()
    sys.stdout.write("the same over Connect\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
