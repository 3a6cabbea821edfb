"""A broker whose process stands still: connections stay open and nothing is said, no exception is
raised and no record comes. /healthz says so, and says when it is over."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.counting import worker_status
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests.consumers.folded import counted, fold, records
from tests.consumers.small_config import toml
from tests.kafka_broker import Broker, Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S, until

pytestmark = [pytest.mark.faults, pytest.mark.kafka]

SOURCE = """\
kind = "kafka"
library = "{library}"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{group}"
[source.client]
session_timeout_ms = 1500
heartbeat_interval_ms = 300
{more}
"""
# How long each client waits on a connection where nothing is answered.
MORE = {"kafka-python": "request_timeout_ms = 2500", "confluent-kafka": "socket_timeout_ms = 2500"}
FETCH_LIMIT_S = 3.0
SILENT = "worker 0: the log has not answered for "


@dataclass
class Watching:
    """A worker of one library in a thread, and a server that says how it is."""

    topic: str
    url: str
    ledger: Ledger
    values: list[bytes | None]

    def is_counted(self, n: int) -> bool:
        return sum(head.next_offset for head in self.ledger.snapshot().heads) == n

    @property
    def health(self) -> tuple[int, str]:
        """What a probe is answered."""
        try:
            with urllib.request.urlopen(self.url + "healthz", timeout=LIMIT_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def until(self, reached: Callable[[], bool]) -> None:
        """Wait."""
        until(reached, lambda: self.health)


@contextmanager
def watching(folder: Path, bootstrap: str, library: str) -> Iterator[Watching]:
    topic = create_topic(bootstrap)
    config = config_of(folder, bootstrap, topic, library)
    watch, stop = StatusRecorder(time.monotonic), Stop()
    watched = WatchedWorkers(
        lambda: {"0": watch.snapshot()}, time.monotonic, time.time, fetch_limit_s=FETCH_LIMIT_S
    )
    thread = threading.Thread(
        target=service.run, args=(config, Options()), kwargs={"stop": stop, "status": watch}
    )
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        service.begin(ledger, config)
        thread.start()
        try:
            with serving(config.store.url, ServerConfig(port=0), watched) as url:
                yield Watching(topic, url, ledger, records(1, 200))
        finally:
            stop.request()
            thread.join()


def test_a_broker_that_stands_still_is_seen_by_a_probe_and_so_is_its_return(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_status, "ASK_S", 0.5)
    with ExitStack() as stack:
        workers = [
            stack.enter_context(watching(tmp_path, broker.bootstrap, library))
            for library in LIBRARIES
        ]
        for worker in workers:
            write(broker, worker.topic, worker.values[:100])
        for worker in workers:
            worker.until(
                lambda target=worker: target.is_counted(100) and target.health == (200, "ok\n")
            )
        with broker.standing_still():
            for worker in workers:
                worker.until(
                    lambda target=worker: target.health[0] == 503 and SILENT in target.health[1]
                )
        for worker in workers:
            worker.until(lambda target=worker: target.health[0] == 200)
            write(broker, worker.topic, worker.values[100:])
            worker.until(
                lambda target=worker: target.is_counted(200) and target.health == (200, "ok\n")
            )
            (head,) = worker.ledger.snapshot().heads
            assert counted(worker.ledger) == fold({head.partition: worker.values})


def config_of(folder: Path, bootstrap: str, topic: str, library: str) -> Config:
    source = SOURCE.format(
        library=library, bootstrap=bootstrap, topic=topic, group=unique_topic("group"),
        more=MORE[library],
    )  # fmt: skip
    path = folder / f"{library}.toml"
    rest = f'[store]\nurl = "{path.with_suffix(".db")}"\ncommit_interval_s = 0.1'
    path.write_text(toml(source=source, rest=rest), encoding="utf-8")
    return load_config(path)


def write(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    produce(broker.bootstrap, topic, [Record(value, key=b"k") for value in values])
