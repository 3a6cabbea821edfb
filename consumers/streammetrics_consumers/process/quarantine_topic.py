"""Forwarding refused events to the topic of `[quarantine] topic`, after their commit.

A separate thread reads unforwarded entries from the ledger, sends them, and marks them as
forwarded. Counting never waits for it: while the topic is unavailable, entries stay in the ledger,
also over a restart. So each entry arrives at least once; its key identifies it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Lock, Thread
from typing import Final, Protocol

from streammetrics_consumers.config.config import Config
from streammetrics_consumers.ledger.quarantine import mark_forwarded, not_forwarded
from streammetrics_consumers.ledger.store import Store
from streammetrics_consumers.model.commit import Head, QuarantineRow

log = logging.getLogger(__name__)

PAGE: Final = 500
LOOK_S: Final = 1.0
PAUSE_S: Final = 10.0  # after a failure
END_S: Final = 10.0  # to send the rest, when the run ends
Message = tuple[bytes, bytes, list[tuple[str, bytes]]]


class Sender(Protocol):
    """A destination of messages."""

    def send(self, messages: Sequence[Message]) -> None: ...
    def close(self) -> None: ...


class Forwarder:
    """Forwards the refused events of the logs that this process commits to."""

    def __init__(self, store: Store, opener: Callable[[], Sender]) -> None:
        self._store, self._opener = store, opener
        self._sender: Sender | None = None
        self._heads: set[int] = set()
        self._lock = Lock()

    def committed(self, head: Head) -> None:
        """Add a head that has moved: this process forwards its refused events."""
        with self._lock:
            self._heads.add(head.id)

    def forward(self, stop: Event) -> None:
        """Send all pending entries. Raises errors of the client or the store."""
        with self._lock:
            heads = set(self._heads)
        while heads and (entries := not_forwarded(self._store, heads, PAGE)):
            if self._sender is None:
                self._sender = self._opener()
            self._sender.send([message(entry) for entry in entries])
            mark_forwarded(self._store, entries)
            if stop.is_set():
                return

    def run(self, stop: Event, ended: Event) -> None:
        """Forward until `ended`, and then the rest, unless the topic is unavailable."""
        while True:
            last = ended.wait(LOOK_S)
            try:
                self.forward(stop)
            except Exception as error:  # no error of the client may affect counting
                log.warning("refused events cannot be forwarded, and stay in the ledger: %s", error)
                self.close()
                last = last or ended.wait(PAUSE_S)
                if last:
                    return
            if last:
                return

    def close(self) -> None:
        """Close the client."""
        sender, self._sender = self._sender, None
        if sender is not None:
            sender.close()


@contextmanager
def forwarding(
    config: Config, store: Store, opener: Callable[[], Sender] | None = None
) -> Iterator[Callable[[Head], None]]:
    """A callback for heads that have moved; refused events are forwarded during the block."""
    topic = config.quarantine.topic
    if topic is None:
        yield lambda head: None
        return

    def opened() -> Sender:
        if config.source.library == "confluent-kafka":
            from streammetrics_consumers.sources.kafka import confluent_client as by_librdkafka

            return by_librdkafka.ConfluentForwarding(config.source, topic)
        from streammetrics_consumers.sources.kafka import kafka_client as by_kafka_python

        return by_kafka_python.Forwarding(config.source, topic)

    forwarder = Forwarder(store, opener or opened)
    stop, ended = Event(), Event()
    thread = Thread(target=forwarder.run, args=(stop, ended), name="forward", daemon=True)
    thread.start()
    try:
        yield forwarder.committed
    finally:
        ended.set()
        thread.join(END_S)
        stop.set()
        forwarder.close()


def message(entry: QuarantineRow) -> Message:
    """An entry as a message: its location as the key, and the stored payload as the value."""
    log_, place = entry.partition, f"{entry.offset}/{entry.index}"
    key = f"{log_.cluster}/{log_.topic}/{log_.topic_id}/{log_.number}/{place}"
    fields = {
        "reason": entry.reason,
        "field": entry.field or "",
        "detail": entry.detail,
        "topic": log_.topic,
        "partition": str(log_.number),
        "offset": str(entry.offset),
        "index": str(entry.index),
        "size": str(entry.size),
        "sha256": entry.sha256,
    }
    return key.encode(), entry.payload, [(name, text.encode()) for name, text in fields.items()]
