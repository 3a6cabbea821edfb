"""Logs on stderr: one line each, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
from datetime import UTC, datetime
from typing import Final, Literal

from consumers.results import printed

SELDOM_S: Final = 30.0  # between two lines of a library that differ in their figures alone
# What they say below a warning is not for users.
QUIET: Final = ("kafka", "librdkafka", "uvicorn", "asyncio")


class _Stderr(logging.Handler):
    """Writes to what sys.stderr is when a line comes: a progress bar stands in for it at times."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            line = self.format(record) + "\n"
            try:
                sys.stderr.write(line)
                sys.stderr.flush()
            except RuntimeError:
                # A signal handler logs, and the signal came in the middle of a line.
                os.write(2, line.encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)


class _Seldom(logging.Filter):
    """Of what a library says over and over, such as that a broker is away, a line now and then."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        if record.name.partition(".")[0] not in QUIET:
            return True
        what = record.name, record.levelno, str(record.msg)[:200]
        if record.created - self._said.get(what, -SELDOM_S) < SELDOM_S:
            return False
        if len(self._said) >= 1000:
            self._said.clear()
        self._said[what] = record.created
        return True


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        text = printed.name(record.getMessage(), 2000)
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"{_time(record)} {level}{text}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


def to_stderr(form: Literal["text", "json"]) -> None:
    """Send what this process logs to stderr from now on."""
    handler = _Stderr()
    handler.setFormatter(_Json() if form == "json" else _Text())
    handler.addFilter(_Seldom())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
