"""Cases of the metrics beside accuracy: `IntraListSimilarity` and `CatalogMetrics`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from streammetrics import (
    CatalogMetrics,
    IntraListSimilarity,
    ItemExposure,
    Ratio,
    register_similarity,
)
from streammetrics.testing import Case
from tests.oracles import diversity

# Cosines are 0, 1/2 and 1: means of doubles that are no such fractions may lie half-way between two
# doubles, and sums of both signs cancel.
VECTORS = [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 7, 0], [3, 3, 3, 3], [1, 1, 1, -1], [0, 2, 0, 0]]
FEATURES = [["a", 0, "x"], ["a", 1, "x"], ["b", 1, "y"], ["a", 0, "y"], ["c", 0, "x"], ["c", 2, 0]]
TABLE = [[(5 * i * i + 3 * j) / 8 for j in range(6)] for i in range(6)]


def nearness(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A similarity of a user's own, which is another one the other way."""
    return np.asarray(np.ldexp(1.0, -np.abs(a[:, 0] - 2 * b[:, 1]).astype(np.int64)))


register_similarity("nearness", nearness)


def _nearness(i: int, j: int) -> Fraction:
    return Fraction(1, 2 ** abs(VECTORS[i][0] - 2 * VECTORS[j][1]))


ITEMS = st.lists(st.integers(0, 5), max_size=6, unique=True)


def nested(rows: Sequence[Any]) -> dict[str, Any]:
    """Lists as they are."""
    return {"lists": [list(row) for row in rows]}


def flat(rows: Sequence[Any]) -> dict[str, Any]:
    """One array of items, and where each list begins."""
    items = [item for row in rows for item in row]
    return {"lists": np.array(items, np.int64), "offsets": np.cumsum([0, *map(len, rows)])}


_REFUSED: list[dict[str, Any]] = [
    {"lists": [[0, 1], [2, 6]]},
    {"lists": [[0, -1]]},
    {"lists": [[0, 1, 0]]},
    {"lists": [[0, 1.5]]},
    {"lists": [[0, "1"]]},
    {"lists": [["0"]]},
    {"lists": ["01"]},
    {"lists": [0, 1]},
    {"lists": [[[0]]]},
    {"lists": 3},
    {"lists": np.zeros((1, 2))},
    {"lists": [0, 1], "offsets": [0, 1]},
    {"lists": [0, 1], "offsets": [0, 2, 1, 2]},
    {"lists": [0, 1], "offsets": [0.5, 2]},
    {"lists": [0, 1], "offsets": []},
    {"lists": [[0, 1]], "offsets": [0, 2]},
]
_SHARE = IntraListSimilarity(FEATURES, similarity="share_equal")

DIVERSITY: list[Case[Any]] = [
    Case(
        IntraListSimilarity(VECTORS, k=4),
        ITEMS,
        nested,
        refused=_REFUSED,
        others=(
            IntraListSimilarity(VECTORS, k=3),
            IntraListSimilarity([*VECTORS[:5], [0, 2, 1, 0]], k=4),
            IntraListSimilarity(VECTORS, k=4, similarity="share_equal"),
            Ratio(),
        ),
        oracle=diversity.list_similarity(diversity.whole_cosine(VECTORS), 4),
        name="IntraListSimilarity of cosines",
    ),
    Case(
        _SHARE,
        ITEMS,
        flat,
        refused=_REFUSED,
        others=(IntraListSimilarity(FEATURES[:5], similarity="share_equal"),),
        oracle=diversity.list_similarity(diversity.share_equal(FEATURES), None),
        name="IntraListSimilarity of features",
    ),
    Case(
        IntraListSimilarity(TABLE, similarity="table"),
        ITEMS,
        nested,
        oracle=diversity.list_similarity(lambda i, j: Fraction(TABLE[i][j]), None),
        name="IntraListSimilarity of a table",
    ),
    Case(
        IntraListSimilarity(VECTORS, 3, similarity="nearness"),
        ITEMS,
        flat,
        others=(IntraListSimilarity(VECTORS, 3),),
        oracle=diversity.list_similarity(_nearness, 3),
        name="IntraListSimilarity of a user's function",
    ),
    Case(
        ItemExposure(n_items=6, k=3, examination=(1, 0.3, 0.25)),
        ITEMS,
        nested,
        refused=_REFUSED,
        others=(ItemExposure(n_items=6, k=3), ItemExposure(n_items=6, k=2), Ratio()),
        oracle=diversity.exposure(6, [Fraction(1), Fraction(3, 10), Fraction(1, 4)]),
    ),
    Case(
        ItemExposure(n_items=40, k=2, examination="reciprocal"),
        ITEMS,
        flat,
        oracle=diversity.exposure(40, [Fraction(1), Fraction(1, 2)]),
        name="ItemExposure, sparse",
    ),
    Case(
        CatalogMetrics(n_items=6, k=3),
        ITEMS,
        nested,
        refused=_REFUSED,
        others=(CatalogMetrics(n_items=7, k=3), CatalogMetrics(n_items=6, k=2), Ratio()),
        oracle=diversity.catalog(6, 3),
    ),
    Case(
        CatalogMetrics(n_items=1000, k=4),
        ITEMS,
        flat,
        oracle=diversity.catalog(1000, 4),
    ),
]
