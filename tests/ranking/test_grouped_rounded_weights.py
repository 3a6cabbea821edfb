"""GroupedAUC where weights are rounded: GAUC is between its ends, whatever rows weighed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest

from streammetrics import Bounded, GroupedAUC
from streammetrics.core.codec import STATE_MAGIC, frame, unframe
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.results.figures import counts_of
from tests.depth import tries

FINE = Fraction(1, 120)  # of which all weights here are multiples
WEIGHTS = ("impressions", "positives", "uniform")
COMPARED: list[dict[str, Any]] = [
    {},
    {"score_type": "float64"},
    {"grid": "equal", "resolution": 1},
    {"grid": "relative"},
]
any_weight = pytest.mark.parametrize("weight", WEIGHTS)


def samples(n: int, seed: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The kind of the ids, and rows."""
    random = Random(seed)
    for _ in range(n):
        rows, users = random.choice([1, 2, 3, 5, 8, 20, 60]), random.choice([1, 2, 3, 10])
        share, most = random.choice([0.1, 0.5, 0.9]), random.choice([50, 100, 400, 5000])
        whole, kind = random.choice([0, 0, 0.7]), random.choice(["integer", "hashed", "exact"])
        weights = [random.randint(0, most) * FINE for _ in range(rows)]
        groups = [random.randrange(users) for _ in range(rows)]
        yield (
            kind,
            {
                "labels": [random.random() < share for _ in range(rows)],
                "scores": [random.choice([0, 0.1, 0.2, 0.5, 0.51, 0.8, 1]) for _ in range(rows)],
                "groups": groups if kind == "integer" else [f"user {g}" for g in groups],
                "weights": [Fraction(round(w)) if random.random() < whole else w for w in weights],
            },
        )


def fed(metric: GroupedAUC, rows: dict[str, Any]) -> GroupedAUC:
    metric.update(**rows)
    return metric


def held_in(n: int, seed: int) -> None:
    defined = open_ends = 0
    for (ids, rows), weight in product(samples(n, seed), WEIGHTS):
        truth = fed(GroupedAUC(weight=weight, ids=ids, weight_unit=FINE), rows).compute().gauc
        assert isinstance(truth, float)
        for settings in COMPARED:
            empty = GroupedAUC(weight=weight, ids=ids, round_weights=True, **settings)
            result = fed(empty, rows).compute()
            found = result.gauc
            assert isinstance(found, Bounded)
            assert result.rows_rounded == sum(w.denominator > 1 for w in rows["weights"])
            if math.isnan(truth):
                assert all(map(math.isnan, (found.value, found.low, found.high)))
                continue
            defined += 1
            assert found.low <= truth <= found.high, (empty, rows)
            if math.isnan(found.value):
                open_ends += 1
                assert (found.low, found.high) == (0, 1)
            else:
                assert found.low <= found.value <= found.high
    assert defined > 5 * n and open_ends > n, (defined, open_ends)


@pytest.mark.slow
def test_gauc_of_rounded_weights_is_between_its_ends() -> None:
    held_in(60, seed=1)


