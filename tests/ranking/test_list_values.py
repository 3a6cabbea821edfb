"""What holds for every measure: its values are those of lists, to the last bit."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from streammetrics.core.errors import InputError
from streammetrics.kernels.ranking import ranked as ranking
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking import CG, ERR, MRR, NDCG, Measure, P, PooledHR
from streammetrics.ranking.list_values import measured, require_grades
from tests.depth import further_are_slow
from tests.oracles.measure_table import truths
from tests.oracles.ranking import UNJUDGED

Item = tuple[float, int]

EVERY = tuple(truth.measure for truth in truths((3, None)))
RULES = pytest.mark.parametrize("ties", ["expected", "worst", "best"])


def flat(items: Sequence[Sequence[Item]], *, scored: bool = True) -> Lists:
    every = [item for one in items for item in one]
    return Lists(
        np.array([max(grade, 0) for _, grade in every], np.uint8),
        np.array([score for score, _ in every]) if scored else None,
        np.cumsum([0, *(len(one) for one in items)]),
        judged=np.array([grade != UNJUDGED for _, grade in every], np.bool_),
    )


def bits(
    lists: Lists, measures: Sequence[Measure], ties: str = "expected"
) -> list[list[tuple[bytes, ...]]]:
    """The value of each list by each measure, with what it leaves out and what it weighs."""
    found = []
    for _, empty, several in measured(lists, measures, ties):
        for i in range(len(empty)):
            found.append(
                [tuple(c[i].tobytes() for c in values if c is not None) for values in several]
            )
    return found


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
    items = some_items(300, 5, 40, 7)
    shuffled = [[one[i] for i in rng.permutation(len(one))] for one in items]
    assert bits(flat(shuffled), EVERY, ties) == bits(flat(items), EVERY, ties)


@pytest.mark.slow
@pytest.mark.parametrize("ties", list(further_are_slow("expected", "worst", "best")))
def test_other_lists_in_the_update_change_no_bit(ties: str) -> None:
    items = [*some_items(60, 5, 12, 8), *some_items(6, 40, 300, 9)]
    together = bits(flat(items), EVERY, ties)
    alone = [bits(flat([one]), EVERY, ties)[0] for one in items]
    assert together == alone


@RULES
def test_other_measures_and_how_deep_they_look_change_no_double(ties: str) -> None:
    # A tie below the cut may be looked at in another way, which shows beyond 90 bits alone.
    lists = flat(some_items(200, 9, 30, 10))
    shallow = [measure for measure in EVERY if measure.cut == 3]
    [(_, _, together)] = measured(lists, shallow, ties)
    assert len(shallow) > 20
    for other in (CG @ 4, CG @ 20, CG):
        [(_, _, several)] = measured(lists, [*shallow, other], ties)
        for values, more in zip(together, several, strict=False):
            assert values.values.tobytes() == more.values.tobytes()
            if values.rest is not None:
                assert more.rest is not None
                assert (np.abs(values.rest - more.rest) <= 2.0**-90).all()


@RULES
def test_the_order_of_measures_changes_no_bit(ties: str) -> None:
    lists = flat(some_items(100, 9, 30, 14))
    straight, backwards = bits(lists, EVERY, ties), bits(lists, EVERY[::-1], ties)
    assert [one[::-1] for one in backwards] == straight


@pytest.mark.slow
def test_a_list_without_ties_has_the_bits_of_one_that_came_ranked() -> None:
    rng = np.random.default_rng(11)
    grades = [rng.choice([UNJUDGED, 0, 0, 0, 1, 2], n).tolist() for n in rng.integers(1, 80, 200)]
    items = [[(-float(i), grade) for i, grade in enumerate(one)] for one in grades]
    for ties in ("expected", "worst", "best"):
        assert bits(flat(items), EVERY, ties) == bits(flat(items, scored=False), EVERY)


def test_ties_of_one_grade_change_no_bit_of_a_list_that_came_ranked() -> None:
    items = [[(0.5, 2)] * 7 + [(0.1, 0)] * 5, [(0.5, 0)] * 9 + [(0.1, 1)] * 3]
    for ties in ("expected", "worst", "best"):
        assert bits(flat(items), EVERY, ties) == bits(flat(items, scored=False), EVERY)


@pytest.mark.slow
@RULES
@pytest.mark.parametrize("size", [1, 10, 64])
def test_how_many_lists_are_sorted_at_a_time_changes_no_bit(
    size: int, ties: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = flat(some_items(80, 4, 20, 12))
    whole = bits(lists, EVERY, ties)
    monkeypatch.setattr(ranking, "_CHUNK", size)
    assert bits(lists, EVERY, ties) == whole
    monkeypatch.setattr(ranking, "BLOCK", 3 * size)
    assert bits(lists, EVERY, ties) == whole


@RULES
def test_lists_are_empty_where_nothing_of_grade_1_is_known(ties: str) -> None:
    unseen = np.zeros((4, 16), np.int64)
    unseen[1, 0], unseen[2, 3] = 7, 1
    lists = Lists(np.array([0, 0, 0, 1], np.uint8), np.zeros(4), np.array([0, 1, 2, 3, 4]), unseen)
    [(some, empty, _)] = measured(lists, [MRR], ties)
    assert (some, empty.tolist()) == (slice(0, 4), [True, True, False, False])


def test_pooled_values_weigh_what_they_are_over() -> None:
    lists = Lists(np.array([1, 0, 2], np.uint8), None, np.array([0, 2, 3]))
    [(_, _, [values, other])] = measured(lists, [PooledHR @ 1, P @ 1], "expected")
    assert values.weights is not None
    assert (values.values.tolist(), values.weights.tolist()) == ([1, 1], [1, 1])
    assert other.weights is None


@pytest.mark.slow
@pytest.mark.parametrize("ties", list(further_are_slow("expected", "worst", "best")))
def test_a_value_and_its_rest_are_exact_to_twice_the_digits(ties: str) -> None:
    items = [one for one in some_items(120, 6, 25, 13) if one]
    chosen = [truth for truth in truths((3, None)) if not truth.ulps]
    [(_, _, several)] = measured(flat(items), [truth.measure for truth in chosen], ties)
    for truth, (values, rest, _) in zip(chosen, several, strict=True):
        assert rest is not None
        for one, value, more in zip(items, values.tolist(), rest.tolist(), strict=True):
            exact = truth.value(one, ties)
            assert value == float(exact), truth.measure
            assert abs(Fraction(value) + Fraction(more) - exact) <= Fraction(1, 2**90)


@pytest.mark.parametrize("unseen", [False, True])
def test_a_grade_above_the_highest_of_a_measure_is_refused(unseen: bool) -> None:
    grades = np.array([1, 4, 0, 5] if not unseen else [1, 4, 0, 3], np.uint8)
    known = np.zeros((3, 16), np.int64)
    known[2, 5] = unseen
    lists = Lists(grades, None, np.array([0, 1, 2, 4]), known)
    with pytest.raises(InputError, match="grades up to 4, the highest of ERR") as raised:
        require_grades(lists, [NDCG, ERR @ 10, ERR(max_grade=5)])
    assert raised.value.rows.tolist() == [2]
    assert "list 2" in raised.value.where
    assert "ERR(max_grade=...)" in raised.value.hint
    require_grades(lists, [NDCG, ERR(max_grade=5)])
