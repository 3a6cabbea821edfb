"""The command that tries refused events again: `streammetrics quarantine retry STORE`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack, closing

from consumers.cli import logs, progress
from consumers.cli.arguments import Arguments, UsageError
from consumers.config.config import load_config
from consumers.ledger.ledger import Ledger
from consumers.ledger.retry import count_entries
from consumers.render import formatting
from consumers.results.answers import Json, dumps
from consumers.results.quarantine import entry_json
from consumers.worker.retry import Still, retry


def retry_quarantine(
    arguments: Arguments, now_ms: Callable[[], int], monotonic: Callable[[], float]
) -> int:
    """Count what is good by now, and say of the rest why it stays."""
    if len(arguments.words) != 2:
        raise UsageError(
            f"quarantine: expected retry STORE, came {' '.join(arguments.words)!r}; name one store"
        )
    store, path = arguments.words[1], arguments.text("config")
    if not path:
        raise UsageError(
            "quarantine retry: expected --config FILE, which says how to read the events now, "
            "came nothing; name the config"
        )
    config = load_config(path)
    counted: list[Json] = []
    still: list[Json] = []
    n_counted = n_still = 0
    logs.to_stderr("text")
    with closing(Ledger.open(store)) as ledger, ExitStack() as stack:
        left = count_entries(ledger.store, ledger.generation().id).open
        report = stack.enter_context(progress.counted("trying", "events", left, monotonic))
        for page in retry(config, ledger, now_ms=now_ms):
            n_counted += len(page.counted)
            n_still += len(page.still)
            report(n_counted + n_still)
            if arguments.on("json"):
                counted += [{**entry_json(one), "done": True, "retry": page.retry}
                            for one in page.counted]  # fmt: skip
                still += [_still_json(one) for one in page.still]
                continue
            for one in page.still:
                sys.stdout.write(f"{_line(one)}\n")
    if arguments.on("json"):
        document: dict[str, Json] = {
            "format": "streammetrics-retry/1",
            "counted": counted,
            "open": still,
        }
        sys.stdout.flush()
        sys.stdout.buffer.write(dumps(document))
        return 0
    if not n_counted and not n_still:
        sys.stdout.write("nothing is open in quarantine\n")
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