@pytest.mark.slow
def test_gauc_of_many_samples_of_rounded_weights_is_between_its_ends() -> None:
    held_in(tries(120, 3000), seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("settings", COMPARED[1:], ids=str)
def test_neither_shards_nor_merging_show(settings: dict[str, Any]) -> None:
    random = Random(3)
    for ids, rows in samples(25, seed=4):
        empty = GroupedAUC(ids=ids, round_weights=True, **settings)
        whole, shards = fed(empty.copy(), rows), [empty.empty() for _ in range(3)]
        for row in zip(*rows.values(), strict=True):
            random.choice(shards).update(**{k: [v] for k, v in zip(rows, row, strict=True)})
        joined = sum(shards, empty)
        assert joined == whole and joined.compute() == whole.compute()
        back = GroupedAUC.from_bytes(whole.to_bytes())
        assert back == whole and fed(back, rows) == whole + joined


@any_weight
def test_weights_that_need_no_rounding_leave_no_doubt(weight: str) -> None:
    rows = {
        "labels": [0, 1, 1, 0, 1],
        "scores": [0.1, 0.3, 0.6, 0.4, 0.2],
        "groups": [1, 1, 2, 2, 2],
    }
    for settings in COMPARED:
        strict = GroupedAUC(weight=weight, **settings)
        rounding = GroupedAUC(weight=weight, round_weights=True, **settings)
        for metric in (rounding, strict):
            fed(fed(metric, rows), {**rows, "weights": [2, 3, 0, 1, 1]})
        found, expected = rounding.compute(), strict.compute()
        value = expected.gauc
        ends = (value.low, value.high) if isinstance(value, Bounded) else (value, value)
        assert isinstance(found.gauc, Bounded) and found.gauc.value == float(value)
        assert found.gauc.low <= ends[0] <= math.nextafter(found.gauc.low, 1)
        assert math.nextafter(found.gauc.high, 0) <= ends[1] <= found.gauc.high
        assert (found.rows, found.positives) == (expected.rows, expected.positives)
        assert counts_of(found)["rows_rounded"] == 0 and "rows_rounded" not in counts_of(expected)
        assert found.exactness.startswith("within certain bounds")
        with pytest.raises(SettingsError):
            rounding.merge(strict)


def ends_of(weight: str, *rows: tuple[int, int, float, float]) -> tuple[float, float, float]:
    """Value, low and high for rows of group, label, score and weight."""
    groups, labels, scores, weights = map(list, zip(*rows, strict=True))
    metric = GroupedAUC(weight=weight, round_weights=True)
    metric.update(labels, scores, groups=groups, weights=weights)
    found = metric.compute().gauc
    assert isinstance(found, Bounded)
    return found.value, found.low, found.high


SURE = ((1, 0, 0.1, 4), (1, 1, 0.2, 4), (1, 0, 0.3, 4))  # area 1/2


def test_the_ends_are_those_of_areas_and_of_weights() -> None:
    # 1 of 8 units of negatives, and 1 of 4 of positives: areas are off by 1/16 and by 1/8.
    off_negative = ((1, 0, 0.1, 4.25), *SURE[1:])
    off_positive = (SURE[0], (1, 1, 0.2, 4.25), SURE[2])
    assert ends_of("uniform", *off_negative) == (0.5, 7 / 16, 9 / 16)
    assert ends_of("uniform", *off_positive) == (0.5, 3 / 8, 5 / 8)
    # The weight of the group is off by half a unit as well, of 12 or of 4.
    assert ends_of("impressions", *off_negative)[1] == pytest.approx(7 / 16 - 1 / 24, rel=2**-50)
    assert ends_of("positives", *off_negative) == (0.5, 7 / 16, 9 / 16)
    assert ends_of("positives", *off_positive) == (0.5, 1 / 4, 3 / 4)


def test_a_group_that_is_rounded_to_nothing_may_have_any_area() -> None:
    lost = (2, 0, 0.1, 0.25), (2, 1, 0.2, 3)
    assert ends_of("uniform", *SURE, *lost) == (0.5, 0.25, 0.75)
    assert ends_of("impressions", *SURE, *lost)[1] == pytest.approx(0.5 - 3.5 / 12, rel=2**-50)
    assert ends_of("positives", *SURE, *lost) == (0.5, 0, 1)
    for weight in WEIGHTS:
        assert ends_of(weight, *SURE, lost[1]) == (0.5, 0.5, 0.5)  # it has one label whatever
        alone = ends_of(weight, *lost)
        assert math.isnan(alone[0]) and alone[1:] == (0, 1)
        assert all(map(math.isnan, ends_of(weight, lost[1])))


def test_what_is_known_of_groups_whose_weights_were_rounded() -> None:
    metric = GroupedAUC(round_weights=True)
    metric.update([0, 1, 0, 1, 1], [0.1] * 5, groups=[1, 1, 2, 2, 3], weights=[1.2, 2, 0.2, 3, 0.3])
    found, ids = metric.compute(), metric.bag.ids
    assert ids is not None and ids.index(np.array([1, 2])).tolist() == [0, 1]
    assert ids.n == 2  # user 3 is looked for, but not added
    assert (found.rows, found.rows_rounded, found.weight_units) == (3, 3, 6)
    assert (found.groups, found.groups_kept, found.positives) == (2, 1, 5)


def test_past_max_rows_of_either_kind_nothing_is_known() -> None:
    metric = GroupedAUC(round_weights=True, max_rows=2)
    metric.update([0, 1], [0.1, 0.2], groups=[1, 1], weights=[0.25, 0.25])
    assert metric.compute().reason == ""
    metric.update([0], [0.1], groups=[2], weights=[0.5])
    found = metric.compute()
    assert found.reason == "3 rows are more than max_rows=2, of those whose weight was rounded"
    assert (found.rows, found.rows_rounded, found.groups) == (0, 3, None)
    assert isinstance(found.gauc, Bounded) and math.isnan(found.gauc.low)
    whole = GroupedAUC(round_weights=True, max_rows=2)
    whole.update([0, 1, 1], [0.1, 0.2, 0.3], groups=[1, 1, 1])
    assert whole.compute().reason == "3 rows are more than max_rows=2"


def test_without_the_setting_a_state_has_no_room_for_rounded_rows() -> None:
    strict, rounding = GroupedAUC(), GroupedAUC(round_weights=True)
    rows = {"labels": [0, 1], "scores": [0.1, 0.2], "groups": [1, 1]}
    for metric in (strict, rounding):
        fed(metric, rows)
    assert strict.rounded.inner.width == 0 and strict.nbytes < rounding.nbytes
    fed(rounding, {**rows, "weights": [0.25, 1.25]})
    head, _ = unframe(STATE_MAGIC, strict.to_bytes())
    _, body = unframe(STATE_MAGIC, rounding.to_bytes())
    with pytest.raises(StateError):
        GroupedAUC.from_bytes(frame(STATE_MAGIC, head, bytes(body)))


def test_the_state_of_a_grid_does_not_grow_with_rounded_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("streammetrics.core.bag._FEW", 1 << 10)
    monkeypatch.setattr("streammetrics.core.bag._WAIT", 1 << 10)
    random = np.random.default_rng(5)
    metric = GroupedAUC(grid="equal", resolution=2, round_weights=True)
    n, sizes = 20_000, []  # so many that none wait
    for _ in range(10):
        users, labels = random.integers(0, 300, n), random.integers(0, 2, n)
        metric.update(labels, random.random(n), groups=users, weights=random.random(n))
        sizes.append(metric.rounded.nbytes)
    assert metric.compute().rows_rounded == 10 * n
    assert max(sizes) < 2 * sizes[0] < 34_000


@pytest.mark.slow
def test_rela_impr_of_rounded_weights_is_between_its_ends() -> None:
    held = 0
    for ids, rows in samples(100, seed=6):
        turned = {**rows, "scores": rows["scores"][::-1]}
        exact, about = (
            [
                fed(GroupedAUC(ids=ids, weight_unit=u, round_weights=r), some).compute()
                for some in (rows, turned)
            ]
            for u, r in ((FINE, False), (Fraction(1), True))
        )
        truth, found = exact[0].rela_impr(exact[1]), about[0].rela_impr(about[1])
        assert isinstance(truth, float) and isinstance(found, Bounded)
        if not math.isnan(truth):
            held += 1
            assert found.low <= truth <= found.high
    assert held > 30


def test_round_weights_is_true_or_false_and_without_it_weights_are_refused() -> None:
    with pytest.raises(SettingsError, match=r"GroupedAUC\.round_weights.*True or False"):
        GroupedAUC(round_weights=1)  # type: ignore[arg-type]
    rows = {"labels": [0, 1], "scores": [0.1, 0.2], "groups": [1, 1]}
    with pytest.raises(InputError, match="round_weights=True"):
        fed(GroupedAUC(), {**rows, "weights": [1, math.pi]})
    metric = GroupedAUC(round_weights=True)
    with pytest.raises(InputError, match="at least 0"):
        fed(metric, {**rows, "weights": [1, -0.25]})
    assert metric == GroupedAUC(round_weights=True)
