"""Bytes of former schemas: a part that they lack is unknown, and all laws of merging hold."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import pytest

from streammetrics import (
    Accumulator,
    Calibration,
    Panel,
    PerKey,
    Regression,
    StateError,
    StoredPerKey,
    UserGroups,
    load,
)
from streammetrics.core.batch import Batch
from streammetrics.core.codec import STATE_MAGIC, Writer, frame, unframe
from streammetrics.core.errors import SettingsError
from streammetrics.core.inputs import Inputs, Integers
from streammetrics.core.layouts import Schemas, without_later_parts
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.exact_sum import ExactSum
from streammetrics.core.settings import CLASSES, decode_head
from streammetrics.engines.merging import agree, merged
from streammetrics.present.estimand import estimand_of
from tests.golden.former_states import FOLDER, FORMER, ROWS
from tests.golden.write import readable

NAMES = [*FORMER]


def former_bytes(state: Accumulator) -> bytes:
    """A state as the oldest layout has it."""
    state._encode(out := Writer(left_out=[]))
    return frame(STATE_MAGIC, former_head(state), *out.chunks)


def former_head(state: Accumulator) -> bytes:
    """The head of a state with the oldest schema of each metric."""
    head = state._head().decode()
    for kind in {*CLASSES.values()}:
        former = [name for name, lacks in kind._schemas.items() if not isinstance(lacks, str)]
        if former:
            head = head.replace(f'["{kind.schema}"', f'["{former[0]}"')
    return head.encode()


def pieces(name: str, n: int) -> Iterator[Accumulator]:
    """States of more and more rows."""
    return (FORMER[name](i) for i in range(1, n))


@pytest.mark.parametrize("name", NAMES)
def test_bytes_of_a_former_schema_are_read_as_a_state_of_today(name: str) -> None:
    data = (FOLDER / f"{name}.state").read_bytes()
    state, today = load(data), FORMER[name](ROWS)
    assert type(state).load(data) == state
    assert former_bytes(today) == unframe(b"SMFI", data)[1], "the test writes what former code did"
    assert state._head() == today._head()
    assert without_later_parts(state) == (without_later_parts(today)[0], True)
    assert not without_later_parts(today)[1]
    assert agree(state, today) and not agree(state, FORMER[name](ROWS - 1))
    assert json.dumps(readable(state.compute())) == json.dumps(readable(today.compute()))
    copy = load(state.to_file_bytes())
    assert copy.to_file_bytes() == state.to_file_bytes()


@pytest.mark.parametrize("name", [name for name in NAMES if not name.startswith("sealed")])
def test_what_is_unknown_adds_up_as_rows_do(name: str) -> None:
    """The unknown parts of some rows and of others are those of all, however they are added."""
    states = [*pieces(name, 8)]
    bytes_ = [former_bytes(state) for state in states]
    total = load(former_bytes(sum(states)))  # type: ignore[arg-type,call-overload]
    state_list = [load(data) for data in bytes_]
    assert sum(state_list) == sum(reversed(state_list)) == total
    assert merged(bytes_) == total
    mixed = [load(former_bytes(state)) if i % 2 else state for i, state in enumerate(states)]
    assert sum(mixed) == sum(reversed(mixed))
    assert without_later_parts(sum(mixed))[1] and without_later_parts(mixed[1] + mixed[0])[1]
    assert load(former_bytes(states[0].empty())) == states[0].empty(), (
        "of no rows nothing is unknown"
    )


def test_many_states_of_one_former_layout_are_read_side_by_side() -> None:
    encodings = []
    for i in range(20):
        state = Regression()
        state.update([i % 3 + 1.0], [0.5])
        encodings.append(former_bytes(state))
    singly = Regression()
    for data in encodings:
        singly.merge(Regression.from_bytes(data))
    assert merged(encodings) == singly
    assert singly.cubes.infinities.tolist() == [[20, 20]]


def test_keys_are_read_one_by_one_from_former_and_current_bytes() -> None:
    today = FORMER["panel-per-key"](ROWS)
    assert isinstance(today, PerKey)
    stored = StoredPerKey([former_bytes(today), today.to_bytes(), former_bytes(today)])
    whole = load(former_bytes(today)) + today + load(former_bytes(today))
    for key in sorted(stored.keys()):
        assert stored.state(key) == whole.state(key)
    assert stored.overflow_state() == whole.overflow_state()


def test_many_keys_of_former_bytes_are_read_at_once() -> None:
    today = PerKey(Panel({"errors": Regression(), "fit": Calibration()}))
    keys = np.arange(120) % 40
    today.update(keys=keys, labels=keys % 2, scores=(keys + 1) / 64)
    former = load(former_bytes(today))
    assert without_later_parts(former) == (without_later_parts(today)[0], True)
    assert load(former.to_bytes()) == former
    assert former.chosen([3]) == load(former_bytes(today.chosen([3])))


def test_a_state_whose_rows_are_partly_unknown_has_no_number_of_skewness() -> None:
    today = Regression()
    today.update(np.arange(9.0), np.arange(9.0) ** 2)
    former = load(former_bytes(today))
    assert math.isfinite(estimand_of(today.compute(), "mae").skewness_number)
    for state in (former, former + today, today + former):
        assert math.isnan(estimand_of(state.compute(), "mae").skewness_number)
        assert (
            state.compute().interval("mae").se
            == (state + today.empty()).compute().interval("mae").se
        )


def test_bytes_that_no_version_wrote_are_refused() -> None:
    today = FORMER["panel-per-key"](ROWS)
    regression = FORMER["regression-alone"](ROWS)
    for state in (today, regression, FORMER["sealed-regression"](ROWS)):
        state._encode(current := Writer())
        state._encode(former := Writer(left_out=[]))
        head, old_head = state._head(), former_head(state)
        for claimed_head, body in ((old_head, current), (head, former)):
            with pytest.raises(StateError):
                load(frame(STATE_MAGIC, claimed_head, *body.chunks))
        whole = former.bytes_()
        for body_ in (whole[:-1], whole + b"\0", b""):
            with pytest.raises(StateError):
                load(frame(STATE_MAGIC, old_head, body_))
        with pytest.raises(StateError, match="not in their canonical form"):
            load(frame(STATE_MAGIC, old_head.replace(b",", b", "), whole))


def test_one_head_has_one_schema_of_each_metric() -> None:
    head = UserGroups(Regression())._head()
    former = head.replace(b"regression/3", b"regression/2")
    assert decode_head(former).lacking == {Regression: ["cubes"]}
    assert decode_head(former).empty._head() == head
    assert not decode_head(head).lacking
    pair_head = Panel({"a": Regression(), "b": Regression()})._head()
    former = pair_head.replace(b"regression/3", b"regression/2")
    assert decode_head(former).lacking
    for mixed in (pair_head.replace(b"/3", b"/2", 1), former.replace(b"n/2", b"n/3", 1)):
        with pytest.raises(StateError, match="canonical form"):
            decode_head(mixed)
    with pytest.raises(StateError, match=re.escape("a known schema (regression/2, regression/3)")):
        decode_head(Regression()._head().replace(b"regression/3", b"regression/1"))


class Grown(Accumulator, schema="toy-grown/3"):
    """A metric that gained two parts, one after the other."""

    _schemas: ClassVar[Schemas] = {"toy-grown/1": {"total", "squares"}, "toy-grown/2": {"squares"}}
    inputs = Inputs(values=Integers())
    rows = Counts(1)
    total = ExactSum()
    squares = ExactSum()

    def _accumulate(self, batch: Batch, slots: None) -> None:  # type: ignore[override]
        self.rows.add(np.zeros(batch.n, np.intp), slots)
        self.total.add(batch.values.astype(np.float64), slots)
        self.squares.add(batch.values.astype(np.float64) ** 2, slots)

    def compute(self) -> tuple[float, float]:
        self._flush()
        return self.total.value(), self.squares.value()


def test_a_metric_reads_the_bytes_of_all_of_its_former_layouts() -> None:
    state = Grown()
    state.update([1, 2, 3])
    state._flush()
    bodies = {name: Writer() for name in ("rows", "total", "squares")}
    for name, out in bodies.items():
        state.__dict__[name].encode(out)
    rows, total, _ = (out.bytes_() for out in bodies.values())
    first = Grown.from_bytes(frame(STATE_MAGIC, b'["toy-grown/1",{}]', rows))
    second = Grown.from_bytes(frame(STATE_MAGIC, b'["toy-grown/2",{}]', rows, total))
    assert all(map(math.isnan, first.compute()))
    assert second.compute()[0] == 6.0 and math.isnan(second.compute()[1])
    assert Grown.from_bytes(state.to_bytes()).compute() == (6.0, 14.0)


def test_a_layout_that_cannot_be_is_refused_where_it_is_declared() -> None:
    for lacks in ({"rows"}, {"sum"}):
        with pytest.raises(TypeError, match="which is no part that may be unknown"):

            class Wrong(Accumulator, schema="toy-wrong/2"):
                _schemas: ClassVar[Schemas] = {"toy-wrong/1": lacks}
                rows = Counts(1)

    with pytest.raises(SettingsError, match="a schema that no other metric has"):

        class Taken(Grown.__base__, schema="toy-taken/2"):  # type: ignore[misc,name-defined]
            _schemas: ClassVar[Schemas] = {"toy-grown/1": {"total"}}
            total = ExactSum()
