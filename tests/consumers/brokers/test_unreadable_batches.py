"""A batch that becomes more than `[source] max_batch_bytes`, or that is damaged, ends the run with
its place and the setting after the events before it; `--skip` puts it into quarantine. Both clients
do so, and `verify` finds the same."""

from __future__ import annotations

import os
import resource
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from kafka import KafkaAdminClient
from kafka.record.memory_records import MemoryRecordsBuilder
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.commit import QuarantineRow
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.replay.retry import retry
from streammetrics_consumers.replay.verify import verify
from streammetrics_consumers.sources import Skips, UnreadableBatch

from tests.consumers import folded
from tests.consumers.small_config import config, toml
from tests.kafka_broker import create_topic
from tests.patience import LIMIT_S
from tests.requirements import absent

pytestmark = pytest.mark.kafka

GOOD = [value or b"" for value in folded.records(5, 20, broken_share=0)]
LIMIT = 1 << 20
BOMB = b'{"ts": "' + b"0" * (3 * LIMIT) + b'"}'


def source_of(kafka: str, topic: str, library: str) -> str:
    return (
        f'kind = "kafka"\nbootstrap_servers = "{kafka}"\ntopic = "{topic}"\ngroup = "{topic}"\n'
        f'library = "{library}"\nmax_batch_bytes = {LIMIT}'
    )


def configured(kafka: str, topic: str, library: str, tmp_path: Path) -> Config:
    run_config = config(source=source_of(kafka, topic, library))
    return replace(run_config, store=replace(run_config.store, url=str(tmp_path / f"{library}.db")))


def run(config: Config, *places: tuple[str, int, int]) -> None:
    options = Options(until_end=True, skips=Skips(frozenset(places)))
    service.run(config, options, stop=Stop())


def entries(config: Config) -> tuple[QuarantineRow, ...]:
    with closing(Ledger.open(config.store.url)) as ledger:
        return ledger.quarantine(is_done=None)


def head(config: Config) -> tuple[int, int, int]:
    """The next offset, the events that were read, and those that were refused."""
    with closing(Ledger.open(config.store.url)) as ledger:
        (partition_head,) = ledger.heads(ledger.generation())
    return (
        partition_head.next_offset,
        partition_head.counters.rows,
        partition_head.counters.quarantined,
    )


