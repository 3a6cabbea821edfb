"""The averages of measures over lists, and what they are averages of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from streammetrics.results.direction import ENTRIES, HIGHER, Directions
from streammetrics.results.interval import Asked, HasIntervals, Interval
from streammetrics.results.list_moments import ListMoments


@dataclass(frozen=True, slots=True)
class Averages(Mapping[str, float], HasIntervals):
    """A mean for each measure, by the text that the measure prints.

    result[NDCG @ 10] and result["NDCG@10"] are the same; a mean over no lists is nan.

    means: by measure. lists_kept: lists with something relevant. lists_empty: lists with nothing
    relevant, which are left out or count as 0, as the setting `empty` of the metric says.
    conflicting: lists in which an item is twice, which are left out. rows: what was counted: lists
    or, where these came item by item, items. Past `max_rows` only `rows` is known, the other counts
    are None, and `reason` says so. compared_as: the precision in which scores were compared, where
    that is fixed. ids: the kind of the list ids, where lists have ids.

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
    directions: ClassVar[Directions] = {ENTRIES: HIGHER}  # every measure of ranked lists

    def __getitem__(self, measure: object) -> float:
        text = "".join(str(measure).split())
        if text not in self.means:
            raise KeyError(f"{text} is not one of {', '.join(self.means)}")
        return self.means[text]

    def __contains__(self, measure: object) -> bool:
        return "".join(str(measure).split()) in self.means

    def __iter__(self) -> Iterator[str]:
        return iter(self.means)

    def _interval(self, asked: Asked) -> Interval | None:
        moments = self._moments.get(asked.view.text)
        return None if moments is None else moments.interval(asked)

    def __len__(self) -> int:
        return len(self.means)
