"""`eval` of runs against judgments, and of logs of scored samples: one of them, or several, each
compared with the first one."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import numpy as np

from streammetrics import compare_runs, evaluate
from streammetrics.evaluation import (
    Evaluation,
    RunComparison,
    RunDifference,
    SampleLog,
    compare_samples,
    evaluate_samples,
    read_sample_log,
)
from streammetrics.results import counts_of
from streammetrics_consumers.cli.arguments import Arguments, UsageError
from streammetrics_consumers.cli.eval_inputs import InputFile, query_values, run_names
from streammetrics_consumers.cli.eval_lines import DECIMALS, GroupValue, TextTable, values_table
from streammetrics_consumers.cli.eval_metrics import measure_of
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Json

_LEAST_P: Final = 0.0001
_NAME: Final = 80  # characters of the name of a run


def eval_runs(
    files: Sequence[InputFile], qrels: Path, names: Sequence[str], arguments: Arguments, form: str
) -> str:
    """The measures of runs, as text."""
    like = arguments.text("like")
    measures = {measure_of(name, ()): name for name in names}
    users, slices = (
        None if path is None else query_values(Path(path), flag)
        for flag, path in ((flag, arguments.text(flag)) for flag in ("users", "by"))
    )
    asked_measures = [*measures] if like is None else [*measures.values()]
    result: Evaluation | RunComparison
    if len(files) == 1:
        result = evaluate(qrels, files[0].path, asked_measures, like=like, users=users, by=slices)
    else:
        runs = dict(zip(run_names(files), (file.path for file in files), strict=True))
        result = compare_runs(qrels, runs, asked_measures, like=like, users=users, by=slices)
    by_run = {name: _notes(run) for name, run in _runs_of(result).items()}
    rules = [] if like is None else [f"measured by the rules of {like}"]
    independent = "queries" if users is None else "users"
    return _text(result, arguments, form, [*rules, *_shared(by_run)], independent)


def eval_logs(
    files: Sequence[InputFile], names: Sequence[str], arguments: Arguments, form: str
) -> str:
    """The means of the scores of samples in logs, as text."""
    if arguments.text("like") is not None:
        raise UsageError("--like: expected none for logs, got one; leave it out")
    logs = [read_sample_log(file.path) for file in files]
    users, slices = (_groups(arguments.text(flag), flag, logs) for flag in ("users", "by"))
    scores = [*names] or None
    result: Evaluation | RunComparison
    if len(files) == 1:
        result = evaluate_samples(logs[0], scores, users=users, by=slices)
    else:
        models = run_names(files, [log.model for log in logs])
        logs_by_model = dict(zip(models, logs, strict=True))
        result = compare_samples(logs_by_model, scores, users=users, by=slices)
    notes = _shared({name: [*run.notes] for name, run in _runs_of(result).items()})
    return _text(result, arguments, form, notes, "samples" if users is None else "clusters")


def _groups(text: str | None, flag: str, logs: Sequence[SampleLog]) -> object:
    """The field of samples that a flag names, or what the file of this name says of each sample."""
    if text is None or not Path(text).is_file():
        return text
    values = query_values(Path(text), flag)
    samples = dict.fromkeys(s for log in logs for scores in log.scores.values() for s in scores)
    return {sample: values[str(sample)] for sample in samples if str(sample) in values}


def _runs_of(result: Evaluation | RunComparison) -> Mapping[str, Evaluation]:
    return {"": result} if isinstance(result, Evaluation) else result.runs


def _shared(notes_by_run: Mapping[str, Sequence[str]]) -> list[str]:
    """The notes of runs: those of all of them once, and the others with the name of the run."""
    first, *other_notes = notes_by_run.values()
    shared = [note for note in first if all(note in notes for notes in other_notes)]
    return shared + [
        f"{formatting.name(name, _NAME)}: {note}"
        for name, notes in notes_by_run.items()
        for note in notes
        if note not in shared
    ]


def _notes(run: Evaluation) -> list[str]:
    """What was left out of a run, or counted as 0."""
    zero, notes = "counted as 0", []
    for n, kind, text in (
        (len(run.missing), "missing", "of the judgments that the run lacks"),
        (len(run.unjudged), "", "of the run without judgments"),
        (counts_of(run)["lists_empty"], "empty", "with nothing relevant"),
    ):
        if n:
            queries = "query" if n == 1 else "queries"
            outcome = zero if run.rules.get(kind) == "zero" else "left out"
            notes.append(f"{formatting.count(n)} {queries} {text}: {outcome}")
    return notes


# One of them, or several.


def _text(
    result: Evaluation | RunComparison,
    arguments: Arguments,
    form: str,
    notes: Sequence[str],
    independent: str,
) -> str:
    """What is printed. independent: what intervals take as independent."""
    if arguments.is_on("per-query"):
        return _query_values(_runs_of(result), form)
    if isinstance(result, RunComparison):
        return _comparison(result, form, notes, independent)
    parts: dict[tuple[object, ...], Evaluation] = {(): result}
    if result.slices:
        parts = {(key,): part for key, part in result.slices.items()}
    lines = [line for group, part in parts.items() for line in _lines(part, group)]
    titles = ["slice"] * bool(result.slices)
    if form == "json":
        return _json([line.as_json(titles) for line in lines])
    of_rows = "rows and lists" if independent == "queries" else independent
    sentence = f"intervals assume that {of_rows} are independent"
    return values_table(lines, titles, notes, sentence).written(form)


def _lines(run: Evaluation, group: tuple[object, ...] = ()) -> Iterator[GroupValue]:
    """The mean of each measure of a run."""
    counts = counts_of(run)
    for name, value in run.items():
        interval = run.interval(name)
        if interval.defined:  # the table says for all lines what is taken as independent
            interval = replace(interval, reason="")
        if not run.rules:  # samples, which have scores
            counts = {"samples": int(np.count_nonzero(~np.isnan(run.by_query[name])))}
        yield GroupValue(group, name, value, interval, counts)


def _json(lines: Sequence[object]) -> str:
    return dumps(cast("Json", [*lines])).decode()


def _query_values(runs: Mapping[str, Evaluation], form: str) -> str:
    """The value of each query and measure, in a column for each run."""
    first, *_ = runs.values()
    columns = {
        (name, measure): values.tolist()
        for name, run in runs.items()
        for measure, values in run.by_query.items()
    }
    if form == "json":
        return _json([
            {"query": query, "metric": measure, **({"run": name} if name else {}),
             "value": columns[name, measure][i]}
            for i, query in enumerate(first.queries) for measure in first.by_query for name in runs
        ])  # fmt: skip
    lines = [
        [formatting.name(query), measure,
         *(formatting.number(columns[name, measure][i], DECIMALS) for name in runs)]
        for i, query in enumerate(first.queries) for measure in first.by_query
    ]  # fmt: skip
    names = [formatting.name(name, _NAME) if name else "value" for name in runs]
    return TextTable(["query", "metric", *names], lines, 2, []).written(form)


def _comparison(result: RunComparison, form: str, notes: Sequence[str], independent: str) -> str:
    """The mean of each run, and its difference from the first one."""
    parts: dict[tuple[object, ...], RunComparison] = {(): result}
    parts |= {(key,): part for key, part in result.slices.items()}
    differences = {
        (group, entry.run, entry.measure): entry
        for group, part in parts.items()
        for entry in part.differences
    }
    lines = [
        (group, name, line)
        for measure in result.runs[result.baseline].means
        for group, part in parts.items()
        for name, run in part.runs.items()
        for line in _lines(run, group)
        if line.name == measure
    ]
    if form == "json":
        return _json([
            line.as_json(["slice"] * len(group))
            | {"run": name, **_difference_json(differences.get((group, name, line.name)))}
            for group, name, line in lines
        ])  # fmt: skip
    sliced = bool(result.slices)
    titles = ["metric", *["slice"] * sliced, "run", "mean", "difference", "95 % CI", "p",
              "p (Holm)", "better/equal/worse"]  # fmt: skip
    cells = [
        [
            line.name,
            *[" ".join(map(formatting.name, group))] * sliced,
            formatting.name(name, _NAME),
            formatting.number(line.value, DECIMALS),
            *_difference_cells(differences.get((group, name, line.name))),
        ]
        for group, name, line in lines
    ]
    first = result.runs[result.baseline]
    kind = "queries" if first.rules else "samples"
    remarks = [
        f"{formatting.count(len(first.queries))} {kind}, paired; differences from "
        f"{formatting.name(result.baseline, _NAME)}",
        f"intervals assume that {independent} are independent",
        *notes,
        *_reasons(differences),
    ]
    return TextTable(titles, cells, 2 + sliced, remarks).written(form)


def _reasons(
    differences: Mapping[tuple[tuple[object, ...], str, str], RunDifference],
) -> Iterator[str]:
    """Why differences have no interval, each reason with their measures, runs and slices."""
    names: dict[str, list[str]] = {}
    for (group, run, measure), entry in differences.items():
        if entry.reason:
            where = " ".join(map(formatting.name, (*group, run)))
            names.setdefault(entry.reason, []).append(f"{measure} ({where})")
    for reason, of_reason in names.items():
        suffix = f" and {len(of_reason) - 3} more" if len(of_reason) > 3 else ""
        yield f"no interval of {', '.join(of_reason[:3])}{suffix}: {reason}"


def _difference_cells(entry: RunDifference | None) -> list[str]:
    """Nothing for the run that the others are compared with."""
    if entry is None:
        return [""] * 5
    ends = formatting.between(entry.lower, entry.upper, DECIMALS, signed=True)
    return [
        formatting.number(entry.difference, DECIMALS, signed=True),
        formatting.DASH if entry.reason else ends,
        _p(entry.pvalue),
        _p(entry.pvalue_holm),
        f"{entry.better}/{entry.equal}/{entry.worse}",
    ]


def _difference_json(entry: RunDifference | None) -> dict[str, object]:
    if entry is None:
        return {}
    names = "baseline lower upper level pvalue pvalue_holm better equal worse queries reason"
    fields = {name: getattr(entry, name) for name in names.split()}
    return {"difference": {"value": entry.difference, **fields}}


def _p(pvalue: float) -> str:
    if math.isnan(pvalue):
        return formatting.DASH
    return f"<{_LEAST_P}" if pvalue < _LEAST_P else formatting.number(pvalue, DECIMALS)
