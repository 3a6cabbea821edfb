"""A state is stored packed: the same bytes come back, in a fraction of the room, and nothing that a
store may hold in their place is inflated past the size of a row."""

from __future__ import annotations

import base64
import random
import tracemalloc
import zlib
from collections.abc import Callable

import numpy as np
import pytest
from streammetrics_consumers.ledger.packing import _START, LIMIT, Array, packed, size_of, unpacked

from streammetrics import (
    Accumulator,
    ExactAUC,
    GroupedAUC,
    HistogramAUC,
    Panel,
    PerKey,
    StateError,
)

RNG = np.random.default_rng(21)


def many_slices(metric: Accumulator, rows: int = 40_000, slices: int = 100) -> PerKey:
    state = PerKey(metric)
    scores = np.minimum(0.004 * np.exp(RNG.standard_normal(rows)), 1)
    columns = {"labels": RNG.random(rows) < scores, "scores": scores}
    if isinstance(metric, GroupedAUC):
        columns["groups"] = RNG.integers(0, 2000, rows)
    state.update(RNG.integers(0, slices, rows), **columns)
    return state


@pytest.mark.parametrize(
    ("metric", "times"),
    [
        (HistogramAUC(), 4),
        (HistogramAUC(resolution=4), 4),
        (ExactAUC(), 1.5),
        (GroupedAUC(), 1.5),
        (Panel({"a": HistogramAUC(), "b": ExactAUC()}), 1.5),
    ],
    ids=["sparse cells", "nearly all cells", "rows", "groups", "several"],
)
def test_a_state_of_many_slices_takes_a_fraction_of_its_bytes(
    metric: Accumulator, times: float
) -> None:
    state = many_slices(metric)
    data, arrays = state.encoded()
    assert data == state.to_bytes()
    small = packed(data, arrays)
    assert times * len(small) < len(data)
    assert unpacked(small, len(data), "a test") == data
    assert size_of(small) == len(data)


def test_any_arrays_come_back_wherever_they_lie() -> None:
    """The differences of integers of each width wrap around; arrays touch, or are the whole."""
    lucky = random.Random(0)
    for _ in range(200):
        arrays: list[Array] = []
        parts = [RNG.bytes(lucky.choice([0, 1, 7, 2000]))]
        for _ in range(lucky.randrange(4)):
            width, n = lucky.choice([1, 2, 4, 8]), lucky.choice([0, 1, 2, 33, 1000])
            top = lucky.choice([2, 3, 4, 15, 16, 40, 256, 1 << (8 * width - 1)])
            least = lucky.choice([0, 1])
            values = RNG.integers(least, top, n, dtype=np.uint64).astype(f"<u{width}")
            if lucky.random() < 0.5:
                values.sort()
            arrays.append((sum(map(len, parts)), width, n))
            parts += [values.tobytes(), RNG.bytes(lucky.choice([0, 0, 3, 900]))]
        data = b"".join(parts)
        small = packed(data, arrays)
        assert not small or len(small) < len(data)
        assert unpacked(small or data, len(data), "a test") == data


def test_arrays_past_the_number_that_a_reader_accepts_are_bytes_like_others() -> None:
    data = bytes(1 << 18)
    small = packed(data, [(i, 1, 1) for i in range(5000)])
    assert 0 < len(small) < len(data)
    assert unpacked(small, len(data), "a test") == data


def test_a_short_state_and_one_larger_than_a_row_are_stored_as_they_are() -> None:
    for size in (1023, LIMIT + 1):
        assert packed(bytes(size), ()) == b""
    for size in (1024, LIMIT):
        small = packed(bytes(size), ())
        assert 0 < len(small) < size
        assert unpacked(small, size, "a test") == bytes(size)
    # A state that looks packed, but is as long as its row says, is what it is.
    odd = packed(bytes(2000), ())
    assert unpacked(odd + bytes(2000 - len(odd)), 2000, "a test")[:4] == b"SMPK"


# The same state, as releases wrote it in each version.
STORED = {
    1: "Q%z7y0TBlP00IC203rYY0ApidV2EI1U|?coWMlw?Z7dKGMh2(=LsDv5eo<;_UJ3vcV4yt^V4yt^V4ywtY)pIb*_ig="
    "voY<#gb5Qq3Jyl_QE)H<4GjP",
    2: "Q%z7y0ucuQ00IC203!eZ0ApidV2EI1U|?coVq^e=Z7dKGMkXeR07Fu0T7FS#YF-Keb6_A9I53b392iIipN(k`J{!{>"
    "d^V;%m@r|&0S2mp0}NCH>goU",
}


@pytest.mark.parametrize("version", STORED)
def test_rows_of_every_version_are_read(version: int) -> None:
    positions = np.arange(600)
    cells = np.cumsum(np.where(positions % 200 == 0, 400, 3)).astype("<u2")
    counts = np.where(positions % 300 == 0, 40, 1).astype(np.uint8)
    data = b"before" + cells.tobytes() + counts.tobytes() + b"end"
    stored = base64.b85decode(STORED[version])
    assert stored[4] == version
    assert unpacked(stored, len(data), "a test") == data


