"""Simulated events in messages that carry many of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Final

from consumers.sources.source import SourceError

Sink = Callable[[list[bytes]], None]


def ndjson(events: Sequence[bytes]) -> bytes:
    """A line for each event."""
    return b"\n".join(events) + b"\n"


def array(events: Sequence[bytes]) -> bytes:
    """A JSON array."""
    return b"[" + b",".join(events) + b"]"


def arrow(events: Sequence[bytes]) -> bytes:
    """An Arrow IPC stream of one record batch; its times are timestamps."""
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise SourceError(
            "writing Arrow needs the package pyarrow; "
            "install it with: pip install 'streammetrics[parquet]'"
        ) from None
    schema = pa.schema(
        [
            ("ts", pa.timestamp("ms", "UTC")),
            *((name, pa.string()) for name in ("variant", "user", "segment", "event_id")),
            *((name, pa.int64()) for name in ("item", "position", "label")),
            ("score", pa.float64()),
        ]
    )
    rows = [json.loads(event) for event in events]
    for row in rows:
        if "ts" in row:
            row["ts"] = datetime.fromisoformat(row["ts"])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


MESSAGES: Final[Mapping[str, Callable[[Sequence[bytes]], bytes]]] = {
    "ndjson": ndjson,
    "array": array,
    "arrow": arrow,
}


@contextmanager
def packed(out: Sink, format: str, size: int) -> Iterator[Sink]:
    """A sink of events that hands on messages of `size` of them, the last with the rest; events
    themselves where a message is one."""
    make = MESSAGES.get(format)
    if make is None:
        yield out
        return
    waiting: list[bytes] = []

    def send(events: list[bytes]) -> None:
        waiting.extend(events)
        while len(waiting) >= size:
            out([make(waiting[:size])])
            del waiting[:size]

    yield send
    if waiting:
        out([make(waiting)])
