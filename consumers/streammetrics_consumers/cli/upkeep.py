"""The commands that process a whole store: compact, quarantine retry, verify."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing

from streammetrics_consumers.cli import logs, progress
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.cli.exit_codes import DIFFERS, DONE, NOT_COMPARED
from streammetrics_consumers.cli.run import overrides, partitions
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.ledger.compact import compact, count_mergeable
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import count_entries
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.partition import Name, name_of
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Json
from streammetrics_consumers.render.quarantine import entry_json
from streammetrics_consumers.replay.retry import Still, retry
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import Offsets, Wanted, verify


def compact_store(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Merge all delta rows that can be merged, and print the result."""
    logs.to_stderr("text")
    with (
        closing(Ledger.open(arguments.words[0])) as ledger,
        progress.counted("merging", "rows", monotonic) as update,
    ):
        ledger.store.require_current()
        total = count_mergeable(ledger.store)
        summary = compact(ledger.store, lambda so_far: update(so_far.rows_before, total))
    if not summary.rows_before:
        sys.stdout.write("nothing to merge\n")
        return DONE
    rows = (
        f"{formatting.count(summary.rows_before)} delta rows into "
        f"{formatting.count(summary.rows_after)}"
    )
    size = (
        f"{formatting.count(summary.bytes_before)} bytes into "
        f"{formatting.count(summary.bytes_after)}"
    )
    sys.stdout.write(f"merged {rows}, {size}\n")
    return DONE


def verify_config(arguments: Arguments, monotonic: Callable[[], float]) -> int:
    """Compare the store with the log, and print the differences. Exit code 0 if equal, DIFFERS if
    not, NOT_COMPARED if nothing differs but nothing, or not all, could be compared."""
    logs.to_stderr("text")
    config = load_config(arguments.words[0], overrides(arguments))
    scope = Wanted(
        partitions(arguments.text("partitions")),
        offsets(arguments.several("offsets")) if arguments.several("offsets") else None,
    )
    with (
        tempfile.TemporaryDirectory(prefix="streammetrics-") as folder,
        closing(Ledger.open(config.store.url)) as ledger,
        closing(Ledger.open(f"sqlite:///{folder}/verify.db", create=True)) as scratch,
        progress.shown("verifying", monotonic) as report,
    ):
        findings = verify(
            config,
            ledger,
            scratch,
            scope=scope,
            report=report,
            monotonic=monotonic,
        )
    for line in lines(findings):
        sys.stdout.write(formatting.name(line, 600) + "\n")
    if findings.count:
        return DIFFERS
    return DONE if findings.is_good else NOT_COMPARED


def offsets(texts: Sequence[str]) -> dict[Name, Offsets]:
    """The values of `--offsets`, by partition."""
    ranges: dict[Name, Offsets] = {}
    for text in texts:
        match = re.fullmatch(r"(.+):(\d{1,18})-(\d{0,18})", text)
        name = None if match is None else name_of(match[1])
        if match is None or name is None:
            raise UsageError(
                f"--offsets: expected PARTITION:FROM-TO, such as 0:1000-2000 or 0:1000-, got "
                f"{text!r}; correct it"
            )
        _, start, end = match.groups()
        if name in ranges:
            raise UsageError(
                f"--offsets: expected one range for each partition, got two for {name}; "
                "verify them one after the other"
            )
        ranges[name] = int(start), int(end) if end else None
    return ranges


def lines(findings: Findings) -> list[str]:
    """The findings as lines of text."""
    text = [f"differs: {difference}" for difference in findings.differences]
    if findings.count > len(findings.differences):
        text.append(
            f"and {formatting.count(findings.count - len(findings.differences))} more differences"
        )
    text += [f"note: {note}" for note in findings.notes]
    logs = f"{findings.logs} log{'' if findings.logs == 1 else 's'}"
    compared = (
        f"{formatting.count(findings.rows)} events of {logs} read again, "
        f"{formatting.count(findings.states)} states and "
        f"{formatting.count(findings.entries)} refused events compared"
    )
    if findings.count:
        return [*text, f"{compared}: {formatting.count(findings.count)} differences"]
    if not findings.logs:
        return [*text, "nothing could be verified"]
    if findings.not_compared:
        return [*text, f"{compared}: nothing differs, but not all could be compared"]
    return [*text, f"{compared}: the ledger agrees with the log"]


def retry_quarantine(
    arguments: Arguments, now_ms: Callable[[], int], monotonic: Callable[[], float]
) -> int:
    """Count the entries that are valid now, and print why the others stay."""
    if len(arguments.words) != 2:
        raise UsageError(
            f"quarantine: expected retry STORE, got {' '.join(arguments.words)!r}; name one store"
        )
    store, path = arguments.words[1], arguments.text("config")
    if not path:
        raise UsageError(
            "quarantine retry: expected --config FILE, the config to read the events with, "
            "got nothing; name the config"
        )
    config = load_config(path)
    counted: list[Json] = []
    still: list[Json] = []
    n_counted = n_still = 0
    logs.to_stderr("text")
    with closing(Ledger.open(store)) as ledger, ExitStack() as stack:
        ledger.store.require_current()
        total = count_entries(ledger.store, ledger.generation().id).open
        update = stack.enter_context(progress.counted("retrying", "events", monotonic))
        for page in retry(config, ledger, now_ms=now_ms):
            n_counted += len(page.counted)
            n_still += len(page.still)
            update(n_counted + n_still, total)
            if arguments.is_on("json"):
                counted += [{**entry_json(entry), "done": True, "retry": page.retry}
                            for entry in page.counted]  # fmt: skip
                still += [_still_json(refusal) for refusal in page.still]
                continue
            for refusal in page.still:
                sys.stdout.write(f"{_line(refusal)}\n")
    if arguments.is_on("json"):
        document: dict[str, Json] = {
            "format": "streammetrics-retry/1",
            "counted": counted,
            "open": still,
        }
        sys.stdout.flush()
        sys.stdout.buffer.write(dumps(document))
        return 0
    if not n_counted and not n_still:
        sys.stdout.write("the quarantine has no open entries\n")
        return 0
    sys.stdout.write(
        f"{formatting.count(n_counted)} counted now, {formatting.count(n_still)} still open\n"
    )
    return 0


def _line(still: Still) -> str:
    entry = still.entry
    place = f"{formatting.name(entry.partition, 80)} offset {entry.offset}"
    if entry.index:
        place += f" event {entry.index}"
    where = f" in {formatting.name(still.field)}" if still.field else ""
    return f"{place}: {still.reason}{where}: {formatting.name(still.detail, 300)}"


def _still_json(still: Still) -> Json:
    return {
        **entry_json(still.entry),
        "reason_now": still.reason,
        "field_now": still.field,
        "detail_now": still.detail,
    }
