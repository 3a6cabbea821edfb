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
from streammetrics.evaluation.judged_runs import Judgments, Run, judgments_of, mapping_of, run_of
from streammetrics.evaluation.spellings import with_spellings
from streammetrics.kernels.inference.paired import PairedSums
from streammetrics.kernels.inference.variances import design_effect
from streammetrics.present.measure_names import entry_text
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
from streammetrics.ranking.measure import Measure, graded_measure
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
            return replace(plain, reason=taken_as_independent("queries"))
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
    which are left out. What is called lists in `Averages` are queries here.

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
    # What each query, or each user, contributes to a mean; for users also their moments.
    _terms: Mapping[str, Terms] = field(default_factory=dict, repr=False, compare=False)
    _users: Mapping[str, ListMoments] = field(default_factory=dict, repr=False, compare=False)
    _remarks: tuple[str, ...] = ()

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
        return "users" if self._users else "queries"

    @View(estimator=_MEAN)
    def __getitem__(self, measure: object) -> float:
        return Averages.__getitem__(self, measure)

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
    ties: str = "expected",
    empty: str = "skip",
    missing: str = "zero",
    users: object = None,
    rel: int = 1,
) -> Evaluation:
    """The measures of a run against relevance judgments: means, intervals, and values by query.

    qrels: grades by document and query: a dict {query: {document: grade}}, or {query: relevant
    documents}; a data frame of pandas, polars or pyarrow, or a dict of columns, with columns such
    as query_id, doc_id and relevance; the path of a TREC file; three columns (queries, documents,
    grades); rows of ir_measures; Qrels of ranx. Grades are whole numbers from 0 to 15; a document
    of a grade below 0 is not judged. Unjudged documents count as not relevant, and Bpref skips
    them. run: the same with scores; {query: documents in ranked order} has no ties.

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

    InputError for bad input, with the query or the line; SettingsError for an unknown measure or
    setting.

    >>> result = evaluate({"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ["a", "b"]}, "recall@1")
    >>> result["recall@1"], result.missing
    (0.5, ('q2',))
    """
    settings = Settings.of(measures, ties, empty, missing, rel)
    truth, checked_run = judgments_of(qrels, subtopics=settings.subtopics), run_of(run)
    queries = queries_of(truth, {"run": checked_run}, missing)
    return evaluated(truth, checked_run, queries, settings, users_of(users, queries))


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


def evaluated(
    truth: Judgments,
    run: Run,
    queries: Sequence[Hashable],
    settings: Settings,
    users: UsersOfQueries | None,
    name: str = "run",
) -> Evaluation:
    """The evaluation of one run on these queries."""
    ranked: list[Iterable[Hashable]] = [run.get(query, ()) for query in queries]
    if settings.ties == "trec_eval":
        ranked = [
            _trec_eval_order(documents, f"{name}[{shown(query)}]")
            for query, documents in zip(queries, ranked, strict=True)
        ]
    measures, n = settings.measures, len(queries)
    try:
        lists = id_lists(ranked, [truth[query] for query in queries])
        require_grades(lists, measures)
        require_subtopics(lists, measures)
    except InputError as error:
        raise _query_error(error, queries, name) from None
    moments, n_empty = MomentsColumn.of(measures), 0
    columns = [np.zeros(n) for _ in measures]
    values, weights = np.zeros((len(measures), n)), np.ones((len(measures), n))
    ties = "expected" if settings.ties == "trec_eval" else settings.ties
    for indices, is_empty, list_values in measured(lists, measures, ties):
        n_empty += int(np.count_nonzero(is_empty))
        left_out = is_empty & (settings.empty == "skip")
        for j, (column, list_value) in enumerate(zip(columns, list_values, strict=True)):
            moments.add(j, list_value)
            column[indices] = values[j, indices] = list_value.values
            weights[j, indices] = ~left_out if list_value.weights is None else list_value.weights
            if list_value.weights is not None:
                column[indices] /= np.maximum(list_value.weights, 1.0)  # whole numbers
            column[indices][left_out] = np.nan
    [means] = averages(moments, measures, [n - n_empty], [n_empty], settings.empty)
    terms = dict(zip(means.means, map(Terms, values, weights), strict=True))
    if users is not None:
        terms = {name: users.totals(term) for name, term in terms.items()}
    lacking = tuple(query for query in truth if query not in run)
    unjudged = tuple(query for query in run if query not in truth)
    return Evaluation(
        means.means,
        means.lists_kept,
        means.lists_empty,
        means.rows,
        _moments=means._moments,
        queries=tuple(queries),
        by_query=dict(zip(means.means, columns, strict=True)),
        missing=lacking,
        unjudged=unjudged,
        _terms=terms,
        _users={} if users is None else _moments_of_users(terms, means._moments),
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


# Tables in a terminal.
