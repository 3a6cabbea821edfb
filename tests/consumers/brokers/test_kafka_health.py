"""A broker whose process stands still: connections stay open and nothing is said, no exception is
raised and no record comes. /healthz says so, and says when it is over."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.config import Config, load_config
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.counting import worker_status
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop
from streammetrics_consumers.server.health import Watched
from streammetrics_consumers.server.process import serving

from tests.consumers.folded import counted, fold, records
from tests.consumers.small_config import toml
from tests.kafka_broker import Broker, Record, create_topic, produce, unique_topic

pytestmark = [pytest.mark.slow, pytest.mark.kafka, pytest.mark.timeout(180)]

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


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_broker_that_stands_still_is_seen_by_a_probe_and_so_is_its_return(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setattr(worker_status, "ASK_S", 0.5)
    topic = create_topic(broker.bootstrap)
    values = records(1, 200)
    config = config_of(tmp_path, broker.bootstrap, topic, library)
    watch, stop = StatusRecorder(time.monotonic), Stop()
    watched = Watched(
        lambda: {"0": watch.snapshot()}, time.monotonic, time.time, fetch_limit_s=FETCH_LIMIT_S
    )
    with closing(Ledger.open(config.store.url, create=True)) as ledger:
        service.begin(ledger, config)
        thread = threading.Thread(
            target=service.run, args=(config, Options()), kwargs={"stop": stop, "status": watch}
        )
        thread.start()
        try:
            with serving(config.store.url, "127.0.0.1", 0, watched) as url:
                write(broker, topic, values[:100])
                until(lambda: counted_rows(ledger) == 100)
                assert health(url) == (200, "ok\n")
                with broker.standing_still():
                    until(lambda: health(url)[0] == 503)
                    said = health(url)[1]
                    assert said.startswith("worker 0: nothing was heard from the log for "), said
                until(lambda: health(url) == (200, "ok\n"))
                write(broker, topic, values[100:])
                until(lambda: counted_rows(ledger) == 200)
                assert health(url) == (200, "ok\n")
        finally:
            stop.request()
            thread.join(60)
        assert not thread.is_alive()
        (head,) = ledger.snapshot().heads
        assert counted(ledger) == fold({head.partition: values})


def config_of(folder: Path, bootstrap: str, topic: str, library: str) -> Config:
    source = SOURCE.format(
        library=library, bootstrap=bootstrap, topic=topic, group=unique_topic("group"),
        more=MORE[library],
    )  # fmt: skip
    path = folder / "config.toml"
    rest = f'[store]\nurl = "{folder / "health.db"}"\ncommit_interval_s = 0.1'
    path.write_text(toml(source=source, rest=rest), encoding="utf-8")
    return load_config(path)


def write(broker: Broker, topic: str, values: list[bytes | None]) -> None:
    produce(broker.bootstrap, topic, [Record(value, key=b"k") for value in values])


def counted_rows(ledger: Ledger) -> int:
    return sum(head.next_offset for head in ledger.snapshot().heads)


def health(url: str) -> tuple[int, str]:
    """What a probe is answered."""
    try:
        with urllib.request.urlopen(url + "healthz", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def until(reached: Callable[[], bool]) -> None:
    limit_s = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < limit_s, "it does not come"
        time.sleep(0.1)
