"""GroupedAUC: kinds of ids, limits, what a grid bounds, and weighted rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from streammetrics import Bounded, GroupedAUC
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.core.errors import InputError, StateError
from streammetrics.core.multiset import bag
from streammetrics.core.rows import DictionaryColumn
from streammetrics.kernels.tables.grids import grid_of
from tests.oracles import grouped, weighted

IDS = ("integer", "hashed", "exact")
any_ids = pytest.mark.parametrize("ids", IDS)


def fed(rows: list[grouped.Row], metric: GroupedAUC) -> GroupedAUC:
    """The metric after these rows, whose groups are integers, or strings where it wants them."""
    metric = metric.copy()
    groups = [g if metric.ids == "integer" else f"u{g}" for g, _, _ in rows]
    metric.update([y for _, y, _ in rows], [s for _, _, s in rows], groups=groups)
    return metric


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
        with pytest.raises(InputError, match=r"groups\[0\].*(ids=|without an id)") as caught:
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
    assert exact.exactness == "exact; scores compared as float64"
    assert hashed.exactness == (
        "exact unless ids collide (probability about 2.7e-14); scores compared as float64"
    )
    assert hashed.collision_probability() == 1_000 * 999 / 2 / 2**64
    assert exact.collision_probability() == 0.0


@any_ids
def test_past_max_rows_a_state_says_so(ids: str) -> None:
    rows = [(1, 0, 0.1), (1, 1, 0.2)]
    limited = fed(rows, GroupedAUC(ids=ids, max_rows=3))
    assert limited.compute().gauc == 1.0
    merged = limited + limited
    result = merged.compute()
    assert math.isnan(result.gauc) and result.rows == 4 and result.groups is None
    assert result.reason == "4 rows exceed max_rows=3"
    assert result.collision_probability() == 0.0
    assert merged == fed(rows + rows, GroupedAUC(ids=ids, max_rows=3))


@pytest.mark.parametrize("ids", ["hashed", "exact"])
def test_codes_that_name_no_string_are_refused(ids: str) -> None:
    metric = GroupedAUC(ids=ids)
    for codes in ([0, 2], [0, -1], [0, 2**40]):
        with pytest.raises(InputError, match=r"groups.codes\[1\]"):
            metric.update([0, 1], [0.1, 0.2], groups=DictionaryColumn(np.array(codes), ("a", "b")))
    assert metric == GroupedAUC(ids=ids)


# -- on a grid: certain bounds, from a state that does not grow with rows


def gauc(metric: GroupedAUC) -> Bounded:
    value = metric.compute().gauc
    assert isinstance(value, Bounded)
    return value


def bounds(
    rows: list[grouped.Row], weight: str, bucket: Callable[[float], int]
) -> tuple[Fraction, Fraction] | None:
    """The least and the greatest GAUC of any scores in the same buckets."""
    ends = []
    for towards in (-1, 1):  # a positive moves down or up within its bucket, past all negatives
        moved = [(g, y, bucket(s) + 0.25 * y * towards) for g, y, s in rows]
        ends.append(grouped.gauc(moved, weight))
    low, high = ends
    return None if low is None or high is None else (low, high)


@pytest.mark.parametrize(
    ("weight", "settings"),
    [
        ("impressions", {"grid": "relative"}),
        ("positives", {"grid": "equal", "resolution": 4}),
        ("uniform", {"grid": "relative"}),
    ],
)
def test_many_users_lie_between_their_bounds_however_cut(
    weight: str, settings: dict[str, object]
) -> None:
    rng = np.random.default_rng(31)
    n = 1_500
    users, labels = rng.zipf(1.5, n) % 200, (rng.random(n) < 0.2).astype(int)
    scores = rng.random(n) ** 4
    empty = GroupedAUC(weight=weight, **settings)  # type: ignore[arg-type]
    whole = empty.empty()
    whole.update(labels, scores, groups=users)
    shards = [empty.empty() for _ in range(3)]
    for i in range(0, n, 130):
        batch = slice(i, i + 130)
        shards[i % 3].update(labels[batch], scores[batch], groups=users[batch])
    assert sum(shards, empty) == whole
    rows = list(zip(users.tolist(), labels.tolist(), scores.tolist(), strict=True))
    of_score = dict(zip(scores.tolist(), grid_of(empty).buckets(scores).tolist(), strict=True))
    ends = bounds(rows, weight, of_score.__getitem__)
    exact, value = grouped.gauc(rows, weight), gauc(whole)
    assert exact is not None and ends is not None
    assert value.low <= ends[0] <= exact <= ends[1] <= value.high
    assert value.width <= float(ends[1] - ends[0]) + 1e-15
    mean = sum(ends) / 2
    assert value.value == mean.numerator / mean.denominator  # a tied pair is worth one half


def test_scores_that_no_float32_tells_apart_keep_their_order_between_the_bounds() -> None:
    close = math.nextafter(0.5, 1)
    rows: list[grouped.Row] = [(1, 0, 0.5), (1, 1, close)]
    assert np.float32(close) == np.float32(0.5)
    assert fed(rows, GroupedAUC(score_type="float32")).compute().gauc == 0.5
    value = gauc(fed(rows, GroupedAUC(grid="relative")))
    assert value.low <= 1.0 <= value.high


def test_the_state_does_not_grow_while_the_same_users_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bag, "_FEW", 1 << 14)
    rng = np.random.default_rng(33)
    metric = GroupedAUC(grid="relative", resolution=2)
    n = 10_000
    users, labels, scores = rng.integers(0, 2_000, n), rng.random(n) < 0.3, rng.random(n) ** 4
    sizes = []
    for _ in range(80):
        metric.update(labels, scores, groups=users)
        sizes.append(metric.nbytes)
    assert metric.compute().rows == 80 * n
    settled = metric.nbytes
    pending = (
        bag._WAIT * 40 + (1 << 18) * 8 * 2
    )  # rows before their ids are looked up, keys before a sort
    assert max(sizes) <= pending + 4 * settled
    assert settled < 400_000


def test_scores_outside_the_grid_are_refused() -> None:
    metric = GroupedAUC(grid="relative")
    for bad in (1.5, -0.1, math.nan, math.inf):
        with pytest.raises(InputError, match=r"scores\[1\]"):
            metric.update([0, 1], [0.5, bad], groups=[1, 1])
    real = GroupedAUC(grid="relative", range="real")
    real.update([0, 1], [-math.inf, 1e300], groups=[1, 1])
    assert gauc(real) == Bounded(1.0, 1.0, 1.0)


def test_settings_that_mean_the_same_are_the_same() -> None:
    for kwargs in ({}, {"grid": "relative", "range": "real"}):
        plain = GroupedAUC(**kwargs)  # type: ignore[arg-type]
        assert plain == GroupedAUC(ceiling=2**24, edges=(), **kwargs)  # type: ignore[arg-type]
    assert GroupedAUC(resolution=8.0) == GroupedAUC()  # type: ignore[arg-type]


def test_a_result_says_that_buckets_were_compared() -> None:
    rows: list[grouped.Row] = [(1, 0, 0.1), (1, 1, 0.2)]
    result = fed(rows, GroupedAUC(grid="relative")).compute()
    assert result.compared_as == "buckets"
    assert result.exactness == "within certain bounds; scores compared as buckets"


# -- weighted rows: pairs count the product of weights, groups the sum


WeightedRow = tuple[int, int, float, int]  # group, label, score, weight


def weighing(rows: list[WeightedRow], metric: GroupedAUC) -> GroupedAUC:
    groups, labels, scores, weights = map(list, zip(*rows, strict=True)) if rows else ([],) * 4
    metric.update(labels, scores, groups=groups, weights=weights)
    return metric


def test_what_is_known_of_weighted_groups() -> None:
    rows: list[WeightedRow] = [(7, 1, 0.5, 3), (7, 0, 0.5, 2), (8, 1, 0.1, 4), (9, 0, 0.9, 0)]
    metric = weighing(rows, GroupedAUC(weight_unit="1/2"))
    metric.update([0], [0.7], groups=[7])  # without a weight: 1
    result = metric.compute()
    assert (result.rows, result.groups, result.groups_kept, result.positives) == (4, 2, 1, 14)
    assert (result.weight_units, result.weight_units_kept) == (20, 12)
    assert (result.rows_kept, result.rows_one_class) == (None, None)
    assert (result.weight, result.weight_unit) == (10, Fraction(1, 2))
    assert result.gauc == 1 / 3


@pytest.mark.parametrize(
    ("weight", "score_type"),
    [("impressions", "float32"), ("positives", "float64"), ("uniform", "float32")],
)
def test_pairs_past_an_int64_are_exact(weight: str, score_type: str) -> None:
    big = 2**61 - 1
    rows: list[WeightedRow] = [
        *((1, 0, 0.25, big), (1, 1, 0.5, big - 2), (1, 0, 0.5, big // 3), (1, 1, -1.0, 5)),
        *((2, 1, 0.3, 3), (2, 0, 0.1, 1), (2, 0, 0.4, 1)),
        *((3, 1, 0.3, 2**30), (3, 0, 0.3, 2**30 - 1), (4, 1, 0.5, 2**31), (4, 0, 0.4, 7)),
    ]
    expected = weighted.gauc(rows, weight)
    assert expected is not None
    for metric in (
        GroupedAUC(weight=weight, score_type=score_type),
        GroupedAUC(weight=weight, grid="edges", edges=(0.0, 0.2, 0.26, 0.35, 0.45), range="real"),
    ):
        state = weighing(rows[:5], metric) + weighing(rows[5:], metric.empty())
        assert GroupedAUC.from_bytes(state.to_bytes()) == state
        value = state.compute().gauc
        if isinstance(value, Bounded):
            assert value.low <= expected <= value.high
        else:
            assert value == float(expected)


def test_max_rows_counts_rows_and_weights_of_zero_not_at_all() -> None:
    rows: list[WeightedRow] = [(1, 0, 0.1, 50), (1, 1, 0.2, 70), (1, 1, 0.2, 0), (2, 1, 0.2, 0)]
    metric = weighing(rows, GroupedAUC(max_rows=2))
    assert metric.compute().gauc == 1.0
    metric.update([1], [0.5], groups=[1], weights=[2])
    result = metric.compute()
    assert (result.rows, result.weight_units, result.weight) == (3, None, None)
    assert result.reason == "3 rows exceed max_rows=2" and np.isnan(result.gauc)  # type: ignore[arg-type]


def test_rounded_rows_past_max_rows_are_still_counted() -> None:
    metric = GroupedAUC(round_weights=True, max_rows=2)
    metric.update([0, 1, 0], [0.1, 0.2, 0.1], groups=[1, 1, 2], weights=[0.75, 0.75, 0.25])
    result = metric.compute()  # two rows of a unit each, and one that became none
    assert (result.gauc, result.rows, result.rows_rounded, result.reason) == (1.0, 2, 3, "")


def test_the_state_of_a_grid_does_not_grow_with_rounded_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streammetrics.core.multiset.bag._FEW", 1 << 10)
    monkeypatch.setattr("streammetrics.core.multiset.bag._WAIT", 1 << 10)
    random = np.random.default_rng(5)
    metric = GroupedAUC(grid="equal", resolution=2, round_weights=True)
    n, sizes = 20_000, []  # more than are pending at once
    for _ in range(10):
        users, labels = random.integers(0, 300, n), random.integers(0, 2, n)
        metric.update(labels, random.random(n), groups=users, weights=random.random(n))
        sizes.append(metric.rounded.nbytes)
    assert metric.compute().rows_rounded == 10 * n
    assert max(sizes) < 2 * sizes[0] < 34_000


def test_without_the_setting_a_state_has_no_room_for_rounded_rows() -> None:
    strict, rounding = GroupedAUC(), GroupedAUC(round_weights=True)
    rows = {"labels": [0, 1], "scores": [0.1, 0.2], "groups": [1, 1]}
    for metric in (strict, rounding):
        metric.update(**rows)
    assert strict.rounded.inner.width == 0 and strict.nbytes < rounding.nbytes
    rounding.update(**rows, weights=[0.25, 1.25])
    head, _ = unframe(STATE_MAGIC, strict.to_bytes())
    _, body = unframe(STATE_MAGIC, rounding.to_bytes())
    with pytest.raises(StateError):
        GroupedAUC.from_bytes(frame(STATE_MAGIC, head, bytes(body)))
