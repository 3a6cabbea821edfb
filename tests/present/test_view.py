"""A view is declared once, where it is defined, and its class and those derived from it have it."""

from __future__ import annotations

import math
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property

import pytest

from streammetrics import InputError
from streammetrics.core.interval import Interval
from streammetrics.estimators.estimator import Estimator, NoInterval
from streammetrics.estimators.request import IntervalRequest
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import is_exact, rows_of
from streammetrics.present.view import (
    ENTRIES,
    HIGHER,
    LOWER,
    POSITIVE,
    SETTING,
    SHARE,
    View,
    declaration,
    declared_headlines,
    declared_views,
)
from streammetrics.present.views import counts_of, direction_of, range_of, value_of, views_of
from streammetrics.results.has_intervals import HasIntervals


class Banded(Estimator[object]):
    """Views with an interval by the method "band"."""

    def band(self, result: object, request: IntervalRequest) -> Interval | None:
        return request.bounds((0.0, 1.0), math.nan, 4, "band")


@dataclass(frozen=True, repr=False)
class Visits(HasIntervals):
    """A result with a declaration of each form."""

    hours: float = field(metadata=View(better=LOWER, range=POSITIVE, undefined="no visits"))
    rows: int
    least: int = field(default=3, metadata=SETTING)
    plain: float = 0.5

    @property
    @View(better=HIGHER, range=SHARE, headline=2, effect=True)
    def read(self) -> float:
        """The share of visits
        that were read.

        It has a second paragraph."""
        return 0.25

    @cached_property
    @View(estimator=NoInterval("it is a p-value", of_error=True), headline=1)
    def pvalue(self) -> float:
        return 0.125

    @View(estimator=Banded(), better=LOWER)
    def quantile(self, p: float, *, exact: bool = True) -> float:
        return p


VISITS = Visits(2.0, rows=4)


def test_a_view_has_the_name_the_definition_and_the_arguments_of_where_it_stands() -> None:
    views = declared_views(Visits)
    assert [*views] == ["read", "pvalue", "quantile", "hours"]
    assert views["read"].signature.definition == "The share of visits that were read."
    quantile = views["quantile"].signature
    assert (quantile.parameters, quantile.call) == (("p",), "quantile(p)")
    assert (views["hours"].signature.name, views["read"].signature.call) == ("hours", "read")


def test_a_declared_attribute_stays_what_it_was() -> None:
    assert isinstance(vars(Visits)["read"], property)
    assert [member.name for member in fields(Visits)] == ["hours", "rows", "least", "plain"]
    assert pickle.loads(pickle.dumps(VISITS)) == VISITS
    assert Visits(3.0, rows=4) != VISITS
    assert (VISITS.read, VISITS.hours, VISITS.quantile(0.5)) == (0.25, 2.0, 0.5)


def test_tables_charts_and_comparisons_have_what_is_declared_of_a_view() -> None:
    assert [*views_of(VISITS, headlines=True)] == ["pvalue", "read"]  # by their places
    assert str(direction_of(VISITS, "quantile(0.9)")) == "lower"
    assert (range_of(VISITS, "hours"), range_of(VISITS, "read")) == (POSITIVE, SHARE)
    assert (is_exact(VISITS, "pvalue"), is_exact(VISITS, "read")) == (False, True)
    assert counts_of(VISITS) == {"rows": 4}
    assert [row.reason for row in rows_of(Visits(math.nan, rows=4)) if row.name == "hours"] == [
        "no visits"
    ]


def test_a_range_may_follow_from_the_rows() -> None:
    @dataclass(frozen=True, repr=False)
    class Reward(Shown):
        most: float
        mean: float = field(default=0.5, metadata=View(range=lambda result: (0.0, result.most)))

    assert range_of(Reward(4.0), "mean") == (0.0, 4.0)


def test_a_view_without_a_declaration_is_one_of_which_nothing_is_known() -> None:
    assert declaration(VISITS, "plain") == declaration(object(), "read") == View()
    assert value_of(VISITS, "plain") == 0.5
    assert range_of(VISITS, "plain") == (-math.inf, math.inf)


def test_a_subclass_adds_to_the_declarations_of_its_bases_and_its_own_come_first() -> None:
    @dataclass(frozen=True, repr=False)
    class Others(Visits):
        hours: float = field(metadata=View(undefined="no others"))
        more: float = field(default=0.0, metadata=View(better=HIGHER, headline=3))

        @property
        def read(self) -> float:
            return 0.75

    view = declaration(Others(1.0, rows=1), "hours")
    assert (view.undefined, view.better, view.range) == ("no others", LOWER, POSITIVE)
    assert declaration(Others(1.0, rows=1), "read") == declaration(VISITS, "read")
    assert declared_headlines(Others) == ("pvalue", "read", "more")
    assert declared_headlines(Visits) == ("pvalue", "read")


def test_a_declaration_of_item_access_is_that_of_every_entry_of_a_mapping() -> None:
    @dataclass(frozen=True, repr=False)
    class Means(Shown):
        means: Mapping[str, float]

        @View(better=HIGHER)
        def __getitem__(self, name: str) -> float:
            return self.means[name]

    assert declared_views(Means)[ENTRIES].better == HIGHER


def test_a_view_without_a_band_is_refused_with_the_names_of_those_that_declare_one() -> None:
    with pytest.raises(InputError, match="views with a band: quantile"):
        VISITS.interval("read", method="band")


def test_a_declaration_above_a_property_is_refused_as_it_would_not_be_seen() -> None:
    with pytest.raises(InputError, match=r"expected a function, got .*write @property.* above"):

        class Wrong:
            @View(better=HIGHER)  # type: ignore[prop-decorator]
            @property
            def share(self) -> float:
                return 0.5
