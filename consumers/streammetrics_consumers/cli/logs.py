"""Logs on stderr: one line per record, as text for people or as JSON for machines.

With JSON nothing else is written there: messages and errors of a command, Python warnings and
tracebacks are JSON lines too.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise
from types import TracebackType
from typing import Final, Literal

from streammetrics_consumers.model import formatting

log = logging.getLogger(__name__)

SELDOM_S: Final = 30.0  # between two lines of a library that differ only in numbers
# Libraries whose records below a warning are not for users.
QUIET: Final = ("kafka", "librdkafka", "uvicorn", "asyncio")


class _Stderr(logging.Handler):
    """Writes to the current sys.stderr, which a progress bar may replace."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        try:
            line = self.format(record) + "\n"
            try:
                sys.stderr.write(line)
                sys.stderr.flush()
            except RuntimeError:
                # A signal handler logs, and the signal interrupted the writing of a line.
                os.write(2, line.encode("utf-8", "backslashreplace"))
        except Exception:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Report a line that could not be formatted: as usual, or with its location as JSON."""
        if not isinstance(self.formatter, _Json):
            super().handleError(record)
            return
        where = f"{record.pathname}:{record.lineno}"
        line = {"level": "error", "pid": os.getpid(), "message": f"a log line of {where} is lost"}
        with suppress(OSError):
            os.write(2, f"{json.dumps(line)}\n".encode())


class _Seldom(logging.Filter):
    """Rate-limits repeated lines of a library, such as those about an unavailable broker."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write it."""
        if record.name.partition(".")[0] not in QUIET:
            return True
        message_key = record.name, record.levelno, str(record.msg)[:200]
        if record.created - self._said.get(message_key, -SELDOM_S) < SELDOM_S:
            return False
        if len(self._said) >= 1000:
            self._said.clear()
        self._said[message_key] = record.created
        return True


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        text = formatting.name(record.getMessage(), 2000)
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return f"{_time(record)} {level}{text}"


class _Json(logging.Formatter):
    def __init__(self, worker: str | None) -> None:
        super().__init__()
        self._worker = worker

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "worker": self._worker,
            "pid": os.getpid(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line)


Form = Literal["text", "json", "debug"]


def form_of(argv: Sequence[str], environ: Mapping[str, str]) -> Form:
    """The log form that these arguments request, even if they are invalid; only `run` has several.

    >>> form_of(["run", "c.toml", "--log=json"], {}), form_of(["serve", "s.db"], {})
    ('json', 'text')
    """
    if argv[:1] != ["run"]:
        return "text"
    form_text = environ.get("STREAMMETRICS_LOG", "")
    for word, following in pairwise([*argv, ""]):
        if word == "--log":
            form_text = following
        elif word.startswith("--log="):
            form_text = word.removeprefix("--log=")
    return form_named(form_text)


def form_named(text: str | None) -> Form:
    """The form of this name, `text` if there is none."""
    return "json" if text == "json" else "debug" if text == "debug" else "text"


def are_json() -> bool:
    """Whether this process logs JSON."""
    return any(isinstance(handler.formatter, _Json) for handler in logging.getLogger().handlers)


def say(text: str, level: int = logging.INFO) -> None:
    """Write a message that is not a log to stderr: unchanged, or as a JSON line."""
    if are_json():
        log.log(level, "%s", text)
        return
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def to_stderr(form: Form, *, worker: str | None = None) -> None:
    """Send the logs of this process to stderr; `debug` is text with our own debug lines. worker:
    its number among several workers, which JSON lines contain besides the process id."""
    handler = _Stderr()
    handler.setFormatter(_Json(worker) if form == "json" else _Text())
    handler.addFilter(_Seldom())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    own_logger = logging.getLogger(__name__.partition(".")[0])
    own_logger.setLevel(logging.DEBUG if form == "debug" else logging.NOTSET)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    if form == "json":
        logging.captureWarnings(True)
        sys.excepthook, sys.unraisablehook = _uncaught, _unraisable
        threading.excepthook = _log_thread_error


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    log.critical("uncaught exception", exc_info=(kind, error, trace))


def _log_thread_error(hook_args: threading.ExceptHookArgs) -> None:
    if hook_args.exc_type is not SystemExit:
        error = hook_args.exc_value or hook_args.exc_type()
        log.critical(
            "uncaught exception in a thread",
            exc_info=(hook_args.exc_type, error, hook_args.exc_traceback),
        )


def _unraisable(hook_args: sys.UnraisableHookArgs) -> None:
    error = hook_args.exc_value or hook_args.exc_type()
    message = hook_args.err_msg or "ignored exception"
    log.error(
        "%s: %r", message, hook_args.object, exc_info=(type(error), error, hook_args.exc_traceback)
    )


def _time(record: logging.LogRecord) -> str:
    time = datetime.fromtimestamp(record.created, UTC)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
