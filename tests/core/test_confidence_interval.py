"""`confidence_interval` of every accumulator: what is asked, and what is said of it."""

from __future__ import annotations

import pytest

from streammetrics import (
    InputError,
    Interval,
    Ratio,
    SettingsError,
    SlidingAUC,
    Units,
)
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.inputs import Inputs, UnitIds
from streammetrics.core.parts.part import Slots


def clicks() -> Ratio:
    metric = Ratio()
    metric.update([1, 0, 0, 0])
    return metric


def test_it_is_the_interval_of_the_result_with_what_is_taken_as_independent() -> None:
    plain, of_result = clicks().confidence_interval(cluster="none"), clicks().compute().interval()
    assert plain == of_result and plain.reason == ""
    found = clicks().confidence_interval()
    assert found.reason == "rows are taken as independent, as no users are known"
    assert (found.lower, found.upper) == (plain.lower, plain.upper)


def test_users_are_what_another_metric_knows() -> None:
    with pytest.raises(SettingsError, match=r"UserGroups\(Ratio"):
        clicks().confidence_interval(cluster="groups")
    with pytest.raises(SettingsError, match="'users'"):
        clicks().confidence_interval(cluster="users")


def test_without_rows_it_is_everything() -> None:
    found = Ratio().confidence_interval()
    assert isinstance(found, Interval) and not found.defined and found.reason == "no rows"


def test_a_metric_of_your_own_without_intervals_says_what_has_one() -> None:
    class Rows(Accumulator, schema="test-rows-without-intervals/1"):
        inputs = Inputs(units=UnitIds())

        def _accumulate(self, batch: Batch, slots: Slots | None) -> None: ...

        def compute(self) -> float:
            return 1.0

    found = Rows().confidence_interval()
    assert not found.defined
    assert found.reason == "no formula for Rows; UserGroups has one, from groups of users"


def test_what_slides_or_is_only_counted_says_so_in_the_same_words() -> None:
    sliding, units = SlidingAUC(rows=3), Units(share=0.5)
    sliding.update([0, 1], [0.1, 0.4])
    of_area, of_units = sliding.compute().interval(), units.confidence_interval()
    assert (of_area.estimate, of_area.n, of_area.defined, of_units.defined) == (
        1.0,
        2,
        False,
        False,
    )
    assert of_area.reason == (
        "no formula for auc of a sliding window; Windows(ExactAUC(), size_s) has one"
    )
    assert not of_area.formula and not of_units.formula
    assert of_units.reason == (
        "no formula for units; with share=1 units are counted, not estimated"
    )
    dropped = Units(max_units=1)
    dropped.update([1, 2])
    assert "more than max_units=1" in dropped.confidence_interval().reason


def test_a_view_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="a view of Quotient: ratio, numerator, denominator"):
        clicks().confidence_interval(view="auc")
