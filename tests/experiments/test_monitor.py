"""The monitor: a fold that no order, repetition or grouping of looks changes."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics.core.errors import StateError
from streammetrics.experiments.monitor import Look, Monitor
from streammetrics.experiments.one_look import Anytime

GATED = Anytime(gated=True, reason="burn-in")


def look(offset: int, reading: Anytime, *, generation: int = 1, name: str = "ctr") -> Look:
    return Look.at("ranker", generation, {"clicks/0": offset}, {name: reading})


LOOKS = [
    look(10, GATED),
    look(200, Anytime(-0.1, 0.3, 0.5)),
    look(300, Anytime(0.0, 0.4, 3.2)),
    look(400, Anytime(-0.05, 0.25, 1.0)),
]


def of_ranker() -> st.SearchStrategy[list[Look]]:
    return st.lists(st.sampled_from([*LOOKS, look(10, GATED, generation=2)]), max_size=6)


def test_what_the_looks_say_together() -> None:
    summary = Monitor.of(LOOKS).watched("ranker", 1, "ctr")
    assert (summary.looks, summary.log_e, summary.p_value) == (4, 3.2, math.exp(-3.2))
    assert (summary.lower, summary.upper, summary.consistent, summary.nested) == (
        0.0,
        0.25,
        True,
        True,
    )
    assert summary.first_reject == (("clicks/0", 300),)
    assert summary.latest == LOOKS[3].readings[0][1]


@given(of_ranker(), of_ranker(), of_ranker())
def test_monitors_merge_in_any_tree_any_number_of_times(
    a: list[Look], b: list[Look], c: list[Look]
) -> None:
    monitor, second, third = Monitor.of(a), Monitor.of(b), Monitor.of(c)
    assert monitor + second == second + monitor == Monitor.of([*a, *b])
    assert (monitor + second) + third == monitor + (second + third)
    assert monitor + monitor == monitor == monitor + Monitor()


def test_the_same_look_with_more_comparisons_is_still_one_look() -> None:
    area_look = look(200, Anytime(-1.0, 1.0, 0.1), name="auc")
    monitor = Monitor.of([LOOKS[1], area_look])
    assert monitor == Monitor.of([area_look, LOOKS[1]]) and len(monitor.looks) == 1
    assert monitor.watched("ranker", 1, "auc").log_e == 0.1
    assert monitor.watched("ranker", 1, "ctr").log_e == 0.5


def test_two_readings_of_one_head_vector_are_refused() -> None:
    with pytest.raises(StateError, match="'ctr'"):
        Monitor.of([LOOKS[1], look(200, Anytime(-0.1, 0.3, 0.6))])
    with pytest.raises(StateError):
        Monitor.of([LOOKS[1]]) + Monitor.of([look(200, GATED)])


def test_generations_experiments_and_comparisons_are_apart() -> None:
    looks = [*LOOKS, look(999, Anytime(5.0, 6.0, 90.0), generation=2)]
    looks.append(Look.at("other", 1, {"clicks/0": 5}, {"ctr": Anytime(5.0, 6.0, 90.0)}))
    monitor = Monitor.of(looks)
    first = Monitor.of(LOOKS).watched("ranker", 1, "ctr")
    assert monitor.watched("ranker", 1, "ctr") == first
    assert monitor.watched("ranker", 2, "ctr").looks == 1


def test_intervals_that_contradict_one_another_are_reported_and_not_clipped() -> None:
    monitor = Monitor.of([look(1, Anytime(0.2, 0.3, 1.0)), look(2, Anytime(0.0, 0.1, 1.0))])
    summary = monitor.watched("ranker", 1, "ctr")
    assert (summary.lower, summary.upper, summary.consistent) == (0.2, 0.1, False)
    touching = Monitor.of([look(1, Anytime(0.1, 0.3)), look(2, Anytime(0.0, 0.1))])
    assert touching.watched("ranker", 1, "ctr").consistent


def test_a_look_that_saw_less_than_the_one_before_is_reported() -> None:
    def second(a: int, b: int) -> Look:
        return Look.at("ranker", 1, {"a": a, "b": b}, {"ctr": GATED})

    assert Monitor.of([second(1, 1), second(1, 2), second(4, 2)]).watched("ranker", 1, "ctr").nested
    assert not Monitor.of([second(1, 3), second(4, 2)]).watched("ranker", 1, "ctr").nested
    # A source that appears later has been read from its beginning; one must not vanish.
    late = Look.at("ranker", 1, {"a": 1, "b": 1, "c": 0}, {"ctr": GATED})
    assert Monitor.of([second(1, 1), late]).watched("ranker", 1, "ctr").nested is True
    gone = Look.at("ranker", 1, {"a": 9}, {"ctr": GATED})
    assert not Monitor.of([second(1, 1), gone]).watched("ranker", 1, "ctr").nested


def test_a_source_whose_name_comes_first_does_not_make_a_look_the_first() -> None:
    early = Look.at("ranker", 1, {"b": 7}, {"ctr": Anytime(log_e=4.0)})
    late = Look.at("ranker", 1, {"a": 2, "b": 7}, {"ctr": Anytime(log_e=5.0)})
    summary = Monitor.of([late, early]).watched("ranker", 1, "ctr")
    assert summary.first_reject == early.heads and summary.nested
    assert summary.latest == Anytime(log_e=5.0)


def test_nothing_watched_says_nothing() -> None:
    summary = Monitor().watched("ranker", 1, "ctr")
    assert (summary.looks, summary.log_e, summary.p_value) == (0, 0.0, 1.0)
    assert (summary.lower, summary.upper) == (-math.inf, math.inf)
    assert summary.consistent and summary.nested
    assert summary.first_reject is None and summary.latest is None


def test_evidence_is_not_lost_when_it_weakens() -> None:
    monitor = Monitor.of([look(1, Anytime(log_e=-3.0)), look(2, Anytime(log_e=-1.0))])
    assert monitor.watched("ranker", 1, "ctr").log_e == 0.0
    assert Monitor.of(LOOKS).watched("ranker", 1, "ctr", alpha=0.01).first_reject is None
