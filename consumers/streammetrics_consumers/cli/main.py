"""The command line: `streammetrics COMMAND ...`.

Only results go to stdout; logs, progress and errors go to stderr. Exit codes: 0 done, 1 fatal,
2 usage or config, 3 settings or schema, 4 gap, 5 too many bad events, 6 and 7 of verify (differs,
could not compare), 75 try again, 77 access denied.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import Final

from streammetrics import check_machine
from streammetrics_consumers.cli import logs
from streammetrics_consumers.cli.arguments import Arguments, UsageError, completion, parse
from streammetrics_consumers.cli.exit_codes import DONE, FATAL, INTERRUPTED, USAGE, explained

log = logging.getLogger(__name__)

COLLECTIONS: Final = (200_000, 20, 20)  # the thresholds of Python's search for garbage
_EXTRAS: Final = {
    "sqlalchemy": "serve",
    "msgspec": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "rich": "serve",
    "shtab": "serve",
    "kafka": "kafka",
    "pyarrow": "parquet",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, and return the exit code; that of this process by default."""
    if argv is not None:
        return _main(argv)
    # Most of what a short command allocates lives until it ends: classes and functions of imported
    # modules. Looking for garbage among them takes a fifth of the time of `status`.
    gc.set_threshold(*COLLECTIONS)
    try:
        return _main(sys.argv[1:])
    finally:
        gc.freeze()  # nothing is garbage at the end of a process


def _main(argv: Sequence[str]) -> int:
    # Names from a stream may contain characters that the terminal's encoding lacks.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    form = logs.form_of(argv, os.environ)
    if form != "text":
        logs.to_stderr(form)
    _prepare_numpy()
    try:
        arguments = parse(argv, os.environ)
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except UsageError as error:
        return _failed(str(error), USAGE)
    except BrokenPipeError:
        # The reader of our output has closed it; discard the rest of Python's buffer.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return DONE
    except KeyboardInterrupt:
        return _failed("interrupted", INTERRUPTED)
    except ModuleNotFoundError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is None:
            raise
        return _failed(
            f"expected the package {error.name}, got an installation without it; install it with "
            f"pip install '.[{extra}]' in a clone of streammetrics",
            FATAL,
        )


def _prepare_numpy() -> None:
    """Set what makes numpy sort fast on this machine; it reads that when it is imported. Processes
    that this one starts inherit it. Matrix products are small here, and get no threads."""
    if "numpy" in sys.modules:
        return
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name, value in check_machine().items():
        os.environ[name] = value
        log.debug("%s=%r is set: numpy sorts faster on this processor", name, value)


def _run(arguments: Arguments) -> int:
    try:
        match arguments.command:
            case "run":
                from streammetrics_consumers.cli.run import run

                return run(arguments, time.monotonic, time.time)
            case "simulate":
                from streammetrics_consumers.cli.run import simulate

                return simulate(arguments, time.monotonic)
            case "demo":
                from streammetrics_consumers.cli.demo import demo

                return demo(arguments, main, time.monotonic)
            case "quarantine" if arguments.words[:1] == ("retry",) and arguments.words[1:]:
                from streammetrics_consumers.cli.upkeep import retry_quarantine

                return retry_quarantine(
                    arguments, lambda: round(time.time() * 1000), time.monotonic
                )
            case "hooks":
                from streammetrics_consumers.cli.hooks_command import hooks_command

                return hooks_command(arguments, lambda: round(time.time() * 1000))
            case "eval":
                from streammetrics_consumers.cli.eval_file import eval_file

                return eval_file(arguments)
            case "plan":
                from streammetrics_consumers.cli.plan_command import plan

                return plan(arguments)
            case "serve":
                from streammetrics_consumers.cli.run import serve_store

                return serve_store(arguments, time.monotonic, time.time)
            case "verify":
                from streammetrics_consumers.cli.upkeep import verify_config

                return verify_config(arguments, time.monotonic)
            case "compact":
                from streammetrics_consumers.cli.upkeep import compact_store

                return compact_store(arguments, time.monotonic)
            case "completion":
                sys.stdout.write(completion(arguments.words[0]) + "\n")
                return DONE
            case _:
                from streammetrics_consumers.cli.read_commands import read

                return read(arguments, time.monotonic)
    except (UsageError, BrokenPipeError, ModuleNotFoundError):
        raise
    except Exception as error:
        explanation = explained(error)
        if explanation is None:
            raise
        text, code = explanation
        return _failed(text, code)


def _failed(text: str, code: int) -> int:
    logs.say(f"streammetrics: {text}", logging.ERROR)
    return code
