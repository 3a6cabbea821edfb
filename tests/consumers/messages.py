"""Events laid into messages of each format, and what a config that reads them counts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.delta import Delta
from streammetrics_consumers.events.decoder import Decoder
from streammetrics_consumers.ledger.delta_metadata import summed
from streammetrics_consumers.model.chunk import Chunk

from streammetrics import PerKey
from tests.consumers.small_config import LOG, config

KAFKA = 'kind = "kafka"\nbootstrap_servers = "h:1"\ntopic = "t"\ngroup = "g"'
FORMATS = ("json", "ndjson", "array", "arrow")
TEXTS = ("json", "ndjson", "array")


def of_format(format: str, **parts: str) -> Config:
    """The small config, or one with parts replaced, for messages of a format."""
    return config(source=f'{KAFKA}\nformat = "{format}"', **parts)


def message(format: str, events: Sequence[bytes]) -> bytes:
    """One message that carries these events, which are JSON."""
    if format == "array":  # `[]` has no event: one that is empty and alone is an empty message
        return b"[" + b",".join(events) + b"]" if [*events] != [b""] else b""
    if format == "arrow":
        return arrow([json.loads(event) for event in events])
    return b"\n".join(events) + (b"\n" if format == "ndjson" else b"")


def arrow(rows: Sequence[dict[str, object]], **options: object) -> bytes:
    """Rows as an Arrow stream; options are those of IpcWriteOptions."""
    return stream(pa.RecordBatch.from_pylist(list(rows)), **options)


def stream(*batches: pa.RecordBatch, **options: object) -> bytes:
    """Record batches of one schema as an Arrow stream."""
    sink = pa.BufferOutputStream()
    options_ = pyarrow.ipc.IpcWriteOptions(**options)
    with pyarrow.ipc.new_stream(sink, batches[0].schema, options=options_) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def records(format: str, events: Sequence[bytes], cuts: Sequence[int]) -> list[bytes]:
    """The events in messages that begin at these places."""
    if format == "json":
        return list(events)
    positions = sorted({0, len(events), *(cut for cut in cuts if cut < len(events))})
    return [message(format, events[a:b]) for a, b in pairwise(positions)]


def in_chunks(values: Sequence[bytes | None], cuts: Sequence[int]) -> list[Chunk]:
    """Messages from offset 0 on, in chunks that begin at these places."""
    positions = sorted({0, len(values), *(cut for cut in cuts if cut < len(values))})
    return [
        Chunk(LOG, a, b, range(a, b), list(values[a:b]), [2**50] * (b - a))
        for a, b in pairwise(positions)
    ]


def counted(settings: Config, chunks: Sequence[Chunk]) -> Delta:
    """The delta of these chunks."""
    delta, decoder = Delta(settings, LOG, 0), Decoder(settings)
    for chunk in chunks:
        for decoded in decoder.pieces(chunk):
            delta.add(decoded)
    return delta


def digests(delta: Delta) -> dict[object, bytes]:
    """The bytes of each state."""
    return {shard[:4]: shard.state.to_bytes() for shard in states_of(delta)}


def positions(delta: Delta) -> list[tuple[int, int, str]]:
    """Where each refused event stands, and why it is refused."""
    return [(entry.offset, entry.index, entry.reason) for entry in delta.quarantine]


class PaneState(NamedTuple):
    """The whole state of a pane."""

    metric: str
    grouping: int
    start_ms: int | None
    end_ms: int | None
    state: PerKey


def states_of(delta: Delta) -> Iterator[PaneState]:
    """The states that a delta would store, also those that another one could stand for."""
    for metric in delta.states.metric_states() if delta.has_states else ():
        slices, whole, base = metric.metric_set.slices, metric.state(), metric.grouping
        for place in (base, *metric.coarser):
            state = whole if place == base else summed(whole, slices.by, base, place)
            for start_ms, end_ms in metric.spans:
                limited = state.limited(slices.max_keys)
                yield PaneState(metric.name, place, start_ms, end_ms, limited)
