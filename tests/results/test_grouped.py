"""What the areas of groups say together."""

from __future__ import annotations

from streammetrics.results.figures import counts_of, headlines_of
from streammetrics.results.grouped import GroupedArea


def area(groups: int | None, ids: str) -> GroupedArea:
    return GroupedArea(0.75, groups, 3, 2, 9, 4, "float32", ids)


def test_gauc_is_what_it_is_known_by() -> None:
    assert headlines_of(area(5, "integer")) == ("gauc",)
    assert counts_of(area(5, "integer")) == {
        "groups": 5,
        "groups_kept": 3,
        "groups_one_class": 2,
        "rows": 9,
        "positives": 4,
    }


def test_only_hashed_ids_collide() -> None:
    assert area(2**33, "hashed").collision_probability() == 1.0
    assert area(2, "hashed").collision_probability() == 2.0**-64
    assert area(1, "hashed").collision_probability() == 0.0
    assert area(2**33, "exact").collision_probability() == 0.0
    assert area(None, "hashed").collision_probability() == 0.0
