"""`evaluate`: the measures of a run against relevance judgments, in the mean and by query."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, fsum, inf, isclose, isnan, log, nan
from typing import ClassVar, Final, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import as_float, refused
from streammetrics.core.errors import InputError
from streammetrics.core.interval import Interval, taken_as_independent
from streammetrics.core.rows import Terms
from streammetrics.estimators.lists import ListMoments, MeanOfLists
from streammetrics.estimators.request import IntervalRequest
from streammetrics.evaluation.judged_runs import (
    Judgments,
    Run,
    collected,
    judgments_of,
    lacks_grades,
    run_of,
)
from streammetrics.evaluation.queries import UsersOfQueries, queries_of, users_of
from streammetrics.evaluation.ranked_documents import (
    has_equal_scores,
    lists_of_queries,
    query_error,
)
from streammetrics.evaluation.rules import TREC_EVAL, Rules, listed_measures, trec_names
from streammetrics.evaluation.slices import SliceResults, SlicesOfQueries
from streammetrics.evaluation.spellings import with_spellings
from streammetrics.kernels.inference.paired import PairedSums
from streammetrics.kernels.inference.variances import design_effect
from streammetrics.present.measure_names import entry_text
from streammetrics.present.texts import number
from streammetrics.present.value_rows import ValueRow, rows_of, rows_of_views
from streammetrics.present.view import View
from streammetrics.ranking.list_values import (
    MomentsColumn,
    averages,
    measured,
    require_grades,
    require_subtopics,
)
from streammetrics.ranking.measure import Measure, Values
from streammetrics.results.list_results import Averages, moments_of_entry

Floats = NDArray[np.float64]


class _MeanOfQueries(MeanOfLists["Evaluation"]):
    """A mean over queries, which are independent unless they are of users."""

    def interval(self, result: Evaluation, request: IntervalRequest) -> Interval | None:
        """Over queries, or over users."""
        plain = super().interval(result, request)
        of_users = result._users.get(entry_text(request.view, result.means))
        if plain is None or not plain.defined:
            return plain
        if of_users is None:
            return replace(plain, reason=taken_as_independent(result._kind))
        interval = of_users.interval(request)
        deff = design_effect(interval.se * interval.se, plain.se * plain.se)
        n_eff = plain.n / deff if deff > 0 else np.nan
        return replace(interval, n=plain.n, n_eff=n_eff, deff=deff)


_MEAN: Final = _MeanOfQueries(moments_of_entry)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation(Averages):
    """The means of measures over the queries of a run, and their values for each query.

    `result["ndcg@10"]` is a mean, `result.interval("ndcg@10")` its confidence interval, and
    `result.per_query["q1"]["NDCG@10"]` the value of one query; measures are called as they print.
    queries: those that were evaluated, in the order of the judgments. by_query: by measure, a
    value for each query [n]; nan where a query has nothing relevant, unless empty="zero". missing:
    queries of the judgments that the run lacks. unjudged: queries of the run without judgments,
    which are left out. rules: ties, empty, missing, rel, judged_only and like, as they were used.
    slices: the evaluation of each slice, if `by` was passed. What is called lists in `Averages` are
    queries here.

    >>> from streammetrics import evaluate
    >>> qrels = {"q1": {"a": 1, "b": 2}, "q2": {"c": 1}}
    >>> run = {"q1": {"b": 0.9, "x": 0.7, "a": 0.4}, "q2": {"d": 0.8, "c": 0.3}}
    >>> result = evaluate(qrels, run, ["map", "mrr@10", "P_5"])
    >>> result["mrr@10"], result.per_query["q2"]
    (0.75, {'AP': 0.5, 'MRR@10': 0.5, 'P@5': 0.2})
    """

    queries: tuple[Hashable, ...] = ()
    by_query: Mapping[str, Floats] = field(default_factory=dict, compare=False)
    independent: ClassVar[str] = ""  # each interval says itself that queries are
    missing: tuple[Hashable, ...] = ()
    unjudged: tuple[Hashable, ...] = ()
    rules: Mapping[str, object] = field(default_factory=dict, compare=False)
    slices: SliceResults[Evaluation] = field(default_factory=lambda: SliceResults({}))
    # What each query, or each user, contributes to a mean; for users also their moments.
    _terms: Mapping[str, Terms] = field(default_factory=dict, repr=False, compare=False)
    _users: Mapping[str, ListMoments] = field(default_factory=dict, repr=False, compare=False)
    _remarks: tuple[str, ...] = field(default=(), compare=False)
    _kind: str = "queries"  # what is evaluated

    @property
    def per_query(self) -> dict[Hashable, dict[str, float]]:
        """The value of each measure by query, as pytrec_eval returns them."""
        columns = [column.tolist() for column in self.by_query.values()]
        return {
            query: dict(zip(self.by_query, row, strict=True))
            for query, row in zip(self.queries, zip(*columns, strict=True), strict=True)
        }

    def geometric_mean(self, measure: Measure | str, *, floor: float = 1e-5) -> float:
        """The geometric mean of a measure over the queries that count, which low values decide.

        floor: the least value that a query counts. With "map" and `like="trec_eval"` it is gm_map
        of trec_eval (Robertson 2006, "On GMAP: and other transformations", CIKM).

        >>> from streammetrics import evaluate
        >>> evaluate({"q": {"a": 1}}, {"q": ["b", "a"]}, "map").geometric_mean("map")
        0.5
        """
        self[measure]  # an error for what is no measure
        least = as_float(floor)
        if least is None or not 0 < least < inf:
            raise refused("floor", "a number above 0", floor, "pass a small value such as 1e-5")
        values = self.by_query[entry_text(str(measure), self.means)]
        logarithms = [log(max(value, least)) for value in values.tolist() if not isnan(value)]
        return exp(fsum(logarithms) / len(logarithms)) if logarithms else nan

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out or counted as 0, and what else a reader should know."""
        return self._remarks

    @property
    def _units(self) -> str:
        """What is taken as independent."""
        return "users" if self._users else self._kind

    @View(estimator=_MEAN)
    def __getitem__(self, measure: object) -> float:
        return Averages.__getitem__(self, measure)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The means over all queries, then those of each slice, which is their key."""
        yield from rows_of_views(self, level, headlines)
        yield from rows_of(self.slices, level=level, headlines=headlines)

    def _notes(self) -> Iterator[str]:
        yield from self._remarks


def _measures(result: Evaluation) -> Mapping[str, float]:
    return result.means


@with_spellings(_measures)
def evaluate(
    qrels: object,
    run: object,
    measures: Measure | str | Iterable[Measure | str],
    *,
    ties: str | None = None,
    empty: str | None = None,
    missing: str | None = None,
    users: object = None,
    rel: int = 1,
    by: object = None,
    like: str | None = None,
    judged_only: bool = False,
) -> Evaluation:
    """The measures of a run against relevance judgments: means, intervals, and values by query.

    qrels: grades by document and query: a dict {query: {document: grade}}, or {query: relevant
    documents}; a data frame of pandas, polars or pyarrow, or a dict of columns, with columns such
    as query_id, doc_id and relevance (without a column of grades each is 1); the path of a TREC
    file; three columns (queries, documents, grades); rows of ir_measures; Qrels of ranx. Grades are
    whole numbers from 0 to 15; a document of a grade below 0 is not judged. Unjudged documents
    count as not relevant, and Bpref skips them. run: the same with scores; {query: documents in
    ranked order} has no ties.

    Judgments of rows: the path of a file of LETOR, SVMlight or LightGBM. A run is then the score of
    each row, in their order: an array, or the path of a file with one a line.

    AlphaNDCG, ERRIA and StRecall read judgments by subtopic: {query: {document: {subtopic: grade}}}
    or {query: {document: subtopics}}; a data frame with a column such as subtopic_id or iteration;
    the path of a TREC diversity file (query, subtopic, document, grade); rows of pyndeval or
    ir_measures. Other measures then read the highest grade of a document.

    measures: such as NDCG @ 10, or names: "ndcg@10", "map", "mrr@10", "recall@100", "success@1";
    those of trec_eval: "ndcg_cut_10", "P_5"; measures of ir_measures. NDCG has exponential gains;
    `NDCG(gain="linear") @ 10` is that of trec_eval, ranx and ir_measures. For grades 0 and 1 both
    are equal.

    ties: the order of documents with equal scores. "expected" (default): the mean over all their
    orders; "worst" or "best"; "trec_eval": scores are compared as float32, and of equal ones the
    greater document id is first. empty: queries with nothing relevant are left out ("skip",
    default) or count 0 ("zero"). missing: queries of qrels that the run lacks count 0 ("zero",
    default, as in ir_measures and `trec_eval -c`) or are left out ("skip", as in pytrec_eval).
    Queries of the run without judgments are left out.

    like: the rules of "trec_eval" (and pytrec_eval) or "ir_measures": their ties, empty and
    missing, unless passed, and their defaults of parameters: linear gains, p = 0.9 of RBP in
    trec_eval. A parameter that is not the default here, or stands in a text, is kept. Without
    `like`, a measure that is called by a name of trec_eval, such as "map" or "P_5", has the rules
    of all others, and a note of the result has trec_eval's value if it is another one.
    judged_only: documents that are not judged are left out of the run, as by `trec_eval -J`.

    rel: the grade from which on a document is relevant, for measures that have this parameter and
    do not name another: with rel=2, "P@10" is "P(rel=2)@10", as with `trec_eval -l 2`.

    Intervals take queries as independent: Student's t, and Wilson's for HR, within the range of the
    measure. users: {query: user}, if a user has several queries, which are correlated: the interval
    takes users as independent, by Student's t of users - 1 degrees of freedom. Means do not change.

    by: the slice of each query: {query: slice}, or a frame of queries and slices; the name of a
    column of the judgments or the run that is the same in all rows of a query; a list of columns,
    whose slices are tuples; or a dict of mappings and columns by name, whose slices are (name,
    value). The means over all queries do not change, and `result.slices["short"]` is the evaluation
    of one slice.

    InputError for bad input, with the query or the line; SettingsError for an unknown measure or
    setting.

    >>> result = evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a", "b"]}, "recall@1")
    >>> result["recall@1"], result.missing
    (0.5, ('q2',))
    """
    listed, only = listed_measures(measures)
    rules = Rules.checked(ties, empty, missing, rel, judged_only, like, only)
    settings = Settings.from_measures(listed, rules)
    tables = {"qrels": collected(qrels), "run": collected(run)}
    truth = judgments_of(tables["qrels"], subtopics=settings.subtopics)
    checked_run = run_of(tables["run"], judgments=truth)
    queries = queries_of(truth, {"run": checked_run}, rules.missing)
    slices = None if by is None else SlicesOfQueries(by, tables, queries)
    query_users = users_of(users, queries)
    evaluation = evaluated(truth, checked_run, queries, settings, query_users, slices)
    notes = [*notes_on(tables["qrels"]), *notes_of_names(evaluation, truth, checked_run, listed)]
    return replace(evaluation, _remarks=(*evaluation._remarks, *notes))


class Settings(NamedTuple):
    """The measures of an evaluation, and its rules."""

    measures: tuple[Measure, ...]
    rules: Rules

    @classmethod
    def from_measures(cls, listed: Iterable[Measure | str], rules: Rules) -> Settings:
        """The settings; SettingsError for unknown measures."""
        return cls(rules.measures(listed), rules)

    @property
    def subtopics(self) -> bool:
        """Whether a measure reads judgments by subtopic."""
        return any(measure.subtopics for measure in self.measures)


def notes_of_names(
    evaluation: Evaluation, truth: Judgments, run: Run, listed: Sequence[Measure | str]
) -> Iterator[str]:
    """What trec_eval has for measures that were called by its names, where it is another value."""
    like, names = evaluation.rules["like"], trec_names(listed)
    by_grade = [name for name in evaluation.means if name.partition("(")[0] == "RBP"]
    if by_grade and (like == TREC_EVAL or "rbp" in names) and _has_grade_2(truth):
        yield f"{', '.join(by_grade)}: trec_eval weighs relevant documents by their grades"
        names = [name for name in names if name != "rbp"]
    if not names or like:
        return
    rel, only = evaluation.rules["rel"], evaluation.rules["judged_only"]
    rules = Rules.checked(None, None, None, cast("int", rel), bool(only), TREC_EVAL)
    settings = Settings.from_measures(names, rules)
    queries = queries_of(truth, {"run": run}, rules.missing)
    measures = dict(zip(listed, evaluation.means, strict=True))
    same = [measures[name] for name in names] == list(map(str, settings.measures))
    same &= queries == [*evaluation.queries] and not evaluation.lists_empty
    if same and not has_equal_scores(run, queries):
        return
    trec_evaluation = evaluated(truth, run, queries, settings, None)
    our_means = dict(zip(listed, evaluation.means.values(), strict=True))
    values = [
        f"{name} {_apart(value, our_means[name])}"
        for name, value in zip(names, trec_evaluation.means.values(), strict=True)
        if str(value) != str(our_means[name]) and not isclose(value, our_means[name], rel_tol=1e-12)
    ]
    if values:
        yield f'by its own rules trec_eval has {", ".join(values)}: like="trec_eval"'


def _has_grade_2(truth: Judgments) -> bool:
    """Whether a document has a grade above 1."""
    grades = (grade for documents in truth.values() for grade in _grades(documents))
    return any(grade not in (0, 1) for grade in grades)


def _grades(documents: Iterable[Hashable]) -> Iterable[object]:
    return documents.values() if isinstance(documents, Mapping) else ()


def _apart(value: float, other: float) -> str:
    """A number with as many decimals as tell it from another, at least 5."""
    texts = ((number(value, n), number(other, n)) for n in range(5, 18))
    return next((text for text, other_text in texts if text != other_text), str(value))


def notes_on(qrels: object) -> tuple[str, ...]:
    """What was taken for granted when these judgments were read."""
    remark = "judgments have no column of grades: each document there has grade 1"
    return (remark,) if lacks_grades(qrels) else ()


class QueryValues(NamedTuple):
    """The values of measures for each query, in the order of the queries, and which queries are
    empty, [n]."""

    queries: tuple[Hashable, ...]
    values: Sequence[Values]
    is_empty: NDArray[np.bool_]

    def take(self, positions: NDArray[np.intp]) -> QueryValues:
        """Some of the queries."""
        queries = tuple(self.queries[position] for position in positions.tolist())
        values = [
            Values(*(None if part is None else part[positions] for part in column))  # type: ignore[arg-type]
            for column in self.values
        ]
        return QueryValues(queries, values, self.is_empty[positions])


def measured_queries(
    truth: Judgments, run: Run, queries: Sequence[Hashable], settings: Settings, name: str
) -> QueryValues:
    """The values of each query of a run."""
    rules, measures = settings.rules, settings.measures
    lists = lists_of_queries(truth, run, queries, rules, name)
    try:
        require_grades(lists, measures)
        require_subtopics(lists, measures)
        ties = "expected" if rules.ties == TREC_EVAL else rules.ties
        parts = [*measured(lists, measures, ties, rules.empty)]
    except InputError as error:
        raise query_error(error, queries, name) from None
    columns = [
        Values(*map(_joined, zip(*[values[j] for _, _, values in parts], strict=True)))  # type: ignore[arg-type]
        for j in range(len(measures))
    ]
    empty = [is_empty for _, is_empty, _ in parts]
    return QueryValues(tuple(queries), columns, np.concatenate([np.empty(0, np.bool_), *empty]))


def _joined(parts: Sequence[Floats | None]) -> Floats | None:
    columns = [part for part in parts if part is not None]
    return np.concatenate(columns) if columns else None


def evaluated(
    truth: Judgments,
    run: Run,
    queries: Sequence[Hashable],
    settings: Settings,
    users: UsersOfQueries | None,
    slice_of: SlicesOfQueries | None = None,
    name: str = "run",
) -> Evaluation:
    """The evaluation of one run on these queries, and on the slices of them."""
    whole = measured_queries(truth, run, queries, settings, name)
    lacking = [query for query in truth if query not in run]
    unjudged = [query for query in run if query not in truth]
    evaluation = _evaluation(whole, settings, users, lacking, unjudged)
    if slice_of is None:
        return evaluation
    without_run = slice_of.places(lacking, whole=False)
    without_truth = slice_of.places(unjudged, whole=False)
    slices = {}
    for key, places in slice_of.places(queries).items():
        positions = np.array(places, np.intp)
        slices[key] = _evaluation(
            whole.take(positions),
            settings,
            None if users is None else users.take(positions),
            [lacking[i] for i in without_run.get(key, ())],
            [unjudged[i] for i in without_truth.get(key, ())],
        )
    return replace(evaluation, slices=SliceResults(slices))


def _evaluation(
    of_queries: QueryValues,
    settings: Settings,
    users: UsersOfQueries | None,
    lacking: Sequence[Hashable],
    unjudged: Sequence[Hashable],
) -> Evaluation:
    """The evaluation of the values of these queries."""
    measures, n, is_empty = settings.measures, len(of_queries.queries), of_queries.is_empty
    n_empty = int(np.count_nonzero(is_empty))
    left_out = is_empty & (settings.rules.empty == "skip")
    moments = MomentsColumn.from_measures(measures)
    columns, terms = [], []
    for j, values in enumerate(of_queries.values):
        moments.add(j, values)
        column = values.values.copy()
        if values.weights is not None:
            column /= np.maximum(values.weights, 1.0)  # whole numbers
        column[left_out] = np.nan
        columns.append(column)
        weights = (~left_out).astype(np.float64) if values.weights is None else values.weights
        terms.append(Terms(values.values, weights))
    [means] = averages(moments, measures, [n - n_empty], [n_empty], settings.rules.empty)
    if users is not None:
        terms = [users.totals(term) for term in terms]
    by_measure = dict(zip(means.means, terms, strict=True))
    return Evaluation(
        means.means,
        means.lists_kept,
        means.lists_empty,
        means.rows,
        _moments=means._moments,
        queries=of_queries.queries,
        by_query=dict(zip(means.means, columns, strict=True)),
        missing=tuple(lacking),
        unjudged=tuple(unjudged),
        rules=settings.rules._asdict(),
        _terms=by_measure,
        _users={} if users is None else _moments_of_users(by_measure, means._moments),
        _remarks=(
            *_remarks_on(n_empty, len(lacking), len(unjudged), settings.rules),
            *settings.rules.notes(settings.measures),
        ),
    )


def _moments_of_users(
    terms: Mapping[str, Terms], lists: Mapping[str, ListMoments]
) -> Mapping[str, ListMoments]:
    moments = {}
    for name, term in terms.items():
        sums = PairedSums.from_values(term.values, np.zeros(len(term.values)), term.weights)
        d, w, dd, dw, ww = sums.sums
        limits = lists[name].limits
        moments[name] = ListMoments(sums.units, d, dd, (w, ww, dw), limits=limits, units="users")
    return moments


def _remarks_on(n_empty: int, n_missing: int, n_unjudged: int, rules: Rules) -> Iterable[str]:
    """The lines below a table: what was counted otherwise than a reader may think."""
    for n, kind, zero in (
        (n_empty, "with nothing relevant", rules.empty == "zero"),
        (n_missing, "of the judgments that the run lacks", rules.missing == "zero"),
        (n_unjudged, "of the run without judgments", False),
    ):
        if n:
            queries = "query" if n == 1 else "queries"
            yield f"{n:,} {queries} {kind}: {'counted as 0' if zero else 'left out'}"
