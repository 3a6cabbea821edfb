"""GroupedScores: the mean of several measures over lists whose items are separate rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.checks import MAX_GRADE, check_choice, check_max_rows
from streammetrics.core.codec import damaged
from streammetrics.core.inputs import IDS, Inputs, Unchecked
from streammetrics.core.multiset.bag import Bag
from streammetrics.core.multiset.bag_keys import Groups
from streammetrics.core.parts.exact_sums import ExactSums, add_whole, require_whole
from streammetrics.core.parts.part import Column, Extreme, Slots
from streammetrics.core.parts.score_bits import SCORE_TYPES, result_type, scores_of
from streammetrics.core.rows import DictionaryColumn, Terms
from streammetrics.core.totals import WithoutRows, unlimited
from streammetrics.kernels.ranking.graded_lists import Lists
from streammetrics.ranking.graded_rows import (
    NOT_JUDGED,
    graded_rows,
    refuse_doubles,
    refuse_high_grades,
)
from streammetrics.ranking.list_values import (
    EmptySetting,
    Moments,
    MomentsColumn,
    averages,
    list_terms,
    measured,
)
from streammetrics.ranking.measure import Measure, refused
from streammetrics.ranking.measures import measures_of
from streammetrics.results.list_results import Averages

LONGEST: Final = 1 << 22  # rows of the longest list that is ranked, all at once in memory
_PIECE: Final = 1 << 19  # rows of lists that are ranked together
_CHOICES: Final = {
    "ties": ("expected", "worst", "best"),
    "empty": ("skip", "zero"),
    "score_type": SCORE_TYPES,
    "ids": ("integer", "hashed", "exact"),
    "item_ids": ("integer", "hashed"),
    "duplicates": ("refuse", "conflict"),
}


class ListCounts(NamedTuple):
    """Moments of the values of lists; the numbers of lists kept and empty, of all rows, and of
    lists with an item twice."""

    moments: MomentsColumn
    kept: int
    empty: int
    rows: int
    conflicting: int


class GroupedScores(Accumulator, schema="grouped-scores/2"):
    """Means over ranked lists, as in RankingMetrics, from one row for each item.

    Rows of one list id are one list, however they are spread over batches, shards and workers.

    Settings
        measures: values such as `NDCG @ 10`, or their texts; held as a tuple of texts.
        ties: the order of items with equal scores. "expected" (default): the mean over all their
        orders, by formula; "worst" or "best": the worst or best grades first.
        empty: lists with nothing relevant are left out ("skip", default) or count 0 ("zero");
        both kinds are counted either way.
        score_type: the precision in which scores are compared, as in ExactAUC: "auto" (default)
        compares them as they are. "float32" halves state and time of scores that come as float64;
        those that are equal as float32 are then ties.
        ids: of lists: "integer" (int64), "exact" (strings, kept as they are) or "hashed" (strings,
        kept as 64 bits of SipHash under a fixed key: exact unless two ids collide). item_ids: of
        items: "integer" or "hashed". For string ids an integer is the string of its digits.
        duplicates: an item twice in one list within one update is refused ("refuse", default), or
        treated as a duplicate across updates ("conflict"), which never raises: the list is left out
        of the measures and counted as conflicting.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
    Rows
        A row is an item of a list. labels: [n] grades, integers from 0 to 15; an item is relevant
        from grade 1 on. scores: [n], no NaN. groups: [n] ids of lists. items: [n] ids; None: an
        item that is twice in a list is not detected. judged: [n] bool, False for an item that is
        not judged, whose label must be 0 and which Bpref skips. shown: [n] bool, False for an item
        that is known but was not shown: it has no rank, but counts in the denominators of measures.
        It means the same as the score -inf, which replaces the score.
    State
        The multisets of (list, score, grade) and of (list, item).
    Result
        Averages: `result[NDCG @ 10]` or `result["NDCG@10"]`, `lists_kept`, `lists_empty`,
        `conflicting`, `rows`.
    Undefined
        A mean over no lists is nan, and so is every measure past `max_rows`, or if a list has more
        than 4,194,304 rows; `reason` says which.
    Exactness
        As for RankingMetrics: a list's value is a function of its counts of (score, grade), to
        the last bit, and values are summed without rounding.
    Cost
        State: 8 bytes a row (of float64: 16), 16 more with items, and about 30 for each list id
        (twice that with items). An update sorts its rows; `compute` ranks all lists.
    Source
        McSherry and Najork (2008), "Computing information retrieval performance measures
        efficiently in the presence of tied scores", ECIR.

    >>> from streammetrics import MRR, NDCG, GroupedScores
    >>> metric = GroupedScores([NDCG @ 3, MRR])
    >>> metric.update([0, 1, 1], [0.9, 0.5, 0.3], groups=[7, 7, 8], items=[1, 2, 1])
    >>> metric.update([0, 0], [0.2, 0.4], groups=[7, 8], items=[3, 2])  # the rest of both lists
    >>> result = metric.compute()
    >>> round(result["NDCG@3"], 6), result["MRR"], result.lists_kept
    (0.63093, 0.5, 2)
    >>> (metric + metric).compute().conflicting  # each item is twice in its list
    2
    """

    measures: Sequence[Measure | str]
    ties: str = "expected"
    empty: EmptySetting = EmptySetting()
    score_type: str = "auto"
    ids: str = "integer"
    item_ids: str = "integer"
    duplicates: str = "refuse"
    max_rows: int | None = None
    inputs = Inputs(
        labels=Unchecked("[n] grades, integers from 0 to 15"),
        scores=Unchecked("[n], no NaN; -inf where the item was not shown"),
        groups=Unchecked("[n] ids of lists", keyword=True, type_text=IDS, formerly="lists"),
        items=Unchecked("[n] ids of items", keyword=True, optional=True, type_text=IDS),
        judged=Unchecked("[n] bool, False where not judged", keyword=True, optional=True),
        shown=Unchecked("[n] bool, False where not shown", keyword=True, optional=True),
    )
    bag = Bag(labels=NOT_JUDGED + 1, ids="ids")
    items = Bag("int64", labels=1, ids="ids")

    def check_settings(self) -> None:
        self._set("measures", tuple(str(measure) for measure in measures_of(self.measures)))
        for name, choices in _CHOICES.items():
            check_choice(self.settings()[name], choices, f"GroupedScores.{name}")
        check_max_rows(self.max_rows, "GroupedScores.max_rows")
        for measure in measures_of(self.measures):
            if measure.subtopics:
                expected, hint = "measures without subtopics", "use RankingMetrics or evaluate"
                raise refused(expected, str(measure), "GroupedScores.measures", hint)

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike,
            *,
            groups: ArrayLike | DictionaryColumn,
            items: ArrayLike | DictionaryColumn | None = None,
            judged: ArrayLike | None = None,
            shown: ArrayLike | None = None,
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        batch = graded_rows(
            **given, score_type=self.score_type, ids=self.ids, item_ids=self.item_ids
        )
        refuse_high_grades(batch.labels, self._strictest())
        if given["items"] is not None and self.duplicates == "refuse":
            refuse_doubles(batch, given["groups"], given["items"])
        return batch

    def _strictest(self) -> Measure:
        return min(measures_of(self.measures), key=lambda measure: measure.highest)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        groups, items = batch.as_ids("groups"), batch.optional("items")
        self.bag.add(batch.scores, batch.labels, slots, groups)
        if items is not None:
            self.items.add(items, None, slots, groups)

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        highest = self._strictest().highest
        if highest < MAX_GRADE:
            labels = new.bag.labels()
            if bool(((labels > highest) & (labels < NOT_JUDGED)).any()):
                raise damaged(f"a grade above {highest}")
        return new

    def _mean_views(self) -> tuple[str, ...]:
        return tuple(map(str, self.measures))

    def _group_terms(self) -> Sequence[Terms]:
        self._flush()
        measures = measures_of(self.measures)
        groups = self.bag.groups()
        at = np.flatnonzero(~self._conflicts(groups) & (groups.sizes <= LONGEST))
        pieces, rule = _pieces(groups, at), str(self.settings()["empty"])
        order = self.bag.order(groups.indices[at])
        found = list_terms(pieces, measures, self.ties, rule)
        return [Terms(v[order], None if w is None else w[order]) for v, w in found]

    def of(self, measures: Measure | str | Iterable[Measure | str]) -> Averages:
        """The means of other measures over the same lists, chosen when reading.

        So the grade from which on an item is relevant can be one of many: `P(rel=2) @ 10`. Raises
        SettingsError for a measure whose highest grade is below one of the rows, and for one of
        subtopics.

        >>> metric = GroupedScores("NDCG@10")
        >>> metric.update([2, 1, 0], [0.4, 0.9, 0.1], groups=[1, 1, 1])
        >>> metric.of(["P@2", "P(rel=2)@2"]).means
        {'P@2': 1.0, 'P(rel=2)@2': 0.5}
        """
        self._flush()
        settings: dict[str, Any] = {**self.settings(), "measures": measures_of(measures)}
        asked = type(self)(**settings)
        highest = asked._strictest()
        labels = self.bag.labels()
        most = int(labels[labels < NOT_JUDGED].max(initial=0))
        if most > highest.highest:
            hint = f"pass {highest.name} the highest grade: {highest.name}(max_grade=...)"
            expected = f"a measure of grades up to {most}, the highest of the rows"
            raise refused(expected, str(highest), "GroupedScores.of(measures)", hint)
        asked.__dict__.update(bag=self.bag, items=self.items)  # read, never changed
        return asked.compute()

    def compute(self) -> Averages:
        """The means over all lists, and the number of lists of each kind."""
        self._flush()
        if self.bag.dropped:
            return self._undefined(self.bag.total, self.bag.why_dropped)
        groups = self.bag.groups()
        at = np.flatnonzero(~self._conflicts(groups))
        longest = int(groups.sizes[at].max(initial=0))
        if longest > LONGEST:
            return self._undefined(self.bag.total, _too_long(longest))
        return self._result(self._counted(groups, at))

    def _result(self, counts: ListCounts) -> Averages:
        """The result of these counts, from the lists or from their totals alone."""
        moments, kept, empty, rows, conflicting = counts
        rule = str(self.settings()["empty"])
        return replace(
            averages(moments, measures_of(self.measures), [kept], [empty], rule)[0],
            rows=rows,
            conflicting=conflicting,
            compared_as=result_type(self.score_type),
            ids=self.ids,
        )

    def _undefined(self, rows: int, reason: str) -> Averages:
        return Averages(
            dict.fromkeys(map(str, self.measures), nan),
            lists_kept=None,
            lists_empty=None,
            rows=rows,
            conflicting=None,
            compared_as=result_type(self.score_type),
            ids=self.ids,
            reason=reason,
        )

    def _counted(self, groups: Groups, at: NDArray[np.intp]) -> ListCounts:
        """The counts of the lists at these indices."""
        measures = measures_of(self.measures)
        moments, kept, empty = MomentsColumn.of(measures), 0, 0
        for lists in _pieces(groups, at):
            for _, is_empty, values in measured(lists, measures, self.ties):
                n_empty = int(np.count_nonzero(is_empty))
                kept, empty = kept + len(is_empty) - n_empty, empty + n_empty
                for j, found in enumerate(values):
                    moments.add(j, found)
        return ListCounts(moments, kept, empty, self.bag.total, len(groups) - len(at))

    def _totals(self) -> Accumulator:
        if self.max_rows is not None:
            raise unlimited(self)
        self._flush()
        groups = self.bag.groups()
        at = np.flatnonzero(~self._conflicts(groups))
        short = at[groups.sizes[at] <= LONGEST]
        counts = self._counted(groups, short)._replace(conflicting=len(groups) - len(at))
        totals = ListTotals(self.empty())
        totals.count(counts, int(groups.sizes[at].max(initial=0)))
        return totals

    def _conflicts(self, groups: Groups) -> NDArray[np.bool_]:
        """Whether each list has an item twice; [g]."""
        theirs = self.items.groups()
        used = np.sort(theirs.indices[theirs.repeated()])
        found = np.zeros(len(groups), np.bool_)
        ids, more = self.bag.ids, self.items.ids
        if len(used) and ids is not None and more is not None:
            # Each bag has its own indices for the ids of lists.
            some, positions = more.subset(used)
            found = np.isin(groups.indices, ids.index_all(some)[positions])
        return found


def _pieces(groups: Groups, at: NDArray[np.intp]) -> Iterator[Lists]:
    """The lists at these indices, several at a time."""
    ends = np.zeros(len(at) + 1, np.int64)
    np.cumsum(groups.sizes[at], out=ends[1:])
    first = 0
    while first < len(at):
        room = int(np.searchsorted(ends, ends[first] + _PIECE, side="right")) - 1
        last = max(room, first + 1)
        codes, labels = groups.rows(at[first:last])
        judged = labels != NOT_JUDGED
        yield Lists(
            np.where(judged, labels, np.uint8(0)),
            scores_of(codes),
            ends[first : last + 1] - ends[first],
            judged=None if bool(judged.all()) else judged,
        )
        first = last


def _too_long(longest: int) -> str:
    return f"a list has {longest} rows, more than {LONGEST}"


class ListTotals(WithoutRows, schema="grouped-scores-totals/1"):
    """Moments over the complete lists of a GroupedScores; only a Sealed holds one.

    Settings
        metric: the GroupedScores.
    State
        Lists kept, empty and conflicting, and rows; the longest list, which is not ranked past
        `LONGEST` rows; the moments of the measures.
    Result
        The result of the metric, to the last bit.
    """

    metric: Accumulator
    sums = ExactSums(4)
    longest = Extreme("max")
    moments = Moments()

    def arguments(self) -> Mapping[str, bool]:
        return self.metric.arguments()

    def former_arguments(self) -> Mapping[str, str]:
        return self.metric.former_arguments()

    def count(self, counts: ListCounts, longest: int) -> None:
        """Add the counts of complete lists."""
        moments, *numbers = counts
        add_whole(self.sums, numbers)
        if longest:
            self.longest.add(np.array([longest], np.int64))
        self.moments.merge(moments, np.zeros(1, np.intp))

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        new = super()._read(columns, width)
        require_whole(new.sums)
        for slot in range(width):
            kept, empty, *_ = map(int, new.sums.fractions(slot))
            rule = new.metric.settings()["empty"]
            new.moments.require_possible(kept if rule == "skip" else kept + empty, slot)
        return new

    def compute(self) -> Averages:
        """The result of the metric."""
        metric, longest = cast("GroupedScores", self.metric), self.longest.value() or 0
        kept, empty, rows, conflicting = map(int, self.sums.fractions())
        if longest > LONGEST:
            return metric._undefined(rows, _too_long(longest))
        return metric._result(ListCounts(self.moments, kept, empty, rows, conflicting))
