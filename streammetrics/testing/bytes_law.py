"""The law of bytes in between: a file of its own, as `laws.py` is long."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import StateError
from streammetrics.testing.callers import completed
from streammetrics.testing.case import Case, Row

_OFTEN: Final = 0.6  # the share of steps after which a state goes through bytes


def readable(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """`to_bytes` never writes what `from_bytes` refuses, whatever a state went through, and a state
    that is read goes on as the one that was written."""
    n = random.randint(2, 4)
    shards: list[list[Row]] = [[] for _ in range(n)]
    for row in rows:
        random.choice(shards).append(row)
    pairs = [_fed(case, shard, random) for shard in shards]
    while len(pairs) > 1:
        state, twin = pairs.pop(random.randrange(len(pairs)))
        other, its_twin = pairs.pop(random.randrange(len(pairs)))
        state.merge(other)
        twin.merge(its_twin)
        pairs.append((_read(state, "merges", random), twin))
    ((state, twin),) = pairs
    assert _again(state, "merges").to_bytes() == twin.to_bytes(), (
        "a state that went through bytes in between is not the one that did not"
    )


def _fed(case: Case[Row], rows: Sequence[Row], random: Random) -> tuple[Accumulator, Accumulator]:
    """The state of these rows, which went through bytes in between, and the one that did not."""
    state, twin = _read(case.empty.empty(), "nothing", random), case.empty.empty()
    while rows:
        cut = random.randint(1, len(rows))
        columns, rows = case.columns(rows[:cut]), rows[cut:]
        state = completed(state, case.empty, columns)
        state.update(**columns)
        twin.update(**columns)
        state = _read(state, "updates", random)
    return state, twin


def _read(state: Accumulator, after: str, random: Random) -> Accumulator:
    """The state, or what its bytes lead back to."""
    return _again(state, after) if random.random() < _OFTEN else state


def _again(state: Accumulator, after: str) -> Accumulator:
    data = state.to_bytes()
    try:
        back = type(state).from_bytes(data)
    except StateError as error:
        raise AssertionError(f"from_bytes refuses what to_bytes wrote after {after}") from error
    assert back.to_bytes() == data, f"other bytes after {after} once they were read"
    return back
