"""The circuit breaker over a real broker: twenty experiments, one arm that converts 39 % less, a
receiver that fails twice, and workers that are killed all the while."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import select
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger

from tests.consumers.hook_run import Receiver, hook, receiving, rows_of
from tests.consumers.running import Running, until
from tests.kafka_broker import Record, create_topic, produce, unique_topic

pytestmark = [pytest.mark.slow, pytest.mark.faults]
PARTITIONS: Final = 2
EXPERIMENTS: Final = [f"e{i}" for i in range(20)]
BAD: Final = "e7"
RATE: Final = 0.1  # of conversion; in the bad arm 39 % less
COUNTED: Final = "streammetrics_store_events"
BATCH: Final = 500  # events of one record
KILLED: Final = 4  # workers
MOST_S: Final = 60.0  # from the look to the receiver
MOST_WRONG: Final = 3  # of 19 A/A experiments at 5 %: more have a probability of 1.3 %

CONFIG: Final = """\
[source]
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{group}"
library = "confluent-kafka"
format = "ndjson"
[source.client]
session_timeout_ms = 3000
heartbeat_interval_ms = 200
[event]
time = "ts"
user = "user"
label = "bought"
assignments = "exps"
[windows]
size_s = 3600
[slices]
by = [[]]
[metrics]
conversion = {{ type = "Ratio", better = "higher" }}
[store]
url = "{store}"
commit_interval_s = 0.5
[server]
port = 0
"""
EXPERIMENT: Final = """\
[experiments.{name}]
variants = ["0", "1"]
control = "0"
decision = ["conversion"]
mde = 0.03
look_every_s = 2.0
"""


class Writer:
    """Writes events until it is told to stop; the user of each is in every experiment."""

    def __init__(self, kafka: str, topic: str) -> None:
        self._kafka, self._topic, self._ends = kafka, topic, threading.Event()
        self._rng, self.written = random.Random(1), 0
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Write no more."""
        self._ends.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._ends.is_set():
            records = [
                Record(b"\n".join(self._event(i) for i in range(BATCH)), partition)
                for partition in range(PARTITIONS)
            ]
            produce(self._kafka, self._topic, records)
            self.written += PARTITIONS * BATCH

    def _event(self, i: int) -> bytes:
        arms = dict(zip(EXPERIMENTS, f"{self._rng.getrandbits(20):020b}", strict=True))
        rate = RATE * (0.61 if arms[BAD] == "1" else 1.0)
        event = {
            "ts": f"2026-01-01T00:{self.written // 10_000 % 60:02d}:00Z",
            "user": f"u{self.written + i}-{self._rng.getrandbits(20)}",
            "bought": int(self._rng.random() < rate),
            "exps": arms,
        }
        return json.dumps(event).encode()


def workers_of(running: Running) -> list[int]:
    """The processes that a running one has started."""
    folder = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    return [int(pid) for pid in folder.read_text().split()]


def first_place(store: Path) -> int:
    """The place of the first look by which the bad arm is certainly worse."""
    with closing(Ledger.open(str(store))) as ledger:
        look, reading = schema.look, schema.look_reading
        query = (
            select(look.c.place)
            .join(reading)
            .where(reading.c.comparison == "conversion.ratio/1", reading.c.upper < 0)
            .where(look.c.experiment == fingerprint(ledger))
            .order_by(look.c.place)
            .limit(1)
        )
        return int(ledger.store.read(lambda connection: connection.scalar(query)) or 0)


def fingerprint(ledger: Ledger) -> str:
    from streammetrics_consumers.query.experiment_plan import declared

    design = declared(ledger.generation(), BAD)
    assert design is not None
    return design.fingerprint


@pytest.mark.kafka
def test_the_bad_arm_is_reported_in_time_whatever_is_killed(kafka: str, tmp_path: Path) -> None:
    topic, store = create_topic(kafka, PARTITIONS), tmp_path / "store.db"
    receiver, arrivals = Receiver(answers=[500, 503]), list[float]()
    receiver.before_answer = lambda: arrivals.append(time.time())
    with receiving(receiver):
        text = CONFIG.format(bootstrap=kafka, topic=topic, group=unique_topic("g"), store=store)
        text += "".join(EXPERIMENT.format(name=name) for name in EXPERIMENTS)
        path = tmp_path / "kafka.toml"
        path.write_text(text + hook(receiver.url, ["worse", "guardrail_broken"]), encoding="utf-8")
        with Running(path, "--workers", "2") as running:
            until(lambda: running.is_ready(), running)
            with Writer(kafka, topic) as writer:
                began_s = time.monotonic()
                for i in range(KILLED):
                    so_far = running.total(COUNTED)
                    until(lambda so_far=so_far: running.total(COUNTED) > so_far, running)  # type: ignore[misc]
                    until(lambda: len(workers_of(running)) == 2, running)
                    os.kill(workers_of(running)[i % 2], signal.SIGKILL)
                until(lambda: is_received(receiver), running)
                writer.end()
                until(lambda: running.total(COUNTED) == writer.written, running)
                rate = writer.written / (time.monotonic() - began_s)
            until(lambda: {row.state for row in rows_of(store)} == {"sent"}, running)
            assert running.end() == 0
    receiver.require_good()
    (event,) = {
        one.body: one for one in receiver.received if one.event["experiment"] == BAD
    }.values()
    sent = event.event
    assert (sent["event"], sent["metric"], sent["arm"]) == ("worse", "conversion", "1")
    assert sent["effect"]["upper"] < 0
    assert sent["look"]["place"] == first_place(store)
    good = [
        at for at, one in zip(arrivals, receiver.received, strict=True) if one.body == event.body
    ]
    delay_s = good[-1] - sent["created_ms"] / 1000
    assert delay_s < MOST_S
    rows = rows_of(store)
    assert {row.message.body for row in rows} == {one.body for one in receiver.received}
    assert len(rows) - 1 <= MOST_WRONG
    assert len(re.findall("was killed by signal 9", running.log)) == KILLED
    sys.stdout.write(f"{rate:.0f} events a second, {delay_s:.2f} s from the look\n")


def is_received(receiver: Receiver) -> bool:
    """Whether the event of the bad arm has arrived."""
    return any(one.event["experiment"] == BAD for one in receiver.received)
