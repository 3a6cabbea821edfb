"""A run over logs in memory, with many commits, and `verify` of what it has counted."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy import Connection
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.replay.scratch import Findings
from streammetrics_consumers.replay.verify import ALL, Wanted, verify

from tests.consumers.folded import records
from tests.consumers.memory_run import ONE, TWO, UNTIL_END, Run
from tests.consumers.memory_source import Deliver, Log, MemorySource
from tests.consumers.small_config import EVENT, event
from tests.consumers.stores import filled_once

CHUNKS = [Deliver(37)] * 200
WITH_C = EVENT.replace('["a", "b"]', '["a", "b", "c"]')
EACH = "[store]\ncommit_interval_s = 0.01"


def run_of(folder: Path, *, n: int = 400, **parts: str) -> Run:
    """A run with many commits over two logs."""
    logs = {ONE: Log(records(1, n)), TWO: Log(records(2, n // 2))}
    run = Run(folder, logs, rest=EACH, **parts)
    run.clock.tick_s = 0.02
    key = ("run_of", n, *sorted(parts.items()))
    filled_once(Path(run.config.store.url), key, lambda: run(UNTIL_END, CHUNKS))
    return run


def verified(
    run: Run,
    folder: Path,
    settings: Config | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
    selection: Wanted = ALL,
) -> Findings:
    """What `verify` finds, with a scratch store in a file of SQLite, as the command makes it."""

    def opener(config: Config, options: Options) -> MemorySource:
        partitions = [
            p for p in run.logs if options.partitions is None or p.is_named(options.partitions)
        ]
        return MemorySource({p: run.logs[p] for p in partitions}, CHUNKS)

    with (
        closing(Ledger.open(run.config.store.url)) as ledger,
        closing(Ledger.open(f"sqlite:///{folder}/{uuid.uuid4().hex}.db", create=True)) as scratch,
    ):
        return verify(settings or run.config, ledger, scratch, report=report, scope=selection,
                      monotonic=run.clock.monotonic, opener=opener)  # fmt: skip


def change(run: Run, action: Callable[[Connection], object]) -> None:
    with closing(Ledger.open(run.config.store.url)) as ledger:
        ledger.store.write(lambda connection, _: action(connection))


def tried(run: Run, settings: Config, *, page: int = 4) -> int:
    """Retry all, and answer how many were counted."""

    def opener(config: Config, options: Options) -> MemorySource:
        return MemorySource(run.logs)

    with closing(Ledger.open(run.config.store.url)) as ledger:
        pages = retry(settings, ledger, now_ms=lambda: 7, opener=opener, page=page)
        return sum(len(page.counted) for page in pages)


def with_others(folder: Path) -> Run:
    """A run with events of a variant that is not declared."""
    values: list[bytes | None] = list(records(3, 60))
    for i in range(10):
        values.insert(5 * i, event(f"2024-01-01T{i % 3:02d}:30:00Z", "c", i % 2))
    values.append(event(variant="c", user="u" * 9000))
    run = Run(folder, {ONE: Log(values)}, rest=EACH)
    run.clock.tick_s = 0.02
    filled_once(
        Path(run.config.store.url), ("with_others",), lambda: run(UNTIL_END, [Deliver(10)] * 20)
    )
    return run
