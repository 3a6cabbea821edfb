"""The command `export`: one state as a state file, or results as the rows of a file."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.ledger.failures import StoreUnavailable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.query import Query

log = logging.getLogger(__name__)

FOLLOW_EVERY_S: Final = 60.0
MAX_EVERY_S: Final = 86_400.0


def export(arguments: Arguments, monotonic: Callable[[], float], query: Query) -> None:
    """Run the command."""
    output, results = arguments.text("output"), arguments.text("results")
    if (output is None) == (results is None):
        options = "both" if output else "neither"
        raise UsageError(
            f"export: expected -o FILE, for a state, or --results FILE, for rows, got {options}; "
            "name one file"
        )
    logs.to_stderr("text")
    if results is not None:
        _export_results(arguments, query, Path(results), monotonic)
        return
    for flag in ("follow", "every", "by", "views"):
        if flag in arguments.given:
            raise UsageError(
                f"{arguments.given[flag]}: expected --results FILE beside it, got -o; it is of rows"
            )
    from streammetrics_consumers.query.state_files import export as state_of
    from streammetrics_consumers.query.state_files import write_state

    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.counted("reading", "bytes", monotonic) as update,
    ):
        state = state_of(ledger, query, update)
    write_state(state, Path(output or ""))


def _export_results(
    arguments: Arguments, query: Query, path: Path, monotonic: Callable[[], float]
) -> None:
    from streammetrics_consumers.export.follow import Follower, write_results

    window = query.window if "window" in arguments.given else "all"
    query = replace(query, window=window, headlines=arguments.text("views") == "headline")
    every_s = _every_s(arguments)
    with closing(Ledger.open(arguments.words[0])) as ledger:
        if not arguments.is_on("follow"):
            with progress.counted("reading", "bytes", monotonic) as update:
                count = write_results(ledger, query, path, update)
            logs.say(f"{path}: {formatting.count(count)} rows")
            return
        with closing(Follower(ledger, query, path)) as follower, suppress(KeyboardInterrupt):
            follow(follower.append, str(path), every_s)


def follow(
    append: Callable[[], int],
    name: str,
    every_s: float,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Append what has changed, again and again; once if `every_s` is 0. While the store is
    unavailable nothing is appended, and nothing is lost."""
    while True:
        try:
            count = append()
            if count:
                logs.say(f"{name}: {formatting.count(count)} rows are appended")
        except StoreUnavailable as error:
            if not every_s:
                raise
            log.warning("%s; trying again in %g s", error, every_s)
        if not every_s:
            return
        wait(every_s)


def _every_s(arguments: Arguments) -> float:
    given_seconds = arguments.real("every") if "every" in arguments.given else FOLLOW_EVERY_S
    every_s = 0.0 if given_seconds is None else given_seconds
    if every_s and not 0.1 <= every_s <= MAX_EVERY_S:
        raise UsageError(
            f"--every: expected 0, or 0.1 to {MAX_EVERY_S:g} seconds, got {every_s:g}; correct it"
        )
    return every_s
