"""Rows of lists for the golden states: the same on every machine."""

from __future__ import annotations

import itertools
import math
from random import Random
from typing import Any, Final

import numpy as np


def lists(n: int) -> dict[str, Any]:
    """`n` lists of 0 to 19 graded items with some ties."""
    random = Random(20191124)
    sizes = [random.randrange(20) for _ in range(n)]
    items = range(sum(sizes))
    return {
        "labels": np.array([random.choice((0, 0, 0, 1, 2, 5)) for _ in items]),
        "scores": np.array([random.randrange(64) / 64 for _ in items], np.float32),
        "offsets": np.cumsum([0, *sizes]),
    }


def lists_with_positions(n: int) -> dict[str, Any]:
    """The same, each with the logged rank of its click."""
    columns = lists(n)
    ends = columns["offsets"]
    relevant = np.array([columns["labels"][a:b].any() for a, b in itertools.pairwise(ends)])
    return {**columns, "positions": np.where(relevant, 1 + np.arange(n) % 3, 0)}


def lists_with_subtopics(n: int) -> dict[str, Any]:
    """The same, each item with none to two subtopics."""
    columns = lists(n)
    of_items = [{i % 5, i * i % 7} if i % 3 else set() for i in range(len(columns["labels"]))]
    return {**columns, "subtopics": of_items}


def shown_items(n: int, *, with_items: bool = False) -> dict[str, Any]:
    """`n` rows of lists of some ten items with many ties; `with_items`: an item in each row,
    which now and then comes twice."""
    random = Random(20191124)
    owners = [random.randrange(n // 10) - n // 20 for _ in range(n)]
    grades = [random.choice((0, 0, 0, 0, 1, 2, 5)) for _ in range(n)]
    rows = {
        "labels": np.array(grades),
        "scores": np.array([random.randrange(-40, 40) / 64 for _ in range(n)]),
        "groups": np.array(owners),
        "judged": np.array([grade > 0 or random.random() < 0.5 for grade in grades]),
    }
    if not with_items:
        return rows
    items = [f"item {random.randrange(300)}" for _ in range(n)]
    names = np.array([f"list {owner}" for owner in owners])
    return {**rows, "groups": names, "items": np.array(items)}


def shown_items_with_subtopics(n: int) -> dict[str, Any]:
    """Named rows, each with none to two subtopics."""
    columns = shown_items(n, with_items=True)
    del columns["items"]
    topics: list[tuple[int | str, ...]] = [(i % 4, f"é{i % 3}") if i % 3 else () for i in range(n)]
    return {**columns, "subtopics": topics}


ITEMS: Final = 40


def item_lists(n: int) -> dict[str, Any]:
    """`n` lists of 0 to 11 different items."""
    random = Random(20191124)
    shown = [random.sample(range(ITEMS), random.randrange(12)) for _ in range(n)]
    return {"lists": shown}


def item_vectors() -> list[list[float]]:
    """Five numbers for each item, of both signs and of different sizes."""
    random = Random(20191124)
    return [
        [math.ldexp(random.random() - 0.25, random.randrange(-9, 9)) for _ in range(5)]
        for _ in range(ITEMS)
    ]


def item_features() -> list[list[object]]:
    """Three features of each item, two of them texts."""
    return [[("shirt", "hat")[i % 2], i % 7, f"colour {i * i % 5}"] for i in range(ITEMS)]
