"""Batches are decompressed as kafka-python does it, up to a limit and no further."""

from __future__ import annotations

import gzip
import tracemalloc

import pytest

pytest.importorskip("kafka", reason="needs the extra kafka")

from kafka import codec
from streammetrics_consumers.sources.kafka.batch_codecs import (
    DamagedBatch,
    OverLimit,
    decompressed,
)

LIMIT = 1 << 20
ENCODED = {
    "gzip": (1, codec.gzip_encode),
    "two members of gzip": (1, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])),
    "snappy in blocks": (2, codec.snappy_encode),
    "snappy": (2, codec.snappy.compress),
    "lz4": (3, codec.lz4_encode),
    "zstd": (4, codec.zstd_encode),
    "two frames of zstd": (4, lambda d: codec.zstd_encode(d[:9]) + codec.zstd_encode(d[9:])),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_is_within_the_limit_comes_back(name: str) -> None:
    kind, encode = ENCODED[name]
    for size in (10, 70_000, LIMIT):
        data = (b"0123456789" * (size // 10 + 1))[:size]
        assert decompressed(kind, encode(data), LIMIT) == data


@pytest.mark.parametrize("name", ENCODED)
def test_a_byte_more_is_refused_and_a_bomb_takes_no_more_memory_than_the_limit(name: str) -> None:
    kind, encode = ENCODED[name]
    with pytest.raises(OverLimit):
        decompressed(kind, encode(b"\0" * (LIMIT + 1)), LIMIT)
    bomb = encode(b"\0" * (8 * LIMIT))
    tracemalloc.start()
    with pytest.raises(OverLimit):
        decompressed(kind, bomb, LIMIT)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 * LIMIT


def test_what_ends_too_early_is_damaged() -> None:
    for name, (kind, encode) in ENCODED.items():
        if "zstd" in name:
            continue  # of Zstandard that is found where the records end
        whole = encode(b"0123456789" * 100)
        for data in (whole[:-1], whole[: len(whole) // 2], whole[1:]):
            with pytest.raises(DamagedBatch):
                decompressed(kind, data, LIMIT)


def test_a_size_that_snappy_claims_is_not_made() -> None:
    claimed = b"\xff\xff\xff\xff\x0f" + codec.snappy.compress(b"x")[1:]
    with pytest.raises(OverLimit):
        decompressed(2, claimed, LIMIT)
