"""`evaluate_samples` and `compare_samples`: the scores of samples, such as the questions of a
benchmark of language models, in the mean, by cluster, and paired between models."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import refused
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.rows import Key, Terms
from streammetrics.estimators.lists import ListMoments
from streammetrics.evaluation.evaluate import Evaluation
from streammetrics.evaluation.queries import UsersOfQueries, users_of
from streammetrics.evaluation.run_comparison import (
    RunComparison,
    checked_baseline,
    comparison_of,
)
from streammetrics.evaluation.sample_logs import SampleLog, read_sample_log
from streammetrics.evaluation.slices import SliceResults, SlicesOfQueries
from streammetrics.kernels.inference.paired import PairedSums

Floats = NDArray[np.float64]


def evaluate_samples(
    log: SampleLog | str | PathLike[str],
    scores: str | Iterable[str] | None = None,
    *,
    users: object = None,
    by: object = None,
) -> Evaluation:
    """The means of the scores of samples, with their intervals and the score of each sample.

    log: the path of a log of inspect_ai (`.eval`, `.json`) or lm-eval (`samples_*.jsonl`), or a
    `SampleLog`. scores: names of scores, all by default. A sample without a value of a score is
    left out of its mean. What is called queries in `Evaluation` are samples here.

    Intervals take samples as independent: Student's t, with the standard error that inspect calls
    `stderr()` and lm-eval `acc_stderr`. users: the name of a field of the metadata of samples, or
    {sample: cluster}, if samples are correlated, such as questions about one passage: clusters are
    then independent, and the standard error is that of inspect's `stderr(cluster=...)`, with the
    correction C / (C - 1). (Miller 2024, arXiv 2411.00640, appendix A.) by: the name of a field, or
    {sample: slice}: `slices` of the result then has the evaluation of each slice.

    InputError for bad input and for a score or a field that is not there.

    >>> from streammetrics.evaluation import SampleLog, evaluate_samples
    >>> log = SampleLog("ours", {"match": {"q1": 1.0, "q2": 0.0, "q3": 1.0, "q4": 1.0}})
    >>> result = evaluate_samples(log, users={"q1": "a", "q2": "a", "q3": "b", "q4": "b"})
    >>> result["match"], result.interval("match").se
    (0.75, 0.25)
    """
    read = _read(log)
    names = _names(scores, {read.model: read})
    samples = _samples([read], names)
    [columns] = _columns([read], names, samples)
    return _evaluated(read, columns, samples, SampleGroups.chosen(users, by, read, samples))


def compare_samples(
    logs: Mapping[str, SampleLog | str | PathLike[str]],
    scores: str | Iterable[str] | None = None,
    *,
    baseline: str | None = None,
    level: float = 0.95,
    users: object = None,
    by: object = None,
) -> RunComparison:
    """Several models on the same samples, each compared with the baseline sample by sample.

    logs: two or more by name, as `evaluate_samples` takes one. Only samples that every log has
    are compared, and of each score those with a value in every log, so that all means are over the
    same ones; a note says how many were left out.
    scores: names of scores that every log has, by default all of these. baseline, level and the
    p-values are those of `compare_runs`: the difference of a sample is its score less that of
    the baseline, and their mean has Student's paired interval, over samples or clusters. users, by:
    as for `evaluate_samples`; metadata are those of the first log.

    InputError and SettingsError as for `evaluate_samples` and `compare_runs`.

    >>> from streammetrics.evaluation import SampleLog, compare_samples
    >>> old = SampleLog("old", {"match": {"q1": 0.0, "q2": 0.0, "q3": 1.0}})
    >>> new = SampleLog("new", {"match": {"q1": 1.0, "q2": 0.0, "q3": 1.0}})
    >>> found = compare_samples({"old": old, "new": new}).difference("new", "match")
    >>> round(found.difference, 4), found.better, found.worse
    (0.3333, 1, 0)
    """
    argument: object = logs
    if not isinstance(argument, Mapping) or len(logs) < 2:
        hint = 'pass {"old": log, "new": log}; for a single log use evaluate_samples'
        raise refused("logs", "two or more logs by name", argument, hint)
    first, share = checked_baseline(baseline, logs, level)
    read = {name: _read(log) for name, log in logs.items()}
    names = _names(scores, read)
    samples = _samples([*read.values()], names)
    groups = SampleGroups.chosen(users, by, next(iter(read.values())), samples)
    columns = _columns([*read.values()], names, samples)
    evaluations = {
        name: _evaluated(log, of_log, samples, groups)
        for (name, log), of_log in zip(read.items(), columns, strict=True)
    }
    return comparison_of(first, evaluations, share)


class SampleGroups(NamedTuple):
    """The clusters of samples, None without, and the positions of those of each slice."""

    clusters: UsersOfQueries | None
    slices: Mapping[Key, list[int]]

    @classmethod
    def chosen(
        cls, users: object, by: object, log: SampleLog, samples: Sequence[Hashable]
    ) -> SampleGroups:
        """Those that are passed, or that a field of the metadata has."""
        clusters = field_of_samples(users, log, "users") if isinstance(users, str) else users
        slices = field_of_samples(by, log, "by") if isinstance(by, str) else by
        places = {} if by is None else SlicesOfQueries(slices, {}, samples).places(samples)
        return cls(users_of(clusters, samples), places)


def _read(log: SampleLog | str | PathLike[str]) -> SampleLog:
    return log if isinstance(log, SampleLog) else read_sample_log(log)


def _names(scores: str | Iterable[str] | None, logs: Mapping[str, SampleLog]) -> list[str]:
    """The names of scores that every log has; InputError for others, and if there are none."""
    first, *other_logs = logs.values()
    common = [name for name in first.scores if all(name in log.scores for log in other_logs)]
    names = [scores] if isinstance(scores, str) else common if scores is None else [*scores]
    for name in names:
        if name not in common:
            raise InputError(
                expected=f"a score of {'every log' if other_logs else 'the log'}, "
                f"{', '.join(map(shown, common)) or 'which has none'}",
                got=shown(name),
                where="scores",
                hint=nearest(name, common, "name one of these"),
            )
    if not names:
        raise InputError(
            expected="a score that is a number for each sample",
            got="none" if not other_logs else "none that every log has",
            where=", ".join(logs),
            hint="score the samples; texts other than C, I, P and N have no mean",
        )
    return [*dict.fromkeys(names)]


def _samples(logs: Sequence[SampleLog], names: Sequence[str]) -> list[Hashable]:
    """The samples with one of these scores that every log has; InputError if there are none."""
    every = [dict.fromkeys(s for name in names for s in log.scores[name]) for log in logs]
    samples = [sample for sample in every[0] if all(sample in later_log for later_log in every[1:])]
    if not samples:
        first_samples = [shown(next(iter(samples_of_log), None)) for samples_of_log in every]
        raise InputError(
            expected="samples that every log has",
            got=f"none; the first ones are {', '.join(first_samples)}",
            where="logs",
            hint="compare logs of one task",
        )
    for sample in samples:
        documents = {log.metadata.get(sample, {}).get("doc_hash") for log in logs} - {None}
        if len(documents) > 1:
            raise InputError(
                expected="the same document in every log",
                got=f"{len(documents)} different ones",
                where=f"sample {shown(sample)}",
                hint="compare logs of one task and one version of its data",
            )
    return samples


def _columns(
    logs: Sequence[SampleLog], names: Sequence[str], samples: Sequence[Hashable]
) -> list[dict[str, Floats]]:
    """Of each log the scores of the samples, by name, [n]; nan where a log has none."""
    columns = [
        {
            name: np.array([log.scores[name].get(sample, math.nan) for sample in samples])
            for name in names
        }
        for log in logs
    ]
    for name in names:
        unscored = np.logical_or.reduce([np.isnan(of_log[name]) for of_log in columns])
        for of_log in columns:
            of_log[name][unscored] = math.nan
    return columns


def field_of_samples(name: str, log: SampleLog, argument: str) -> dict[Hashable, Hashable]:
    """By sample what this field of its metadata has; InputError if no sample has it as a text or a
    number."""
    values = {
        sample: _key(value)
        for sample, about in log.metadata.items()
        if isinstance(value := about.get(name), (str, int, float, bool))
    }
    if not values:
        fields = dict.fromkeys(field for about in log.metadata.values() for field in about)
        raise InputError(
            expected=f"a field of the samples, {', '.join(map(shown, [*fields][:20]))}"
            if fields
            else "samples with metadata",
            got=shown(name),
            where=argument,
            hint=nearest(name, fields, "name a field that is a text or a number"),
        )
    return dict(values.items())


def _key(value: str | int | float) -> str | int:
    """A value of JSON as a key: `true` is a text, and 2.0 is 2."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return int(value) if value.is_integer() else repr(value)
    return value


