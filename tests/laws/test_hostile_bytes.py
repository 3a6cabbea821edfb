"""Bytes that nobody wrote, with a checksum that is right: refused quickly, before memory is taken.

A checksum keeps accidents out, so each test here makes a new one: what is tested are the bounds
of the parts themselves. Bytes that are taken all the same must be the bytes of the state read.
`make check` tries a few of each kind on the first case of each class, `make test` many on every
case, chosen at random but always the same.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterable, Sequence
from functools import cache
from random import Random
from typing import Any

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import StateError, load
from streammetrics.core.codec import FILE_MAGIC, STATE_MAGIC, frame, unframe
from streammetrics.testing import Case
from tests.cases import CASES
from tests.depth import most_are_slow, tries

MOST_MEMORY = 2 << 20  # bytes for one state; its bytes are a few hundred, a grid a megabyte
# Of each kind of damage, in `make check` and in `make test`.
FEW, MANY = 20, tries(40, 600)

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
    """The bytes of a state of a few rows, the last that hypothesis thinks of."""
    found: list[Sequence[Any]] = []

    @hypothesis.settings(max_examples=5, phases=[hypothesis.Phase.generate])
    @given(st.lists(case.row, min_size=rows, max_size=rows))
    def draw(some: Sequence[Any]) -> None:
        found.append(some)

    draw()
    return case.fed(found[-1]).to_bytes()


def read(data: bytes) -> bool:
    """Whether bytes are taken, which only those of the state that comes out may be."""
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    try:
        state = load(data)
        taken = tracemalloc.get_traced_memory()[1] - before
        assert taken < MOST_MEMORY, f"{taken:,} bytes were taken"
    except StateError as error:
        taken = tracemalloc.get_traced_memory()[1] - before
        assert taken < MOST_MEMORY, f"{taken:,} bytes were taken"
        assert all((error.expected, error.came, error.where, error.todo))
        assert len(str(error)) < 2_000
        return False
    assert state.to_bytes() == data, "bytes were taken that this state does not write"
    return True


def frames(head: bytes, bodies: Iterable[bytes]) -> list[bytes]:
    return [frame(STATE_MAGIC, head, body) for body in bodies]


def taken_of(hostile: Sequence[bytes], n: int) -> int:
    """How many of these bytes, or of `n` of them, are taken."""
    chosen = Random(0).sample(hostile, min(n, len(hostile)))
    tracemalloc.start()
    try:
        return sum(map(read, chosen))
    finally:
        tracemalloc.stop()


# The others have their many.
FIRST = [one for one in most_are_slow(CASES) if not one.marks]

pytestmark = [
    pytest.mark.parametrize(
        ("case", "n"),
        [pytest.param(*one.values, FEW, marks=one.marks, id=f"{one.id}-few") for one in FIRST]
        + [pytest.param(case, MANY, marks=pytest.mark.slow, id=f"{case}-many") for case in CASES],
    ),
]


def test_a_body_cut_anywhere_or_too_long_is_refused(case: Case[Any], n: int) -> None:
    head, body = unframe(STATE_MAGIC, small_state(case))
    bodies = [bytes(body[:i]) for i in range(len(body))]
    bodies += [bytes(body) + more for more in (b"\0", b"\1", bytes(body))]
    assert taken_of(frames(head, bodies), n) == 0


def test_a_body_with_any_byte_altered_is_refused_or_is_another_state(
    case: Case[Any], n: int
) -> None:
    head, body = unframe(STATE_MAGIC, small_state(case))
    altered = (
        bytes(body[:at]) + bytes((new,)) + bytes(body[at + 1 :])
        for at in range(len(body))
        for new in {0, 1, 2, 0x7F, 0x80, 0xFF, body[at] ^ 1, body[at] ^ 0x80} - {body[at]}
    )
    taken_of(frames(head, altered), n)


def test_a_huge_claim_in_any_field_takes_no_memory(case: Case[Any], n: int) -> None:
    head, body = unframe(STATE_MAGIC, small_state(case))
    claims = (
        bytes(body[:at]) + claim + bytes(body[at + rest :])
        for at in range(len(body))
        for claim in HUGE
        for rest in (1, len(body))
    )
    taken_of(frames(head, claims), n)


STRANGE = json.loads(
    """[
    null, true, false, -1, 0, 1, 7, 2147483648, 1000000000000000000000000000000, -0.5, 0.0, 0.5,
    1e308, "", "x", [], [1, "a"], {}, [[[[]]]],
    {"$float": "inf"}, {"$float": "-inf"}, {"$fraction": "1/3"}, {"$map": {}}, {"$map": {"a": 1}},
    {"$metric": ["ratio/2", {}]}, {"$metric": ["none/1", {}]}, {"$metric": []},
    {"$map": {"a": {"$metric": ["ratio/2", {}]}}}, "NDCG@10", ["NDCG@10"], ["NDCG@999999999"]
    ]"""
)


def test_settings_of_any_value_are_refused_or_are_those_of_a_metric(
    case: Case[Any], n: int
) -> None:
    head, body = unframe(STATE_MAGIC, small_state(case, 1))
    schema, settings = json.loads(head)
    others = [
        json.dumps([schema, {**settings, name: value}], sort_keys=True, separators=(",", ":"))
        for name in settings
        for value in STRANGE
    ]
    hostile = [data for o in others for data in frames(o.encode(), (bytes(body), bytes(64)))]
    taken_of(hostile, n)


def test_settings_with_any_byte_altered_are_refused_or_are_those_of_a_metric(
    case: Case[Any], n: int
) -> None:
    head, body = unframe(STATE_MAGIC, small_state(case, 1))
    heads = (
        head[:at] + bytes((new,)) + head[at + 1 :]
        for at in range(len(head))
        for new in b'09-"{[ \xff'
    )
    taken_of([frame(STATE_MAGIC, other, bytes(body)) for other in heads], n)


def test_a_state_file_with_any_byte_altered_is_refused(case: Case[Any], n: int) -> None:
    state = load(small_state(case))
    state.provenance.add("s", 0, 7)
    data = state.to_file_bytes()
    head, body = unframe(FILE_MAGIC, data)
    hostile = [data[:i] for i in range(len(data))]
    hostile += [data[:i] + bytes((data[i] ^ 1 << i % 8,)) + data[i + 1 :] for i in range(len(data))]
    hostile += [frame(FILE_MAGIC, head, bytes(body[:i])) for i in range(len(body))]
    hostile += [frame(FILE_MAGIC, head[:i], bytes(body)) for i in range(len(head))]
    assert taken_of(hostile, n) == 0
