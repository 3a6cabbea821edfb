"""The command that reads the log again and compares: `streammetrics verify CONFIG`."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from consumers.cli import logs, progress
from consumers.cli.arguments import Arguments, UsageError
from consumers.cli.exit_codes import DONE, FATAL
from consumers.cli.run import overrides, partitions
from consumers.config.config import load_config
from consumers.ledger.ledger import Ledger
from consumers.render import formatting
from consumers.sources.names import name_of
from consumers.sources.source import Name
from consumers.worker.chosen_logs import Offsets, Wanted
from consumers.worker.verified import Verified
from consumers.worker.verify import verify


def verify_config(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Compare, and say what differs: exit code 0 where nothing does, 1 else."""
    logs.to_stderr("text")
    config = load_config(arguments.words[0], overrides(arguments))
    wanted = Wanted(
        partitions(arguments.text("partitions")),
        offsets(arguments.several("offsets")) if arguments.several("offsets") else None,
    )
    with (
        tempfile.TemporaryDirectory(prefix="streammetrics-") as folder,
        closing(Ledger.open(config.store.url)) as ledger,
        closing(Ledger.open(str(Path(folder) / "verify.db"), create=True)) as scratch,
        progress.shown("verifying", monotonic) as report,
    ):
        found = verify(
            config,
            ledger,
            scratch,
            wanted=wanted,
            report=report,
            monotonic=monotonic,
        )
    for line in lines(found):
        sys.stdout.write(formatting.name(line, 600) + "\n")
    return DONE if found.is_good else FATAL


def offsets(texts: Sequence[str]) -> dict[Name, Offsets]:
    """The values of `--offsets`, by partition."""
    found: dict[Name, Offsets] = {}
    for text in texts:
        match = re.fullmatch(r"(.+):(\d{1,18})-(\d{0,18})", text)
        name = None if match is None else name_of(match[1])
        if match is None or name is None:
            raise UsageError(
                f"--offsets: expected PARTITION:FROM-TO, such as 0:1000-2000 or 0:1000-, came "
                f"{text!r}; correct it"
            )
        _, start, end = match.groups()
        if name in found:
            raise UsageError(
                f"--offsets: expected one range for each partition, came two for {name}; "
                "verify them one after the other"
            )
        found[name] = int(start), int(end) if end else None
    return found


def lines(found: Verified) -> list[str]:
    """What was found, to read."""
    text = [f"differs: {one}" for one in found.differences]
    if found.count > len(found.differences):
        text.append(
            f"and {formatting.count(found.count - len(found.differences))} more differences"
        )
    text += [f"note: {one}" for one in found.notes]
    logs = f"{found.logs} log{'' if found.logs == 1 else 's'}"
    compared = (
        f"{formatting.count(found.rows)} events of {logs} read again, "
        f"{formatting.count(found.states)} states and "
        f"{formatting.count(found.entries)} refused events compared"
    )
    if found.count:
        return [*text, f"{compared}: {formatting.count(found.count)} differences"]
    if not found.logs:
        return [*text, "nothing could be verified"]
    if found.skipped:
        return [*text, f"{compared}, and {formatting.count(found.skipped)} could not be"]
    return [*text, f"{compared}: the ledger says what the log says"]
