"""A running process as those see it who watch it and end it: probes, Prometheus, signals."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

import pytest
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.config.tables import ServerConfig
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.counting.worker_status import StatusRecorder
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.chunk import Chunk
from streammetrics_consumers.process import service
from streammetrics_consumers.server.health import WatchedWorkers
from streammetrics_consumers.server.process import serving

from tests import patience
from tests.consumers.memory_run import ONE, Clock, PatientStop, Run, log
from tests.consumers.memory_source import MemorySource
from tests.consumers.running import Running, until
from tests.consumers.small_config import event, toml
from tests.consumers.stores import EVENTS, write_config, write_events
from tests.kafka_broker import Record, create_topic, produce, unique_topic
from tests.patience import LIMIT_S

pytestmark = pytest.mark.faults


class Spinning(MemorySource):
    """A client that goes round inside of its second `poll`, as one does after a bad batch."""

    spins = ended = False

    def poll(self, timeout_s: float) -> list[Chunk]:
        while self.polls and not self.ended:
            self.spins = True
            time.sleep(0.001)
        self.polls = 1
        return super().poll(timeout_s)

    polls = 0


def test_a_poll_that_never_returns_is_seen_from_outside(tmp_path: Path) -> None:
    run = Run(tmp_path, {ONE: log(3)})
    source, stop = Spinning(run.logs), PatientStop(Clock())
    now = [0.0]
    watch = StatusRecorder(lambda: now[0])
    watched = WatchedWorkers(
        lambda: {"0": watch.snapshot()}, lambda: now[0], time.time, poll_limit_s=1.0
    )

    def work() -> None:
        service.run(run.config, Options(), stop=stop, opener=lambda *_: source, status=watch)

    with closing(Ledger.open(run.config.store.url, create=True)) as ledger:
        service.begin(ledger, run.config)
    thread = threading.Thread(target=work)
    with serving(run.config.store.url, ServerConfig(port=0), watched) as url:
        watch.opening()
        thread.start()
        patience.until(lambda: source.spins)
        now[0] = 0.9
        with urllib.request.urlopen(url + "healthz") as answer:
            assert answer.read() == b"ok\n"
        now[0] = 3.0
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(url + "healthz")
        with caught.value as answer:
            assert answer.code == 503
            assert answer.read() == b"worker 0: no poll has returned for 3 s\n"
        stop.request()
        source.ended = True
        thread.join()


def test_a_run_of_a_file_tells_how_it_stands(tmp_path: Path) -> None:
    write_events(tmp_path)
    with Running(write_config(tmp_path)) as running:
        until(running.is_ready, running)
        until(lambda: running.total("streammetrics_commit_duration_seconds_count") >= 1, running)
        assert running.total("streammetrics_events_total") == len(EVENTS)
        assert running.total("streammetrics_events_quarantined_total") == 2
        assert running.get("healthz") == (200, "ok\n")
        assert running.end() == 0, running.log


def config_of(folder: Path, kafka: str, topic: str) -> Path:
    path = folder / "config.toml"
    source = (
        f'kind = "kafka"\nlibrary = "{LIBRARIES[0]}"\nbootstrap_servers = "{kafka}"\n'
        f'topic = "{topic}"\ngroup = "{unique_topic("group")}"'
    )
    rest = '[store]\nurl = "store.db"\ncommit_interval_s = 0.2\n[server]\nport = 0\n'
    path.write_text(toml(source=source, rest=rest), encoding="utf-8")
    return path


def filled(kafka: str, n: int, partitions: int = 4) -> str:
    topic = create_topic(kafka, partitions)
    produce(kafka, topic, [Record(event(user=f"u{i}"), i % partitions) for i in range(n)])
    return topic


def test_several_workers_have_one_place_for_their_numbers_and_end_in_time(
    kafka: str, tmp_path: Path
) -> None:
    topic = filled(kafka, 3000)
    config = config_of(tmp_path, kafka, topic)
    with Running(config, "--workers", "2") as running:
        until(running.is_ready, running)
        until(lambda: running.total("streammetrics_store_events") == 3000, running)
        # Each may be late, and be given partitions of the other one then.
        until(lambda: running.total("streammetrics_rebalances_total") >= 2, running)
        until(lambda: running.total("streammetrics_assigned_partitions") == 4, running)
        until(
            lambda: running.get("metrics")[1].count("\nstreammetrics_lag_messages{") == 4, running
        )
        until(lambda: running.total("streammetrics_lag_messages") == 0, running)
        until(lambda: running.total("streammetrics_events_total") >= 3000, running)
        assert running.get("healthz") == (200, "ok\n")
        produce(kafka, topic, [Record(event(user=f"v{i}"), i % 4) for i in range(17_000)])
        until(lambda: running.total("streammetrics_store_events") > 3000, running)
        assert running.end() == 0, running.log
    with Running(config, "--until-end", "--workers", "2", "--log", "json") as running:
        running.process.wait(LIMIT_S)
        assert running.process.returncode == 0, running.log
    with closing(Ledger.open(str(tmp_path / "store.db"))) as ledger:
        snapshot = ledger.snapshot()
    assert snapshot.counters.rows == sum(head.next_offset for head in snapshot.heads) == 20_000
