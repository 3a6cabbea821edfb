"""GroupedScores: the mean of several measures over lists whose items are separate rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SCORE_TYPES,
    SLOT_0,
    Accumulator,
    Bag,
    Bags,
    Batch,
    DictionaryColumn,
    ExactSums,
    Extreme,
    Inputs,
    Measure,
    Schemas,
    SettingsError,
    Slots,
    Terms,
    Unchecked,
    check_choice,
    check_max_rows,
    checks,
    damaged,
    measures_of,
)
from streammetrics.core import (
    IDS,
    WithoutRows,
    add_whole,
    require_whole,
    result_type,
    unlimited,
)
from streammetrics.ranking.answer_rows import AnsweringRows, add_answers, answers_of_rows
from streammetrics.ranking.graded_rows import (
    NOT_JUDGED,
    graded_rows,
    refuse_doubles,
    refuse_high_grades,
)
from streammetrics.ranking.held_lists import LONGEST, SUBTOPICS_A_ROW, HeldLists, are_apart
from streammetrics.ranking.list_values import (
    CubesColumn,
    EmptySetting,
    MeasureCubes,
    MeasureMoments,
    MomentsColumn,
    averages,
    list_terms,
    measured,
    require_none_of_subtopics,
    require_settled,
)
from streammetrics.results.list_results import Averages

_CHOICES: Final = {
    "ties": ("expected", "worst", "best"),
    "empty": ("skip", "zero"),
    "score_type": SCORE_TYPES,
    "ids": ("integer", "hashed", "exact"),
    "item_ids": ("integer", "hashed"),
    "duplicates": ("refuse", "conflict"),
}


class ListCounts(NamedTuple):
    """Moments and cubes of the values of lists; the numbers of lists kept and empty, of all rows,
    and of lists with an item twice."""

    moments: MomentsColumn
    cubes: CubesColumn
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
        It means the same as the score -inf, which replaces the score. Without such rows each list
        is taken to hold all of its relevant items: where some were not retrieved, and have no row,
        recall, AP and NDCG are too high. subtopics: [n] lists or sets
        of ids, the subtopics that the item answers, or a table of 0 and 1 [n, subtopics]; an item
        of label 0 answers none. Measures such as AlphaNDCG read them.
    State
        The multisets of (list, score, grade) and of (list, item). If a measure reads subtopics,
        also that of (list, set of subtopics, score, grade), of the items that answer any.
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
        (twice that with items). With subtopics about 8 bytes more for each item that answers any,
        and for each different set of a list 30 and its ids. An update sorts its rows; `compute`
        ranks all lists.
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
        groups=Unchecked("[n] ids of lists", keyword=True, type_text=IDS, stored_as="lists"),
        items=Unchecked("[n] ids of items", keyword=True, optional=True, type_text=IDS),
        judged=Unchecked("[n] bool, False where not judged", keyword=True, optional=True),
        shown=Unchecked("[n] bool, False where not shown", keyword=True, optional=True),
        subtopics=Unchecked(
            "[n] the ids of the subtopics that the item answers, or 0 and 1 in columns",
            keyword=True,
            optional=True,
            type_text="object",
        ),
    )
    bag = Bag(labels=NOT_JUDGED + 1, ids="ids")
    items = Bag("int64", labels=1, ids="ids")
    answers = Bags("_reads_subtopics", labels=checks.MAX_GRADE + 1, ids="_pair_ids", later=True)

    def check_settings(self) -> None:
        self._set("measures", tuple(str(measure) for measure in measures_of(self.measures)))
        for name, choices in _CHOICES.items():
            check_choice(self.settings()[name], choices, f"GroupedScores.{name}")
        check_max_rows(self.max_rows, "GroupedScores.max_rows")
        require_settled(measures_of(self.measures), self.ties)

    @cached_property
    def _reads_subtopics(self) -> bool:
        """Whether a measure reads subtopics, so that the state must hold them."""
        return any(measure.subtopics for measure in measures_of(self.measures))

    @property
    def _pair_ids(self) -> str:
        return "members"

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
            subtopics: object | None = None,
        ) -> None: ...

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        columns = {name: column for name, column in given.items() if name != "subtopics"}
        batch = graded_rows(
            **columns, score_type=self.score_type, ids=self.ids, item_ids=self.item_ids
        )
        refuse_high_grades(batch.labels, self._strictest())
        if given["items"] is not None and self.duplicates == "refuse":
            refuse_doubles(batch, given["groups"], given["items"])
        if given["subtopics"] is None and not self._reads_subtopics:
            return batch
        grades = np.where(batch.labels == NOT_JUDGED, 0, batch.labels).astype(np.uint8)
        if given["subtopics"] is not None:
            answers = answers_of_rows(given["subtopics"], grades, batch.as_ids("groups"))
            if self._reads_subtopics:
                batch.columns["answers"] = answers
        elif bool(grades.any()):
            hint = "pass subtopics= beside labels"
            require_none_of_subtopics(measures_of(self.measures), hint)
        return batch

    def _strictest(self) -> Measure:
        return min(measures_of(self.measures), key=lambda measure: measure.highest)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        groups, items = batch.as_ids("groups"), batch.optional("items")
        self.bag.add(batch.scores, batch.labels, slots, groups)
        if items is not None:
            self.items.add(items, None, slots, groups)
        if "answers" in batch.columns:
            answers = batch.as_keys("answers")
            add_answers(self.answers.inner, answers, batch.scores, batch.labels, slots)

    def _require_possible(self) -> None:
        highest = self._strictest().highest
        if highest < checks.MAX_GRADE:
            labels = self.bag.labels()
            if bool(((labels > highest) & (labels < NOT_JUDGED)).any()):
                raise damaged(f"a grade above {highest}")
        answering = self._answering()
        if answering is not None:
            answering.require_held(self.bag.groups(), self.bag.over)

    def _answering(self) -> AnsweringRows | None:
        """The rows that answer subtopics, if a measure reads them."""
        if not self._reads_subtopics:
            return None
        return AnsweringRows(self.answers.inner, self.bag.known_ids())

    def _mean_views(self) -> tuple[str, ...]:
        return tuple(map(str, self.measures))

    def _group_terms(self) -> Sequence[Terms]:
        self._flush()
        measures = measures_of(self.measures)
        held_lists = self._held_lists()
        indices = held_lists.at[held_lists.sizes[held_lists.at] <= LONGEST]
        rule = str(self.settings()["empty"])
        order = self.bag.order(held_lists.groups.indices[indices])
        terms = list_terms(held_lists.pieces(indices), measures, self.ties, rule)
        return [Terms(v[order], None if w is None else w[order]) for v, w in terms]

    def of(self, measures: Measure | str | Iterable[Measure | str]) -> Averages:
        """The means of other measures over the same lists, chosen when reading.

        So the grade from which on an item is relevant can be one of many: `P(rel=2) @ 10`. Raises
        SettingsError for a measure whose highest grade is below one of the rows, and for one of
        subtopics unless this metric has one too, so that its state holds them.

        >>> metric = GroupedScores("NDCG@10")
        >>> metric.update([2, 1, 0], [0.4, 0.9, 0.1], groups=[1, 1, 1])
        >>> metric.of(["P@2", "P(rel=2)@2"]).means
        {'P@2': 1.0, 'P(rel=2)@2': 0.5}
        """
        self._flush()
        settings: dict[str, Any] = {**self.settings(), "measures": measures_of(measures)}
        metric = type(self)(**settings)
        highest = metric._strictest()
        labels = self.bag.labels()
        most = int(labels[labels < NOT_JUDGED].max(initial=0))
        if most > highest.highest:
            hint = f"pass {highest.name} the highest grade: {highest.name}(max_grade=...)"
            expected = f"a measure of grades up to {most}, the highest of the rows"
            raise SettingsError(
                expected=expected, got=str(highest), where="GroupedScores.of(measures)", hint=hint
            )
        if not self._reads_subtopics and bool(labels[labels < NOT_JUDGED].any()):
            for measure in measures_of(metric.measures):
                if measure.subtopics:
                    hint = f"declare one when rows are counted: GroupedScores([..., {measure}])"
                    expected = f"rows with the subtopics that {measure} reads"
                    raise SettingsError(
                        expected=expected, got="none", where="GroupedScores.of(measures)", hint=hint
                    )
        metric.__dict__.update(bag=self.bag, items=self.items)  # read, never changed
        if self._reads_subtopics and metric._reads_subtopics:
            metric.__dict__["answers"] = self.answers
        return metric.compute()

    def compute(self) -> Averages:
        """The means over all lists, and the number of lists of each kind."""
        self._flush()
        if self.bag.dropped:
            return self._undefined(self.bag.total, self.bag.why_dropped)
        held_lists = self._held_lists()
        longest = int(held_lists.sizes[held_lists.at].max(initial=0))
        if longest > LONGEST:
            return self._undefined(self.bag.total, self._too_long(longest))
        return self._result(self._counted(held_lists, held_lists.at))

    def _result(self, counts: ListCounts) -> Averages:
        """The result of these counts, from the lists or from their totals alone."""
        moments, cubes, n_kept, empty, rows, conflicting = counts
        rule = str(self.settings()["empty"])
        return replace(
            averages(moments, measures_of(self.measures), [n_kept], [empty], rule, cubes=cubes)[0],
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

    def _too_long(self, longest: int) -> str:
        as_rows = f" (or {SUBTOPICS_A_ROW} subtopics of items in place of each)"
        remark = as_rows if self._reads_subtopics else ""
        return f"a list has {longest} rows{remark}, more than {LONGEST}"

    def _held_lists(self) -> HeldLists:
        return HeldLists(self.bag, self.items, self._answering())

    def _counted(self, held_lists: HeldLists, indices: NDArray[np.intp]) -> ListCounts:
        """The counts of the lists at these indices."""
        moments = MomentsColumn.from_measures(measures_of(self.measures))
        cubes = CubesColumn.from_moments(moments)
        is_empty = self._add_values(held_lists, indices, moments, cubes)
        empty = int(np.count_nonzero(is_empty))
        conflicting = len(held_lists.groups) - len(held_lists.at)
        n_kept = len(is_empty) - empty
        return ListCounts(moments, cubes, n_kept, empty, self.bag.total, conflicting)

    def _add_values(
        self,
        held_lists: HeldLists,
        indices: NDArray[np.intp],
        moments: MomentsColumn,
        cubes: CubesColumn,
        slots: Slots | None = None,
    ) -> NDArray[np.bool_]:
        """Add the values of the lists at these indices to the states at `slots`, or all to state 0;
        whether each of them is empty."""
        measures, rule = measures_of(self.measures), str(self.settings()["empty"])
        empty, first = [np.empty(0, np.bool_)], 0
        for lists in held_lists.pieces(indices):
            for _, is_empty, values in measured(lists, measures, self.ties, rule):
                last = first + len(is_empty)
                list_slots = None if slots is None else slots[first:last]
                for j, column in enumerate(values):
                    moments.add(j, column, list_slots)
                    cubes.add(j, column, list_slots)
                empty.append(is_empty)
                first = last
        return np.concatenate(empty)

    def _totals_apart(self) -> Accumulator | None:
        self._flush()
        rows = sum(self.bag.totals.tolist())
        if self._reads_subtopics or (self.max_rows is not None and rows > self.max_rows):
            return None
        held_lists = self._held_lists()
        if not are_apart(held_lists.groups, self.items.groups()):
            return None
        totals = ListTotals(self.empty())._empty(self._width)
        totals.count_apart(self, held_lists)
        totals.__dict__["_total_count"] = self._total_count
        return totals

    def _totals(self) -> Accumulator:
        if self.max_rows is not None:
            raise unlimited(self)
        self._flush()
        held_lists = self._held_lists()
        sizes = held_lists.sizes[held_lists.at]
        totals = ListTotals(self.empty())
        counts = self._counted(held_lists, held_lists.at[sizes <= LONGEST])
        totals.count(counts, int(sizes.max(initial=0)))
        return totals


class ListTotals(WithoutRows, schema="grouped-scores-totals/2"):
    """Moments over the complete lists of a GroupedScores; only a Sealed holds one.

    Settings
        metric: the GroupedScores.
    State
        Lists kept, empty and conflicting, and rows; the longest list, which is not ranked past
        `LONGEST` rows; the moments of the measures, and the cubes of their values.
    Result
        The result of the metric, to the last bit.
    """

    _schemas: ClassVar[Schemas] = {"grouped-scores-totals/1": {"cubes"}}

    metric: Accumulator
    sums = ExactSums(4)
    longest = Extreme("max")
    moments = MeasureMoments()
    cubes = MeasureCubes()

    def arguments(self) -> Mapping[str, bool]:
        return self.metric.arguments()

    def stored_names(self) -> Mapping[str, str]:
        return self.metric.stored_names()

    def count(self, counts: ListCounts, longest: int) -> None:
        """Add the counts of complete lists."""
        moments, cubes, *numbers = counts
        add_whole(self.sums, numbers)
        if longest:
            self.longest.add(np.array([longest], np.int64))
        self.moments.merge(moments, SLOT_0)
        self.cubes.merge(cubes, SLOT_0)

    def count_apart(self, metric: GroupedScores, held_lists: HeldLists) -> None:
        """Add the complete lists of each state of a metric, which are apart."""
        slots, sizes = held_lists.groups.slots, held_lists.sizes
        indices = np.flatnonzero(sizes <= LONGEST)
        list_slots = slots[indices]
        is_empty = metric._add_values(held_lists, indices, self.moments, self.cubes, list_slots)
        self.longest.add(sizes, slots)
        n_kept, empty = (
            np.bincount(list_slots[chosen], minlength=self._width).tolist()
            for chosen in (~is_empty, is_empty)
        )
        for slot, numbers in enumerate(zip(n_kept, empty, metric.bag.totals.tolist(), strict=True)):
            add_whole(self.sums, numbers, slot)

    def _counted_rows(self) -> NDArray[np.int64]:
        numbers = [self.sums.finite_fractions(slot) for slot in range(self._width)]
        return np.array([int(n_kept + empty) for n_kept, empty, *_ in numbers], np.int64)

    def _require_possible(self) -> None:
        require_whole(self.sums)
        for slot in range(self._width):
            n_kept, empty, *_ = map(int, self.sums.finite_fractions(slot))
            rule = self.metric.settings()["empty"]
            self.moments.require_possible(n_kept if rule == "skip" else n_kept + empty, slot)
            self.cubes.require_possible(self.moments, n_kept + empty, slot)

    def compute(self) -> Averages:
        """The result of the metric."""
        metric, longest = cast("GroupedScores", self.metric), self.longest.value() or 0
        n_kept, empty, rows, conflicting = map(int, self.sums.finite_fractions())
        if longest > LONGEST:
            return metric._undefined(rows, metric._too_long(longest))
        return metric._result(
            ListCounts(self.moments, self.cubes, n_kept, empty, rows, conflicting)
        )
