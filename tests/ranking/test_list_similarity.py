"""IntraListSimilarity: lists of real data, cosines, and similarities of users."""

from __future__ import annotations

import csv
import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from streammetrics import InputError, IntraListSimilarity, SettingsError, register_similarity
from streammetrics.ranking import list_similarity
from tests.obd_lists import FEATURES, ITEMS, first_items, ils_cases

Floats = NDArray[np.float64]


def measured(metric: IntraListSimilarity, *lists: list[int]) -> float:
    metric = metric.empty()
    metric.update(lists)
    return metric.compute().ils


# -- real lists ---------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["random", "bts"])
def test_lists_of_a_shop_have_the_similarity_that_others_computed(data: Path, variant: str) -> None:
    case = ils_cases(data)[variant]
    with (data / ITEMS).open() as file:
        features = [[row[name] for name in FEATURES] for row in csv.DictReader(file)]
    metric = IntraListSimilarity(features, similarity="share_equal")
    lists = first_items(data, variant)
    assert len(lists) == case["users"]
    metric.update(list(lists.values()))
    exact = Fraction(case["exact"])
    assert metric.compute().ils == exact.numerator / exact.denominator
    assert metric.compute().lists_kept == case["users"]
    assert {user: measured(metric, items) for user, items in lists.items()} == case["per_query"]


# -- what a list is -----------------------------------------------------------------------------


def test_only_the_first_k_items_count_and_their_order_does_not() -> None:
    random = Random(1)
    vectors = [[random.random() for _ in range(7)] for _ in range(9)]
    metric = IntraListSimilarity(vectors, k=6)
    items = list(range(9))
    values = set()
    for _ in range(9):
        head = items[:6]
        random.shuffle(head)
        values.add(measured(metric, head + items[6:]))
    assert len(values) == 1
    assert measured(metric, items[1:7]) not in values


def test_a_long_list_is_refused_and_one_at_the_limit_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metric = IntraListSimilarity(np.ones((3000, 1)))
    with pytest.raises(InputError, match="at most 2048 items") as caught:
        metric.update([[0, 1], list(range(2049))])
    assert caught.value.rows.tolist() == [1]
    monkeypatch.setattr(list_similarity, "MAX_ITEMS", 99)
    assert measured(metric, list(range(99))) == 1
    assert measured(IntraListSimilarity(np.ones((3000, 1)), k=99), list(range(100))) == 1


# -- similarities -------------------------------------------------------------------------------


def test_cosines_are_right_to_a_few_units_in_the_last_place() -> None:
    random = Random(2)
    vectors = [
        [math.ldexp(random.random() - 0.5, random.randrange(-40, 40)) for _ in range(12)]
        for _ in range(30)
    ]
    metric = IntraListSimilarity(vectors)
    with localcontext(prec=60):
        for i, j in combinations(range(30), 2):
            a, b = ([Decimal(x) for x in vectors[k]] for k in (i, j))
            product = sum(x * y for x, y in zip(a, b, strict=True))
            exact = product / (sum(x * x for x in a) * sum(y * y for y in b)).sqrt()
            assert abs(Decimal(measured(metric, [i, j])) - exact) < 4 * Decimal(2) ** -53


@pytest.mark.parametrize("size", [1e300, 1e-300, 5e-324, 1.7e308])
def test_vectors_of_any_size_have_cosines(size: float) -> None:
    metric = IntraListSimilarity([[size, 0, 0], [size, size, 0], [1, 1, 0]])
    assert measured(metric, [1, 2]) == 1
    assert abs(measured(metric, [0, 1]) - 0.5**0.5) <= math.ulp(1)


def test_a_pair_has_the_same_bits_computed_and_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(4)
    vectors = [[random.gauss(0, 1) for _ in range(16)] for _ in range(40)]
    lists = [random.sample(range(40), random.randrange(2, 12)) for _ in range(100)]
    for name in ("cosine", "share_equal", "halved"):
        features = [[int(x * 2) for x in v] for v in vectors] if name == "share_equal" else vectors
        looked_up = IntraListSimilarity(features, similarity=name)
        for _ in range(2):
            looked_up.update(lists)
        with monkeypatch.context() as patch:
            patch.setattr(list_similarity, "_TABLED", 0)
            computed = IntraListSimilarity(features, similarity=name)
            for _ in range(2):
                computed.update(lists)
        assert computed.digest() == looked_up.digest()


