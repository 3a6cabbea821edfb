"""The law of sets: a file of its own, as `laws.py` is long."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from streammetrics.core.accumulator import Accumulator
from streammetrics.testing.case import Case, Row


def idempotence(case: Case[Row], rows: Sequence[Row], random: Random) -> None:
    """Of a metric that says so, `a + a` is `a`, and rows count once however often they come."""
    if not case.empty.idempotent:
        return
    state = case.fed(rows)
    _equal(state + state, state, "a + a", "a")
    some = random.sample(list(rows), random.randint(0, len(rows)))
    _equal(state + case.fed(some), state, "a and some of its rows", "a")
    if some:
        again = state.copy()
        again.update(**case.columns(some))
        _equal(again, state, "a fed with some of its rows", "a")


def _equal(a: Accumulator, b: Accumulator, name_a: str, name_b: str) -> None:
    assert a.to_bytes() == b.to_bytes(), f"{name_a} is not {name_b}"
