"""How Kafka sources fail, and that they leave no thread and no file behind."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from threading import Event
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message
from kafka import KafkaProducer
from kafka.protocol.metadata import MetadataRequest
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.sources import Disconnected, NotLetIn
from streammetrics_consumers.sources.kafka import confluent_client, confluent_source, kafka_client
from streammetrics_consumers.sources.kafka.kafka_client import (
    Client,
    Forwarding,
    connected,
    producing,
)

from tests.consumers.sources.kafka.kafka_reader import (
    Library,
    Reader,
    descriptors,
    read_to_end,
    threads,
)
from tests.kafka_broker import Broker, Record, create_topic, produce
from tests.patience import until
from tests.ports import free_ports


def left_none(threads_before: int, descriptors_before: int) -> None:
    """Wait for threads and files that end on their own, of earlier tests too."""
    until(
        lambda: threads() <= threads_before and descriptors() <= descriptors_before,
        lambda: (threads(), threads_before, descriptors(), descriptors_before),
    )


@pytest.mark.faults
def test_tries_to_reach_no_broker_leave_no_threads_and_no_files(library: Library) -> None:
    (port,) = free_ports(1)
    gc.collect()  # what tests before left closes now, and not while these are counted
    before = threads(), descriptors()
    for _ in range(3):
        with pytest.raises(Disconnected, match="no broker answers"):
            library.source(library.config(f"127.0.0.1:{port}", "clicks"))
    left_none(*before)


class Blocked:
    """A client that closes when it is released."""

    def __init__(self, released: Event) -> None:
        self.released = released

    def close(self) -> None:
        self.released.wait()


def test_a_client_that_blocks_while_it_closes_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(confluent_client, "CLOSE_S", 0.01)
    released = Event()
    confluent_client.close(cast(Consumer, Blocked(released)))
    assert [record.getMessage() for record in caplog.records] == [
        "the client did not close within 0.01 s, and is abandoned"
    ]
    released.set()


@pytest.mark.faults
def test_someone_who_listens_and_does_not_answer_is_away(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (confluent_source, kafka_client):
        monkeypatch.setattr(module, "CONNECT_S", 0.5)
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(Disconnected):  # and the next try may help
            library.source(library.config(bootstrap, "clicks"))


@pytest.mark.faults
def test_a_source_that_is_closed_leaves_no_threads_and_no_files(
    library: Library, kafka: str, clicks: str
) -> None:
    before = threads(), descriptors()
    for _ in range(2):
        with library.opened(kafka, clicks) as source:
            source.assign(Reader())
            read_to_end(source)
    left_none(*before)


@pytest.mark.faults
@pytest.mark.parametrize(("turns", "late"), [(0, False), (1, False), (0, True)])
def test_a_client_that_is_closed_while_a_request_waits_to_be_written_leaves_no_file(
    kafka: str, monkeypatch: pytest.MonkeyPatch, turns: int, late: bool
) -> None:
    gc.collect()  # what tests before left closes now, and not while these are counted
    before = threads(), descriptors()
    client = connected({"bootstrap_servers": [kafka]}, [kafka])
    (node,) = client.cluster.brokers()
    client.await_ready(node.node_id)

    def ask() -> None:
        client.send(node.node_id, MetadataRequest(topics=None))

    if late:
        client._net.call_soon(ask)
    else:
        ask()
    for _ in range(turns):
        client.poll(timeout_ms=0)
    # As where its thread was told to end just before it would have written.
    monkeypatch.setattr(client._net, "drain", lambda: None)
    client.close()
    left_none(*before)


@pytest.mark.faults
def test_what_writes_to_kafka_is_closed_whole_too(
    kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KafkaProducer.DEFAULT_CONFIG, "kafka_client", None)  # it has to be given
    name = create_topic(kafka)
    with closing(Forwarding(Library("kafka-python").config(kafka, name), name)) as forwarding:
        forwarding.send([(b"k", b"refused", [])])
    with producing(kafka, name) as send:
        send([b"simulated"])


def test_a_client_hears_what_is_said_just_before_a_connection_ends() -> None:
    class Heard:
        _sensors = None

        def __init__(self) -> None:
            self.said: list[bytes | str] = []

        def data_received(self, data: bytes) -> None:
            self.said.append(data)

        def connection_lost(self, error: Exception) -> None:
            self.said.append(str(error))

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        host, port = server.getsockname()
        client = Client(bootstrap_servers=[f"{host}:{port}"])
        (node,) = client.cluster.bootstrap_brokers()
        transport = client._net.run(client._manager._build_transport, node)
        with server.accept()[0] as connection:
            connection.sendall(b"the password is wrong")
    heard = Heard()
    transport.set_protocol(heard)
    transport.resume_reading()

    def is_heard() -> bool:
        client.poll(timeout_ms=10)
        return len(heard.said) == 2

    until(is_heard, lambda: heard.said, pause_s=0.0)
    client.close()
    assert heard.said == [b"the password is wrong", "KafkaConnectionError: socket disconnected"]


@pytest.mark.faults
def test_a_failed_poll_says_whether_another_try_may_help(kafka: str, clicks: str) -> None:
    from kafka import errors

    with Library("kafka-python").opened(kafka, clicks) as source:
        source.assign(Reader())
        for error, kind in (
            (errors.KafkaConnectionError("away"), Disconnected),
            (errors.TopicAuthorizationFailedError({clicks}), NotLetIn),
            (errors.CorruptRecordError("topic t partition 0 offset 5"), SourceError),
            (RuntimeError("the client's thread is gone"), Disconnected),
        ):
            source._consumer.poll = raising(error)
            with pytest.raises(SourceError) as caught:
                source.poll(0.0)
            assert type(caught.value) is kind


@pytest.mark.faults
@pytest.mark.parametrize("comes", ["as an exception", "among the records", "beside them"])
def test_an_error_of_librdkafka_says_whether_another_try_may_help(
    kafka: str, clicks: str, comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library("confluent-kafka").opened(kafka, clicks) as source:
        source.assign(Reader())
        for code, kind in (
            (KafkaError._TRANSPORT, Disconnected),
            (KafkaError.TOPIC_AUTHORIZATION_FAILED, NotLetIn),
            (KafkaError._SSL, SourceError),
            (KafkaError.UNKNOWN_TOPIC_OR_PART, Disconnected),
        ):
            error = KafkaError(code, "away")
            source._consumer, source._wrong = Failing(source, error, comes), None
            if comes == "beside them" and kind is Disconnected:
                assert source.poll(0.0) == []  # a connection recovers by itself
                continue
            with pytest.raises(SourceError, match="away") as caught:
                source.poll(0.0)
            assert type(caught.value) is kind


class Failing:
    """A consumer whose next records are an error."""

    def __init__(self, source: Any, error: KafkaError, comes: str) -> None:
        self.source, self.error, self.comes = source, error, comes

    def consume(self, *_: object) -> list[Message]:
        if self.comes == "as an exception":
            raise KafkaException(self.error)
        if self.comes == "among the records":
            return [Message("t", 0, 5, error=self.error)]
        self.source._on_error(self.error)
        return []

    def close(self) -> None:
        """Nothing is held."""


def raising(error: Exception) -> Callable[..., object]:
    def poll(**_: object) -> object:
        raise error

    return poll


@pytest.mark.faults
@pytest.mark.kafka
def test_a_broker_that_is_killed_and_started_again_is_read_on_by_both_libraries(
    broker: Broker,
) -> None:
    name = create_topic(broker.bootstrap)
    produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10)])
    with ExitStack() as stack:
        # librdkafka joins again only when its session is over.
        timeouts = {"kafka-python": 10_000, "confluent-kafka": 6_000}
        sources = []
        for library in map(Library, LIBRARIES):
            opened = library.opened(
                broker.bootstrap, name, session_timeout_ms=timeouts[library.name]
            )
            sources.append(stack.enter_context(opened))
        arrivals: list[list[bytes | None]] = []
        readers = [Reader() for _ in sources]
        for source, reader in zip(sources, readers, strict=True):
            source.assign(reader)
            arrivals.append([v for chunk in read_to_end(source) for v in chunk.values])
            reader.heads = {0: 10}
        broker.kill()
        before = threads()
        for _ in range(5):
            assert [source.poll(0.2) for source in sources] == [[], []]  # they wait
        broker.start()
        produce(broker.bootstrap, name, [Record(b"%d" % i) for i in range(10, 20)])

        def is_read() -> bool:
            for source, reader, come in zip(sources, readers, arrivals, strict=True):
                come += [v for chunk in source.poll(0.2) for v in chunk.values]
                reader.heads = {0: len(come)}  # its session may end again on a busy machine
            return min(map(len, arrivals)) == 20

        until(is_read, lambda: arrivals)
        assert threads() < before + 5  # one that each try left would make five more
    assert arrivals == [[b"%d" % i for i in range(20)]] * 2
