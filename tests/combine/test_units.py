"""Units: the different units of a stream, or a sample of them that is the same everywhere."""

from __future__ import annotations

import math

import pytest

from streammetrics import SettingsError, StateError, Units
from streammetrics.combine import UnitsResult, in_several
from streammetrics.core.bytes.codec import STATE_MAGIC, frame, unframe
from tests.oracles.users import hash_of


def counted(*units: int | str, share: float = 1.0, max_units: int | None = None) -> UnitsResult:
    """The result of these units."""
    state = Units(share, max_units)
    state.update(list(units))
    return state.compute()


def test_a_unit_counts_once_however_often_it_is_seen() -> None:
    found = counted("ann", "bo", "ann", "ann")
    assert (found.units, found.sampled, found.reason) == (2.0, 2, "")
    assert found.hashes().tolist() == sorted(
        hash_of(name, "streammetrics units") for name in ("ann", "bo")
    )


def test_a_sample_has_the_units_whose_hash_lies_under_the_share() -> None:
    found = counted(*range(4000), share=0.25)
    below = [hash_of(i, "streammetrics units") for i in range(4000)]
    assert found.sampled == sum(h < 1 << 62 for h in below)
    assert found.units == found.sampled * 4
    assert abs(found.sampled - 1000) < 100
    whole = counted(*range(4000))
    assert found.hashes().tolist() == whole.hashes()[: found.sampled].tolist()


def test_past_max_units_the_set_is_dropped_in_any_order() -> None:
    few, more = Units(max_units=3), Units(max_units=3)
    few.update([1, 2, 3, 3])
    more.update([3, 4])
    assert few.compute().units == 3
    for state in (few + more, more + few, few + more + more, more + (few + more)):
        found = state.compute()
        assert math.isnan(found.units)
        assert found.sampled is None
        assert found.reason == "more than max_units=3 units were sampled"
        assert found.hashes().tolist() == []
        assert state.to_bytes() == (more + few).to_bytes()
        assert state.nbytes < 1000


def test_units_of_several_arms_are_those_of_two_or_more() -> None:
    arms = counted(1, 2, 3), counted(3, 4), counted(4, 3, 5)
    found = in_several(arms)
    assert (found.units, found.sampled) == (2.0, 2)
    assert found.hashes().tolist() == sorted(hash_of(i, "streammetrics units") for i in (3, 4))
    assert in_several([]).units == in_several(arms[:1]).units == 0.0


def test_units_of_several_arms_are_not_known_where_those_of_one_are_not() -> None:
    found = in_several([counted(1, 2), counted(1, 2, max_units=1)])
    assert math.isnan(found.units)
    assert "max_units=1" in found.reason
    with pytest.raises(SettingsError, match="one share"):
        in_several([counted(1), counted(1, share=0.5)])


def test_sets_that_no_state_writes_are_refused() -> None:
    state = Units(share=0.5, max_units=2)
    head, _ = unframe(STATE_MAGIC, state.to_bytes())
    low, high, past = ((n).to_bytes(8, "little") for n in (1, (1 << 63) - 1, 1 << 63))
    good = b"\0\1\2" + low + high
    assert Units.from_bytes(frame(STATE_MAGIC, head, good)).compute().sampled == 2
    for body in (
        b"\0\1\2" + high + low,  # out of order
        b"\0\1\2" + low + low,  # one twice
        b"\0\1\1" + past,  # above the threshold
        b"\0\1\3" + low + (2).to_bytes(8, "little") + high,  # more than max_units
        b"\x80\1\1" + low,  # dropped, and yet there
        b"\x01\1\1" + low,  # a set that is not there
        b"\0\1\2" + low,  # too short
        b"\0\1\0",  # a number wider than it needs to be
    ):
        with pytest.raises(StateError):
            Units.from_bytes(frame(STATE_MAGIC, head, body))
    no_limit, _ = unframe(STATE_MAGIC, Units().to_bytes())
    with pytest.raises(StateError):
        Units.from_bytes(frame(STATE_MAGIC, no_limit, b"\x80\0"))
