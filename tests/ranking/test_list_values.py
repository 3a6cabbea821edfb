"""What holds for every measure: its values are those of lists, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import RankingMetrics
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking import CG, Measure
from streammetrics.ranking.list_values import measured
from tests.oracles.measure_table import truths
from tests.oracles.ranking import UNJUDGED

Item = tuple[float, int]

EVERY = tuple(truth.measure for truth in truths((3, None)))
RULES = pytest.mark.parametrize("ties", ["expected", "worst", "best"])


def flat(items: Sequence[Sequence[Item]], *, scored: bool = True) -> Lists:
    every = [item for row in items for item in row]
    return Lists(
        np.array([max(grade, 0) for _, grade in every], np.uint8),
        np.array([score for score, _ in every]) if scored else None,
        np.cumsum([0, *(len(row) for row in items)]),
        judged=np.array([grade != UNJUDGED for _, grade in every], np.bool_),
    )


def bits(
    lists: Lists, measures: Sequence[Measure], ties: str = "expected"
) -> list[list[tuple[bytes, ...]]]:
    """The value of each list by each measure, with what it leaves out and what it weighs."""
    rows = []
    for _, empty, several in measured(lists, measures, ties):
        for i in range(len(empty)):
            rows.append(
                [tuple(c[i].tobytes() for c in values if c is not None) for values in several]
            )
    return rows


def some_items(n: int, scores: int, longest: int, seed: int) -> list[list[Item]]:
    rng = np.random.default_rng(seed)
    grades = [UNJUDGED, 0, 0, 0, 1, 2]
    return [
        [(float(rng.integers(0, scores)) / 4, int(rng.choice(grades))) for _ in range(size)]
        for size in rng.integers(0, longest, n)
    ]


@RULES
def test_the_order_of_rows_changes_no_bit(ties: str) -> None:
    rng = np.random.default_rng(7)
    items = some_items(60, 5, 40, 7)
    shuffled = [[row[i] for i in rng.permutation(len(row))] for row in items]
    assert bits(flat(shuffled), EVERY, ties) == bits(flat(items), EVERY, ties)


@RULES
def test_other_measures_and_how_deep_they_look_change_no_double(ties: str) -> None:
    # A tie below the cut may be looked at in another way, which shows beyond 90 bits alone.
    lists = flat(some_items(80, 9, 30, 10))
    shallow = [measure for measure in EVERY if measure.cut == 3]
    [(_, _, together)] = measured(lists, shallow, ties)
    assert len(shallow) > 20
    for extra_measure in (CG @ 4, CG @ 20, CG):
        [(_, _, several)] = measured(lists, [*shallow, extra_measure], ties)
        for values, deep_values in zip(together, several, strict=False):
            assert values.values.tobytes() == deep_values.values.tobytes()
            if values.rest is not None:
                assert deep_values.rest is not None
                assert (np.abs(values.rest - deep_values.rest) <= 2.0**-90).all()


def test_ties_of_one_grade_change_no_bit_of_a_list_that_came_ranked() -> None:
    items = [[(0.5, 2)] * 7 + [(0.1, 0)] * 5, [(0.5, 0)] * 9 + [(0.1, 1)] * 3]
    for ties in ("expected", "worst", "best"):
        assert bits(flat(items), EVERY, ties) == bits(flat(items, scored=False), EVERY)


@pytest.mark.parametrize("ties", ["expected", "worst", "best"])
def test_a_value_and_its_rest_are_exact_to_twice_the_digits(ties: str) -> None:
    items = [row for row in some_items(120, 6, 25, 13) if row]
    chosen = [truth for truth in truths((3, None)) if not truth.ulps]
    [(_, _, several)] = measured(flat(items), [truth.measure for truth in chosen], ties)
    for truth, (values, rest, _) in zip(chosen, several, strict=True):
        assert rest is not None
        for scored_row, value, remainder in zip(items, values.tolist(), rest.tolist(), strict=True):
            exact = truth.value(scored_row, ties)
            assert value == float(exact), truth.measure
            assert abs(Fraction(value) + Fraction(remainder) - exact) <= Fraction(1, 2**90)


EQUAL = ("NDCG@3", "AlphaNDCG@3", "ERR", "MRR", "DCG@2", "AP", "PooledHR@3")


@pytest.mark.parametrize("lists", [2, 3, 50])
@pytest.mark.parametrize("examination", [None, (1, 0.3, 0.7)])
def test_equal_lists_have_no_interval_whatever_the_rounding_of_their_squares(
    lists: int, examination: tuple[float, ...] | None
) -> None:
    metric = RankingMetrics(EQUAL, examination=examination, complete_lists=True)
    positions = None if examination is None else [1 + i % 3 for i in range(lists)]
    subtopics = [[["a"]] * 4] * lists
    metric.update([[0, 0, 2, 1]] * lists, subtopics=subtopics, positions=positions)
    result = metric.compute()
    for measure in EQUAL:
        interval = result.interval(measure)
        assert not interval.defined and "the variance is 0" in interval.reason
    last_positions = [1] if examination else None
    metric.update([[1, 0, 0, 0]], subtopics=[[["a"]] * 4], positions=last_positions)
    assert all(metric.compute().interval(measure).defined for measure in EQUAL)
