"""Team drafts that anyone can repeat, and the credit of balanced lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streammetrics import InputError, balanced_clicks, team_draft

_ranking = st.lists(st.integers(0, 12), unique=True, max_size=9)


@given(_ranking, _ranking, st.text(max_size=3), st.none() | st.integers(1, 8))
def test_each_side_adds_its_best_item_that_is_left(
    a: list[int], b: list[int], list_id: str, k: int | None
) -> None:
    drafted = team_draft(a, b, list_id, k=k)
    picked: list[int] = []
    for item, team in zip(drafted.items, drafted.teams, strict=True):
        assert item == next(candidate for candidate in (a, b)[team] if candidate not in picked)
        picked.append(item)
        second = len(picked) % 2 == 0
        assert not second or drafted.teams[len(picked) - 2] != team  # one turn each in a round
    ended = set(a) <= set(picked) or set(b) <= set(picked)
    assert ended if k is None or len(picked) < k else len(picked) == k


def test_a_draft_is_the_same_on_every_machine() -> None:
    drafted = team_draft("abcdefgh", "hgfedcba", "request 7")
    assert drafted == team_draft("abcdefgh", "hgfedcba", "request 7")
    assert "".join(map(str, drafted.teams)) == "10101001"
    second_draft = team_draft("abcdefgh", "hgfedcba", "request 7", salt="second test")
    assert second_draft.teams != drafted.teams


def test_coins_are_fair_and_independent_of_each_other_also_past_64_of_them() -> None:
    a, b = range(0, 400, 2), range(1, 400, 2)
    rounds = [team_draft(a, b, f"list {i}").teams[::2] for i in range(50)]
    first, later = (sum(coins[i] for coins in rounds) for i in (0, 150))
    heads = sum(map(sum, rounds))
    equal = sum(x == y for coins in rounds for x, y in zip(coins, coins[64:], strict=False))
    assert abs(heads - 5_000) < 200  # four standard deviations of 10,000 fair coins
    assert abs(equal - 50 * 136 / 2) < 165
    assert 10 < first < 40 and 10 < later < 40


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("aa", "b", "x"), r"a\[1\]: expected each item once, got 'a' again; drop"),
        (("a", "bcb", "x"), r"b\[2\]: expected each item once"),
        (([["a"]], "b", "x"), r"a\[0\]: expected an item that can be hashed, got"),
        (("a", None, "x"), "b: expected a sequence of items, got None; pass a list, an empty one"),
        (({"a"}, "b", "x"), "a: expected a sequence of items, in their order, got .*; pass a list"),
        (("a", "b", 7), "list_id: expected a string, got 7; pass the id of the request"),
    ],
)
def test_a_draft_that_cannot_be_made_says_why(
    arguments: tuple[Any, Any, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        team_draft(*arguments)
    with pytest.raises(InputError, match="k: expected an integer of at least 1, got 0"):
        team_draft("a", "b", "x", k=0)


def test_balanced_credit_reaches_to_the_lowest_click_and_no_deeper() -> None:
    assert balanced_clicks("abc", "bcd", "abcd", "c") == (0, 1, 2)
    assert balanced_clicks("abc", "bcd", "abcd", "aa") == (1, 0, 1)
    assert balanced_clicks("abc", "xyz", "axbycz", "ax") == (1, 1, 1)
    assert balanced_clicks("abc", "bcd", "abcd", "") == (0, 0, 0)
    assert balanced_clicks("abc", "bcd", "abcd", set("bd")) == (1, 2, 3)  # in any order


def test_balanced_lists_favour_a_shifted_ranking_even_if_clicks_are_at_random() -> None:
    # Joachims's lists of abc and bcd are abcd or bacd, by who is first; a click at random on each.
    wins = [0, 0]
    for shown in ("abcd", "bacd"):
        for item in shown:
            clicks_a, clicks_b, _ = balanced_clicks("abc", "bcd", shown, item)
            wins[0] += clicks_a > clicks_b
            wins[1] += clicks_b > clicks_a
    assert wins == [2, 6]


@pytest.mark.parametrize(
    ("shown", "clicked", "message"),
    [
        ("abc", "z", "clicked: expected an item of the shown list, got 'z'"),
        ("abq", "q", "clicked: expected an item of one of the rankings, got 'q'"),
        ("aqb", "bq", "clicked: expected an item of one of the rankings, got 'q'"),
        ({"a"}, "a", "shown: expected a sequence of items, in their order, got"),
        ("abc", [["a"]], r"clicked\[0\]: expected an item that can be hashed, got \['a'\]"),
        ("abc", np.array(1), r"clicked: expected a sequence of items, got array\(1\)"),
        ("aba", "a", r"shown\[2\]: expected each item once, got 'a' again"),
    ],
)
def test_clicks_that_belong_nowhere_are_refused(shown: str, clicked: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        balanced_clicks("abc", "bcd", shown, clicked)
