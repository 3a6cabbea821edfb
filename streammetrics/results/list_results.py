"""Results over lists: means of measures, the similarity of items, the coverage of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from math import inf, nan
from typing import ClassVar

from streammetrics.core.errors import UnknownKeyError, shown
from streammetrics.core.interval import Interval
from streammetrics.kernels.inference.pooled_variance import skewness_number_of_rounded
from streammetrics.kernels.inference.variances import rounded_ratio_variance
from streammetrics.present.estimand import Asked
from streammetrics.present.measure_names import entry_text, similar_entry
from streammetrics.present.view import HIGHER, NONE, POSITIVE, SHARE, Range, View
from streammetrics.present.views import ViewText
from streammetrics.results.has_intervals import HasIntervals


@dataclass(frozen=True, slots=True)
class ListMoments:
    """Σ v and Σ v² over n lists. pooled: for a ratio Σ v / Σ w also Σ w, Σ w² and Σ v w.
    shares: each value is 0 or 1. limits: the least and the greatest value of a list. units: what
    the n are called. cubes: Σ v³, of a ratio also Σ v² w, Σ v w² and Σ w³; None: unknown.

    >>> ListMoments(2, Fraction(1), Fraction(1)).variance
    0.25
    """

    n: int
    sum_: Fraction
    squares: Fraction
    pooled: tuple[Fraction, Fraction, Fraction] | None = None
    shares: bool = False
    limits: Range = (-inf, inf)
    units: str = "lists"
    cubes: tuple[Fraction, ...] | None = None

    @property
    def skewness_number(self) -> float:
        """That of the values minus their mean, or of v - (Σ v / Σ w) w; nan if unknown."""
        if self.cubes is None:
            return nan
        if self.pooled is None:
            [cubes] = self.cubes
            return skewness_number_of_rounded(self.n, self.sum_, self.squares, cubes)
        (w, ww, vw), (vvv, vvw, vww, www) = self.pooled, self.cubes
        if not w:
            return nan
        ratio = self.sum_ / w
        squares = self.squares - 2 * ratio * vw + ratio**2 * ww
        cubes = vvv - 3 * ratio * vvw + 3 * ratio**2 * vww - ratio**3 * www
        return skewness_number_of_rounded(self.n, Fraction(0), squares, cubes)

    @property
    def variance(self) -> float:
        """The variance of the mean, or the ratio, of independent lists; nan for fewer than 2, and
        0 where values are equal but for their rounding."""
        w, ww, vw = self.pooled or (self.n, self.n, self.sum_)
        return rounded_ratio_variance(self.n, self.sum_, w, (self.squares, vw, ww))

    def interval(self, asked: Asked) -> Interval:
        """The interval of the mean: Wilson's if each value is 0 or 1, else Student's."""
        if self.shares and asked.method in ("auto", "wilson", "delta"):
            return asked.share(int(self.sum_), self.n)
        methods = ("wilson", "t") if self.shares else ("t",)
        asked.choose(*methods)
        return asked.spread(
            self.variance, self.n, df=self.n - 1.0, methods=("t",), units=self.units
        )


class _LateMoments:
    """Moments that are made for an interval: `_made` of `_given`."""

    _made: Callable[..., Mapping[str, ListMoments]]
    _given: tuple[object, ...]

    @cached_property
    def _moments(self) -> Mapping[str, ListMoments]:
        return self._made(*self._given)


@dataclass(frozen=True, eq=False, repr=False)
class Averages(_LateMoments, HasIntervals, Mapping[str, float]):
    """A mean for each measure, by the printed text of the measure.

    result[NDCG @ 10], result["NDCG@10"] and result["ndcg@10"] are the same; a mean over no lists is
    nan.

    means: by measure. lists_kept: lists with something relevant. lists_empty: lists with nothing
    relevant, which are left out or count as 0, by the setting `empty` of the metric. conflicting:
    lists that have an item twice, which are left out. rows: the counted lists or, if each row is an
    item, items. Past `max_rows` only `rows` is known, the other counts are None, and `reason` says
    so. compared_as: the precision in which scores were compared, if it is fixed. ids: the kind of
    the list ids, if lists have ids.

    >>> result = Averages({"NDCG@10": 0.25}, lists_kept=2, lists_empty=1, rows=3)
    >>> result["NDCG @ 10"], result.rows
    (0.25, 3)
    """

    means: Mapping[str, float]
    lists_kept: int | None
    lists_empty: int | None
    rows: int
    conflicting: int | None = 0
    compared_as: str = ""
    ids: str = ""
    reason: str = ""
    _moments: Mapping[str, ListMoments] = field(default_factory=dict, repr=False, compare=False)
    independent: ClassVar[str] = "lists"

    @View(better=HIGHER, undefined="no list has anything relevant")
    def __getitem__(self, measure: object) -> float:
        text = entry_text(str(measure), self.means)
        if text not in self.means:
            names = ", ".join(self.means)
            hint = similar_entry(text, self.means, "name one of these")
            raise UnknownKeyError(
                expected=f"one of {names}", got=shown(text), where=type(self).__name__, hint=hint
            )
        return self.means[text]

    def __contains__(self, measure: object) -> bool:
        return entry_text(str(measure), self.means) in self.means

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def _interval(self, asked: Asked) -> Interval | None:
        moments = self._moments.get(entry_text(asked.view, self.means))
        return None if moments is None else moments.interval(asked)

    def _skewness_number(self, view: ViewText) -> float:
        moments = self._moments.get(entry_text(view.text, self.means))
        return nan if moments is None else moments.skewness_number

    def _range(self, view: str) -> Range | None:
        moments = self._moments.get(entry_text(view, self.means))
        return None if moments is None else moments.limits

    def __len__(self) -> int:
        return len(self.means)


def _range_of_lists(similarity: ListSimilarity) -> Range | None:
    return None if similarity._moments is None else similarity._moments.limits


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListSimilarity(HasIntervals):
    """The mean over lists of the similarity within a list.

    ils: the mean; nan if no list has a similarity. lists_kept: lists with two items or more.
    lists_short: those with fewer, which have no pair and so no similarity; they are left out.

    >>> ListSimilarity(0.25, lists_kept=3, lists_short=1).rows
    4
    """

    ils: float = field(
        metadata=View(better=NONE, range=_range_of_lists, undefined="no list has two items or more")
    )
    lists_kept: int
    lists_short: int
    _moments: ListMoments | None = field(default=None, repr=False, compare=False)
    independent: ClassVar[str] = "lists"

    def _interval(self, asked: Asked) -> Interval | None:
        return None if self._moments is None else self._moments.interval(asked)

    def _skewness_number(self, view: ViewText) -> float:
        return nan if self._moments is None else self._moments.skewness_number

    @property
    def rows(self) -> int:
        """All lists."""
        return self.lists_kept + self.lists_short


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class CatalogShare(HasIntervals):
    """Four views of how often each item was shown; `CatalogMetrics` has the formulas.

    coverage: share of the catalog that some list shows. novelty: in bits. personalization: mean
    distance of two lists. popularity: mean share of lists that show a shown item. Each is nan if
    undefined.
    lists_kept: lists with an item. lists_under_k: those of them with fewer than k. lists_empty:
    lists without any, which are left out. shown: filled positions among the first k of each list;
    items_shown: different items there.

    >>> share = CatalogShare(0.5, 1.0, 1.0, 0.5, 2, 0, 1, shown=2, items_shown=2)
    >>> share.rows
    3
    """

    coverage: float = field(
        metadata=View(better=NONE, range=SHARE, undefined="no list has an item")
    )
    novelty: float = field(
        metadata=View(better=NONE, range=POSITIVE, undefined="no list has an item")
    )
    personalization: float = field(
        metadata=View(better=NONE, range=SHARE, undefined="fewer than two lists have an item")
    )
    popularity: float = field(
        metadata=View(better=NONE, range=SHARE, undefined="no list has an item")
    )
    lists_kept: int
    lists_under_k: int
    lists_empty: int
    shown: int
    items_shown: int
    independent: ClassVar[str] = "lists"

    @property
    def rows(self) -> int:
        """All lists."""
        return self.lists_kept + self.lists_empty
