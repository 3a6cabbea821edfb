"""librdkafka's mock cluster: it speaks Kafka's protocol, and fails on request.

It lies in the wheel of confluent-kafka, which does not show it to Python, so its C functions are
called by name. It knows no transactions, and its members leave a group only in their time. Records
are written to it by a producer of either library.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import confluent_kafka

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
        found = getattr(self._library, f"rd_kafka_mock_{name}")(self._cluster, *arguments)
        assert not found, f"{name}: {found}"

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
        found = [
            (
                library.rd_kafka_mock_request_api_key(noted[i]),
                library.rd_kafka_mock_request_id(noted[i]),
            )
            for i in range(count.value)
        ]
        library.rd_kafka_mock_request_destroy_array(noted, count)
        return found


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
