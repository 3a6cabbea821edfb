"""What follows from a declaration: the monoid, the limit of the total count, bytes,
files and intervals.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streammetrics import Interval, Ratio, SlidingAUC, Units
from streammetrics.core import buffer as buffer_module
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.core.inputs import Inputs, UnitIds
from streammetrics.core.parts.part import Slots
from streammetrics.core.updates import MAX_TOTAL_COUNT
from tests.toys import Reach, Tallied, Tally


def fed(*cells: int, size: int = 4) -> Tally:
    state = Tally(size)
    state.update(cells)
    return state


def heavy(total_count: int) -> Tally:
    """A state of that many rows."""
    state = Tally()
    state.update([0], weights=[total_count])
    return state


# -- the monoid -----------------------------------------------------------------------------
def test_the_total_count_is_that_of_the_rows() -> None:
    ratio = Ratio()
    assert ratio._total_count == 0
    for n in (3, 2):
        ratio.update([1] * n)
    assert ratio.compute().rows == ratio._total_count == 5


def test_states_are_added_to_each_other_and_to_themselves() -> None:
    a, b = fed(1, 2), fed(1)
    assert (a + a).compute() == Tallied(4, (0, 2, 2, 0))
    a.merge(a)
    assert a.compute() == Tallied(4, (0, 2, 2, 0))
    b.merge([b, b])
    assert b.compute() == Tallied(3, (0, 3, 0, 0))
    parts = [fed(1), fed(2), fed(3)]
    assert sum(parts) == fed(1, 2, 3)
    total = sum(parts[:1])
    assert isinstance(total, Tally)
    total.update([0])
    assert parts[0] == fed(1)


def bad_in_the_middle() -> Iterator[Tally]:
    yield fed(1)
    yield fed(1, size=9)


def broken_in_the_middle() -> Iterator[Tally]:
    yield fed(1)
    raise OSError("the disk is gone")


def test_a_merge_that_fails_anywhere_changes_nothing() -> None:
    total = fed(0, 3)
    wrong: list[tuple[Any, type[Exception]]] = [
        (bad_in_the_middle(), SettingsError),
        (broken_in_the_middle(), OSError),
        ([fed(1), Reach()], SettingsError),
        ([fed(1), 3], SettingsError),
        ([fed(1), None], SettingsError),
        ("abc", SettingsError),
        ([fed(1), heavy(MAX_TOTAL_COUNT)], StateError),
        ([heavy(MAX_TOTAL_COUNT)], StateError),
        (5, SettingsError),
        (None, SettingsError),
    ]
    for states, error in wrong:
        with pytest.raises(error):
            total.merge(states)
        assert total == fed(0, 3)


def test_other_metrics_are_neither_added_nor_equal() -> None:
    with pytest.raises(SettingsError, match=r"states of Tally, got Reach.*\(Reach\); merge each"):
        fed(1) + Reach()  # type: ignore[operator]
    assert fed(1) != Reach()
    assert fed(1) != fed(1, size=9)
    assert fed(1) != 1
    with pytest.raises(TypeError):
        fed(1) + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        1 + fed(1)
    for operand in (None, [fed(1)], fed(1).compute()):
        with pytest.raises(SettingsError, match="expected one or more states of Tally"):
            fed(1) + operand  # type: ignore[operator]
    for data in ("a.state", fed(1).to_bytes(), bytearray(fed(1).to_bytes())):
        for add in (lambda a, b: a + b, lambda a, b: b + a):
            with pytest.raises(SettingsError, match=r"load it first with streammetrics\.load"):
                add(fed(1), data)
    with pytest.raises(SettingsError, match=r"a list: total.merge\(\[a, b\]\)"):
        fed(1).merge(fed(1), fed(1))


def test_copies_are_independent() -> None:
    a = fed(1)
    for twin in (a.copy(), copy.copy(a), copy.deepcopy(a), pickle.loads(pickle.dumps(a))):
        assert twin == a
        twin.update([2])
        assert a == fed(1)
        a.update([3])
        assert twin == fed(1, 2)
        a = fed(1)


def test_memory_counts_the_pending_rows() -> None:
    state = Tally()
    before = state.nbytes
    state.update(np.zeros(1000, np.int64))
    assert state.nbytes >= before + 8000


# -- the limit of the total count ------------------------------------------------------------------


def test_an_update_past_the_limit_is_refused_and_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for buffered in (True, False):
        if not buffered:
            monkeypatch.setattr(buffer_module, "SMALL", 1)
            monkeypatch.setattr(buffer_module, "NARROW", 1)
        state = heavy(MAX_TOTAL_COUNT - 1)
        before = state.digest()
        for weights in (None, [MAX_TOTAL_COUNT, MAX_TOTAL_COUNT]):
            with pytest.raises(StateError) as caught:
                state.update([1, 2], weights=weights)
            assert caught.value.where == "Tally.update"
            assert state.digest() == before
        state.update([1])
        with pytest.raises(StateError):
            state.update([1])


def test_a_merge_past_the_limit_is_refused_and_changes_nothing() -> None:
    state, light = heavy(MAX_TOTAL_COUNT - 1), fed(1, 2)
    before, light_digest = state.digest(), light.digest()
    for merge in (
        lambda: state.merge(light),
        lambda: light.merge(state),
        lambda: state + light,
        lambda: state.merge(state),
        lambda: state.merge([fed(1), fed(2)]),
    ):
        with pytest.raises(StateError):
            merge()
        assert (state.digest(), light.digest()) == (before, light_digest)
    state.merge(fed(1))
    assert state.compute().rows == MAX_TOTAL_COUNT


def test_bytes_past_the_limit_are_refused() -> None:
    whole = Tally()
    whole.counts.add(np.array([0, 1]), None, np.full(2, MAX_TOTAL_COUNT))
    with pytest.raises(StateError, match="at most 9223372036854775807"):
        Tally.from_bytes(whole.to_bytes())


def test_the_limit_knows_what_a_state_holds_and_not_what_once_was_merged() -> None:
    # The upper bound of a part of a state is that of the whole until the limit is near.
    whole = heavy(MAX_TOTAL_COUNT - 10)
    part = fed(1)
    part.__dict__["_total_count"] = MAX_TOTAL_COUNT - 10
    whole.merge(part)
    part.update([2])
    part.merge(heavy(MAX_TOTAL_COUNT - 10))
    assert part.compute().rows == MAX_TOTAL_COUNT - 8


# -- bytes and files ------------------------------------------------------------------------


def test_equal_rows_have_equal_digests_however_they_were_counted() -> None:
    digest = fed(1, 2, 3).digest()
    assert digest.startswith("sha256:")
    assert len(digest) == 7 + 64
    assert (fed(3) + fed(2, 1)).digest() == digest


def test_bytes_name_their_metric() -> None:
    data = fed(1).to_bytes()
    assert type(Accumulator.from_bytes(data)) is Tally
    with pytest.raises(StateError, match="a state of Reach, got a state of Tally"):
        Reach.from_bytes(data)


def test_a_state_file_is_saved_and_read(tmp_path: Path) -> None:
    from streammetrics.registry import load

    state = fed(1, 2)
    state.provenance.add("s", 0, 2)
    state.save(tmp_path / "a.state")
    for source in (tmp_path / "a.state", str(tmp_path / "a.state"), state.to_file_bytes()):
        for back in (load(source), Tally.load(source)):
            assert back == state
            assert back.provenance == state.provenance
    assert load(state.to_bytes()) == Tally.load(state.to_bytes()) == state
    with pytest.raises(
        StateError, match=r"a\.state: expected a state of Reach, got a state of Tally"
    ):
        Reach.load(tmp_path / "a.state")
    (tmp_path / "cut.state").write_bytes(state.to_file_bytes()[:-1])
    with pytest.raises(StateError) as caught:
        load(tmp_path / "cut.state")
    assert caught.value.where == str(tmp_path / "cut.state")


def test_errors_keep_their_four_parts_and_their_rows_in_another_process() -> None:
    with pytest.raises(InputError) as caught:
        fed(1).update([7])
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value)
    assert (back.expected, back.got) == ("cells below 4", "7")
    assert (back.where, back.hint) == ("cells[0]", "pass smaller ones")
    assert back.rows.tolist() == [0]


# -- intervals -------------------------------------------------------------------------------------


def clicks() -> Ratio:
    metric = Ratio()
    metric.update([1, 0, 0, 0])
    return metric


def test_it_is_the_interval_of_the_result_with_what_is_taken_as_independent() -> None:
    plain, of_result = clicks().confidence_interval(cluster="none"), clicks().compute().interval()
    assert plain == of_result and plain.reason == ""
    interval = clicks().confidence_interval()
    assert interval.reason == "rows are taken as independent because no users are known"
    assert (interval.lower, interval.upper) == (plain.lower, plain.upper)


def test_what_an_interval_cannot_be_asked_for_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"UserGroups\(Ratio"):
        clicks().confidence_interval(cluster="groups")
    with pytest.raises(SettingsError, match="'users'"):
        clicks().confidence_interval(cluster="users")
    with pytest.raises(InputError, match="a view of Quotient: ratio, numerator, denominator"):
        clicks().confidence_interval(view="auc")
    interval = Ratio().confidence_interval()
    assert isinstance(interval, Interval) and not interval.defined and interval.reason == "no rows"


def test_a_metric_of_your_own_without_intervals_says_what_has_one() -> None:
    class Rows(Accumulator, schema="test-rows-without-intervals/1"):
        inputs = Inputs(units=UnitIds())

        def _accumulate(self, batch: Batch, slots: Slots | None) -> None: ...

        def compute(self) -> float:
            return 1.0

    interval = Rows().confidence_interval()
    assert not interval.defined
    assert interval.reason == "no formula for Rows; UserGroups has one, from groups of users"


def test_what_slides_or_is_only_counted_says_so_in_the_same_words() -> None:
    sliding, units = SlidingAUC(rows=3), Units(share=0.5)
    sliding.update([0, 1], [0.1, 0.4])
    of_area, of_units = sliding.compute().interval(), units.confidence_interval()
    assert (of_area.estimate, of_area.n) == (1.0, 2)
    assert not of_area.defined and not of_units.defined
    assert of_area.reason == (
        "no formula for auc of a sliding window; Windows(ExactAUC(), size_s) has one"
    )
    assert not of_area.formula and not of_units.formula
    assert of_units.reason == (
        "no formula for units; with share=1 units are counted, not estimated"
    )
    dropped = Units(max_units=1)
    dropped.update([1, 2])
    assert "more than max_units=1" in dropped.confidence_interval().reason
