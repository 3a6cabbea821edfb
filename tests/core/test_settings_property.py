"""What follows from the settings of a metric is computed once for all of its states."""

from __future__ import annotations

from streammetrics import Panel, PerKey, Ratio, UserGroups
from streammetrics.core.settings_property import settings_property


def test_states_made_from_one_another_share_it_and_others_do_not() -> None:
    metric, stranger = UserGroups(Ratio()), UserGroups(Ratio())
    first = metric.empty()
    shared = first._forms
    for state in (metric.empty(), first.copy(), first + first, first.empty(), metric.copy()):
        assert state._forms is shared
    assert stranger._forms is not shared and stranger.empty()._forms is not shared


def test_metrics_that_follow_from_others_are_made_once_for_their_states() -> None:
    by_key = PerKey(Panel({"ctr": Ratio()}))
    by_key.update(["a"], numerators=[1])
    states = [by_key.project("ctr", 5), by_key.copy().project("ctr", 5)]
    assert states[0]._fixed is states[1]._fixed
    assert by_key.project("ctr", 6)._fixed is not states[0]._fixed
    for most in range(1, 1_000):  # they are forgotten rather than held without end
        assert by_key.limited(most).max_keys == most
    assert len(by_key._fixed["_related_metrics"]) <= 256


def test_on_the_class_it_is_the_property() -> None:
    assert isinstance(UserGroups.__dict__["_forms"], settings_property)
    assert UserGroups._forms is UserGroups.__dict__["_forms"]
