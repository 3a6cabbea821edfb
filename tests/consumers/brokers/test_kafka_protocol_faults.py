"""What a broker says and does in bad hours, injected: the ledger equals the fold over the log.

librdkafka's mock cluster does what a real broker does not on demand; each case also shows, by the
requests that the brokers got, that the fault was felt. The cluster lies in the wheel of
confluent-kafka, which does not show it to Python, so its C functions are called by name. It knows
no transactions, and its members leave a group only in their time.
"""

from __future__ import annotations

import ctypes
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import confluent_kafka
import pytest
from streammetrics_consumers.cli.main import main
from streammetrics_consumers.config.config import load_config
from streammetrics_consumers.config.source import LIBRARIES
from streammetrics_consumers.counting.options import Options
from streammetrics_consumers.model.progress import Progress
from streammetrics_consumers.process import service
from streammetrics_consumers.process.stop import Stop

from streammetrics import HistogramAUC, Ratio
from tests.consumers.obd_men import from_kafka
from tests.patience import LIMIT_S, until

pytestmark = pytest.mark.faults

# Numbers of the protocol.
FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT = 1, 2, 3, 8
FIND_COORDINATOR, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 10, 11, 12, 14
NOT_LEADER, COORDINATOR_LOADING, NOT_COORDINATOR = 6, 14, 16
UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS, UNKNOWN_SERVER_ERROR = 25, 27, -1

P: Final = ctypes.c_void_p
INT: Final = ctypes.c_int
TEXT: Final = ctypes.c_char_p
# Each function's result and arguments.
SIGNATURES: Final = {
    "conf_new": (P, []),
    "conf_set": (INT, [P, TEXT, TEXT, TEXT, ctypes.c_size_t]),
    "new": (P, [INT, P, TEXT, ctypes.c_size_t]),
    "destroy": (None, [P]),
    "mock_cluster_new": (P, [P, INT]),
    "mock_cluster_destroy": (None, [P]),
    "mock_cluster_bootstraps": (TEXT, [P]),
    "mock_topic_create": (INT, [P, TEXT, INT, INT]),
    "mock_broker_set_down": (INT, [P, ctypes.c_int32]),
    "mock_broker_set_up": (INT, [P, ctypes.c_int32]),
    "mock_broker_set_rtt": (INT, [P, ctypes.c_int32, INT]),
    "mock_push_request_errors_array": (
        None,
        [P, ctypes.c_int16, ctypes.c_size_t, ctypes.POINTER(INT)],
    ),
    "mock_coordinator_set": (INT, [P, TEXT, TEXT, ctypes.c_int32]),
    "mock_partition_set_leader": (INT, [P, TEXT, ctypes.c_int32, ctypes.c_int32]),
    "mock_set_controller_id": (INT, [P, ctypes.c_int32]),
    "mock_group_initial_rebalance_delay_ms": (None, [P, ctypes.c_int32]),
    "mock_start_request_tracking": (None, [P]),
    "mock_clear_requests": (None, [P]),
    "mock_get_requests": (ctypes.POINTER(P), [P, ctypes.POINTER(ctypes.c_size_t)]),
    "mock_request_destroy_array": (None, [ctypes.POINTER(P), ctypes.c_size_t]),
    "mock_request_id": (ctypes.c_int32, [P]),
    "mock_request_api_key": (ctypes.c_int16, [P]),
}


