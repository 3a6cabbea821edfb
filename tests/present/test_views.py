"""Which attributes of a result are figures, whatever its metric."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from streammetrics.results import Bounded, counts_of, headlines_of, texts_of, views_of
from streammetrics.results.list_results import Averages


@dataclass(frozen=True)
class Made:
    """A result with one attribute of each kind."""

    held: float
    curve: list[float]
    rows: int
    exact: bool
    reason: str = ""
    _hidden: float = field(default=9.0)

    @property
    def area(self) -> Bounded:
        return Bounded(0.5, low=0.25, high=0.75)

    @property
    def positives(self) -> int | None:
        return None

    @property
    def ratio(self) -> float:
        return math.nan

    def f_beta(self, b: float) -> float:
        return b


MADE = Made(held=2.0, curve=[1.0], rows=3, exact=True)


def test_floats_and_bounds_are_views_and_what_is_concluded_comes_before_what_is_held() -> None:
    assert list(views_of(MADE)) == ["area", "ratio", "held"]
    assert views_of(MADE)["area"] == Bounded(0.5, low=0.25, high=0.75)


def test_whole_numbers_are_counts_and_flags_and_unknown_ones_are_not() -> None:
    assert counts_of(MADE) == {"rows": 3}


def test_the_first_view_is_the_headline() -> None:
    assert headlines_of(MADE) == ("area",)
    assert views_of(MADE, headlines=True) == {"area": MADE.area}


def test_a_count_is_found_without_computing_what_says_that_it_is_a_float() -> None:
    class Slow(Made):
        @property
        def area(self) -> Bounded:
            raise AssertionError

    assert counts_of(Slow(held=2.0, curve=[1.0], rows=3, exact=True)) == {"rows": 3}


def test_every_measure_of_a_mapping_is_a_headline_and_nothing_else_is() -> None:
    result = Averages({"NDCG@10": 0.25, "MRR@10": 0.5}, lists_kept=2, lists_empty=1, rows=3)
    assert headlines_of(result) == ("NDCG@10", "MRR@10")
    assert views_of(result) == {"NDCG@10": 0.25, "MRR@10": 0.5}
    assert counts_of(result) == {"rows": 3, "lists_kept": 2, "lists_empty": 1, "conflicting": 0}


def test_a_text_is_told_only_where_there_is_one() -> None:
    assert texts_of(MADE) == {}
    assert texts_of(Made(1.0, [], 1, True, reason="over max_rows")) == {"reason": "over max_rows"}


def test_numbers_of_numpy_become_those_of_python() -> None:
    @dataclass(frozen=True)
    class Numpy:
        value: np.float64
        rows: np.int64

    result = Numpy(np.float64(0.5), np.int64(2))
    assert type(views_of(result)["value"]) is float
    assert type(counts_of(result)["rows"]) is int


def test_each_value_of_a_mapping_by_whole_numbers_is_a_view() -> None:
    @dataclass(frozen=True)
    class OfEach:
        first: float
        shares: dict[int, float]
        named: dict[str, float]

    result = OfEach(0.5, {2: 0.75, 3: 1.0}, {"a": 0.25})
    assert views_of(result) == {"first": 0.5, "shares[2]": 0.75, "shares[3]": 1.0}
    assert headlines_of(result) == ("first",)
