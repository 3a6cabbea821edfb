"""A Kafka broker for benchmarks, on another core than ours if there is one.

KAFKA_BOOTSTRAP=host:port uses a running broker. Otherwise `python -m tests.kafka_broker` is
started as a child: it prints its address, and for each line with a number it makes a topic with
that number of partitions and prints its name. It ends when we do.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent


class Topics:
    """A broker, and a way to make topics on it."""

    def __init__(self, bootstrap: str, requests: IO[str], replies: IO[str]) -> None:
        self.bootstrap = bootstrap
        self._requests, self._replies = requests, replies

    def new_topic(self, partitions: int = 1) -> str:
        """The name of a new topic."""
        self._requests.write(f"{partitions}\n")
        self._requests.flush()
        return self._replies.readline().strip()


@contextmanager
def topics() -> Iterator[Topics]:
    """A broker until the block ends. From here on this process runs on one core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kafka_broker"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    os.sched_setaffinity(0, cores[:1])
    assert process.stdin is not None and process.stdout is not None
    try:
        bootstrap = process.stdout.readline().strip()
        if not bootstrap:
            raise SystemExit("no Kafka broker: see its output above")
        yield Topics(bootstrap, process.stdin, process.stdout)
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
