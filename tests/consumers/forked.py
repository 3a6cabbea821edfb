"""Processes that a test kills or asks, as forks of one that has imported what they run: to start
each from nothing takes a second of a processor."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "tests.consumers.killed_retry",
        "tests.consumers.killed_worker",
        "streammetrics_consumers.process.service",
    ]
)


def forked(log: Path, run: Callable[..., object], *arguments: object) -> ForkServerProcess:
    """Start a process that runs a function of a module, and writes what it says to a file."""
    process = _CONTEXT.Process(target=_run, args=(log, run, *arguments), daemon=True)
    process.start()
    return process


def _run(log: Path, run: Callable[..., object], *arguments: object) -> None:
    with log.open("ab") as file:
        for number in (1, 2):
            os.dup2(file.fileno(), number)
    run(*arguments)