def _library() -> ctypes.CDLL:
    folder = Path(confluent_kafka.__file__).parent.parent / "confluent_kafka.libs"
    library = ctypes.CDLL(str(next(folder.glob("librdkafka-*.so*"))))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class MockCluster:
    """Brokers 1 to n with one topic. Every method takes effect at once."""

    def __init__(self, library: ctypes.CDLL, cluster: int, topic: str) -> None:
        self._library, self._cluster, self.topic = library, cluster, topic
        self.bootstrap: str = library.rd_kafka_mock_cluster_bootstraps(cluster).decode()

    def _do(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        assert not code, f"{name}: {code}"

    def down(self, broker: int) -> None:
        """A broker closes its connections and takes no more."""
        self._do("broker_set_down", broker)

    def up(self, broker: int) -> None:
        """It is there again."""
        self._do("broker_set_up", broker)

    def delay(self, broker: int, milliseconds: int) -> None:
        """Every answer of a broker comes so much later."""
        self._do("broker_set_rtt", broker, milliseconds)

    def fail(self, request: int, *errors: int) -> None:
        """The next requests of this kind, to any broker, are answered with these errors."""
        self._do("push_request_errors_array", request, len(errors), (INT * len(errors))(*errors))

    def lead(self, partition: int, broker: int) -> None:
        """A broker becomes the leader of a partition."""
        self._do("partition_set_leader", self.topic.encode(), partition, broker)

    def coordinate(self, group: str, broker: int) -> None:
        """A broker becomes the coordinator of a group."""
        self._do("coordinator_set", b"group", group.encode(), broker)

    def forget_requests(self) -> None:
        """Note the requests from now on."""
        self._do("start_request_tracking")
        self._do("clear_requests")

    def requests(self) -> list[tuple[int, int]]:
        """Kind and broker of each request that was noted, in order."""
        library, count = self._library, ctypes.c_size_t()
        noted = library.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        requests = [
            (
                library.rd_kafka_mock_request_api_key(noted[i]),
                library.rd_kafka_mock_request_id(noted[i]),
            )
            for i in range(count.value)
        ]
        library.rd_kafka_mock_request_destroy_array(noted, count)
        return requests


@contextmanager
def mock_cluster(topic: str, partitions: int, brokers: int = 2) -> Iterator[MockCluster]:
    """A cluster with one topic, for as long as the block lasts."""
    library = _library()
    why = ctypes.create_string_buffer(512)
    settings = library.rd_kafka_conf_new()
    library.rd_kafka_conf_set(settings, b"log_level", b"0", why, 512)  # it is asked to fail
    handle = library.rd_kafka_new(0, settings, why, 512)
    assert handle, why.value
    cluster = library.rd_kafka_mock_cluster_new(handle, brokers)
    try:
        library.rd_kafka_mock_topic_create(cluster, topic.encode(), partitions, brokers)
        library.rd_kafka_mock_set_controller_id(cluster, 1)  # else nobody can ask for topic ids
        library.rd_kafka_mock_group_initial_rebalance_delay_ms(cluster, 0)
        yield MockCluster(library, cluster, topic)
    finally:
        library.rd_kafka_mock_cluster_destroy(cluster)
        library.rd_kafka_destroy(handle)


# -- the faults

EVENTS, PARTITIONS, GROUP = 1200, 2, "faults"
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
        producer = confluent_kafka.Producer(settings)
        for i in range(EVENTS):
            event = {"ts": "2026-01-01T00:00:00Z", "label": int(labels[i]), "score": scores[i]}
            producer.produce("events", json.dumps(event), partition=i % PARTITIONS)
        assert producer.flush(LIMIT_S) == 0
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
    return HEARTBEAT in kinds and JOIN_GROUP in kinds[kinds.index(HEARTBEAT) :]


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


def resource_counts() -> tuple[int, int]:
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
        # A join is held for as long as the mock's longest session: one that is short, where there
        # is another join, and long where a busy machine must not cause one.
        session_ms = 30_000 if fault == "nothing" else 1500
        source = source.replace("session_timeout_ms = 1000", f"session_timeout_ms = {session_ms}")
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
            # So that heartbeats and fetches fall into the time of the fault.
            is_felt = injected_s is None or injected.is_felt(cluster.requests())
            time.sleep(0.03 if is_felt else 0.3)

        config, stop = load_config(path), Stop()
        before = resource_counts()
        service.run(config, Options(until_end=True), stop=stop, report=report)
        ended_s = time.monotonic()
        assert injected_s is not None
        assert ended_s - injected_s >= injected.lasts_s
        assert injected.is_felt(cluster.requests())
        # The cluster lives in this process, and ends its side of a connection a little later.
        until(
            lambda: all(
                count <= limit for count, limit in zip(resource_counts(), before, strict=True)
            ),
            lambda: (before, resource_counts()),
        )
    capsys.readouterr()
    assert main(["results", config.store.url, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    auc, ctr = HistogramAUC(), Ratio()
    auc.update(labels, scores)
    ctr.update([int(label) for label in labels])
    assert answer["offsets"] == {f"events/{n}": EVENTS // PARTITIONS for n in range(PARTITIONS)}
    assert (answer["rows_read"], answer["quarantined"]) == (EVENTS, 0)
    digests = {row["metric"]: row["digest"] for row in answer["results"]}
    assert digests == {"auc": auc.digest(), "ctr": ctr.digest()}
