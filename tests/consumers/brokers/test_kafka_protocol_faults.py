"""What a broker says and does in bad hours, injected: the ledger equals the fold over the log.

librdkafka's mock cluster does what a real broker does not on demand; each case also shows, by the
requests that the brokers got, that the fault was felt.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Producer
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.keys import LIBRARIES
from streammetrics_consumers.counting.options import Options, Progress
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop

from streammetrics import HistogramAUC, Ratio
from tests.consumers.obd_men import from_kafka
from tests.kafka_mock import (
    FETCH,
    HEARTBEAT,
    JOIN_GROUP,
    NOT_LEADER,
    OFFSET_COMMIT,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER,
    UNKNOWN_SERVER_ERROR,
    MockCluster,
    mock_cluster,
)

pytestmark = pytest.mark.slow

EVENTS, PARTITIONS, GROUP = 1200, 2, "faults"
RECOVERY_S = 12.0
AWAY_S = 1.0

TOML = """\
[source]
{source}
[event]
time = "ts"
label = "label"
score = "score"
[slices]
by = [[]]
[metrics]
auc = {{ type = "HistogramAUC" }}
ctr = {{ type = "Ratio" }}
[store]
url = "faults.db"
commit_interval_s = 0.05
"""

labels = [(i * 7919) % 3 == 0 for i in range(EVENTS)]
scores = [(i * 104729 % 1000) / 1000 for i in range(EVENTS)]


@contextmanager
def filled() -> Iterator[MockCluster]:
    with mock_cluster("events", PARTITIONS) as cluster:
        settings = {
            "bootstrap.servers": cluster.bootstrap,
            "log_level": 0,
            "batch.num.messages": 100,
        }
        producer = Producer(settings)
        for i in range(EVENTS):
            event = {"ts": "2026-01-01T00:00:00Z", "label": int(labels[i]), "score": scores[i]}
            producer.produce("events", json.dumps(event), partition=i % PARTITIONS)
        assert producer.flush(20) == 0
        for number in range(PARTITIONS):
            cluster.lead(number, 1)
        cluster.coordinate(GROUP, 1)
        yield cluster


def away_for_a_while(cluster: MockCluster, brokers: tuple[int, ...]) -> None:
    def come_back() -> None:
        for broker in brokers:
            cluster.up(broker)

    for broker in brokers:
        cluster.down(broker)
    threading.Timer(AWAY_S, come_back).start()


def slow_for_a_while(cluster: MockCluster) -> None:
    def recover() -> None:
        for broker in (1, 2):
            cluster.delay(broker, 0)

    for broker in (1, 2):
        cluster.delay(broker, 500)
    threading.Timer(AWAY_S, recover).start()


def leaders_change(cluster: MockCluster) -> None:
    for number in range(PARTITIONS):
        cluster.lead(number, 2)


Requests = list[tuple[int, int]]


def count(requests: Requests, kind: int, broker: int | None = None) -> int:
    return sum(k == kind and broker in (None, b) for k, b in requests)


@dataclass(frozen=True)
class Fault:
    """What is done to the cluster, and how the requests that came after it show that it was felt.
    At first broker 1 leads all partitions and coordinates the group."""

    inject: Callable[[MockCluster], None]
    is_felt: Callable[[Requests], bool]
    lasts_s: float = 0.0


def failing(kind: int, *errors: int) -> Callable[[MockCluster], None]:
    return lambda cluster: cluster.fail(kind, *errors)


def joins_again(requests: Requests) -> bool:
    kinds = [kind for kind, _ in requests]
    return JOIN_GROUP in kinds[kinds.index(HEARTBEAT) :]


FAULTS = {
    "nothing": Fault(lambda cluster: None, lambda requests: not count(requests, JOIN_GROUP)),
    "fetches fail": Fault(
        failing(FETCH, *[NOT_LEADER] * 2), lambda requests: count(requests, FETCH) >= 2
    ),
    "the group rebalances": Fault(failing(HEARTBEAT, REBALANCE_IN_PROGRESS), joins_again),
    "the member is forgotten": Fault(failing(HEARTBEAT, UNKNOWN_MEMBER), joins_again),
    "kafka's own commits fail": Fault(
        failing(OFFSET_COMMIT, *[UNKNOWN_SERVER_ERROR] * 1000),
        lambda requests: 3 < count(requests, OFFSET_COMMIT) < 1000,
    ),
    "the coordinator changes": Fault(
        lambda cluster: cluster.coordinate(GROUP, 2),
        lambda requests: count(requests, HEARTBEAT, 2) > 0,
    ),
    "leaders change": Fault(leaders_change, lambda requests: count(requests, FETCH, 2) > 0),
    "every answer is late": Fault(slow_for_a_while, lambda requests: True, AWAY_S),
    "one broker is away": Fault(
        lambda cluster: away_for_a_while(cluster, (1,)), lambda requests: True, AWAY_S
    ),
    "all brokers are away": Fault(
        lambda cluster: away_for_a_while(cluster, (1, 2)), lambda requests: True, AWAY_S
    ),
}


def held() -> tuple[int, int]:
    """Threads, those of librdkafka too, and open files."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


