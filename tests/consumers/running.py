"""`streammetrics run` in a process of its own, asked over HTTP as a probe asks it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests import patience
from tests.patience import LIMIT_S
from tests.requirements import ROOT


class Running:
    """A process, from its start to its end; a block of `with` leaves none behind."""

    def __init__(self, config: Path, *flags: str, environ: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streammetrics_consumers.cli", "run", str(config), *flags],
            cwd=ROOT,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(environ or {})},
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()

    @property
    def log(self) -> str:
        """All that it wrote to stderr so far."""
        return "\n".join(self.lines)

    @property
    def url(self) -> str:
        """Where it serves."""
        until(lambda: any(line.startswith("serving ") for line in self.lines), self)
        return next(line for line in self.lines if line.startswith("serving ")).split()[1]

    def get(self, path: str) -> tuple[int, str]:
        """Ask it; the status and the text."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=LIMIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def is_ready(self) -> bool:
        """What /readyz says."""
        return self.get("readyz")[0] == 200

    def total(self, name: str) -> float:
        """A metric, added up over all labels."""
        metric_sets = text_string_to_metric_families(self.get("metrics")[1])
        return sum(sample.value for f in metric_sets for sample in f.samples if sample.name == name)

    def end(self) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_S)
        self._reader.join()
        return self.process.returncode


def until(reached: Callable[[], bool], running: Running) -> None:
    """Wait for something that a running process brings about."""

    def is_so() -> bool:
        assert running.process.poll() is None, running.log
        return reached()

    patience.until(is_so, lambda: running.log)
