"""Checks before counting. Nothing here creates a file or changes a row.

require_options(config, options)   raise a usage error unless the options fit the source
check(config, options)             check the source and the store, and report in lines of text
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.tables import require_keyed
from streammetrics_consumers.counting.options import Options, require_no_loss, require_partitions
from streammetrics_consumers.counting.retention import KEEP_WINDOWS, windows_dropped
from streammetrics_consumers.ledger.closing import closing_heads
from streammetrics_consumers.ledger.failures import NoStoreYet, SettingsChanged
from streammetrics_consumers.ledger.ledger import Ledger, LogChanged, unknown_topics
from streammetrics_consumers.ledger.schema import VERSION
from streammetrics_consumers.ledger.store import shown
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.generation import Changes, experiment_name
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process.experiment_gates import gate_lines
from streammetrics_consumers.process.experiment_words import change_lines, first_lines
from streammetrics_consumers.sources import (
    Disconnected,
    GapError,
    Source,
    Unsuitable,
    compaction_warning,
)
from streammetrics_consumers.sources.open_source import (
    open_source,
    require_package,
    require_readable,
)

Opener = Callable[[Config, Options], Source]


def require_options(config: Config, options: Options, *, opener: Opener = open_source) -> None:
    """Raise Unsuitable if the source does not support the options, and SourceError if a file cannot
    be read.

    Kafka is only asked if the options name partitions. If it is unavailable, the check is left to
    the worker, since `run` waits for Kafka.
    """
    require_readable(config)
    require_package(config)
    if options.close and config.closing is None:
        raise Unsuitable(
            "--close: expected a config with [join] or [exposures], since it closes pending "
            "events, got one without; leave it out"
        )
    require_topics(config, options)
    if config.source.kind == "kafka":
        if options.partitions is not None:
            try:
                with closing(opener(config, options)) as source:
                    partitions = source.partitions()
            except Disconnected:
                return
            require_partitions(options.partitions, partitions)
        return
    if not isinstance(options.start, str):
        raise Unsuitable(
            f"--from: expected beginning or latest, since a {config.source.kind} has no record "
            "times, got a time; leave it out to read from the beginning"
        )
    if options.partitions is not None:
        path = config.source.path
        only = Partition("", "stdin" if path is None else path.name, "", 0)
        require_partitions(options.partitions, [only])
    if config.source.kind == "file":
        opener(config, options).close()


def require_topics(config: Config, options: Options) -> None:
    """Raise Unsuitable if `--skip` names a topic that is not read."""
    extras = {topic for topic, _, _ in options.skips.positions or ()} - {*config.source.topics}
    if extras:
        topics = ", ".join(config.source.topics) or f"no topic, since it is a {config.source.kind}"
        raise Unsuitable(
            f"--skip: expected a topic of the source, which reads {topics}, got "
            f"{', '.join(sorted(extras))}; correct it, or leave it out"
        )


def check(
    config: Config,
    options: Options,
    *,
    new_generation: bool = False,
    opener: Opener = open_source,
) -> list[str]:
    """Inspect the source and the store, and describe their contents and the effects of a run.

    Raises the errors that a run would raise before its first record.
    """
    lines = []
    logs: dict[Partition, tuple[int, int | None]] = {}
    with closing(opener(config, options)) as source:
        ends = source.ends()
        require_keyed(config.dedup, source.partitions())
        for partition in source.partitions():
            first, end = source.beginning(partition), ends.get(partition)
            logs[partition] = first, end
            lines.append(f"{partition}: offsets {first} to {'?' if end is None else end}")
        if not logs:
            lines.append("source: it has no complete record yet")
        warning = compaction_warning(source)
        if warning is not None:
            lines.append(f"warning: {warning}")
    store = f"store {shown(config.store.url)}"
    try:
        ledger = Ledger.open(config.store.url)
    except NoStoreYet:
        lines.append(f"{store}: it does not exist yet; a run creates it")
        return [*lines, *first_lines(config), *gate_lines(config, None)]
    with closing(ledger):
        if ledger.store.version < VERSION:
            lines.append(
                f"{store}: its schema has version {ledger.store.version}; a run migrates it to "
                f"version {VERSION}, and older versions of streammetrics then refuse it"
            )
        if new_generation:
            number = max((generation.id for generation in ledger.generations()), default=0)
            lines.append(f"{store}: a run starts generation {number + 1}")
            judged = gate_lines(config, ledger if number else None)
            return [*lines, *first_lines(config), *judged]
        begun = ledger.compare(config.fingerprints(), config.descriptions, options.requested)
        if begun is None:
            lines.append(f"{store}: nothing is counted yet")
            return [*lines, *first_lines(config), *gate_lines(config, None)]
        all_heads = closing_heads(ledger.store, begun.generation)
        heads = [head for head in all_heads if not head.is_join]
        added = unknown_topics(ledger.store, begun.generation, logs, new=options.new_source)
        dropped = windows_dropped(ledger, config)
        if dropped and not options.requested.drop_windows:
            raise SettingsChanged([dropped], KEEP_WINDOWS)
        judged = gate_lines(config, ledger, begun.generation)
    lines.append(f"{store}: generation {begun.generation.id}")
    lines += [dropped] if dropped else []
    lines += change_lines(config, begun.changes, all_heads)
    lines += _metric_lines(begun.changes)
    lines += [
        f"source {topic} of cluster {cluster}: new to the store; a run adds its events to the "
        "counts"
        for cluster, topic in added
    ]
    if not logs and options.on_gap == "stop":
        require_no_loss(config, heads)
    for head in heads:
        lines.append(f"{head.partition}: counted up to offset {head.next_offset}")
        _require_same(head, logs, options)
    return [*lines, *judged]


def _metric_lines(changes: Changes) -> list[str]:
    """A line for each change, but for those of experiments with names, which have their own."""
    own_epochs = {start for change in changes.experiments if change.name for start in change.epochs}
    plain = {start for change in changes.experiments if not change.name for start in change.epochs}
    return [
        template.format(name)
        for names, template in (
            (changes.added, "metric {}: new; it would start at the offsets reached so far"),
            (changes.ended, "metric {}: dropped; it would end at the offsets reached so far"),
            (
                changes.restarted,
                "metric {}: counted anew; a run drops its stored states, and it would start at the "
                "offsets reached so far",
            ),
            (
                changes.resumed,
                "metric {}: back in the config; it would resume at the offsets reached so far, "
                "with a hole before them",
            ),
            (
                changes.variants,
                "variant {}: new; a run counts it from the offsets reached so far, and "
                "`quarantine retry` counts its refused events",
            ),
            (changes.epochs, "epoch {}: new; the experiment continues with it"),
        )
        for name in names
        if not experiment_name(name.rpartition("/")[0]) and name not in own_epochs - plain
    ]


def _require_same(
    head: Head, logs: dict[Partition, tuple[int, int | None]], options: Options
) -> None:
    """Raise if the log of a head was replaced, or has lost the next records."""
    head_log = head.partition
    for partition, (first, end) in logs.items():
        if (partition.topic, partition.number) != (head_log.topic, head_log.number):
            continue
        if partition != head_log:
            if options.takes(head_log, partition):
                continue
            raise LogChanged(head, partition)
        if options.on_gap == "skip":
            continue
        if head.next_offset < first or (end is not None and head.next_offset > end):
            raise GapError(head_log, head.next_offset, first, first if end is None else end)
