"""The circuit breaker over a real broker, at a rate: twenty experiments, one arm that converts 39 %
less, a receiver that fails twice, and workers that are killed all the while.

    python -m tests.consumers.breaker_run                          # 20,000 events a second, 60 s
    python -m tests.consumers.breaker_run --rate 5000 --seconds 20 --kills 2

Prints the events a second that were written and counted, the CPU of an event, and the time from
the first look that shows the harm to the receiver. Exit code 1 if an event of a hook is lost, late,
not of the first look that shows it, or sent with two contents; 2 where the broker cannot run here.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer
from sqlalchemy import select
from streammetrics_consumers.ledger import schema
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.query.experiment_plan import declared

from tests.consumers.hook_run import Received, Receiver, hook, receiving, rows_of
from tests.consumers.running import Running, until
from tests.kafka_broker import Unavailable, create_topic, running_broker, unique_topic
from tests.patience import LIMIT_S

PARTITIONS: Final = 2
EXPERIMENTS: Final = [f"e{i}" for i in range(20)]
BAD: Final = "e7"
RATE: Final = 0.1  # of conversion; in the bad arm 39 % less
COUNTED: Final = "streammetrics_store_events"
BATCH: Final = 500  # events of one record
MOST_S: Final = 60.0  # from the look to the receiver
MOST_WRONG: Final = 3  # of 19 A/A experiments at 5 %: more have a probability of 1.3 %
HALF: Final = 10  # experiments whose arms are one text

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


def arm_texts(names: Sequence[str]) -> list[bytes]:
    """The arms of these experiments as JSON, by the number whose bits they are."""
    return [
        ",".join(f'"{name}":"{bits >> i & 1}"' for i, name in enumerate(names)).encode()
        for bits in range(1 << len(names))
    ]


class Writer:
    """Writes events until it is told to stop, so many a second; the user of each is in every
    experiment."""

    def __init__(self, kafka: str, topic: str, rate: float) -> None:
        self._producer = Producer({"bootstrap.servers": kafka, "acks": "all", "log_level": 0})
        self._topic, self._rate, self._ends = topic, rate, threading.Event()
        self._rng, self.written, self.seconds = random.Random(1), 0, 0.0
        self._first, self._last = (
            arm_texts(names) for names in (EXPERIMENTS[:HALF], EXPERIMENTS[HALF:])
        )
        self._bad = EXPERIMENTS.index(BAD)
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
        began_s = time.monotonic()
        while not self._ends.is_set():
            due_s = began_s + self.written / self._rate
            if self._ends.wait(max(due_s - time.monotonic(), 0)):
                break
            for partition in range(PARTITIONS):
                self._producer.produce(self._topic, self._record(), partition=partition)
            self._producer.poll(0)
            if len(self._producer) > 200:  # what a slow broker has not taken waits here
                self._producer.flush(LIMIT_S)
        assert self._producer.flush(LIMIT_S) == 0
        self.seconds = time.monotonic() - began_s

    def _record(self) -> bytes:
        """The next events of one record."""
        bits, chance, start = self._rng.getrandbits, self._rng.random, self.written
        time_text = f"2026-01-01T00:{start // 10_000 % 60:02d}:00Z".encode()
        lines = []
        for i in range(BATCH):
            arms = bits(2 * HALF)
            bought = chance() < (RATE * 0.61 if arms >> self._bad & 1 else RATE)
            lines.append(
                b'{"ts":"%b","user":"u%d","bought":%d,"exps":{%b,%b}}'
                % (time_text, start + i, bought, self._first[arms & 1023], self._last[arms >> HALF])
            )
        self.written += BATCH
        return b"\n".join(lines)


def workers_of(running: Running) -> list[int]:
    """The processes that a running one has started."""
    folder = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    return [int(pid) for pid in folder.read_text().split()]


def first_place(store: Path) -> int:
    """The place of the first look by which the bad arm is certainly worse."""
    with closing(Ledger.open(str(store))) as ledger:
        design = declared(ledger.generation(), BAD)
        assert design is not None
        look, reading = schema.look, schema.look_reading
        query = (
            select(look.c.place)
            .join(reading)
            .where(reading.c.comparison == "conversion.ratio/1", reading.c.upper < 0)
            .where(look.c.experiment == design.fingerprint)
            .order_by(look.c.place)
            .limit(1)
        )
        return int(ledger.store.read(lambda connection: connection.scalar(query)) or 0)


def is_received(receiver: Receiver) -> bool:
    """Whether the event of the bad arm has arrived."""
    return any(request.event["experiment"] == BAD for request in receiver.received)


def cpu_s(who: int) -> float:
    """Seconds of CPU of this process, or of all that it has waited for."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Outcome:
    """What was written, and in how long; when all of it was counted; seconds of CPU of the writer,
    with the receiver, and of `streammetrics run`; what was received and when."""

    events: int
    written_s: float
    counted_s: float
    writer_s: float
    workers_s: float
    kills: int
    receiver: Receiver
    arrivals: Sequence[float]
    store: Path

    @property
    def of_bad(self) -> list[tuple[float, Received]]:
        """What was received of the bad arm."""
        pairs = zip(self.arrivals, self.receiver.received, strict=True)
        return [(when, request) for when, request in pairs if request.event["experiment"] == BAD]

    @property
    def delay_s(self) -> float:
        """From the look to the receiver, its failures included."""
        last_s, received = self.of_bad[-1]
        return last_s - float(received.event["created_ms"]) / 1000

    def problems(self) -> Iterator[str]:
        """What was sent otherwise than it should be."""
        self.receiver.require_good()
        bodies = {request.body for _, request in self.of_bad}
        if len(bodies) != 1:
            yield f"{len(bodies)} events of the bad arm"
        event = self.of_bad[0][1].event
        subject = event["event"], event["metric"], event["arm"]
        if subject != ("worse", "conversion", "1") or event["effect"]["upper"] >= 0:
            yield f"the event is {subject}, {event['effect']}"
        if event["look"]["place"] != first_place(self.store):
            yield "it is not of the first look that shows the harm"
        if self.delay_s >= MOST_S:
            yield f"it was received {self.delay_s:.1f} s after its look"
        rows = rows_of(self.store)
        if {row.message.body for row in rows} != {
            request.body for request in self.receiver.received
        }:
            yield "what was received is not what the store has sent"
        if len(rows) - 1 > MOST_WRONG:
            yield f"{len(rows) - 1} of 19 experiments without an effect have sent an event"

    def text(self) -> str:
        """The figures."""
        factor = 1e6 / self.events
        return (
            f"{self.events:,} events: {self.events / self.written_s:,.0f} a second written, "
            f"{self.events / self.counted_s:,.0f} counted; {self.kills} workers killed; "
            f"{self.delay_s:.2f} s from the look to the receiver, which failed twice\n"
            f"CPU of an event: {self.workers_s * factor:.1f} µs of the workers and their server, "
            f"{self.writer_s * factor:.1f} of the writer"
        )


