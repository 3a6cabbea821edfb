"""Batches that librdkafka cannot read: which of its errors say so, and where such a batch ends.

The library names the first offset of a batch that it cannot decompress or whose checksum is wrong,
and nothing else of it. A broker that is asked for any offset of a batch sends all of it, so the
batch ends before the first offset at which the library finds no fault, or another one. Zstandard
is decompressed up to `receive.message.max.bytes`, the other codecs whatever they become, so a
record of gzip, LZ4 or Snappy that is over the limit is refused here, when it is there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import KafkaError, Message, TopicPartition

from consumers.sources.confluent_source.client import ask, explained, made
from consumers.sources.source import Disconnected, over_limit
from consumers.sources.topic_reading import Place

UNREADABLE: Final = frozenset(["_BAD_COMPRESSION", "_BAD_MSG", "INVALID_MSG", "_NOT_IMPLEMENTED"])
PROBE_S: Final = 0.5
PROBES: Final = 30


@dataclass(frozen=True, slots=True)
class Fault:
    """A batch that begins at offset `base` and cannot be read. last: its last offset, if known."""

    base: int
    came: str
    last: int | None = None


def fault_of(error: KafkaError, offset: int, limit: int) -> Fault:
    """What an error that stands among the records says."""
    came = "one that librdkafka cannot decompress or read: it is damaged, or "
    return Fault(offset, f"{came}{over_limit(limit)}; it says {error.name()}: {error.str()}")


def first_too_large(messages: Sequence[Message], limit: int) -> int | None:
    """The index of the first record that is over the limit by itself."""
    sizes = [len(message.value() or b"") for message in messages]
    if max(sizes, default=0) <= limit:
        return None
    return next(i for i, size in enumerate(sizes) if size > limit)


def last_of(settings: Mapping[str, str], place: Place, base: int, first: int, end: int) -> int:
    """The last offset of the batch that begins at `base` and cannot be read, in a log that ends at
    `end`. `first` is one of its offsets. Raises SourceError."""
    inside, step = first, 1
    while inside + step < end and _is_faulty(settings, place, base, inside + step):
        inside, step = inside + step, 2 * step
    outside = min(inside + step, end)
    while outside - inside > 1:
        middle = (inside + outside) // 2
        if _is_faulty(settings, place, base, middle):
            inside = middle
        else:
            outside = middle
    return inside


def _is_faulty(settings: Mapping[str, str], place: Place, base: int, offset: int) -> bool:
    """Whether what a broker sends for this offset is that batch. A client that has met one with
    another checksum reads on anywhere, so each offset is asked for by a client of its own."""
    consumer = made(settings, lambda error: None)
    try:
        consumer.assign([TopicPartition(*place, offset)])
        for _ in range(PROBES):
            for message in ask(lambda: consumer.consume(1, PROBE_S)):
                error = message.error()
                if error is None or error.name() == "_PARTITION_EOF":
                    return False
                if error.name() in UNREADABLE:
                    return message.offset() == base
                raise explained(error)
    finally:
        consumer.close()
    raise Disconnected(f"kafka: the broker does not answer for {place[0]}/{place[1]}")
