"""GroupedAUC: worked values, every small sample, splits, kinds of ids, and real clicks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from streammetrics.core.errors import InputError
from streammetrics.core.rows import DictionaryColumn
from streammetrics.ranking import GroupedAUC
from tests.oracles import grouped

WEIGHTS = ("impressions", "positives", "uniform")
SCORE_TYPES = ("float32", "float64")
IDS = ("integer", "hashed", "exact")
any_ids = pytest.mark.parametrize("ids", IDS)
any_weight = pytest.mark.parametrize("weight", WEIGHTS)


def fed(rows: list[grouped.Row], metric: GroupedAUC) -> GroupedAUC:
    """The metric after these rows, whose groups are integers, or strings where it wants them."""
    metric = metric.copy()
    groups = [g if metric.ids == "integer" else f"u{g}" for g, _, _ in rows]
    metric.update([y for _, y, _ in rows], [s for _, _, s in rows], groups=groups)
    return metric


def test_the_ends_of_the_integers_are_ids() -> None:
    ends = [-(2**63), 2**63 - 1, 0, -1]
    metric = GroupedAUC()
    for label in (0, 1):
        metric.update([label] * 4, [label] * 4, groups=np.array(ends))
    result = metric.compute()
    assert (result.gauc, result.groups) == (1.0, 4)
    assert GroupedAUC.from_bytes(metric.to_bytes()) == metric


@pytest.mark.parametrize("ids", ["hashed", "exact"])
def test_any_column_of_strings_is_taken(ids: str) -> None:
    names = ["a", "é", "a", ""]
    columns: list[object] = [
        names,
        np.array(names),
        np.array(names, object),
        DictionaryColumn(np.array([0, 1, 0, 2]), ("a", "é", "", "never")),
    ]
    states = []
    for column in columns:
        metric = GroupedAUC(ids=ids)
        metric.update([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], groups=column)  # type: ignore[arg-type]
        states.append(metric)
    assert all(state == states[0] for state in states)
    assert states[0].compute().groups == 3


@any_ids
def test_ids_of_another_kind_are_refused_with_their_rows(ids: str) -> None:
    wrong: list[object] = ["a", 2, "b"] if ids == "integer" else [None, "a", (1, "b")]
    good = [2] if ids == "integer" else ["a"]
    metric = GroupedAUC(ids=ids)
    metric.update([1], [0.5], groups=good)  # type: ignore[arg-type]
    before = metric.digest()
    for column in (wrong, DictionaryColumn(np.array([0, 1, 2]), tuple(wrong))):  # type: ignore[arg-type]
        with pytest.raises(InputError, match=r"groups\[0\].*ids=") as caught:
            metric.update([0, 1, 1], [0.1, 0.2, 0.3], groups=column)  # type: ignore[arg-type]
        assert caught.value.rows.tolist() == [0, 2]
    assert metric.digest() == before


@any_ids
def test_a_wrong_id_that_no_row_has_does_not_matter(ids: str) -> None:
    values = (1, None, "a") if ids == "integer" else ("a", None, 1)
    metric = GroupedAUC(ids=ids)
    metric.update([0, 1], [0.1, 0.2], groups=DictionaryColumn(np.array([0, 0]), values))
    assert metric.compute().groups == 1
    assert GroupedAUC.from_bytes(metric.to_bytes()) == metric


def test_a_result_says_what_its_comparisons_rest_on() -> None:
    rows = [(i, y, 0.5) for i in range(1_000) for y in (0, 1)]
    exact, hashed = (fed(rows, GroupedAUC(ids=ids)).compute() for ids in ("exact", "hashed"))
    assert exact.exactness == "exact; scores compared as float32"
    assert hashed.exactness == (
        "exact unless ids collide (probability about 2.7e-14); scores compared as float32"
    )
    assert hashed.collision_probability() == 1_000 * 999 / 2 / 2**64
    assert exact.collision_probability() == 0.0


@any_weight
@pytest.mark.parametrize("score_type", SCORE_TYPES)
def test_counts_past_32_bits_are_exact(weight: str, score_type: str) -> None:
    rows = [(1, 0, 0.25), (1, 1, 0.5), (1, 0, 0.5), (1, 1, -1.0), (2, 1, 0.3), (2, 0, 0.1)]
    metric = fed(rows, GroupedAUC(weight=weight, score_type=score_type))
    once = metric.compute()
    for _ in range(40):
        metric.merge(metric)
    result = metric.compute()
    # Areas do not change when every row counts equally more often.
    assert result.gauc == once.gauc == float(grouped.gauc(rows, weight) or 0)
    assert (result.rows, result.positives, result.groups) == (6 << 40, 3 << 40, 2)
    assert GroupedAUC.from_bytes(metric.to_bytes()) == metric
    metric.update([1], [9.0], groups=[2])  # a large state and a small one
    assert metric.compute().rows == (6 << 40) + 1


@any_ids
def test_past_max_rows_a_state_says_so(ids: str) -> None:
    rows = [(1, 0, 0.1), (1, 1, 0.2)]
    limited = fed(rows, GroupedAUC(ids=ids, max_rows=3))
    assert limited.compute().gauc == 1.0
    both = limited + limited
    result = both.compute()
    assert math.isnan(result.gauc) and result.rows == 4 and result.groups is None
    assert result.reason == "4 rows are more than max_rows=3"
    assert result.collision_probability() == 0.0
    assert both == fed(rows + rows, GroupedAUC(ids=ids, max_rows=3))
    assert GroupedAUC.from_bytes(both.to_bytes()) == both


def test_scores_are_compared_as_float32_by_default_and_the_result_says_so() -> None:
    close = math.nextafter(0.5, 1)
    rows = [(1, 0, 0.5), (1, 1, close)]
    for score_type, gauc in (("float32", 0.5), ("float64", 1.0)):
        result = fed(rows, GroupedAUC(score_type=score_type)).compute()
        assert (result.gauc, result.compared_as) == (gauc, score_type)
    assert fed(rows, GroupedAUC()).compute().exactness == "exact; scores compared as float32"


@pytest.mark.parametrize("ids", ["hashed", "exact"])
@pytest.mark.parametrize("codes", [[0, 2], [0, -1], [0, 2**40]])
def test_codes_that_name_no_string_are_refused(ids: str, codes: list[int]) -> None:
    metric = GroupedAUC(ids=ids)
    with pytest.raises(InputError, match=r"groups.codes\[1\]"):
        metric.update([0, 1], [0.1, 0.2], groups=DictionaryColumn(np.array(codes), ("a", "b")))
    assert metric == GroupedAUC(ids=ids)
