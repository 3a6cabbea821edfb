"""The command that merges delta rows: `streammetrics compact STORE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from typing import Final

from consumers.cli.arguments import Arguments
from consumers.ledger.compact import Compacted, compact
from consumers.ledger.ledger import Ledger
from consumers.results import printed

EVERY_S: Final = 2.0  # between two lines of progress


def compact_store(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Merge all that can be merged, and say what came of it."""
    said_s = monotonic()

    def report(done: Compacted) -> None:
        nonlocal said_s
        if monotonic() - said_s >= EVERY_S:
            said_s = monotonic()
            sys.stderr.write(f"{_rows(done)} so far\n")

    with closing(Ledger.open(arguments.words[0])) as ledger:
        done = compact(ledger.store, report)
    if not done.rows_before:
        sys.stdout.write("nothing to merge\n")
        return 0
    sys.stdout.write(
        f"{_rows(done)}, {printed.count(done.bytes_before)} bytes into "
        f"{printed.count(done.bytes_after)}\n"
    )
    return 0


def _rows(done: Compacted) -> str:
    return (
        f"merged {printed.count(done.rows_before)} delta rows into {printed.count(done.rows_after)}"
    )