def halved(a: Floats, b: Floats) -> Floats:
    """Half of the first entry, which depends on the order of a pair."""
    return a[:, 0] / 2


register_similarity("halved", halved)


def test_what_a_function_may_not_give_is_its_fault_and_changes_nothing() -> None:
    for values, message in (
        (np.zeros(3), "one for each pair"),
        (["a", "b"], "one for each pair"),
        (np.array([0.0, np.nan]), "nan"),
        (np.array([0.0, np.inf]), "inf"),
        (np.array([1e101, 0.0]), "1e\\+101"),
    ):
        register_similarity("faulty", lambda a, b, result=values: result)  # type: ignore[arg-type,misc]
        metric = IntraListSimilarity([[0.0], [1.0], [2.0]], similarity="faulty")
        before = metric.digest()
        with pytest.raises(SettingsError, match=message):
            metric.update([[0, 1]])
        assert metric.digest() == before


def test_a_name_stands_for_one_function() -> None:
    register_similarity("halved", halved)
    with pytest.raises(SettingsError, match=r"test_list_similarity\.halved"):
        register_similarity("halved", measured)  # type: ignore[arg-type]
    name: object
    for name in ("cosine", "", "a b", "x" * 65, 3):
        with pytest.raises(SettingsError):
            register_similarity(name, halved)  # type: ignore[arg-type]


# -- settings -----------------------------------------------------------------------------------


# Where a refused setting is, with the similarity and vectors that have no such similarity.
REFUSED: dict[str, list[tuple[str, object]]] = {
    "vectors[1]": [("cosine", [[1, 0], [0, 0]])],
    "vectors[1, 0]": [("cosine", [[1, 0], [math.nan, 0]])],
    "vectors[0, 1]": [
        ("table", [[1, math.inf]]),
        ("share_equal", [["a", 1.5]]),
        ("share_equal", [["a", None]]),
    ],
    "vectors[0, 0]": [("table", [[1e101]])],
    "vectors": [
        ("table", [[1, 0]]),
        *(("cosine", vectors) for vectors in ([1, 0], [], [[]], [[1, 0], [0]], [["1", "0"]], 3)),
        ("cosine", [[1j]]),
        *(("share_equal", [[value]]) for value in (0.5, math.nan, math.inf)),
        *(("share_equal", vectors) for vectors in (["ab"], np.zeros((0, 3)))),
    ],
}


def test_settings_that_mean_nothing_are_refused() -> None:
    for where, several in REFUSED.items():
        for similarity, vectors in several:
            with pytest.raises(SettingsError) as caught:
                IntraListSimilarity(vectors, similarity=similarity)  # type: ignore[arg-type]
            assert caught.value.where == f"IntraListSimilarity.{where}", vectors


def test_of_features_it_counts_which_values_are_equal_and_not_their_names() -> None:
    metrics = [
        IntraListSimilarity(features, similarity="share_equal")
        for features in (
            [["red", 7], ["blue", 7], ["red", 8]],
            [[5, "x"], [3, "x"], [5, "y"]],
            np.array([[5, 0], [3, 0], [5, 9]], np.int8),
            np.array([[5.0, 0.0], [3.0, 0.0], [5.0, 9.0]]),
        )
    ]
    assert len({metric.digest() for metric in metrics}) == 1
    changed_metric = IntraListSimilarity(
        [["red", 7], ["blue", 7], ["blue", 8]], similarity="share_equal"
    )
    assert changed_metric != metrics[0]


def test_1_and_its_text_are_different_values() -> None:
    metric = IntraListSimilarity([[1], ["1"]], similarity="share_equal")
    assert measured(metric, [0, 1]) == 0


def test_vectors_may_change_after_they_were_given() -> None:
    vectors = np.array([[1.0, 0.0], [0.0, 1.0]])
    metric = IntraListSimilarity(vectors)
    vectors[:] = 1
    assert measured(metric, [0, 1]) == 0
