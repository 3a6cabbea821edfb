"""Results over lists: means of measures, the similarity of items, the coverage of a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

from streammetrics.core.errors import UnknownKeyError, shown
from streammetrics.estimators.lists import ListMoments, MeanOfLists
from streammetrics.present.measure_names import entry_text, similar_entry
from streammetrics.present.view import HIGHER, NONE, POSITIVE, SHARE, Range, View
from streammetrics.results.has_intervals import HasIntervals


class _LateMoments:
    """Moments that are made for an interval: `_made` of `_given`."""

    _made: Callable[..., Mapping[str, ListMoments]]
    _given: tuple[object, ...]

    @cached_property
    def _moments(self) -> Mapping[str, ListMoments]:
        return self._made(*self._given)


def moments_of_entry(averages: Averages, measure: str) -> ListMoments | None:
    """The moments of a mean, if they are known."""
    return averages._moments.get(entry_text(measure, averages.means))


def _range_of_entry(averages: Averages, measure: str) -> Range | None:
    moments = moments_of_entry(averages, measure)
    return None if moments is None else moments.limits


def _is_recall(measure: str) -> bool:
    return measure.partition("@")[0].partition("(")[0] == "R"


_MEAN: Final[MeanOfLists[Averages]] = MeanOfLists(moments_of_entry)


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

    @View(
        estimator=_MEAN,
        better=HIGHER,
        range=_range_of_entry,
        undefined="no list has anything relevant",
    )
    def __getitem__(self, measure: object) -> float:
        text = entry_text(str(measure), self.means)
        if text not in self.means:
            names = ", ".join(self.means)
            hint = similar_entry(text, self.means, "name one of these")
            raise UnknownKeyError(
                expected=f"one of {names}", got=shown(text), where=type(self).__name__, hint=hint
            )
        return self.means[text]

    def _notes(self) -> Iterator[str]:
        recalls = [name for name in self.means if _is_recall(name)]
        if recalls and self.rows:
            yield (
                f"{', '.join(recalls)}: of the relevant items in the lists and those that "
                "n_relevant, ids or items not shown add; lists of what was retrieved need these"
            )

    def __contains__(self, measure: object) -> bool:
        return entry_text(str(measure), self.means) in self.means

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def __len__(self) -> int:
        return len(self.means)


def _range_of_lists(similarity: ListSimilarity) -> Range | None:
    return None if similarity._moments is None else similarity._moments.limits


_SIMILARITY: Final[MeanOfLists[ListSimilarity]] = MeanOfLists(
    lambda similarity: similarity._moments
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ListSimilarity(HasIntervals):
    """The mean over lists of the similarity within a list.

    ils: the mean; nan if no list has a similarity. lists_kept: lists with two items or more.
    lists_short: those with fewer, which have no pair and so no similarity; they are left out.

    >>> ListSimilarity(0.25, lists_kept=3, lists_short=1).rows
    4
    """

    ils: float = field(
        metadata=View(
            estimator=_SIMILARITY,
            better=NONE,
            range=_range_of_lists,
            undefined="no list has two items or more",
        )
    )
    lists_kept: int
    lists_short: int
    _moments: ListMoments | None = field(default=None, repr=False, compare=False)
    independent: ClassVar[str] = "lists"

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
