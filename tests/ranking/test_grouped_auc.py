"""GroupedAUC: worked values, every small sample, splits, kinds of ids, and real clicks."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement, product
from random import Random

import numpy as np
import pytest

from streammetrics.core.errors import InputError, SettingsError
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


@any_ids
@any_weight
@pytest.mark.parametrize(
    "groups", [["jia", "jia", "yi", "jia", "yi"], ["jia", "jia", "jia", "yi", "yi"]]
)
def test_two_users_each_ranked_perfectly_have_gauc_1(
    groups: list[str], weight: str, ids: str
) -> None:
    labels = [0, 1, 0, 1, 1] if groups[2] == "yi" else [0, 1, 1, 0, 1]
    rows = [(len(g), y, s) for g, y, s in zip(groups, labels, range(1, 6), strict=True)]
    result = fed(rows, GroupedAUC(weight=weight, ids=ids)).compute()
    assert (result.gauc, result.groups, result.groups_kept) == (1.0, 2, 2)


@any_weight
def test_users_of_one_class_leave_both_sums_and_are_counted(weight: str) -> None:
    rows = [(1, 0, 0.1), (1, 1, 0.2), (2, 1, 0.5), (3, 0, 0.5), (3, 0, 0.6), (4, 1, 0.1)]
    result = fed(rows, GroupedAUC(weight=weight)).compute()
    assert result.gauc == 1.0
    assert (result.groups, result.groups_kept, result.groups_one_class) == (4, 1, 3)
    assert (result.rows, result.positives) == (6, 3)


def test_a_user_of_identical_scores_has_one_half_and_stays() -> None:
    rows = [(1, 0, 0.1), (1, 1, 0.2), (2, 0, 0.3), (2, 1, 0.3), (2, 1, 0.3)]
    for weight, expected in zip(WEIGHTS, (0.7, 2 / 3, 0.75), strict=True):
        assert fed(rows, GroupedAUC(weight=weight)).compute().gauc == expected


def test_without_a_valid_user_it_is_undefined() -> None:
    for rows in ([], [(1, 0, 0.5), (2, 1, 0.5)]):
        result = fed(rows, GroupedAUC()).compute() if rows else GroupedAUC().compute()
        assert math.isnan(result.gauc) and result.groups_kept == 0 and result.reason == ""


@pytest.mark.slow
@any_ids
def test_every_small_sample_however_split(ids: str) -> None:
    random = Random(15)
    kinds = [(g, y, s) for g, y, s in product((0, 5), (0, 1), (-0.25, 0.25, 0.5))]
    for n in range(5 if ids == "integer" else 4):  # kinds of ids differ in how groups are found
        for rows in combinations_with_replacement(kinds, n):
            weight, score_type = random.choice(WEIGHTS), random.choice(SCORE_TYPES)
            empty = GroupedAUC(weight=weight, score_type=score_type, ids=ids)
            shards: list[list[grouped.Row]] = [[], []]
            for row in random.sample(rows, n):
                random.choice(shards).append(row)
            merged = sum((fed(shard, empty) for shard in shards if shard), empty)
            exact = grouped.gauc(rows, weight)
            gauc = merged.compute().gauc
            assert math.isnan(gauc) if exact is None else gauc == float(exact)
            assert merged == fed(list(reversed(rows)), empty) if rows else merged == empty


@pytest.mark.slow
@pytest.mark.parametrize("score_type", SCORE_TYPES)
@any_ids
def test_batches_and_shards_of_any_size_give_the_same_bits(ids: str, score_type: str) -> None:
    rng = np.random.default_rng(16)
    n = 20_000
    users = rng.zipf(1.5, n) % 3_000
    labels, scores = rng.random(n) < 0.2, np.round(rng.normal(size=n), 2)
    names = users if ids == "integer" else [f"u{u}" for u in users]
    whole = GroupedAUC(ids=ids, score_type=score_type)
    whole.update(labels, scores, groups=names)
    result = whole.compute()
    kind = np.float32 if score_type == "float32" else np.float64
    rows = zip(users.tolist(), labels.tolist(), scores.astype(kind).tolist(), strict=True)
    exact = grouped.gauc(((u, int(y), s) for u, y, s in rows), "impressions")
    assert exact is not None and result.gauc == float(exact)
    for size in (300, 9_000):
        shards = [GroupedAUC(ids=ids, score_type=score_type) for _ in range(3)]
        for i in range(0, n, size):
            here = slice(i, i + size)
            shards[i // size % 3].update(labels[here], scores[here], groups=names[here])
        total = shards[2] + shards[0] + shards[1]
        assert total.compute() == result and total.digest() == whole.digest()
    assert GroupedAUC.from_bytes(whole.to_bytes()).compute() == result


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


@pytest.mark.parametrize(
    "groups",
    [[2**63, 1], [1.5, 2.0], [True, None], [1], [[1, 2]], DictionaryColumn(np.zeros(3, int), (1,))],
)
def test_ids_that_are_no_integers_of_64_bits_are_refused(groups: object) -> None:
    with pytest.raises(InputError, match="groups"):
        GroupedAUC().update([0, 1], [0.1, 0.2], groups=groups)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings",
    [
        {"weight": "views"},
        {"score_type": "float16"},
        {"ids": "string"},
        {"max_rows": -1},
        {"ids": None},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match="GroupedAUC"):
        GroupedAUC(**settings)  # type: ignore[arg-type]


def test_kinds_of_ids_never_mix() -> None:
    for a, b in (("integer", "hashed"), ("hashed", "exact")):
        with pytest.raises(SettingsError, match="ids"):
            GroupedAUC(ids=a).merge(GroupedAUC(ids=b))


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


@any_ids
def test_what_was_counted_is_told_of_groups_and_of_rows(ids: str) -> None:
    rows = [(1, 0, 0.1), (1, 1, 0.2), (1, 1, 0.3), (2, 1, 0.5), (3, 0, 0.5), (3, 0, 0.6)]
    result = fed(rows, GroupedAUC(ids=ids)).compute()
    assert (result.groups, result.groups_kept, result.groups_one_class) == (3, 1, 2)
    assert (result.rows, result.rows_kept, result.rows_one_class) == (6, 3, 3)
    assert result.positives == 3


def test_scores_are_compared_as_float32_unless_told_otherwise_and_the_result_says_so() -> None:
    close = math.nextafter(0.5, 1)
    rows = [(1, 0, 0.5), (1, 1, close)]
    for score_type, gauc in (("float32", 0.5), ("float64", 1.0)):
        result = fed(rows, GroupedAUC(score_type=score_type)).compute()
        assert (result.gauc, result.compared_as) == (gauc, score_type)
    assert fed(rows, GroupedAUC()).compute().exactness == "exact; scores compared as float32"


@any_ids
def test_a_user_split_over_batches_shards_and_bytes_is_one_user(ids: str) -> None:
    rows = [(7, 0, 0.4), (7, 1, 0.5), (8, 1, 0.1), (7, 0, 0.6), (8, 0, 0.2)]
    empty = GroupedAUC(ids=ids)
    whole = fed(rows, empty).compute()
    assert (whole.gauc, whole.groups) == (0.3, 2)
    batches = empty.empty()
    for row in rows:
        batches = fed([row], batches)
    shards = [GroupedAUC.from_bytes(fed([row], empty).to_bytes()) for row in rows]
    assert batches.compute() == sum(shards, empty).compute() == whole


@pytest.mark.parametrize("ids", ["hashed", "exact"])
@pytest.mark.parametrize("codes", [[0, 2], [0, -1], [0, 2**40]])
def test_codes_that_name_no_string_are_refused(ids: str, codes: list[int]) -> None:
    metric = GroupedAUC(ids=ids)
    with pytest.raises(InputError, match=r"groups.codes\[1\]"):
        metric.update([0, 1], [0.1, 0.2], groups=DictionaryColumn(np.array(codes), ("a", "b")))
    assert metric == GroupedAUC(ids=ids)


@pytest.mark.parametrize("ids", ["hashed", "exact"])
def test_values_that_no_row_has_need_not_be_strings(ids: str) -> None:
    given = GroupedAUC(ids=ids), GroupedAUC(ids=ids)
    given[0].update([0, 1], [0.1, 0.2], groups=DictionaryColumn(np.array([1, 1]), (None, "a", 3)))
    given[1].update([0, 1], [0.1, 0.2], groups=["a", "a"])
    assert given[0] == given[1]
