"""Extreme: the greatest or least of each slot."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.errors import StateError
from streammetrics.core.parts.part import Extreme, ExtremeColumn
from tests.toys import Reach

ENDS = [-(2**63) + 1, -1, 0, 1, 2**63 - 1]  # all but -2**63, which has no negative


def encoded(column: ExtremeColumn) -> bytes:
    out = Writer()
    column.encode(out)
    return out.bytes_()


def values(column: ExtremeColumn) -> list[int | None]:
    return [column.value(slot) for slot in range(column.width)]


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize("seed", range(3))
def test_random_operations_agree_with_a_list(kind: str, seed: int) -> None:
    random, best = Random(seed), {"max": max, "min": min}[kind]
    part = Extreme(kind)
    column, model = part.empty(Reach(), 2), [None, None]

    def better(slot: int, value: int | None) -> None:
        known = [v for v in (model[slot], value) if v is not None]
        model[slot] = best(known) if known else None

    for _ in range(40):
        match random.choice(["add", "add one slot", "merge", "take", "widen"]):
            case "add":
                rows = [(random.randrange(len(model)), random.choice(ENDS)) for _ in range(3)]
                column.add(np.array([v for _, v in rows]), np.array([s for s, _ in rows]))
                for slot, value in rows:
                    better(slot, value)
            case "add one slot":
                some = [random.choice(ENDS) for _ in range(random.choice([0, 2]))]
                column.add(np.array(some, np.int64))
                for value in some:
                    better(0, value)
            case "merge":
                other = part.empty(Reach(), 3)
                other.add(np.array([random.choice(ENDS)]), np.array([1]))
                to = [random.randrange(len(model)) for _ in range(3)]
                before = encoded(other)
                column.merge(other, np.array(to))
                assert encoded(other) == before
                better(to[1], other.value(1))
            case "take":
                slots = [random.randrange(len(model)) for _ in range(random.choice([1, 3]))]
                old, kept = column, encoded(column)
                column, model = column.take(np.array(slots)), [model[slot] for slot in slots]
                column.add(np.array([random.choice(ENDS)]))
                better(0, column.value(0))
                assert encoded(old) == kept
            case _:
                column.widen(len(model) + 9)
                model.extend([None] * 9)
        assert values(column) == model
        back = part.decode(Reach(), len(model), Reader(encoded(column)))
        assert values(back) == model
        assert encoded(back) == encoded(column)


def test_a_state_takes_a_bit_and_eight_bytes_where_there_is_a_value() -> None:
    column = Extreme("max").empty(Reach(), 9)
    column.add(np.array([5]), np.array([8]))
    assert encoded(column) == b"\x00\x80" + (5).to_bytes(8, "little")


@pytest.mark.parametrize(
    "data",
    [
        b"\x01",  # a bit beyond the one state
        b"\x81" + bytes(8),
        b"\x80" + bytes(7),
        b"",
        b"\x80" + (1 << 63).to_bytes(8, "little"),
    ],
)
def test_bytes_that_no_extreme_has_are_refused(data: bytes) -> None:
    with pytest.raises(StateError):
        reader = Reader(data)
        Extreme("max").decode(Reach(), 1, reader)
        reader.finish()
