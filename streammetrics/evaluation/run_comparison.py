"""`compare_runs`: several runs on the same queries, each with the first one, paired by query."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from streammetrics.combine import PairedResult
from streammetrics.core.conversion import as_float, refused
from streammetrics.core.errors import nearest, shown, unknown_key
from streammetrics.core.interval import Interval
from streammetrics.core.rows import Key
from streammetrics.evaluation.evaluate import (
    Evaluation,
    Settings,
    evaluated,
    notes_of_names,
    notes_on,
)
from streammetrics.evaluation.judged_runs import collected, judgments_of, run_of
from streammetrics.evaluation.queries import queries_of, users_of
from streammetrics.evaluation.rules import Rules, listed_measures
from streammetrics.evaluation.slices import SliceResults, SlicesOfQueries
from streammetrics.evaluation.spellings import with_spellings
from streammetrics.experiments.multiplicity import adjust_fwer
from streammetrics.kernels.inference.paired import PairedError, PairedSums
from streammetrics.present.differences import Differences
from streammetrics.present.measure_names import entry_text
from streammetrics.present.notebook import Shown
from streammetrics.present.row_table import ALL, Line, RowTable, first_and_last, label
from streammetrics.present.texts import between, ci_title, name_text, number
from streammetrics.present.value_rows import ValueRow, rows_of, rows_of_views
from streammetrics.ranking.measure import Measure


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunDifference(Shown):
    """One measure of a run less that of the baseline, over the same queries.

    mean, baseline_mean: of both runs. difference: mean - baseline_mean, lower to upper its
    confidence interval at `level`, se its standard error, and df its degrees of freedom: queries,
    or users, less 1. pvalue: two-sided,
    of Student's paired t; nan where it is unknown. pvalue_holm: the same, adjusted for all
    comparisons of the table by Holm's method. better, equal, worse: queries, by their values.
    reason: why there is no interval, else "".
    """

    estimates: ClassVar[bool] = True
    measure: str
    run: str
    baseline: str
    mean: float
    baseline_mean: float
    difference: float
    lower: float
    upper: float
    se: float
    df: float
    level: float
    pvalue: float
    pvalue_holm: float
    better: int
    equal: int
    worse: int
    queries: int
    reason: str = ""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The difference, with its interval at the level of the comparison."""
        ends = self.lower, self.upper
        interval = Interval(
            self.difference, *ends, self.se, self.level, self.df, "paired t", self.queries
        )
        names = "mean baseline_mean baseline pvalue pvalue_holm better equal worse queries"
        counts = {name: getattr(self, name) for name in names.split()}
        name = f"{self.measure}.difference"
        yield ValueRow(
            *(name, self.difference, interval, counts, self.reason),
            exact=False,
            keys=(self.run,),
            pvalue=self.pvalue_holm,
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunComparison(Shown):
    """Several runs on the same queries.

    baseline: the name of the run that the others are compared with. runs: the evaluation of each
    run by name. differences: of each other run and measure, in the order of the table. slices: the
    comparison of each slice, if `by` was passed. `plot()` draws the differences of each query, with
    their means and intervals.

    >>> from streammetrics import compare_runs
    >>> qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 1}}
    >>> bm25 = {"q1": ["x", "a"], "q2": ["b"], "q3": ["x", "y", "c"]}
    >>> ours = {"q1": ["a"], "q2": ["b"], "q3": ["x", "c"]}
    >>> found = compare_runs(qrels, {"bm25": bm25, "ours": ours}, ["mrr"])
    >>> found
    RunComparison: 3 queries, paired; differences from bm25
    measure  run     mean  difference             95 % CI       p  p (Holm)  better/equal/worse
    MRR      bm25  0.6111
    MRR      ours  0.8333     +0.2222  -0.4102 to +0.8547  0.2697    0.2697               2/1/0
    >>> found.difference("ours", "mrr").worse
    0
    """

    baseline: str
    runs: Mapping[str, Evaluation]
    differences: tuple[RunDifference, ...]
    level: float
    slices: SliceResults[RunComparison] = field(default_factory=lambda: SliceResults({}))

    def difference(self, run: str, measure: Measure | str) -> RunDifference:
        """The difference of one run and measure; UnknownKeyError, a KeyError, if there is none."""
        compared = [name for name in self.runs if name != self.baseline]
        text = entry_text(str(measure), self.runs[self.baseline].means)
        for difference in self.differences:
            if difference.run == run and difference.measure == text:
                return difference
        if run not in compared:
            raise unknown_key(run, compared, "RunComparison.difference", "runs")
        raise unknown_key(
            text, self.runs[self.baseline].means, "RunComparison.difference", "measures"
        )

    def _query_differences(self) -> list[Differences]:
        """The differences of each query, for a figure; without queries that have no value."""
        differences = []
        for difference in self.differences:
            runs = self.runs[difference.run], self.runs[self.baseline]
            apart = runs[0].by_query[difference.measure] - runs[1].by_query[difference.measure]
            used = np.flatnonzero(~np.isnan(apart))
            names = [str(runs[0].queries[i]) for i in used.tolist()]
            mean = difference.difference, difference.lower, difference.upper
            differences.append(
                Differences(difference.measure, difference.run, apart[used], names, *mean)
            )
        return differences

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """The mean of each run, with its interval, and each difference; the key is the run. Then
        those of each slice, whose key is the slice and the run."""
        means = {
            run: {
                row.name: replace(row, keys=(run,))
                for row in rows_of_views(evaluation, level, headlines)
            }
            for run, evaluation in self.runs.items()
        }
        for measure in self.runs[self.baseline].means:
            yield from (rows[measure] for rows in means.values())
            for difference in self.differences:
                if difference.measure == measure:
                    yield from rows_of(difference, level=level)
        yield from rows_of(self.slices, level=level)

    def _table(self, most: int) -> RowTable:
        """A line for each measure and run, and for each of its slices."""
        first = self.runs[self.baseline]
        comparisons: dict[tuple[Key, ...], RunComparison] = {(): self}
        comparisons |= {(key,): part for key, part in self.slices.items()}
        limit = ALL if most == ALL else 40
        rows, lines = zip(
            *(
                (row, (measure, *cells))
                for measure in first.means
                for keys, comparison in comparisons.items()
                for row, cells in comparison._cells(measure, keys, limit)
            ),
            strict=True,
        )
        shared = [n for n in first._remarks if all(n in run._remarks for run in self.runs.values())]
        notes = shared + [
            f"{name_text(name)}: {note}"
            for name, run in self.runs.items()
            for note in run._remarks
            if note not in shared
        ]
        for keys, comparison in comparisons.items():
            reasons = dict.fromkeys(e.reason for e in comparison.differences if e.reason)
            notes += [_label(f"no interval: {reason}", keys) for reason in reasons]
        titles = (
            *("measure", "slice: run" if self.slices else "run", "mean", "difference"),
            *(ci_title(self.level), "p", "p (Holm)", "better/equal/worse"),
        )
        n = f"{len(first.queries):,} {first._kind}, paired"
        n += f"; differences from {name_text(self.baseline)}"
        shown, is_cut = first_and_last(lines, most), len(lines) > most
        # Documents leave out p-values that equal the adjusted ones, and the last column.
        return RowTable(
            *(type(self).__name__, n, titles, shown, tuple(notes), is_cut),
            left=2,
            rows=rows,
            details=1 + (len(self.differences) == 1 and not self.slices),
        )

    def _cells(
        self, measure: str, keys: tuple[Key, ...], limit: int
    ) -> Iterator[tuple[ValueRow, Line]]:
        """The values and the lines of one measure; keys: of the slice, if this is of one."""
        mean = self.runs[self.baseline].means[measure]
        yield (
            ValueRow(measure, mean, keys=(self.baseline,)),
            (_label(name_text(self.baseline, limit), keys), number(mean, 4), *[""] * 5),
        )
        for entry in self.differences:
            if entry.measure == measure:
                ends = between(entry.lower, entry.upper, 4, signed=True)
                [row] = entry._value_rows(self.level, headlines=False)
                yield row, (
                    _label(name_text(entry.run, limit), keys), number(entry.mean, 4),
                    number(entry.difference, 4, signed=True), "—" if entry.reason else ends,
                    _p(entry.pvalue), _p(entry.pvalue_holm),
                    f"{entry.better}/{entry.equal}/{entry.worse}",
                )  # fmt: skip


def _measures(result: RunComparison) -> Mapping[str, float]:
    return result.runs[result.baseline].means


@with_spellings(_measures)
def compare_runs(
    qrels: object,
    runs: Mapping[str, object],
    measures: Measure | str | Iterable[Measure | str],
    *,
    baseline: str | None = None,
    level: float = 0.95,
    ties: str | None = None,
    empty: str | None = None,
    missing: str | None = None,
    users: object = None,
    rel: int = 1,
    by: object = None,
    like: str | None = None,
    judged_only: bool = False,
) -> RunComparison:
    """Several runs against the same judgments, each compared with the baseline query by query.

    runs: two or more by name, in the forms of `evaluate`. baseline: one of the names, the first by
    default. level: of the intervals. measures, ties, empty, missing, users and rel are those of
    `evaluate`; with missing="skip" only queries that every run has are evaluated, so that all means
    are over the same queries.

    The difference of a query is its value in the run less that in the baseline; its mean has
    Student's paired interval as that of `Paired`, over queries as independent, or over users. The
    two values of a query are mostly correlated, so this interval is narrower than one from two
    separate means. For PooledHR it is that of the ratio.

    With k runs and m measures there are (k - 1) m comparisons: each run with the baseline, and no
    other pair; call it again with another baseline for others. So many find chance differences:
    `pvalue_holm` is the p-value adjusted for all of the table by Holm's method, the differences of
    all slices of `by` among them. Intervals are not adjusted: level=1 - 0.05 / n is Bonferroni's
    for a table of n differences.

    InputError and SettingsError as for `evaluate`.
    """
    listed, only = listed_measures(measures)
    rules = Rules.checked(ties, empty, missing, rel, judged_only, like, only)
    settings = Settings.from_measures(listed, rules)
    argument: object = runs
    if (
        not isinstance(argument, Mapping)
        or len(runs) < 2
        or not all(type(n) is str for n in argument)
    ):
        hint = 'pass {"bm25": run, "ours": run}; for a single run use evaluate'
        raise refused("runs", "two or more runs by name", argument, hint)
    first, share = checked_baseline(baseline, runs, level)
    names = {name: f"runs[{shown(name)}]" for name in runs}
    tables = {"qrels": collected(qrels)}
    tables |= {names[name]: collected(run) for name, run in runs.items()}
    truth = judgments_of(tables["qrels"], subtopics=settings.subtopics)
    checked_runs = {name: run_of(tables[names[name]], names[name], truth) for name in runs}
    by_place = {names[name]: run for name, run in checked_runs.items()}
    queries = queries_of(truth, by_place, rules.missing)
    query_users = users_of(users, queries)
    slice_of = None if by is None else SlicesOfQueries(by, tables, queries)
    evaluations = {}
    for name, run in checked_runs.items():
        evaluation = evaluated(truth, run, queries, settings, query_users, slice_of, names[name])
        notes = *notes_on(tables["qrels"]), *notes_of_names(evaluation, truth, run, listed)
        evaluations[name] = replace(evaluation, _remarks=(*evaluation._remarks, *notes))
    return comparison_of(first, evaluations, share)


def checked_baseline(
    baseline: str | None, runs: Mapping[str, object], level: float
) -> tuple[str, float]:
    """The run that the others are compared with, and the level; SettingsError for others."""
    share = as_float(level)
    if share is None or not 0 < share < 1:
        raise refused("level", "a number between 0 and 1, such as 0.95", level)
    first = next(iter(runs)) if baseline is None else baseline
    if first not in runs:
        hint = nearest(first, runs, "name one of them")
        raise refused("baseline", f"one of the runs, {', '.join(map(shown, runs))}", first, hint)
    return first, share


def comparison_of(
    baseline: str, evaluations: Mapping[str, Evaluation], level: float
) -> RunComparison:
    """The comparison of evaluations on the same queries, and of their slices."""
    comparison = _comparison(baseline, evaluations, level)
    slices = {
        key: _comparison(baseline, {name: e.slices[key] for name, e in evaluations.items()}, level)
        for key in evaluations[baseline].slices
    }
    return _adjusted(comparison, slices)


def _comparison(first: str, evaluations: Mapping[str, Evaluation], level: float) -> RunComparison:
    """The comparison of these evaluations, whose p-values are not adjusted yet."""
    differences = tuple(
        _difference(measure, name, first, evaluations, level)
        for measure in evaluations[first].means
        for name in evaluations
        if name != first
    )
    return RunComparison(first, evaluations, differences, level)


def _adjusted(comparison: RunComparison, slices: Mapping[Key, RunComparison]) -> RunComparison:
    """The comparison with its slices, and p-values adjusted for all of their differences."""
    everything = [comparison, *slices.values()]
    pvalues = [entry.pvalue for part in everything for entry in part.differences]
    adjusted = adjust_fwer({str(i): pvalue for i, pvalue in enumerate(pvalues)})
    in_order = iter(adjusted[str(i)] for i in range(len(pvalues)))
    whole, *parts = (
        replace(
            part,
            differences=tuple(
                replace(entry, pvalue_holm=next(in_order)) for entry in part.differences
            ),
        )
        for part in everything
    )
    return replace(whole, slices=SliceResults(dict(zip(slices, parts, strict=True))))


def _difference(
    measure: str, name: str, baseline: str, evaluations: Mapping[str, Evaluation], level: float
) -> RunDifference:
    """The paired difference of one measure of two runs."""
    evaluation, reference = evaluations[name], evaluations[baseline]
    by_query = evaluation.by_query[measure] - reference.by_query[measure]
    by_query = by_query[~np.isnan(by_query)]  # not queries with nothing relevant, in both runs
    pair = PairedResult(
        evaluation, reference, len(by_query), lambda _: _error(measure, evaluation, reference)
    )
    interval = pair.interval(measure, level=level)
    return RunDifference(
        measure=measure,
        run=name,
        baseline=baseline,
        mean=evaluation.means[measure],
        baseline_mean=reference.means[measure],
        difference=interval.estimate,
        lower=interval.lower,
        upper=interval.upper,
        se=interval.se,
        df=interval.df,
        level=level,
        pvalue=pair.pvalue_of(measure),
        pvalue_holm=math.nan,
        better=int(np.count_nonzero(by_query > 0)),
        equal=int(np.count_nonzero(by_query == 0)),
        worse=int(np.count_nonzero(by_query < 0)),
        queries=len(by_query),
        reason="" if interval.defined else interval.reason,
    )


def _error(measure: str, evaluation: Evaluation, reference: Evaluation) -> PairedError:
    """The error of the difference: both runs have the same queries, and these the same weights."""
    terms, reference_terms = evaluation._terms[measure], reference._terms[measure]
    return PairedSums.from_values(terms.values, reference_terms.values, terms.weights).error(
        evaluation._units
    )


def _label(text: str, keys: tuple[Key, ...]) -> str:
    """A text below the key of a slice, if there is one."""
    return ": ".join([*(label(ValueRow("", math.nan, keys=(key,))) for key in keys), text])


def _p(pvalue: float) -> str:
    if math.isnan(pvalue):
        return "—"
    return "<0.0001" if pvalue < 0.0001 else f"{pvalue:.4f}"