def besieged(kafka: str, folder: Path, rate: float, seconds: float, kills: int) -> Outcome:
    """Write so many events a second, for so long and until the harm is reported; kill workers all
    the while, and count to the end."""
    topic, store = create_topic(kafka, PARTITIONS), folder / "store.db"
    receiver, arrivals = Receiver(answers=[500, 503]), list[float]()
    receiver.before_answer = lambda: arrivals.append(time.time())
    before = cpu_s(resource.RUSAGE_SELF), cpu_s(resource.RUSAGE_CHILDREN)
    with receiving(receiver):
        text = CONFIG.format(bootstrap=kafka, topic=topic, group=unique_topic("g"), store=store)
        text += "".join(EXPERIMENT.format(name=name) for name in EXPERIMENTS)
        path = folder / "kafka.toml"
        path.write_text(text + hook(receiver.url, ["worse", "guardrail_broken"]), encoding="utf-8")
        with Running(path, "--workers", "2") as running:
            until(running.is_ready, running)
            with Writer(kafka, topic, rate) as writer:
                began_s = time.monotonic()
                for i in range(kills):
                    until(counted_more(running, running.total(COUNTED)), running)
                    until(passed(began_s + seconds * (i + 1) / (kills + 1)), running)
                    until(lambda: len(workers_of(running)) == 2, running)
                    os.kill(workers_of(running)[i % 2], signal.SIGKILL)
                until(passed(began_s + seconds), running)
                until(lambda: is_received(receiver), running)
                writer.end()
                until(lambda: running.total(COUNTED) == writer.written, running)
                counted_s = time.monotonic() - began_s
            until(lambda: {row.state for row in rows_of(store)} == {"sent"}, running)
            assert running.end() == 0, running.log
        assert len(re.findall("was killed by signal 9", running.log)) == kills
    return Outcome(
        writer.written,
        writer.seconds,
        counted_s,
        cpu_s(resource.RUSAGE_SELF) - before[0],
        cpu_s(resource.RUSAGE_CHILDREN) - before[1],
        kills,
        receiver,
        arrivals,
        store,
    )


def counted_more(running: Running, so_far: float) -> Callable[[], bool]:
    """Whether something was counted since."""
    return lambda: running.total(COUNTED) > so_far


def passed(until_s: float) -> Callable[[], bool]:
    """Whether it is so late, by the monotonic clock."""
    return lambda: time.monotonic() >= until_s


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Print the figures of one run and what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.consumers.breaker_run")
    parser.add_argument("--rate", type=float, default=20_000.0, help="events a second")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--kills", type=int, default=6)
    options = parser.parse_args(argv)
    began_s = cpu_s(resource.RUSAGE_CHILDREN)
    try:
        with tempfile.TemporaryDirectory() as folder, running_broker() as kafka:
            outcome = besieged(kafka, Path(folder), options.rate, options.seconds, options.kills)
            say(outcome.text())
            problems = list(outcome.problems())
    except Unavailable as error:
        say(str(error))
        return 2
    broker_s = cpu_s(resource.RUSAGE_CHILDREN) - began_s - outcome.workers_s
    say(f"{broker_s * 1e6 / outcome.events:.1f} µs of the broker, with its start")
    reached = outcome.events / outcome.written_s
    if reached < 0.95 * options.rate:
        problems.append(f"{options.rate:,.0f} events a second were asked for, not {reached:,.0f}")
    for line in (*problems, f"{len(problems)} problems"):
        say(line)
    return min(len(problems), 1)


if __name__ == "__main__":
    sys.exit(main())
