"""Parts of Spark as processes of their own, which end with the block that started them."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.kafka_broker import TIED
from tests.patience import LIMIT_S


@contextlib.contextmanager
def daemon(log: Path, program: str, *arguments: str, memory: str = "256m") -> Iterator[None]:
    """A program of Spark's `bin` until the end of the block, or of this process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    with log.open("ab") as written:
        process = subprocess.Popen(
            ["sh", "-c", TIED, "sh", str(home / "bin" / program), *arguments],
            stdin=subprocess.PIPE,
            stdout=written,
            stderr=written,
            start_new_session=True,
            env={**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": memory},
        )
    assert process.stdin is not None
    try:
        yield
    finally:
        process.stdin.close()  # the watcher then ends the whole group
        process.wait()


def await_port(port: int, log: Path) -> None:
    """Wait until someone listens there."""
    limit = time.monotonic() + LIMIT_S
    while not _answers(port):
        assert time.monotonic() < limit, log.read_text()
        time.sleep(0.1)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
