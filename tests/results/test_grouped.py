"""What the areas of groups say together."""

from __future__ import annotations

import math

import pytest

from streammetrics import Bounded, GroupedAUC
from streammetrics.present.views import counts_of, headlines_of
from streammetrics.results.areas import GroupedArea


def area(groups: int | None, ids: str) -> GroupedArea:
    return GroupedArea(
        0.75,
        groups=groups,
        groups_kept=3,
        groups_one_class=2,
        rows=9,
        rows_kept=7,
        rows_one_class=2,
        positives=4,
        compared_as="float32",
        ids=ids,
    )


def model(good: int, bad: int, **settings: str) -> GroupedArea:
    """One user, whose positive stands above `good` negatives and below `bad`."""
    metric = GroupedAUC(**settings)  # type: ignore[arg-type]
    scores = [0.5, *[0.25] * good, *[0.75] * bad]
    metric.update([1, *[0] * (good + bad)], scores, groups=[7] * len(scores))
    return metric.compute()


def test_gauc_is_what_it_is_known_by() -> None:
    assert headlines_of(area(5, "integer")) == ("gauc",)
    assert counts_of(area(5, "integer")) == {
        "groups": 5,
        "groups_kept": 3,
        "groups_one_class": 2,
        "rows": 9,
        "rows_kept": 7,
        "rows_one_class": 2,
        "positives": 4,
    }


def test_only_hashed_ids_collide() -> None:
    assert area(2**33, "hashed").collision_probability() == 1.0
    assert area(2, "hashed").collision_probability() == 2.0**-64
    assert area(1, "hashed").collision_probability() == 0.0
    assert area(2**33, "exact").collision_probability() == 0.0
    assert area(None, "hashed").collision_probability() == 0.0


def test_relative_improvement_has_no_rounding_between() -> None:
    assert model(5, 1).gauc == 5 / 6 and model(2, 1).gauc == 2 / 3
    assert model(5, 1).rela_impr(model(2, 1)) == 1.0
    assert (5 / 6 - 0.5) / (2 / 3 - 0.5) - 1 != 1.0  # as floats would have it
    assert model(1, 2).rela_impr(model(2, 1)) == -2.0


def test_over_chance_or_over_nothing_there_is_no_improvement() -> None:
    for base in (model(1, 1), model(0, 0)):
        found = model(2, 1).rela_impr(base)
        assert isinstance(found, float) and math.isnan(found)
    assert math.isnan(float(model(0, 0).rela_impr(model(2, 1))))


@pytest.mark.parametrize("grids", [("relative", None), (None, "relative"), ("equal", "equal")])
def test_the_improvement_is_bounded_where_an_area_is(grids: tuple[str | None, ...]) -> None:
    a, b = (
        model(good, 1, **({"grid": grid} if grid else {}))
        for good, grid in zip((5, 2), grids, strict=True)
    )
    assert a.rela_impr(b) == Bounded(1.0, 1.0, 1.0)


def test_a_base_that_may_be_chance_leaves_the_improvement_open() -> None:
    base = GroupedAUC(grid="equal", resolution=1)
    base.update([1, 0, 0, 0], [0.9, 0.8, 0.1, 0.1], groups=[7] * 4)
    wide = GroupedAUC(grid="equal", resolution=0)
    wide.update([1, 0], [0.9, 0.8], groups=[7, 7])
    found = model(2, 1).rela_impr(wide.compute())
    assert isinstance(found, Bounded) and math.isnan(found.value)
    assert (found.low, found.high) == (-math.inf, math.inf)
    found = model(5, 1).rela_impr(base.compute())  # 1/3 over 1/6 to 1/2
    assert isinstance(found, Bounded)
    assert found.value == 0.0 and found.low <= -1 / 3 and found.high == 1.0