# All of them for the library that is written in Python, for the other one those in which it is
# asked most; the rest when STREAMMETRICS_ALL_FAULTS is set.
SOME = ("the group rebalances", "kafka's own commits fail", "one broker is away")


@pytest.mark.parametrize(
    ("library", "fault"),
    [
        (library, fault)
        for library in LIBRARIES
        for fault in FAULTS
        if library == "kafka-python" or fault in SOME or "STREAMMETRICS_ALL_FAULTS" in os.environ
    ],
)
def test_the_ledger_equals_the_fold_whatever_the_brokers_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], library: str, fault: str
) -> None:
    injected = FAULTS[fault]
    with filled() as cluster:
        source = from_kafka(cluster.bootstrap, "events", GROUP, records=50, library=library)
        # A join is held for as long as the mock's longest session: one that is short.
        source = source.replace("session_timeout_ms = 1000", "session_timeout_ms = 1500")
        source = source.replace("heartbeat_interval_ms = 200", "heartbeat_interval_ms = 100")
        source += 'api_version = "2.3"' if library == "kafka-python" else ""
        path = tmp_path / "faults.toml"
        path.write_text(TOML.format(source=source))
        injected_s: float | None = None

        def report(progress: Progress) -> None:
            nonlocal injected_s
            if progress.rows >= EVENTS // 4 and injected_s is None:
                injected_s = time.monotonic()
                cluster.forget_requests()
                injected.inject(cluster)
            time.sleep(0.03)  # so that heartbeats and fetches fall into the time of the fault

        config, stop = load_config(path), Stop()
        before, began_s = held(), time.monotonic()
        service.run(config, Options(until_end=True), stop=stop, report=report)
        ended_s = time.monotonic()
        assert ended_s - began_s < RECOVERY_S
        assert injected_s is not None
        assert ended_s - injected_s >= injected.lasts_s
        assert injected.is_felt(cluster.requests())
        # The cluster lives in this process, and ends its side of a connection a little later.
        limit_s = time.monotonic() + 10
        while any(now > then for now, then in zip(held(), before, strict=True)):
            assert time.monotonic() < limit_s, (before, held())
            time.sleep(0.05)
    capsys.readouterr()
    assert main(["results", config.store.url, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    auc, ctr = HistogramAUC(), Ratio()
    auc.update(labels, scores)
    ctr.update([int(label) for label in labels])
    assert found["offsets"] == {f"events/{n}": EVENTS // PARTITIONS for n in range(PARTITIONS)}
    assert (found["rows_read"], found["quarantined"]) == (EVENTS, 0)
    digests = {row["metric"]: row["digest"] for row in found["results"]}
    assert digests == {"auc": auc.digest(), "ctr": ctr.digest()}