def _evaluated(
    log: SampleLog, columns: Mapping[str, Floats], samples: Sequence[Hashable], groups: SampleGroups
) -> Evaluation:
    """The evaluation of the scores of these samples, [n] by name, and of their slices."""
    notes = [*log.notes]
    for name, values in columns.items():
        notes += _left_out(int(np.count_nonzero(np.isnan(values))), f"without {name}")
    scored = dict.fromkeys(sample for name in columns for sample in log.scores[name])
    notes += _left_out(len(scored) - len(samples), "that not every log has")
    unscored = [sample for sample in log.metadata if sample not in scored]
    notes += _left_out(len(unscored), "without any score")
    slices = {}
    for key, places in groups.slices.items():
        positions = np.array(places, np.intp)
        slices[key] = _evaluation(
            {name: values[positions] for name, values in columns.items()},
            [samples[i] for i in places],
            None if groups.clusters is None else groups.clusters.take(positions),
        )
    return replace(
        _evaluation(columns, samples, groups.clusters),
        slices=SliceResults(slices),
        missing=tuple(unscored),
        _remarks=tuple(notes),
    )


def _left_out(n: int, description: str) -> list[str]:
    return [f"{n:,} {'sample' if n == 1 else 'samples'} {description}: left out"] if n else []


def _evaluation(
    columns: Mapping[str, Floats], samples: Sequence[Hashable], clusters: UsersOfQueries | None
) -> Evaluation:
    """The means of the scores of these samples."""
    means, moments, terms, users = {}, {}, {}, {}
    for name, values in columns.items():
        scored = ~np.isnan(values)
        term = Terms(np.where(scored, values, 0.0), scored.astype(np.float64))
        moments[name] = _moments(term, "samples")
        means[name] = PairedSums.from_values(
            term.values, np.zeros(len(samples)), term.weights
        ).difference
        if clusters is not None:
            term = clusters.totals(term)
            users[name] = _moments(term, "users")
        terms[name] = term
    return Evaluation(
        means,
        len(samples),
        0,
        len(samples),
        _moments=moments,
        queries=tuple(samples),
        by_query=columns,
        _terms=terms,
        _users=users,
        _kind="samples",
    )


def _moments(term: Terms, units: str) -> ListMoments:
    """The sums of samples, or of the totals of clusters, for the interval of their mean."""
    sums = PairedSums.from_values(term.values, np.zeros(len(term.values)), term.weights)
    d, w, dd, dw, ww = sums.sums
    pooled: tuple[Fraction, Fraction, Fraction] = (w, ww, dw)
    return ListMoments(sums.units, d, dd, pooled, units=units)
