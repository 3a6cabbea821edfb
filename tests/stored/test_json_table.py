"""Objects of JSON become columns, whatever their names are."""

from __future__ import annotations

import math

from streammetrics.stored.json_table import columns_of


def test_fields_of_objects_have_both_names() -> None:
    columns = columns_of([{"interval": {"lower": 1.5}}, {"interval": None}])
    assert columns["interval_lower"][0] == 1.5
    assert math.isnan(columns["interval_lower"][1])  # type: ignore[arg-type]


def test_names_of_slices_come_first_and_counts_last() -> None:
    objects = [
        {"slice": {"variant": "a"}, "value": 0.5, "counts": {"rows": 3}},
        {"slice": {}, "value": 1.0, "counts": {"lists": 2}},
    ]
    assert columns_of(objects) == {
        "variant": ["a", None],
        "value": [0.5, 1.0],
        "rows": [3, None],
        "lists": [None, 2],
    }


def test_a_name_that_a_field_has_is_marked() -> None:
    objects = [
        {"slice": {"value": "a", "(other)": ["b", "c"]}, "value": 1.0, "counts": {"value": 2}}
    ]
    assert columns_of(objects) == {
        "slice_value": ["a"],
        "(other)": ["b, c"],
        "value": [1.0],
        "value_count": [2],
    }


def test_numbers_are_floats_if_one_is_undefined_or_infinite() -> None:
    objects = [{"a": 1, "b": 1, "c": None, "d": "inf", "e": True, "f": "inf", "metric": "inf"}]
    objects += [{"a": 2, "b": None, "c": None, "d": "-inf", "e": None, "f": "x", "metric": "inf"}]
    columns = columns_of(objects)
    assert (columns["a"], columns["d"]) == ([1, 2], [math.inf, -math.inf])
    assert columns["e"] == [True, None] and columns["f"] == ["inf", "x"]
    assert columns["metric"] == ["inf", "inf"]
    assert [type(cell) for name in "bc" for cell in columns[name]] == [float] * 4


def test_times_stay_whole_numbers() -> None:
    columns = columns_of([{"window": {"start_ms": None}}, {"window": {"start_ms": 5}}])
    assert columns == {"window_start_ms": [None, 5]}


def test_nothing_has_no_columns() -> None:
    assert columns_of([]) == {}
