"""The command that writes a report: `streammetrics report STORE -o report.html`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from consumers.cli import logs, progress
from consumers.cli.arguments import Arguments, UsageError
from consumers.cli.exit_codes import DONE
from consumers.counting.options import Progress
from consumers.ledger.ledger import Ledger
from consumers.report import gather, report_html
from consumers.results import printed
from consumers.results.query import parse_query


def report(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Write the file; it is there whole or not at all."""
    output = arguments.text("output")
    if not output:
        raise UsageError("report: expected -o FILE, came nothing; name the file, or - for stdout")
    query = parse_query(
        arguments.text("window") or "total",
        arguments.text("by"),
        arguments.several("where"),
        arguments.text("metric"),
        arguments.number("generation"),
    )
    logs.to_stderr("text")
    began_s = monotonic()
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.shown("drawing", monotonic, "figures") as tell,
    ):
        material = gather(ledger, query, lambda done, total: tell(
            Progress(done, monotonic() - began_s, total - done)))  # fmt: skip
    data = report_html(material)
    if output == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        return DONE
    whole = Path(output)
    part = whole.with_name(whole.name + ".part")
    try:
        part.write_bytes(data)
        part.replace(whole)
    finally:
        part.unlink(missing_ok=True)
    logs.say(f"{output}: {printed.count(len(data) // 1000)} kB")
    return DONE