def logs_of(kafka: str) -> Path:
    """Where the broker keeps its logs."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka)) as admin:
        ((log_dir,),) = (broker["log_dirs"] for broker in admin.describe_log_dirs())
    folder = Path(log_dir["log_dir"])
    if not folder.is_dir():
        absent("kafka", f"the logs of {kafka} are not in {folder} of this machine")
    return folder


def differences(config: Config, tmp_path: Path) -> list[str]:
    url = str(tmp_path / "scratch.db")
    with (
        closing(Ledger.open(config.store.url)) as ledger,
        closing(Ledger.open(url, create=True)) as scratch,
    ):
        verification = verify(config, ledger, scratch, monotonic=lambda: 0.0)
    Path(url).unlink()
    assert verification.is_good or verification.count
    return verification.differences


@pytest.mark.parametrize(
    ("codec", "library"), [*zip(("gzip", "snappy", "lz4", "zstd"), 2 * LIBRARIES, strict=True)]
)
def test_a_batch_over_the_limit_ends_the_run_and_may_be_left_out(
    kafka: str, tmp_path: Path, codec: str, library: str
) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, batch(GOOD[:7], codec))
    offset = send(kafka, topic, batch([BOMB], codec))
    send(kafka, topic, batch(GOOD[7:], codec))
    run_config = configured(kafka, topic, library, tmp_path)
    with pytest.raises(UnreadableBatch) as caught:
        run(run_config)
    message = str(caught.value)
    assert f"{topic}/0 offset {offset}" in message
    assert f"more than {LIMIT} bytes after decompression ([source] max_batch_bytes" in message
    assert f"--skip {topic}/0:{offset}" in message
    assert head(run_config) == (offset, 7, 0)
    run(run_config, (topic, 0, offset))
    assert head(run_config) == (len(GOOD) + 1, len(GOOD) + 1, 1)
    (entry,) = entries(run_config)
    assert (entry.offset, entry.index, entry.reason) == (offset, 0, "unreadable")
    assert (entry.size, entry.payload, entry.record_ms) == (0, b"", None)
    assert (
        entry.detail == f"offsets {offset} to {offset} cannot be read, and were left out (--skip)"
    )
    (reader,) = {*LIBRARIES} - {library}  # it is the same to whichever reads the log again
    source = replace(run_config.source, library=reader, client={})
    assert differences(replace(run_config, source=source), tmp_path) == []


@pytest.mark.parametrize("library", LIBRARIES)
def test_of_a_batch_of_many_records_all_offsets_are_left_out(
    kafka: str, tmp_path: Path, library: str
) -> None:
    topic = create_topic(kafka)
    many = [b'{"x": "' + b"0" * 3000 + b'"}'] * 1001
    send(kafka, topic, batch(GOOD[:3], "zstd"))
    offset = send(kafka, topic, batch(many, "zstd"))
    send(kafka, topic, batch(many, "zstd"))
    send(kafka, topic, batch(GOOD[3:], "zstd"))
    run_config = configured(kafka, topic, library, tmp_path)
    for _ in range(2):  # a restart finds it again
        with pytest.raises(UnreadableBatch, match=f"offset {offset}:"):
            run(run_config)
    with pytest.raises(UnreadableBatch, match=f"offset {offset + 1001}:"):
        run(run_config, (topic, 0, offset))
    run(
        run_config, (topic, 0, offset), (topic, 0, offset + 1001), (topic, 0, 0)
    )  # which can be read
    assert [
        (entry.offset, entry.detail.partition(" cannot")[0]) for entry in entries(run_config)
    ] == [
        (offset, f"offsets {offset} to {offset + 1000}"),
        (offset + 1001, f"offsets {offset + 1001} to {offset + 2001}"),
    ]
    assert head(run_config) == (len(GOOD) + 2002, len(GOOD) + 2, 2)
    assert differences(run_config, tmp_path) == []


def test_a_damaged_batch_may_be_left_out(kafka: str, tmp_path: Path) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, batch(GOOD[:7], "none"))
    offset = send(kafka, topic, batch([b"damaged here"] * 5, "none"))
    send(kafka, topic, batch(GOOD[7:], "none"))
    end = send(kafka, topic, batch([b"damaged last"] * 3, "none"))
    (log,) = (logs_of(kafka) / f"{topic}-0").glob("*.log")
    with log.open("r+b") as file:  # a broker sends what its file holds, and does not look at it
        for good, damaged in (
            (b"damaged here", b"damaged HERE"),
            (b"damaged last", b"damaged LAST"),
        ):
            file.seek(log.read_bytes().index(good))
            file.write(damaged)
    for library in LIBRARIES:
        run_config = configured(kafka, topic, library, tmp_path)
        with pytest.raises(UnreadableBatch, match=f"{topic}/0 offset {offset}"):
            run(run_config)
        assert head(run_config) == (offset, 7, 0)
        run(run_config, (topic, 0, offset), (topic, 0, end))
        entry, last = entries(run_config)
        assert (entry.offset, entry.reason) == (offset, "unreadable")
        assert entry.detail.startswith(f"offsets {offset} to {offset + 4} cannot be read")
        assert last.detail.startswith(f"offsets {end} to {end + 2} cannot be read")
        assert head(run_config) == (end + 3, len(GOOD) + 2, 2)
        assert differences(run_config, tmp_path) == []


def test_a_retry_says_how_a_batch_that_was_left_out_is_counted(kafka: str, tmp_path: Path) -> None:
    topic = create_topic(kafka)
    send(kafka, topic, batch([BOMB], "zstd"))
    run_config = configured(kafka, topic, LIBRARIES[0], tmp_path)
    run(run_config, (topic, 0, 0))
    larger_config = replace(run_config, source=replace(run_config.source, max_batch_bytes=64 << 20))
    with closing(Ledger.open(run_config.store.url)) as ledger:
        (page,) = retry(larger_config, ledger, now_ms=lambda: 0)
    (still,) = page.still
    assert not page.counted and still.reason == "unreadable"
    assert "max_batch_bytes" in still.detail


def test_kafka_python_reads_past_a_bomb_in_bounded_memory(kafka: str, tmp_path: Path) -> None:
    """300 MB in a few kilobytes, under a limit of memory."""
    topic = create_topic(kafka)
    send(kafka, topic, batch(GOOD, "none"))
    offset = send(kafka, topic, batch([b"0" * (300 << 20)], "zstd"))
    send(kafka, topic, batch(GOOD, "none"))
    path = tmp_path / "config.toml"
    run_config = configured(kafka, topic, "kafka-python", tmp_path)
    path.write_text(toml(source=source_of(kafka, topic, "kafka-python"),
                         rest=f'[store]\nurl = "{run_config.store.url}"'))  # fmt: skip
    command = [
        sys.executable,
        "-m",
        "streammetrics_consumers.cli",
        "run",
        str(path),
        "--until-end",
        "--no-serve",
    ]
    limit = 320 << 20  # of which the program itself takes a third

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    ended = subprocess.run(
        [*command, f"--skip={topic}/0:{offset}"], capture_output=True, text=True,
        check=False, preexec_fn=limited, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr


# -- batches made by hand, sent to a broker as they are

CODECS: Final = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
NOT_YET: Final = (3, 5, 6)  # a topic that was just made: no partition, no leader, another leader


def batch(values: Sequence[bytes], codec: str) -> bytes:
    """A batch (magic 2) of these values."""
    builder = MemoryRecordsBuilder(2, CODECS[codec], 1 << 30)
    for i, value in enumerate(values):
        builder.append(timestamp=1_720_000_000_000 + i, key=None, value=value)
    builder.close()
    return bytes(builder.buffer())


def send(bootstrap: str, topic: str, records: bytes, partition: int = 0) -> int:
    """Write a batch, and answer the offset of its first record."""
    name = topic.encode()
    body = struct.pack(">hhi", -1, 1, 10_000)  # no transaction, one acknowledgement
    body += struct.pack(f">ih{len(name)}sii", 1, len(name), name, 1, partition)
    body += struct.pack(">i", len(records)) + records
    request = struct.pack(">hhih", 0, 7, 7, -1) + body  # Produce, version 7, no client id
    host, _, port = bootstrap.split(",")[0].rpartition(":")
    error, offset = -1, -1
    for attempt in range(1_000):
        time.sleep(0.1 if attempt else 0)
        with socket.create_connection((host, int(port)), timeout=LIMIT_S) as link:
            link.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))
            answer = link.recv(size, socket.MSG_WAITALL)
        error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
        if error not in NOT_YET:
            break
    assert error == 0, f"the broker refuses the batch: error {error}"
    return int(offset)
