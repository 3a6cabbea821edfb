"""`evaluate`: the measures of a run against relevance judgments, in the mean and by query."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core import checks
from streammetrics.core.checks import MAX_GRADE, check_choice, check_number
from streammetrics.core.errors import InputError, shown
from streammetrics.core.interval import Interval, taken_as_independent
from streammetrics.core.parts.exact_sum import ExactSumColumn
from streammetrics.core.rows import Terms
from streammetrics.estimators.lists import ListMoments, MeanOfLists
from streammetrics.estimators.request import IntervalRequest
from streammetrics.evaluation.judged_runs import (
    Judgments,
    Run,
    collected,
    judgments_of,
    lacks_grades,
    mapping_of,
    run_of,
)
from streammetrics.evaluation.slices import SliceResults, SlicesOfQueries
from streammetrics.kernels.inference.paired import PairedSums
from streammetrics.kernels.inference.variances import design_effect
from streammetrics.present.measure_names import entry_text
from streammetrics.present.value_rows import ValueRow, rows_of, rows_of_views
from streammetrics.present.view import View
from streammetrics.ranking.id_lists import id_lists
from streammetrics.ranking.list_values import (
    MomentsColumn,
    averages,
    measured,
    require_expected,
    require_grades,
    require_subtopics,
)
from streammetrics.ranking.measure import Measure, Values, graded_measure
from streammetrics.ranking.measures import measures_of
from streammetrics.results.list_results import Averages, moments_of_entry

TIES: Final = ("expected", "worst", "best", "trec_eval")
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
    which are left out. slices: the evaluation of each slice, if `by` was passed. What is called
    lists in `Averages` are queries here.

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
    slices: SliceResults[Evaluation] = field(default_factory=lambda: SliceResults({}))
    # What each query, or each user, contributes to a mean; for users also their moments.
    _terms: Mapping[str, Terms] = field(default_factory=dict, repr=False, compare=False)
    _users: Mapping[str, ListMoments] = field(default_factory=dict, repr=False, compare=False)
    _remarks: tuple[str, ...] = ()
    _kind: str = "queries"  # what is evaluated

    @property
    def per_query(self) -> dict[Hashable, dict[str, float]]:
        """The value of each measure by query, as pytrec_eval returns them."""
        columns = [column.tolist() for column in self.by_query.values()]
        return {
            query: dict(zip(self.by_query, row, strict=True))
            for query, row in zip(self.queries, zip(*columns, strict=True), strict=True)
        }

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


def evaluate(
    qrels: object,
    run: object,
    measures: Measure | str | Iterable[Measure | str],
    *,
    ties: str = "expected",
    empty: str = "skip",
    missing: str = "zero",
    users: object = None,
    rel: int = 1,
    by: object = None,
) -> Evaluation:
    """The measures of a run against relevance judgments: means, intervals, and values by query.

    qrels: grades by document and query: a dict {query: {document: grade}}, or {query: relevant
    documents}; a data frame of pandas, polars or pyarrow, or a dict of columns, with columns such
    as query_id, doc_id and relevance (without a column of grades each is 1); the path of a TREC
    file; three columns (queries, documents, grades); rows of ir_measures; Qrels of ranx. Grades are
    whole numbers from 0 to 15; a document of a grade below 0 is not judged. Unjudged documents
    count as not relevant, and Bpref skips them. run: the same with scores; {query: documents in
    ranked order} has no ties.

    AlphaNDCG, ERRIA and StRecall read judgments by subtopic: {query: {document: {subtopic: grade}}}
    or {query: {document: subtopics}}; a data frame with a column such as subtopic_id or iteration;
    the path of a TREC diversity file (query, subtopic, document, grade); rows of pyndeval or
    ir_measures. Other measures then read the highest grade of a document.

    measures: such as NDCG @ 10, or names: "ndcg@10", "map", "mrr@10", "recall@100", "success@1";
    those of trec_eval: "ndcg_cut_10", "P_5". NDCG has exponential gains; `NDCG(gain="linear") @ 10`
    is that of trec_eval, ranx and ir_measures. For grades 0 and 1 both are equal.

    ties: the order of documents with equal scores. "expected" (default): the mean over all their
    orders; "worst" or "best"; "trec_eval": scores are compared as float32, and of equal ones the
    greater document id is first. empty: queries with nothing relevant are left out ("skip",
    default) or count 0 ("zero"). missing: queries of qrels that the run lacks count 0 ("zero",
    default, as in ir_measures and `trec_eval -c`) or are left out ("skip", as in pytrec_eval).
    Queries of the run without judgments are left out. ties="trec_eval", empty="zero" and
    missing="skip" together are pytrec_eval.

    rel: the grade from which on a document is relevant, for measures that have this parameter and
    do not name another: with rel=2, "P@10" is "P(rel=2)@10", as with `trec_eval -l 2`.

    Intervals take queries as independent: Student's t, and Wilson's for HR, within the range of the
    measure. users: {query: user}, if a user has several queries, which are correlated: the interval
    takes users as independent, by Student's t of users - 1 degrees of freedom. Means do not change.

    by: the slice of each query: {query: slice}; the name of a column of the judgments or the run
    that is the same in all rows of a query; a list of columns, whose slices are tuples; or a dict
    of mappings and columns by name, whose slices are (name, value). The means over all queries do
    not change, and `result.slices["short"]` is the evaluation of one slice.

    InputError for bad input, with the query or the line; SettingsError for an unknown measure or
    setting.

    >>> result = evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a", "b"]}, "recall@1")
    >>> result["recall@1"], result.missing
    (0.5, ('q2',))
    """
    settings = Settings.of(measures, ties, empty, missing, rel)
    tables = {"qrels": collected(qrels), "run": collected(run)}
    truth = judgments_of(tables["qrels"], subtopics=settings.subtopics)
    checked_run = run_of(tables["run"], judgments=truth)
    queries = queries_of(truth, {"run": checked_run}, missing)
    slice_of = None if by is None else SlicesOfQueries(by, tables, queries)
    query_users, notes = users_of(users, queries), notes_on(tables["qrels"])
    return evaluated(truth, checked_run, queries, settings, query_users, slice_of, notes=notes)


def notes_on(qrels: object) -> tuple[str, ...]:
    """What was taken for granted when these judgments were read."""
    remark = "judgments have no column of grades: each document there has grade 1"
    return (remark,) if lacks_grades(qrels) else ()


class Settings(NamedTuple):
    """Checked settings of an evaluation."""

    measures: tuple[Measure, ...]
    ties: str
    empty: str
    missing: str

    @classmethod
    def of(
        cls,
        measures: Measure | str | Iterable[Measure | str],
        ties: str,
        empty: str,
        missing: str,
        rel: int,
    ) -> Settings:
        """The settings; SettingsError for unknown ones."""
        check_choice(ties, TIES, "ties")
        check_choice(empty, ("skip", "zero"), "empty")
        check_choice(missing, ("zero", "skip"), "missing")
        rel = check_number(rel, 1, MAX_GRADE, "rel", "pass the least grade that is relevant")
        all_measures = measures_of(
            [graded_measure(measure, rel) for measure in measures_of(measures)]
        )
        require_expected(all_measures, ties)
        return cls(all_measures, ties, empty, missing)

    @property
    def subtopics(self) -> bool:
        """Whether a measure reads judgments by subtopic."""
        return any(measure.subtopics for measure in self.measures)


def queries_of(truth: Judgments, runs: Mapping[str, Run], missing: str) -> list[Hashable]:
    """The queries that all runs are evaluated on; InputError if a run has none of them."""
    for name, run in runs.items():
        if not truth.keys() & run.keys():
            judged_query, run_query = next(iter(truth)), next(iter(run), None)
            kinds = type(judged_query).__name__, type(run_query).__name__
            hint = "check that run and judgments are of the same queries"
            if kinds[0] != kinds[1]:
                hint = f"query ids are {kinds[0]} there and {kinds[1]} here: convert one side"
            raise InputError(
                expected=f"queries of the judgments, such as {shown(judged_query)}",
                got=f"none of them; the first is {shown(run_query)}",
                where=name,
                hint=hint,
            )
    if missing == "zero":
        return list(truth)
    return [query for query in truth if all(query in run for run in runs.values())]


class UsersOfQueries(NamedTuple):
    """The position of the user of each query, [n queries], and the number of users."""

    of_queries: NDArray[np.intp]
    n: int

    def take(self, queries: NDArray[np.intp]) -> UsersOfQueries:
        """The users of these queries alone."""
        users, positions = np.unique(self.of_queries[queries], return_inverse=True)
        return UsersOfQueries(positions.astype(np.intp), len(users))

    def totals(self, terms: Terms) -> Terms:
        """The terms of users: the sums of those of their queries, each rounded once."""
        weights = None if terms.weights is None else self._sums(terms.weights)
        return Terms(self._sums(terms.values), weights)

    def _sums(self, column: Floats) -> Floats:
        sums = ExactSumColumn(self.n)
        sums.add(column, self.of_queries)
        return np.array([float(sums.fraction(user)) for user in range(self.n)], np.float64)


def users_of(given: object, queries: Sequence[Hashable]) -> UsersOfQueries | None:
    """The users of these queries from {query: user}; None without users."""
    if given is None:
        return None
    users = mapping_of(given)
    if users is None:
        raise InputError(
            expected="a dict {query: user}", got=shown(given), where="users", hint="pass one"
        )
    lacking = [query for query in queries if query not in users]
    if lacking:
        raise InputError(
            expected="the user of each evaluated query",
            got=f"none for {len(lacking):,} of {len(queries):,}, the first is {shown(lacking[0])}",
            where="users",
            hint="name a user for each; a query of its own user may have its own id",
        )
    numbers: dict[Hashable, int] = {}
    codes = [numbers.setdefault(users[query], len(numbers)) for query in queries]
    return UsersOfQueries(np.array(codes, np.intp), len(numbers))


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
    ranked: list[Iterable[Hashable]] = [run.get(query, ()) for query in queries]
    if settings.ties == "trec_eval":
        ranked = [
            _trec_eval_order(documents, f"{name}[{shown(query)}]")
            for query, documents in zip(queries, ranked, strict=True)
        ]
    try:
        lists = id_lists(ranked, [truth[query] for query in queries])
        require_grades(lists, settings.measures)
        require_subtopics(lists, settings.measures)
    except InputError as error:
        raise _query_error(error, queries, name) from None
    ties = "expected" if settings.ties == "trec_eval" else settings.ties
    parts = [*measured(lists, settings.measures, ties)]
    columns = [
        Values(*map(_joined, zip(*[values[j] for _, _, values in parts], strict=True)))  # type: ignore[arg-type]
        for j in range(len(settings.measures))
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
    notes: tuple[str, ...] = (),
) -> Evaluation:
    """The evaluation of one run on these queries, and on the slices of them."""
    whole = measured_queries(truth, run, queries, settings, name)
    lacking = [query for query in truth if query not in run]
    unjudged = [query for query in run if query not in truth]
    evaluation = _evaluation(whole, settings, users, lacking, unjudged)
    evaluation = replace(evaluation, _remarks=(*evaluation._remarks, *notes))
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
    left_out = is_empty & (settings.empty == "skip")
    moments = MomentsColumn.of(measures)
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
    [means] = averages(moments, measures, [n - n_empty], [n_empty], settings.empty)
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
        _terms=by_measure,
        _users={} if users is None else _moments_of_users(by_measure, means._moments),
        _remarks=tuple(_remarks_on(n_empty, len(lacking), len(unjudged), settings)),
    )


def _moments_of_users(
    terms: Mapping[str, Terms], lists: Mapping[str, ListMoments]
) -> Mapping[str, ListMoments]:
    moments = {}
    for name, term in terms.items():
        sums = PairedSums.of(term.values, np.zeros(len(term.values)), term.weights)
        d, w, dd, dw, ww = sums.sums
        limits = lists[name].limits
        moments[name] = ListMoments(sums.units, d, dd, (w, ww, dw), limits=limits, units="users")
    return moments


def _trec_eval_order(documents: Iterable[Hashable], where: str) -> Iterable[Hashable]:
    """Documents by descending float32 scores, and by descending ids where these are equal."""
    if not isinstance(documents, Mapping):
        return documents
    try:
        scores = checks.scores(list(documents.values()), where).astype(np.float32).tolist()
    except InputError as error:
        document = list(documents)[int(error.rows[0])] if len(error.rows) else None
        raise error.but(where=f"{where}[{shown(document)}]") from None
    pairs = sorted(zip(documents, scores, strict=True), key=_id_text, reverse=True)
    pairs.sort(key=_score, reverse=True)  # stable, also where reversed
    return [document for document, _ in pairs]


def _id_text(pair: tuple[Hashable, float]) -> str:
    return str(pair[0])


def _score(pair: tuple[Hashable, float]) -> float:
    return pair[1]


def _query_error(error: InputError, queries: Sequence[Hashable], name: str) -> InputError:
    """The same error, with the query in place of the position of its list."""
    if not len(error.rows):
        return error
    owner = name if error.where.startswith("lists") else "qrels"
    rest = error.where.partition("]")[2] if error.where.startswith(("lists", "truths")) else ""
    where = f"{owner}[{shown(queries[int(error.rows[0])])}]{rest}"
    return error.of_rows(where, error.rows)


def _remarks_on(n_empty: int, n_missing: int, n_unjudged: int, settings: Settings) -> Iterable[str]:
    """The lines below a table: what was counted otherwise than a reader may think."""
    for n, kind, zero in (
        (n_empty, "with nothing relevant", settings.empty == "zero"),
        (n_missing, "of the judgments that the run lacks", settings.missing == "zero"),
        (n_unjudged, "of the run without judgments", False),
    ):
        if n:
            queries = "query" if n == 1 else "queries"
            yield f"{n:,} {queries} {kind}: {'counted as 0' if zero else 'left out'}"
