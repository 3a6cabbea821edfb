"""RankingMetrics: the mean of several measures over whole lists."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    Counts,
    Inputs,
    Measure,
    Pair,
    Ragged,
    Schemas,
    SettingsError,
    Slots,
    Terms,
    Unchecked,
    check_choice,
    measures_of,
    refused_setting,
)
from streammetrics.core import Intake, grade_lists, score_lists, together
from streammetrics.kernels.ranking import (
    Lists,
    Subtopics,
    checked_examination,
    inverse_propensities,
)
from streammetrics.ranking.id_lists import id_lists
from streammetrics.ranking.list_values import (
    EmptySetting,
    MeasureCubes,
    MeasureMoments,
    averages,
    list_terms,
    measured,
    require_grades,
    require_no_recall,
    require_no_unseen,
    require_settled,
    require_subtopics,
    weighed,
)
from streammetrics.ranking.lists import graded_lists, logged_positions
from streammetrics.results.list_results import Averages


class RankingMetrics(Accumulator, schema="ranking-metrics/3"):
    """Means over ranked lists: all measures share one ranking, one tie rule, one denominator.

    Settings
        measures: values such as `NDCG @ 10`, or their texts; held as a tuple of texts.
        ties: the order of items with equal scores. "expected" (default): the mean over all their
        orders, by formula; "worst" or "best": the worst or best grades first.
        empty: lists with nothing relevant are left out ("skip", default) or count 0 ("zero");
        both kinds are counted either way.
        examination: the probability that a user examines rank 1, 2, ..., as the decimals that they
        are written as. A list, with the click of its label, then weighs one over the probability of
        its logged rank (`positions`), which corrects for position bias: clicks at ranks that few
        users examine stand for more. None (default): each list weighs 1.
        complete_lists: True states that the lists of `update` hold all of their relevant items (of
        score -inf if they were not shown), so that measures with a recall in them (R, PooledHR,
        F1, RPrec, SetF, SetAP) need no `n_relevant`. It says only what `update` accepts: bytes do
        not hold it, and states with and without it merge. So a stored state goes on in an empty
        metric that has it: `RankingMetrics(..., complete_lists=True) + state`.
    Rows
        A row is a whole list. labels: grades, integers from 0 to 15; an item is relevant from
        grade 1 on. scores: floats without NaN, compared in their own precision, -0.0 equal to 0.0;
        without scores the lists are already ranked. An item of score -inf is known but was not
        shown: it has no rank, but counts in the denominators of measures. Both are [lists, items],
        lists of lists of any lengths (also columns of lists of polars, pyarrow and pandas), or flat
        with offsets [lists + 1] or with group_sizes [lists], as LightGBM and XGBoost have groups:
        the number of items of each list. n_relevant: [lists], the number of all known relevant
        items of each list, if it may lack some; or [lists, g], their numbers by grade 1 to g. Lists
        of what was retrieved may lack some: without n_relevant (or -inf, or ids) recall, AP, NDCG
        and all that divide by known items are then too high. Measures with a recall in them are
        refused without n_relevant or judged, unless complete_lists; AP and NDCG, often taken over
        what was retrieved, are not.
        judged: bool like labels, False for an item that is not judged, which counts as not relevant
        and which Bpref skips; by default all are judged. The denominators are those of the lists.
    State
        The numbers of lists kept and empty; for each measure the exact sums of its values, of their
        squares and of their rounded cubes (for PooledHR also of the denominators, their squares and
        cubes, and the products).
    Result
        Averages: `result[NDCG @ 10]` or `result["NDCG@10"]`, `lists_kept`, `lists_empty`, `rows`.
        All measures are over the same lists; an item above the highest grade of ERR is refused.
    Undefined
        A mean over no lists is nan.
    Exactness
        A list's value is a function of its counts of (score, grade). Values that are fractions
        (all but DCG and NDCG) have twice the digits of a double and are summed without rounding, so
        their mean is correctly rounded in any order. DCG and NDCG are within
        3 units in the last place, however long the list.
    Cost
        One sort of each list; about 0.5 microseconds for 60 scored items and four measures at 10,
        0.2 for ranked lists, 1.2 if most items are tied. The state has no lists.
    Source
        Jaervelin and Kekaelaeinen (2002), "Cumulated gain-based evaluation of IR techniques", TOIS
        20(4); McSherry and Najork (2008), "Computing information retrieval performance measures
        efficiently in the presence of tied scores", ECIR; each measure names its own. Weights:
        Wang, Bendersky, Metzler and Najork (2016), "Learning to rank with selection bias in
        personal search", SIGIR, section 5 (weighted MRR).

    >>> from streammetrics import MRR, NDCG, RankingMetrics
    >>> metric = RankingMetrics([NDCG @ 3, MRR])
    >>> metric.update([[1, 0, 0, 0], [0, 0, 1, 0]], [[0.9, 0.2, 0.1, 0.3], [0.5, 0.5, 0.5, 0.5]])
    >>> result = metric.compute()
    >>> round(result["MRR"], 6), result.lists_kept
    (0.760417, 2)
    >>> metric = RankingMetrics([NDCG @ 3])
    >>> metric.update_ranked([["a"]], [{"a", "b", "c"}])
    >>> round(metric.compute()[NDCG @ 3], 6)
    0.469279
    """

    _reads_each_row = True

    measures: Sequence[Measure | str]
    ties: str = "expected"
    empty: EmptySetting = EmptySetting()
    examination: Sequence[float | Fraction] | None = None
    complete_lists: bool = False
    inputs = Inputs(
        labels=Unchecked(
            "grades from 0 to 15 [lists, items], lists of lists, or flat with offsets",
            intake=lambda metric: metric._list_intakes[0],
        ),
        scores=Unchecked(
            "like labels, no NaN; None if lists are already ranked",
            optional=True,
            intake=lambda metric: metric._list_intakes[1],
        ),
        offsets=Unchecked("[lists + 1], of flat lists", keyword=True, optional=True),
        n_relevant=Unchecked("[lists] or [lists, g]: known items", keyword=True, optional=True),
        judged=Unchecked("bool like labels", keyword=True, optional=True),
        group_sizes=Unchecked("[lists], in place of offsets", keyword=True, optional=True),
        subtopics=Unchecked(
            "for each label the ids of the subtopics that the item answers, or 0 and 1 in columns",
            keyword=True,
            optional=True,
            type_text="object",
        ),
        positions=Unchecked(
            "[lists] the rank, from 1, at which the click of each list was logged",
            keyword=True,
            optional=True,
        ),
    )
    _later = frozenset({"examination"})
    _unwritten = frozenset({"complete_lists"})
    _schemas: ClassVar[Schemas] = {"ranking-metrics/2": {"cubes"}}
    lists = Counts(2)  # kept, empty
    moments = MeasureMoments()
    cubes = MeasureCubes()

    def check_settings(self) -> None:
        self._set("measures", tuple(str(measure) for measure in measures_of(self.measures)))
        check_choice(self.ties, ("expected", "worst", "best"), "RankingMetrics.ties")
        check_choice(self.settings()["empty"], ("skip", "zero"), "RankingMetrics.empty")
        if not isinstance(self.complete_lists, bool):
            raise refused_setting(self, "complete_lists", "True or False")
        require_settled(self._asked, self.ties)
        if self.examination is None:
            return
        where = "RankingMetrics.examination"
        self._set("examination", checked_examination(self.examination, where, allows_names=False))
        if self.settings()["empty"] == "zero":
            raise SettingsError(
                expected='empty="skip" with examination',
                got='"zero"',
                where="RankingMetrics.empty",
                hint="a list without a click has no position, hence no weight",
            )

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike | None = None,
            *,
            offsets: ArrayLike | None = None,
            n_relevant: ArrayLike | None = None,
            judged: ArrayLike | None = None,
            group_sizes: ArrayLike | None = None,
            subtopics: object | None = None,
            positions: ArrayLike | None = None,
        ) -> None: ...

    @cached_property
    def _list_intakes(self) -> Sequence[Intake | None]:
        """Of grades beside scores; None if a measure or a setting asks for other columns too."""
        needs_unseen = not self.complete_lists and any(metric.has_recall for metric in self._asked)
        needs_subtopics = any(metric.subtopics for metric in self._asked)
        if self.examination is not None or needs_unseen or needs_subtopics:
            return None, None
        most = min([measure.highest for measure in self._asked])
        return together(grade_lists(most), score_lists)

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        positions = given["positions"]
        of_lists = {name: column for name, column in given.items() if name != "positions"}
        ordered = any(measure.greedy for measure in self._asked)
        lists = graded_lists(**of_lists, graded_from=self._graded_from, ordered=ordered)
        if given["n_relevant"] is not None:
            require_no_unseen(lists, self._asked)
        elif given["judged"] is None and len(lists) and not self.complete_lists:
            require_no_recall(self._asked)
        return self._batch(lists, positions)

    def update_ranked(
        self,
        lists: Iterable[Iterable[Hashable]],
        truths: Iterable[Iterable[Hashable]],
        *,
        positions: ArrayLike | None = None,
    ) -> None:
        """Add lists of ids, each with its relevant ids or a mapping id -> grade.

        A list is a sequence of ids in rank order, or a mapping id -> score. In place of a grade an
        id may have the ids of its subtopics, or a mapping subtopic -> grade. positions: as in
        `update`.
        """
        self._update(self.check_ranked(lists, truths, positions=positions))

    def check_ranked(
        self,
        lists: Iterable[Iterable[Hashable]],
        truths: Iterable[Iterable[Hashable]],
        *,
        positions: ArrayLike | None = None,
    ) -> Batch:
        """The checked lists, or InputError; changes nothing."""
        return self._batch(id_lists(lists, truths), positions)

    def _require_possible(self) -> None:
        for slot in range(self._width):
            lists_kept, empty = self.lists.dense(slot).tolist()
            rule = self.settings()["empty"]
            self.moments.require_possible(
                lists_kept if rule == "skip" else lists_kept + empty, slot
            )
            self.cubes.require_possible(self.moments, lists_kept + empty, slot)

    @cached_property
    def _asked(self) -> tuple[Measure, ...]:
        return measures_of(self.measures)

    @cached_property
    def _graded_from(self) -> int:
        return min([measure.graded_from for measure in self._asked])

    def _batch(self, lists: Lists, positions: object) -> Batch:
        require_grades(lists, self._asked)
        require_subtopics(lists, self._asked)
        columns: dict[str, Any] = {"labels": Ragged(lists.grades, lists.offsets)}
        for name, values in (("scores", lists.scores), ("judged", lists.judged)):
            if values is not None:
                columns[name] = Ragged(values, lists.offsets)
        if lists.unseen is not None:
            columns["unseen"] = lists.unseen
        if lists.subtopics is not None and any(measure.subtopics for measure in self._asked):
            columns["places"] = lists.subtopics.places
            name = "packed answers" if lists.subtopics.packed else "answers"
            columns[name] = lists.subtopics.answers
        if positions is not None or self.examination is not None:
            columns["positions"] = logged_positions(positions, lists, self.examination)
        return Batch(len(lists), columns)

    def _weights(self, batch: Batch) -> Pair | None:
        """The weights of lists, 1 / the probability that the logged rank was examined."""
        if self.examination is None:
            return None
        return inverse_propensities(self.examination).take(batch.positions)

    def _mean_views(self) -> tuple[str, ...]:
        return tuple(map(str, self._asked))

    def _row_terms(self, batch: Batch) -> Sequence[Terms]:
        rule = str(self.settings()["empty"])
        return list_terms([_lists(batch)], self._asked, self.ties, rule, self._weights(batch))

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        weights, rule = self._weights(batch), str(self.settings()["empty"])
        for rows, empty, values in measured(_lists(batch), self._asked, self.ties, rule):
            row_slots = None if slots is None else slots[rows]
            self.lists.add(empty.astype(np.intp), row_slots)
            if weights is None:
                for j, column in enumerate(values):
                    self.moments.add(j, column, row_slots)
                    self.cubes.add(j, column, row_slots)
                continue
            for j, (column, weights_rest) in enumerate(weighed(values, weights.take(rows))):
                self.moments.add(j, column, row_slots, weights_rest)
                self.cubes.add(j, column, row_slots)

    def compute(self) -> Averages:
        """The means, and the numbers of lists."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[Averages]:
        lists_kept, empty = self.lists.columns(slots)
        rule = str(self.settings()["empty"])
        return averages(self.moments, self._asked, lists_kept, empty, rule, slots, self.cubes)


def _lists(batch: Batch) -> Lists:
    """The lists of checked rows."""
    grades, columns = batch.as_lists("labels"), batch.columns
    scores = batch.as_lists("scores").values if "scores" in columns else None
    judged = batch.as_lists("judged").values if "judged" in columns else None
    subtopics = None
    if "places" in columns:
        packed = "packed answers" in columns
        answers = batch.as_lists("packed answers" if packed else "answers")
        subtopics = Subtopics(batch.as_lists("places"), answers, packed)
    unseen = batch.optional("unseen")
    return Lists(grades.values, scores, grades.offsets, unseen, judged, subtopics)
