"""Writing a simulated stream to a file, stdout, or Kafka topics, whose messages may contain many
events; at a given rate, or as fast as possible."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import urlsplit

from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.simulate.exposures_simulation import KINDS
from streammetrics_consumers.simulate.joined_simulation import is_outcome
from streammetrics_consumers.simulate.stream import LIST, Format

Sink = Callable[[list[bytes]], None]


class Stream(Protocol):
    """A simulated stream of `events` events."""

    @property
    def events(self) -> int: ...

    @property
    def format(self) -> Format: ...

    def header(self) -> bytes | None:
        """The first line of a CSV stream."""
        ...

    def batches(self) -> Iterator[list[bytes]]:
        """The events, a few thousand at a time, each a record without line end."""
        ...


def ndjson(events: Sequence[bytes]) -> bytes:
    """One line per event."""
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
            "install it with: pip install '.[parquet]' in a clone of streammetrics"
        ) from None
    rows = [json.loads(event) for event in events]
    texts = ["variant", "user", "segment", "event_id", *[LIST] * any(LIST in row for row in rows)]
    schema = pa.schema(
        [
            ("ts", pa.timestamp("ms", "UTC")),
            *((name, pa.string()) for name in texts),
            *((name, pa.int64()) for name in ("item", "position", "label")),
            ("score", pa.float64()),
        ]
    )
    for row in rows:
        if "ts" in row:
            row["ts"] = datetime.fromisoformat(row["ts"])
    batch = pa.RecordBatch.from_pylist(rows, schema=schema)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


MOST_S: Final = 1e9  # of one pause, 31 years: the clock refuses much longer ones
MESSAGES: Final[Mapping[str, Callable[[Sequence[bytes]], bytes]]] = {
    "ndjson": ndjson,
    "array": array,
    "arrow": arrow,
}


def write(
    simulation: Stream,
    where: str,
    rate: float | None,
    report: Callable[[Progress], None],
    monotonic: Callable[[], float],
    batch_events: int = 1000,
) -> None:
    """Write a stream to a path, `-`, or `kafka://HOST[:PORT]/TOPIC`. With two topics, the second
    receives clicks and purchases; with four, each has a kind of events, exposures first.

    rate: events per second; a batch is cut to the events of a tenth of a second. batch_events:
    events per message, in formats with many events per message.
    """
    started_s, rows = monotonic(), 0
    with _sinks(where, simulation.format, batch_events) as sink:
        header = simulation.header()
        if header is not None:
            sink([header])
        for batch in _paced(simulation, rate, monotonic):
            sink(batch)
            rows += len(batch)
            report(Progress(rows, monotonic() - started_s, simulation.events - rows))


def _paced(
    simulation: Stream, rate: float | None, monotonic: Callable[[], float]
) -> Iterator[list[bytes]]:
    if rate is None:
        yield from simulation.batches()
        return
    step = max(int(rate / 10), 1)
    started_s, sent = monotonic(), 0
    for batch in simulation.batches():
        for start in range(0, len(batch), step):
            piece = batch[start : start + step]
            yield piece
            sent += len(piece)
            time.sleep(min(max(started_s + sent / rate - monotonic(), 0), MOST_S))


@contextmanager
def _sinks(where: str, format: str, batch_events: int) -> Iterator[Sink]:
    """A sink of events that distributes them to the topics."""
    topics = where.split(",") if where.startswith("kafka://") else [where]
    server = topics[0].rpartition("/")[0]
    places = [topics[0], *(f"{server}/{topic}" for topic in topics[1:])]
    with ExitStack() as stack:
        sinks = [
            stack.enter_context(packed(stack.enter_context(_sink(position)), format, batch_events))
            for position in places
        ]

        place_of = _place_of_kind if len(sinks) == len(KINDS) else is_outcome

        def send(events: list[bytes]) -> None:
            parts: list[list[bytes]] = [[] for _ in sinks]
            for event in events:
                parts[place_of(event)].append(event)
            for sink, part in zip(sinks, parts, strict=True):
                sink(part)

        yield sinks[0] if len(sinks) == 1 else send


def _place_of_kind(line: bytes) -> int:
    """The place of the kind of an event in KINDS; that of broken ones is the first."""
    kind = line[9:].partition(b'"')[0].decode("utf-8", "replace")
    return KINDS.index(kind) if kind in KINDS else 0


@contextmanager
def _sink(where: str) -> Iterator[Sink]:
    if where.startswith("kafka://"):
        from streammetrics_consumers.sources.kafka.kafka_client import producing

        parts = urlsplit(where)
        with producing(parts.netloc, parts.path.strip("/")) as send:
            yield send
    elif where == "-":
        yield _lines(sys.stdout.buffer.write, sys.stdout.buffer.flush)
    else:
        with Path(where).open("wb") as file:
            yield _lines(file.write, file.flush)


def _lines(out: Callable[[bytes], object], flush: Callable[[], object]) -> Sink:
    def send(batch: list[bytes]) -> None:
        out(b"".join(line + b"\n" for line in batch))
        flush()

    return send


@contextmanager
def packed(out: Sink, format: str, size: int) -> Iterator[Sink]:
    """A sink of events that writes messages of `size` events, and the rest in the last message; or
    the events themselves, if the format has one event per message."""
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
