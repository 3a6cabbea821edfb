"""The progress of a run and its remaining time, on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO


class Progress:
    """A line rewritten a few times a second on a terminal; work is counted in milliseconds."""

    def __init__(self, work_ms: float, out: TextIO = sys.stderr) -> None:
        self.work, self.done, self.out = max(work_ms, 1e-9), 0.0, out
        self.name, self.started, self.written = "", time.perf_counter(), 0.0

    def add(self, ms: float) -> None:
        """Add work that is done."""
        self.done += ms
        now = time.perf_counter()
        if now - self.written >= (0.3 if self.out.isatty() else 20.0):
            self.written = now
            self._write(now)

    def end(self) -> None:
        """Write the last line."""
        spent = time.perf_counter() - self.started
        self.out.write(f"{self._start()}done in {spent / 60:.1f} minutes\n")

    def _write(self, now: float) -> None:
        share = min(1.0, self.done / self.work)
        left = (now - self.started) * (1 - share) / share if share else 0.0
        line = f"{self._start()}{share:4.0%}  {left / 60:5.1f} minutes left  {self.name}"
        self.out.write(line + ("" if self.out.isatty() else "\n"))
        self.out.flush()

    def _start(self) -> str:
        return "\r\x1b[K" if self.out.isatty() else ""