def raw(data: bytes) -> bytes:
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush()


def bomb(megabytes: int) -> bytes:
    """Zeros, compressed. What is before a full flush does not matter to what comes after it."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = compressor.compress(bytes(1 << 20)) + compressor.flush(zlib.Z_FULL_FLUSH)
    return block * megabytes + compressor.flush()


BOMB = bomb(256)


def row(size: int, first: bytes, second: bytes, n_arrays: int = 0, version: int = 2) -> bytes:
    return _START.pack(b"SMPK", version, size, n_arrays, len(first)) + first + second


def entry(first: int, n: int, width: int, ascends: int = 0, *forms: int) -> bytes:
    numbers = first.to_bytes(4, "little") + n.to_bytes(4, "little")
    return numbers + bytes([width, ascends, *forms]).ljust(10, b"\0")


MANY = entry(0, 0, 8) * (1 << 17)  # of no bytes, so that they fit into any state

HOSTILE: dict[str, bytes] = {
    "of another version": row(2000, raw(bytes(2000)), raw(b""), version=3),
    "of more than a row": row(LIMIT + 1, raw(bytes(LIMIT + 1)), raw(b"")),
    "inflated first": row(2000, BOMB, raw(b"")),
    "inflated arrays": row(2000, raw(b""), BOMB),
    "a first stream past the end": _START.pack(b"SMPK", 1, 2000, 0, 1 << 31) + raw(bytes(2000)),
    "streams cut off": row(2000, raw(bytes(2000))[:-2], raw(b"")),
    "bytes after the streams": row(2000, raw(bytes(2000)), raw(b"") + b"x"),
    "too few bytes": row(2000, raw(bytes(1999)), raw(b"")),
    "a number of arrays that is none": row(2000, raw(bytes(2000)), raw(b""), 1 << 31),
    "no entries": row(2000, raw(b""), raw(bytes(2000)), 1),
    "more arrays than a state has": row(LIMIT, raw(MANY + bytes(LIMIT)), raw(b""), len(MANY) // 18),
    "an array past the end": row(2000, raw(entry(0, 501, 4)), raw(bytes(2000)), 1),
    "a huge array": row(2000, raw(entry(0, 0xFFFFFFFF, 8, 0, *[1] * 8)), raw(bytes(2000)), 1),
    "arrays that overlap": row(
        2000, raw(entry(0, 999, 1) + entry(998, 1001, 1)), raw(bytes(2000)), 2
    ),
    "integers of three bytes": row(3000, raw(entry(0, 1000, 3)), raw(bytes(3000)), 1),
    "integers of no bytes": row(2000, raw(entry(0, 5, 0) + bytes(2000)), raw(b""), 1),
    "an unknown form": row(2000, raw(entry(0, 2000, 1, 0, 3)), raw(bytes(2000)), 1),
    "a form of a later version": row(2000, raw(entry(0, 2000, 1, 0, 2)), raw(bytes(500)), 1, 1),
    "a form of no bytes": row(2000, raw(entry(0, 2000, 1, 0, 0, 1)), raw(bytes(2000)), 1),
    "a flag that is none": row(2000, raw(entry(0, 2000, 1, 3)), raw(bytes(2000)), 1),
    "a flag of a later version": row(2000, raw(entry(0, 2000, 1, 2)), raw(bytes(2000)), 1, 1),
    "large bytes that are missing": row(2000, raw(entry(0, 2000, 1, 0, 1)), raw(b"\xff" * 1000), 1),
    "three and more that are missing": row(
        2000, raw(entry(0, 2000, 1, 0, 2)), raw(b"\xff" * 500), 1
    ),
    "bytes of no array": row(2000, raw(entry(0, 1000, 1) + bytes(1000)), raw(bytes(1001)), 1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_rows_are_refused_in_little_memory(name: str) -> None:
    data = HOSTILE[name]
    tracemalloc.start()
    with pytest.raises(StateError, match="restore the store from a copy") as caught:
        unpacked(data, size_of(data), "the state of a delta row of auc")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "the state of a delta row of auc" in str(caught.value)
    assert peak < 3 * LIMIT


def test_a_row_of_another_size_than_recorded_is_refused() -> None:
    data, arrays = many_slices(HistogramAUC()).encoded()
    small = packed(data, arrays)
    for stored, nbytes in ((small, len(data) + 1), (small, len(small)), (data, len(small))):
        with pytest.raises(StateError, match=f"expected {nbytes} bytes, as the row records"):
            unpacked(stored, nbytes, "a test")


def test_a_damaged_row_never_gives_another_state() -> None:
    state = many_slices(HistogramAUC(), 2000, 10)
    data, arrays = state.encoded()
    small = packed(data, arrays)
    changes: list[Callable[[int], bytes]] = [
        lambda position: small[:position],
        lambda position: (
            small[:position] + bytes([small[position] ^ 1 << position % 8]) + small[position + 1 :]
        ),
        lambda position: small[:position] + small[position + 1 :],
    ]
    for index in range(0, len(small), 3):
        for change in changes:
            try:
                result = PerKey.from_bytes(unpacked(change(index), len(data), "a test"))
            except StateError:
                continue
            assert result == state
