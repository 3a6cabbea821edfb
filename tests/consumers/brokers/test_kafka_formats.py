"""Messages of every format and codec through a real broker, against a fold over their events."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaProducer
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import SourceError
from streammetrics_consumers.model.commit import Head
from streammetrics_consumers.model.partition import Partition
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.sources import Disconnected
from streammetrics_consumers.sources.open_source import require_package

from tests.consumers import folded
from tests.consumers.messages import records
from tests.consumers.small_config import EVENT, config, event
from tests.kafka_broker import create_topic
from tests.patience import LIMIT_S

pytestmark = pytest.mark.kafka

BAD = (event(label=2), event(variant="z"), event(score="null"))
GOOD = folded.records(7, 1200, broken_share=0)
EVENTS = [BAD[i // 60 % 3] if i % 60 == 7 else value or b"" for i, value in enumerate(GOOD)]
LOG = Partition("test", "events", "id", 0)
WHOLE = folded.fold({LOG: EVENTS})


def kafka_config(
    kafka: str, topic: str, folder: Path, format: str, library: str, roles: str
) -> Config:
    source = (
        f'kind = "kafka"\nbootstrap_servers = "{kafka}"\ntopic = "{topic}"\ngroup = "{topic}"\n'
        f'format = "{format}"\nlibrary = "{library}"'
    )
    run_config = config(source=source, event=roles)
    return replace(run_config, store=replace(run_config.store, url=str(folder / "store.db")))


def send(
    kafka: str,
    topic: str,
    values: list[bytes | None],
    codec: str | None = None,
) -> None:
    producer = KafkaProducer(
        bootstrap_servers=kafka, compression_type=codec, linger_ms=50, acks="all"
    )
    with closing(producer):
        for value in values:
            # A record of kafka-python has a key or a value.
            key = b"k" if value is None else None
            producer.send(topic, value, key=key, timestamp_ms=1_704_078_000_000)
        producer.flush(timeout=LIMIT_S)


def counted(run_config: Config) -> tuple[Head, folded.Counted]:
    service.run(run_config, Options(until_end=True), stop=Stop())
    with closing(Ledger.open(run_config.store.url)) as ledger:
        (head,) = ledger.snapshot().heads
        return head, folded.counted(ledger)


# Each codec with the library that test_unreadable_batches.py does not have it with; what a message
# holds is nothing to a library.
@pytest.mark.parametrize(
    ("format", "codec", "library"),
    [
        ("json", "gzip", "confluent-kafka"),
        ("ndjson", "snappy", "kafka-python"),
        ("array", "lz4", "confluent-kafka"),
        ("arrow", "zstd", "kafka-python"),
    ],
)
def test_every_format_and_codec_counts_what_the_events_say(
    kafka: str, tmp_path: Path, format: str, codec: str | None, library: str
) -> None:
    topic = create_topic(kafka, 1)
    values: list[bytes | None] = [*records(format, EVENTS, range(0, 1200, 180))]
    values[2:2] = [None, None]
    send(kafka, topic, values, codec)
    head, counts = counted(kafka_config(kafka, topic, tmp_path, format, library, EVENT))
    assert counts.states == WHOLE.states
    assert head.next_offset == len(values)
    assert head.greatest_event_ms == WHOLE.heads[LOG][1]
    whole = WHOLE.counters[LOG]
    got = head.counters
    assert (got.rows, got.late, got.quarantined) == (whole.rows, whole.late, whole.quarantined)


def test_a_missing_codec_is_named_with_the_extra_that_brings_it(
    kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = create_topic(kafka, 1)
    send(kafka, topic, [event()] * 10, "snappy")
    monkeypatch.setattr("kafka.codec.snappy", None)
    run_config = kafka_config(kafka, topic, tmp_path, "json", "kafka-python", EVENT)
    with pytest.raises(SourceError, match=r"snappy.*pip install '\.\[kafka\]'") as error:
        service.run(run_config, Options(until_end=True), stop=Stop())
    assert not isinstance(error.value, Disconnected)


def test_arrow_needs_a_package_and_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streammetrics_consumers.sources.open_source.find_spec", lambda name: None)
    run_config = kafka_config("h:1", "t", tmp_path, "arrow", "kafka-python", EVENT)
    with pytest.raises(SourceError, match=r"pyarrow.*'\.\[kafka,parquet\]'"):
        require_package(run_config)
