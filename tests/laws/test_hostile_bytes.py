"""Bytes that nobody wrote, with a checksum that is right: refused quickly, before memory is taken.

A checksum keeps accidents out, so each test here makes a new one: what is tested are the bounds
of the parts themselves. Bytes that are taken all the same must be the bytes of the state read.
`make check` tries the first case of each class, `make test` every case, with some of each kind,
chosen at random but always the same.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable, Sequence
from functools import cache, partial
from random import Random
from typing import Any

import pytest

from streammetrics import StateError, load
from streammetrics.core.codec import FILE_MAGIC, STATE_MAGIC, frame, unframe
from streammetrics.testing import Case
from tests.cases import CASES, drawn_rows
from tests.depth import classes_first, first_of_each_class, tries

pytestmark = pytest.mark.xdist_group("hostile")  # one worker makes the small states, once

MOST_MEMORY = 2 << 20  # bytes for one state; its bytes are a few hundred, a grid a megabyte
# Of each kind of damage: to the first case of a class, and to others, whose parts are the same.
SOME = tries(5, 600)
FEW = tries(2, 600)
FIRST = first_of_each_class(CASES)

HUGE = [
    b"\xff" * 9 + b"\x7f",  # a varint of 2**70
    b"\xff\xff\xff\xff\x07",  # a varint of 2**31 - 1
    b"\x08" + (2**63 - 1).to_bytes(8, "little") * 3,  # ints of 8 bytes
    b"\x08" + (2**40).to_bytes(8, "little") * 3,
    b"\x04" + (2**31).to_bytes(4, "little") * 3,
    b"\x00" * 40,
    b"\xff" * 40,
    b"",
]


@cache
def small_state(case: Case[Any], rows: int = 7) -> bytes:
    """The bytes of a state of a few rows."""
    return case.fed(drawn_rows(case, rows)).to_bytes()


def opened(data: bytes, magic: bytes = STATE_MAGIC) -> tuple[bytes, bytes]:
    """Head and body."""
    head, body = unframe(magic, data)
    return head, bytes(body)


def read(name: str, data: bytes) -> bool:
    """Whether bytes are taken, which only those of the state that comes out may be."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    try:
        state = load(data)
    except StateError as error:
        state = None
        assert all((error.expected, error.got, error.where, error.hint)), name
        assert len(str(error)) < 2_000, name
    memory = tracemalloc.get_traced_memory()[1] - before
    assert memory < MOST_MEMORY, f"{name}: {memory:,} bytes of memory"
    assert state is None or state.to_bytes() == data, f"{name}: taken, but not what it writes"
    return state is not None


@cache
def import_what_errors_need() -> None:
    """The first state of an unknown metric imports more than a state may take."""
    with pytest.raises(StateError):
        load(framed(b'["none/1",{}]', b""))


Made = Callable[[], bytes]  # of thousands only those that are chosen are made


def count_accepted(name: str, hostile: Sequence[Made], limit: int) -> int:
    """How many of these bytes are taken, at most `limit` of them; `name` says of what kind."""
    import_what_errors_need()
    chosen = [make() for make in Random(0).sample(hostile, min(limit, len(hostile)))]
    tracemalloc.start()
    try:
        return sum(read(name, data) for data in chosen)
    finally:
        tracemalloc.stop()


def framed(head: bytes, body: bytes) -> bytes:
    return frame(STATE_MAGIC, head, body)


def with_part(data: bytes, start: int, stop: int, part: bytes) -> bytes:
    return data[:start] + part + data[stop:]


def body_with(head: bytes, body: bytes, start: int, stop: int, part: bytes) -> Made:
    """The state whose body has this in place of a part."""
    return lambda: framed(head, with_part(body, start, stop, part))


def cut_or_too_long(case: Case[Any]) -> list[Made]:
    head, body = opened(small_state(case))
    end = len(body)
    longer = [body_with(head, body, end, end, tail) for tail in (b"\0", b"\1", body)]
    return [body_with(head, body, i, end, b"") for i in range(end)] + longer


def any_byte_altered(case: Case[Any]) -> list[Made]:
    head, body = opened(small_state(case))
    return [
        body_with(head, body, index, index + 1, bytes((new,)))
        for index in range(len(body))
        for new in {0, 1, 2, 0x7F, 0x80, 0xFF, body[index] ^ 1, body[index] ^ 0x80} - {body[index]}
    ]


def huge_claims(case: Case[Any]) -> list[Made]:
    head, body = opened(small_state(case))
    return [
        body_with(head, body, index, index + rest, claim)
        for index in range(len(body))
        for claim in HUGE
        for rest in (1, len(body))
    ]


STRANGE = json.loads(
    """[
    null, true, false, -1, 0, 1, 7, 2147483648, 1000000000000000000000000000000, -0.5, 0.0, 0.5,
    1e308, "", "x", [], [1, "a"], {}, [[[[]]]],
    {"$float": "inf"}, {"$float": "-inf"}, {"$fraction": "1/3"}, {"$map": {}}, {"$map": {"a": 1}},
    {"$metric": ["ratio/2", {}]}, {"$metric": ["none/1", {}]}, {"$metric": []},
    {"$map": {"a": {"$metric": ["ratio/2", {}]}}}, "NDCG@10", ["NDCG@10"], ["NDCG@999999999"]
    ]"""
)


def strange_settings(case: Case[Any]) -> list[Made]:
    head, body = opened(small_state(case, 1))
    schema, settings = json.loads(head)
    texts = [
        json.dumps([schema, {**settings, name: value}], sort_keys=True, separators=(",", ":"))
        for name in settings
        for value in STRANGE
    ]
    return [
        partial(framed, text.encode(), payload) for text in texts for payload in (body, bytes(64))
    ]


def altered_settings(case: Case[Any]) -> list[Made]:
    head, body = opened(small_state(case, 1))
    return [
        partial(framed, with_part(head, index, index + 1, bytes((new,))), body)
        for index in range(len(head))
        for new in b'09-"{[ \xff'
    ]


def altered_files(case: Case[Any]) -> list[Made]:
    state = load(small_state(case))
    state.provenance.add("s", 0, 7)
    data = state.to_file_bytes()
    head, body = opened(data, FILE_MAGIC)

    def of_file(head_end: int, body_end: int) -> bytes:
        return frame(FILE_MAGIC, head[:head_end], body[:body_end])

    hostile: list[Made] = [partial(with_part, data, i, len(data), b"") for i in range(len(data))]
    hostile += [
        partial(with_part, data, i, i + 1, bytes((data[i] ^ 1 << i % 8,))) for i in range(len(data))
    ]
    hostile += [partial(of_file, len(head), i) for i in range(len(body))]
    return hostile + [partial(of_file, i, len(body)) for i in range(len(head))]


NEVER_TAKEN = (cut_or_too_long, altered_files)
MAY_BE_ANOTHER_STATE = (any_byte_altered, huge_claims, strange_settings, altered_settings)


@pytest.mark.parametrize("case", classes_first(CASES), ids=str)
def test_hostile_bytes_are_refused_or_are_those_of_another_state(case: Case[Any]) -> None:
    for make in NEVER_TAKEN + MAY_BE_ANOTHER_STATE:
        accepted = count_accepted(make.__name__, make(case), SOME if case in FIRST else FEW)
        assert make in MAY_BE_ANOTHER_STATE or not accepted, make.__name__
