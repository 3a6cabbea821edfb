"""The bytes of parts, the frame, and a reader that trusts nothing."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.codec import (
    FILE_MAGIC,
    MAX_HEAD,
    STATE_MAGIC,
    Reader,
    Writer,
    frame,
    unframe,
)
from streammetrics.core.errors import StateError

INT64 = np.iinfo(np.int64)


def written(values: list[int]) -> bytes:
    out = Writer()
    out.ints(np.array(values, np.int64))
    return out.bytes_()


def varint(n: int) -> bytes:
    out = Writer()
    out.uint(n)
    return out.bytes_()


@given(st.integers(0, 1 << 200), st.lists(st.integers(0, INT64.max), max_size=20))
def test_integers_lead_back_to_themselves(n: int, values: list[int]) -> None:
    reader = Reader(varint(n))
    assert reader.uint(1 << 200) == n
    assert reader.left == 0
    reader = Reader(written(values))
    assert reader.ints(len(values)).tolist() == values
    assert reader.left == 0


def test_a_varint_is_seven_bits_a_byte_with_the_low_bits_first() -> None:
    assert [varint(n) for n in (0, 127, 128, 300)] == [b"\0", b"\x7f", b"\x80\x01", b"\xac\x02"]
    for longer in (b"\x80\x00", b"\x81\x80\x00", b"\xff\x80\x80\x00"):
        with pytest.raises(StateError, match="redundant bytes"):
            Reader(longer).uint()
    endless = Reader(b"\xff" * (1 << 20))
    with pytest.raises(StateError, match="above its limit of 1000"):
        endless.uint(1000)
    assert endless.at < 4


def test_ints_take_the_least_width_that_holds_the_largest() -> None:
    for top, width in (
        *((0, 0), (1, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4)),
        *((2**32 - 1, 4), (2**32, 8), (2**63 - 1, 8)),
    ):
        data = written([0, top, 0])
        assert data[0] == width
        assert len(data) == 1 + 3 * width
    assert written([]) == b"\0"


def test_ints_that_no_writer_writes_are_refused() -> None:
    for data, n, message in (
        *(  # the largest that needs fewer
            (bytes((w,)) + (256 ** (w // 2) - 1).to_bytes(w, "little"), 1, "that fit in fewer")
            for w in (1, 2, 4, 8)
        ),
        (b"\x01", 0, "integers stored in 1 bytes"),
        *((bytes((w,)) + bytes(100), 1, f"integer width of {w} bytes") for w in (3, 5, 9, 255)),
        (b"\x08" + (1 << 63).to_bytes(8, "little"), 1, "2\\*\\*63"),
        (b"\x08" + bytes(8), 10**9, "length of 8000000000 bytes with 8 left"),
    ):
        with pytest.raises(StateError, match=message):
            Reader(data).ints(n)
        if n == 1:
            with pytest.raises(StateError, match=message):
                Reader(data).int_()


def test_text_is_bounded_by_its_limit_and_by_what_is_left() -> None:
    out = Writer()
    out.text(b"abc")
    assert Reader(out.bytes_()).text(3) == b"abc"
    with pytest.raises(StateError, match="limit of 2"):
        Reader(out.bytes_()).text(2)
    with pytest.raises(StateError, match="length of 3 bytes with 2 left"):
        Reader(out.bytes_()[:-1]).text(3)


@pytest.mark.parametrize("sizes", [(), (0, 0), (3, 127, 1), (2, 128, 2), (130,), (127,) * 9])
def test_texts_are_read_together_as_one_by_one_wherever_the_bytes_end(
    sizes: tuple[int, ...],
) -> None:
    out = Writer()
    out.texts([bytes([65 + i]) * size for i, size in enumerate(sizes)])
    data = out.bytes_() + b"\x01x"

    def read(end: int, limit: int, together: bool) -> tuple[list[bytes], int] | str:
        reader = Reader(b"?" + data, 1, 1 + end)
        try:
            if together:
                return reader.texts(len(sizes), limit), reader.left
            return [reader.text(limit) for _ in sizes], reader.left
        except StateError as error:
            return str(error)

    for limit in (2, 127, 4096):
        for end in range(len(data) + 1):
            assert read(end, limit, together=True) == read(end, limit, together=False)


def test_bytes_that_nothing_has_read_are_refused() -> None:
    reader = Reader(b"ab")
    reader.raw(1)
    with pytest.raises(StateError, match="1 unread bytes at the end"):
        reader.finish()


def test_a_frame_is_laid_out_as_the_readme_draws_it() -> None:
    data = frame(STATE_MAGIC, b"head", b"the body")
    assert data[:4] == b"SMST"
    assert data[4] == 1
    assert data[5:9] == (4).to_bytes(4, "little")
    assert data[9:17] == (8).to_bytes(8, "little")
    assert data[17:29] == b"headthe body"
    assert data[29:] == zlib.crc32(data[:29]).to_bytes(4, "little")
    head, body = unframe(STATE_MAGIC, data)
    assert (head, bytes(body)) == (b"head", b"the body")


def test_a_frame_that_is_cut_or_longer_or_has_another_byte_is_refused() -> None:
    data = frame(STATE_MAGIC, b"head", b"the body")
    with pytest.raises(StateError, match="34 bytes instead of 33"):
        unframe(STATE_MAGIC, data + b"!")
    for position in range(len(data)):
        with pytest.raises(StateError):
            unframe(STATE_MAGIC, data[:position])
        for bit in range(8):
            altered = bytearray(data)
            altered[position] ^= 1 << bit
            with pytest.raises(StateError):
                unframe(STATE_MAGIC, altered)


def test_a_later_version_says_to_read_it_with_a_later_release() -> None:
    data = bytearray(frame(STATE_MAGIC, b"", b""))
    data[4] = 2
    data[-4:] = zlib.crc32(data[:-4]).to_bytes(4, "little")
    with pytest.raises(StateError) as caught:
        unframe(STATE_MAGIC, data)
    assert (caught.value.expected, caught.value.got) == ("format version 1", "version 2")
    assert "a later one" in caught.value.hint


def test_a_state_and_a_state_file_are_told_apart() -> None:
    with pytest.raises(StateError, match=r"got the bytes of a state file.*from_file_bytes"):
        unframe(STATE_MAGIC, frame(FILE_MAGIC, b"[]", b""))
    with pytest.raises(StateError, match=r"a state file, got the bytes of a state.*from_bytes"):
        unframe(FILE_MAGIC, frame(STATE_MAGIC, b"[]", b""))
    with pytest.raises(StateError, match="do not begin with SMST"):
        unframe(STATE_MAGIC, b"PK" + bytes(40))
    with pytest.raises(StateError, match="got only 5 bytes"):
        unframe(STATE_MAGIC, frame(STATE_MAGIC, b"[]", b"")[:5])


def test_settings_too_long_to_be_read_are_not_written() -> None:
    assert unframe(STATE_MAGIC, frame(STATE_MAGIC, b" " * MAX_HEAD, b""))
    with pytest.raises(StateError, match=f"at most {MAX_HEAD} bytes"):
        frame(STATE_MAGIC, b" " * (MAX_HEAD + 1), b"")
