"""One store under siege: a live topic, workers that die, a broker and a database that go away.

At the end the ledger must equal a fold over the log, byte for byte.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.exc import OperationalError
from streammetrics_consumers.ledger.failures import LedgerError
from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.model.partition import Partition

from tests.chaos.fleet import SESSION_S, Fleet
from tests.consumers.folded import BROKEN, counted, fold, records
from tests.consumers.small_config import toml
from tests.kafka_broker import Broker, Record, create_topic, produce, unique_topic
from tests.postgres_server import Server
from tests.requirements import ROOT

PROGRESS_LIMIT_S = 300.0
BESIEGED = 0.9  # of each log, what is produced while workers die: the rest is for the last zombie
ACTS = ("kill",) * 8 + ("stop",) * 3 + ("ask",) * 2 + ("broker", "store")
CLASSIC = """\
session_timeout_ms = {session_ms}
heartbeat_interval_ms = 200
partition_assignment_strategy = """
# How the group shares out the partitions: the settings of its members.
ASSIGNMENTS = {
    "eager": f'{CLASSIC}"range"',
    "cooperative": f'{CLASSIC}"cooperative-sticky"',
    "broker": 'group_protocol = "consumer"',  # KIP-848; the broker of the tests has the times
}

SOURCE = """\
kind = "kafka"
bootstrap_servers = "{bootstrap}"
topic = "{topic}"
group = "{topic}"
library = "{library}"
[source.client]
{assignment}
{small}
"""
SMALL = {
    "kafka-python": "max_poll_records = 300\nfetch_max_wait_ms = 50",
    "confluent-kafka": "fetch_wait_max_ms = 50",
}


@dataclass(frozen=True)
class Plan:
    """What is to be done to one store."""

    store: str  # sqlite or postgres
    library: str
    assignment: str
    events: int
    kills: int
    workers: int
    seed: int
    partitions: int = 8
    minutes: float = 60.0  # after which no more is done to them


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    plan: Plan
    seen: Mapping[str, int]
    seconds: float
    problems: tuple[str, ...]


class Siege:
    """See the module."""

    def __init__(
        self, plan: Plan, folder: Path, broker: Broker, database: Server | None, url: str
    ) -> None:
        self.plan, self.folder, self.broker, self.database = plan, folder, broker, database
        self.rng = random.Random(plan.seed)
        per_log = [plan.events // plan.partitions] * plan.partitions
        per_log[0] += plan.events - sum(per_log)
        self.logs = [records(plan.seed * 1000 + n, size) for n, size in enumerate(per_log)]
        self.topic = create_topic(broker.bootstrap, plan.partitions, name=unique_topic("chaos"))
        self.produced = [0] * plan.partitions
        config = folder / "chaos.toml"
        config.write_text(self._toml(url), encoding="utf-8")
        self.url = url
        self.fleet = Fleet(config, folder, plan.workers, plan.kills, self.rng)
        self.seen: Counter[str] = self.fleet.seen
        self.compactors: list[subprocess.Popen[bytes]] = []
        self.heads: dict[Partition, int] = {}
        self.acts: list[str] = []

    def _toml(self, url: str) -> str:
        plan = self.plan
        source = SOURCE.format(
            bootstrap=self.broker.bootstrap, topic=self.topic, library=plan.library,
            assignment=ASSIGNMENTS[plan.assignment].format(session_ms=round(SESSION_S * 1000)),
            small=SMALL[plan.library],
        )  # fmt: skip
        return toml(source=source, rest=f'[store]\nurl = "{url}"\ncommit_interval_s = 0.05')

    def run(self) -> Outcome:
        """Besiege it, let it recover, and compare."""
        began_s = time.monotonic()
        plan = self.plan
        problems: list[str] = []
        # The store is there before anyone looks at it.
        with closing(Ledger.open(self.url, create=True)) as ledger:
            try:
                rounds = max(plan.kills // 2, 1)
                while self.seen["kills"] < plan.kills:
                    if time.monotonic() - began_s > plan.minutes * 60:
                        break
                    self._round(ledger, rounds)
                limit_s = time.monotonic() + PROGRESS_LIMIT_S
                while not self.fleet.refused() and time.monotonic() < limit_s:
                    self._await_zombie(ledger)
                self._recover(ledger)
                problems += self._compare(ledger)
            except (AssertionError, LedgerError) as error:
                problems.append(str(error))
            finally:
                self.fleet.close()
                for compactor in self.compactors:
                    compactor.kill()
                    compactor.wait()
        records_read, duplicates, commits, fenced = self.fleet.tallies()
        counted = sum(self.heads.values())  # fewer than all events, if it ended early
        self.seen.update(
            {"read again": records_read - counted, "commits": commits, "fenced": fenced}
        )
        self.seen.update({"duplicates": duplicates, "zombies refused": self.fleet.refused()})
        if not problems and not self.fleet.refused():
            problems.append("no worker that was stopped past its session had a commit refused")
        return Outcome(plan, self.seen, time.monotonic() - began_s, tuple(problems))

    # -- one round ----------------------------------------------------------------------------
    def _round(self, ledger: Ledger, rounds: int) -> None:
        self._produce(2 / rounds, BESIEGED)
        self.fleet.fill(fused=True)
        self._progress(ledger)
        time.sleep(self.rng.random() * 0.3)
        if not self.acts:
            self.acts = self.rng.sample(ACTS, len(ACTS))
        match self.acts.pop():
            case "kill":
                self.fleet.kill(most=3)
            case "stop":
                self.fleet.stop()
            case "ask":
                self.fleet.ask()
            case "broker":
                self._restart_broker()
            case "store":
                self._cut_store(ledger)
        if self.rng.random() < 0.3:
            for _ in range(self.rng.choice([1, 1, 2])):
                self._compact()
        self._reap_compactors()
        self.fleet.tend()

    def _await_zombie(self, ledger: Ledger) -> None:
        """Do nothing more to them: a worker that stands still before a commit is to sleep on while
        others count, and to find its connections as they were. There is always more to count."""
        if self._look(ledger) >= sum(self.produced):
            self._produce(0)
        self.fleet.have_zombie()
        self.fleet.fill(fused=True)
        time.sleep(SESSION_S / 4)
        self.fleet.tend()

    def _produce(self, share: float, until: float = 1.0) -> None:
        """The next slice of each log: a record, and this share of what is left of its beginning
        `until`."""
        messages = []
        for number, values in enumerate(self.logs):
            start, end = self.produced[number], int(until * len(values))
            batch = values[start : min(end, start + int(share * (end - start)) + 1)]
            messages += [Record(value, number, b"key") for value in batch]
            self.produced[number] += len(batch)
        self.fleet.produced = sum(self.produced)
        if messages:
            produce(self.broker.bootstrap, self.topic, messages)

    def _progress(self, ledger: Ledger) -> None:
        """Wait until something more is counted, so that they do not die before they live."""
        limit = time.monotonic() + PROGRESS_LIMIT_S
        before = sum(self.heads.values())
        while self._look(ledger) <= before and before < sum(self.produced):
            assert time.monotonic() < limit, "the workers make no progress"
            time.sleep(0.05)
            self.fleet.tend()
            self.fleet.fill(fused=True)

    def _look(self, ledger: Ledger) -> int:
        """All that is counted. No head may ever go back."""
        if not ledger.generations():
            return 0
        for head in ledger.heads(ledger.generation()):
            offset = self.heads.get(head.partition, 0)
            assert head.next_offset >= offset, f"{head.partition} went back from {offset}: {head}"
            self.heads[head.partition] = head.next_offset
        self.fleet.counted = sum(self.heads.values())
        return self.fleet.counted

    def _restart_broker(self) -> None:
        if self.rng.random() < 0.5:
            self.broker.kill()
        else:
            self.broker.stop()
        self.broker.start()
        self.seen["broker restarts"] += 1

    def _cut_store(self, ledger: Ledger) -> None:
        """PostgreSQL is killed and started; a file of SQLite is locked for a second."""
        if self.database is not None:
            self.database.kill()
            self.database.start()
            self.seen["store restarts"] += 1
            return
        engine = ledger.store.engine.execution_options(ledger_begin="BEGIN IMMEDIATE")
        limit = time.monotonic() + PROGRESS_LIMIT_S
        while True:
            try:
                with engine.begin() as connection:
                    connection.execute(text("SELECT 1"))
                    time.sleep(1.0)
                break
            except OperationalError:  # a worker that is stopped holds the lock until it wakes
                assert time.monotonic() < limit, "the store stays locked"
                self.fleet.tend()
        self.seen["store locks"] += 1

    def _compact(self) -> None:
        with (self.folder / "compact.log").open("ab") as log:
            command = [sys.executable, "-m", "streammetrics_consumers.cli", "compact", self.url]
            self.compactors.append(
                subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
            )  # fmt: skip

    def _reap_compactors(self) -> None:
        for compactor in list(self.compactors):
            code = compactor.poll()
            if code is not None:
                assert code in (0, 75), (self.folder / "compact.log").read_text()[-4000:]
                self.seen["compactions"] += code == 0
                self.compactors.remove(compactor)

    # -- the end ------------------------------------------------------------------------------
    def _recover(self, ledger: Ledger) -> None:
        """Produce what is left, and let the workers reach its end in peace."""
        self._produce(1)
        limit = time.monotonic() + 10 * PROGRESS_LIMIT_S
        while self._look(ledger) < self.plan.events:
            assert time.monotonic() < limit, f"the workers do not reach the end: {self.heads}"
            self.fleet.tend()
            self.fleet.fill(fused=False)
            time.sleep(0.1)
        self.fleet.tend()
        self.fleet.end()
        for compactor in self.compactors:
            compactor.wait(PROGRESS_LIMIT_S)
        self._reap_compactors()

    def _compare(self, ledger: Ledger) -> Iterator[str]:
        (topic_id,) = {head.partition.topic_id for head in ledger.heads(ledger.generation())}
        cluster = next(iter(self.heads)).cluster
        logs = {
            Partition(cluster, self.topic, topic_id, number): values
            for number, values in enumerate(self.logs)
        }
        expected, result = fold(logs), counted(ledger)
        self.seen["quarantined"] = len(result.refused)
        for name in ("states", "counters", "heads", "refused"):
            actual, folded = getattr(result, name), getattr(expected, name)
            if actual != folded:
                yield f"{name} differ from a fold over the log: {differences(actual, folded)}"
        bad = sum(value in BROKEN for values in self.logs for value in values)
        if len(result.refused) != bad:
            yield f"{len(result.refused)} events in quarantine, expected {bad}"


def differences(actual: object, folded: object) -> str:
    """The first entries that only one side has, of mappings or sequences; of bytes their digest."""
    sides = []
    for side in (actual, folded):
        pairs = side.items() if isinstance(side, Mapping) else side
        assert isinstance(pairs, Iterable)
        sides.append([(k, sha256(v).hexdigest() if isinstance(v, bytes) else v) for k, v in pairs])
    only = (
        [pair for pair in side if pair not in opposite] for side, opposite in (sides, sides[::-1])
    )
    held_only, folded_only = only
    return f"{len(held_only)} here, {held_only[:4]}; {len(folded_only)} there, {folded_only[:4]}"


@contextmanager
def store_of(kind: str, folder: Path, database: Server | None) -> Iterator[str]:
    """The URL of a new store."""
    if kind == "sqlite":
        yield str(folder / "chaos.db")
        return
    assert database is not None
    url = database.new_store()
    yield url
    database.drop(url)
