"""Record batches made by hand and sent to a broker as they are, whatever they would become."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence
from typing import Final

from kafka.record.memory_records import MemoryRecordsBuilder

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
    for attempt in range(100):
        time.sleep(0.1 if attempt else 0)
        with socket.create_connection((host, int(port)), timeout=30) as link:
            link.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))
            answer = link.recv(size, socket.MSG_WAITALL)
        error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
        if error not in NOT_YET:
            break
    assert error == 0, f"the broker refuses the batch: error {error}"
    return int(offset)
