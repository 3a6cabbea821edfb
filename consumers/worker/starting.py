"""Where a log is read from that was not counted before."""

from __future__ import annotations

from collections.abc import Mapping

from consumers.sources.source import Partition, SeeksByTime, Source, Unsuitable
from consumers.worker.run_options import Options


def start_of(
    options: Options, source: Source, partition: Partition, ends: Mapping[Partition, int]
) -> int:
    """The offset that `options.start` means; Unsuitable where the source knows no times."""
    start = options.start
    if start == "beginning":
        return source.beginning(partition)
    if start == "latest":
        return ends.get(partition, 0)
    if isinstance(source, SeeksByTime):
        return source.offset_at(partition, start)
    raise Unsuitable("--from TIME: this source has no times of its own; use --from beginning")
