"""The command that merges delta rows: `streammetrics compact STORE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing

from consumers.cli import logs, progress
from consumers.cli.arguments import Arguments
from consumers.ledger.compact import Compacted, compact
from consumers.ledger.ledger import Ledger
from consumers.ledger.mergeable import count_mergeable
from consumers.render.formatting import count


def compact_store(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Merge all that can be merged, and say what came of it."""
    logs.to_stderr("text")
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.counted("merging", "rows", count_mergeable(ledger.store), monotonic) as report,
    ):
        done = compact(ledger.store, lambda so_far: report(so_far.rows_before))
    if not done.rows_before:
        sys.stdout.write("nothing to merge\n")
        return 0
    sys.stdout.write(
        f"{_rows(done)}, {count(done.bytes_before)} bytes into {count(done.bytes_after)}\n"
    )
    return 0


def _rows(done: Compacted) -> str:
    return f"merged {count(done.rows_before)} delta rows into {count(done.rows_after)}"
