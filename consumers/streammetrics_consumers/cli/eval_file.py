"""`eval`: metrics of one file of rows, or of a run against judgments, without a config."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from streammetrics import (
    Accumulator,
    InputError,
    Interval,
    Panel,
    evaluate,
)
from streammetrics.results import counts_of, value_of
from streammetrics_consumers.cli.arguments import (
    COLUMNS,
    EVAL_SETTINGS,
    Arguments,
    UsageError,
)
from streammetrics_consumers.cli.eval_metrics import (
    RequestedValue,
    chosen_threshold,
    flag_of,
    inputs_of,
    measure_of,
    request_of,
)
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.cli.file_rows import ROWS, FileRows, parquet_batches, unreadable
from streammetrics_consumers.config.section import did_you_mean
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Json

if TYPE_CHECKING:
    import pyarrow as pa

# Reads the batches of a file: of these columns at least.
ReadsBatches: TypeAlias = "Callable[[list[str]], Iterator[pa.RecordBatch]]"

_FORMATS: Final = (".parquet", ".csv", ".jsonl", ".ndjson")
_DECIMALS: Final = 4
_MOST: Final = 1000  # lines of a table
_MOST_REASONS: Final = 20


def eval_file(arguments: Arguments) -> int:
    """Compute metrics of a file, and print them."""
    path = Path(arguments.words[0])
    names = [name for name in _words(arguments.text("metrics"), ",") if name]
    if not names:
        raise UsageError("eval: expected --metrics NAMES, got nothing; for example --metrics auc")
    columns = {name: arguments.text(flag_of(name).removeprefix("--")) for name in COLUMNS}
    qrels = arguments.text("qrels")
    if qrels is not None:
        return _eval_run(path, Path(qrels), names, arguments, columns)
    key_columns = _words(arguments.text("by"), ",")
    schema, read = _opened(path)
    _require_columns(schema, columns, key_columns, path)
    threshold = arguments.real("threshold") or 0.0
    settings = {name: arguments.number(name.replace("_", "-")) for name in EVAL_SETTINGS}
    request = request_of(names, columns, settings, schema, threshold)
    spec, reads = Panel(request.metrics, inputs=inputs_of(request.metrics)), request.reads
    used = [*dict.fromkeys([*reads.values(), *key_columns])]
    rows = FileRows(read(used), used, reads, path)
    lines = sorted(
        (
            line
            for group, state in rows.states(spec, key_columns)
            for line in _lines(group, state, request.asked)
        ),
        key=_group_key,
    )
    if arguments.on("json"):
        sys.stdout.write(
            dumps(cast("Json", [line.as_json(key_columns) for line in lines])).decode()
        )
    else:
        sys.stdout.write(_table(lines, key_columns, request.notes))
    return DONE


def _eval_run(
    run: Path,
    qrels: Path,
    names: Sequence[str],
    arguments: Arguments,
    columns: Mapping[str, str | None],
) -> int:
    """Evaluate a run against judgments, both files of TREC, and print the measures."""
    grouping = arguments.text("by")
    flags = [name for name, column in {**columns, "by": grouping}.items() if column is not None]
    if flags:
        raise UsageError(
            f"{flag_of(flags[0])}: expected none with --qrels, got a column; leave it out"
        )
    measures = [*dict.fromkeys(measure_of(name, ()) for name in names)]
    result = evaluate(qrels, run, measures)
    counts = counts_of(result)
    lines = []
    for name, value in result.items():
        interval = result.interval(name)
        if interval.defined:  # the table says for all lines that lists are independent
            interval = replace(interval, reason="")
        lines.append(_GroupValue((), name, value, interval, counts))
    if arguments.on("json"):
        sys.stdout.write(dumps(cast("Json", [line.as_json([]) for line in lines])).decode())
        return DONE
    notes = []
    for n, reason in (
        (len(result.missing), "of the judgments that the run lacks: counted as 0"),
        (len(result.unjudged), "of the run without judgments: left out"),
        (counts["lists_empty"], "with nothing relevant: left out"),
    ):
        if n:
            notes.append(f"{formatting.count(n)} {'query' if n == 1 else 'queries'} {reason}")
    sys.stdout.write(_table(lines, [], notes))
    return DONE


def _words(text: str | None, separator: str) -> list[str]:
    """The words of a list; a comma in brackets does not separate."""
    words, depth, word = [], 0, ""
    for character in text or "":
        depth += (character == "(") - (character == ")")
        if character == separator and depth <= 0:
            words.append(word.strip())
            word = ""
        else:
            word += character
    return [*words, word.strip()] if word.strip() else words


# The file.


def _opened(path: Path) -> tuple[pa.Schema, ReadsBatches]:
    """The columns of a file, and what reads its rows."""
    import pyarrow as pa

    if path.suffix.lower() not in _FORMATS:
        raise UsageError(
            f"eval: expected a file that ends in {', '.join(_FORMATS)}, got {str(path)!r}; "
            "rename or convert it"
        )
    with open(path, "rb"):  # so that a missing file is an error like any other
        pass
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet

            file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            return file.schema_arrow, lambda columns: parquet_batches(file, columns)
        if path.suffix.lower() == ".csv":
            import pyarrow.csv

            reader = pyarrow.csv.open_csv(path)
            return reader.schema, lambda _: iter(reader)
        import pyarrow.json

        table = pyarrow.json.read_json(path)
        return table.schema, lambda _: iter(table.to_batches(ROWS))
    except pa.ArrowException as error:
        raise unreadable(path, error) from None


def _require_columns(
    schema: pa.Schema, columns: Mapping[str, str | None], key_columns: Sequence[str], path: Path
) -> None:
    """Check that each column is there, and that labels and scores are numbers."""
    import pyarrow.types as kinds

    names = schema.names
    flag_columns = [(flag, column) for flag, column in columns.items() if column is not None]
    for flag, column in [*flag_columns, *(("by", name) for name in key_columns)]:
        if column not in names:
            raise UsageError(
                f"{flag_of(flag)}: expected a column of {path.name} "
                f"({', '.join(formatting.name(name) for name in names[:30])}), "
                f"got {formatting.name(column)!r}; "
                + did_you_mean(column, names, "name one of these")
            )
    for flag, column in flag_columns:
        kind = schema.field(column).type
        if flag != "lists" and (kinds.is_string(kind) or kinds.is_large_string(kind)):
            expected, hint = "numbers", "name another, or convert it"
            if flag in ("subtopics", "shown"):
                expected = "arrays"
                hint = "name another, or write a .jsonl or .parquet file, which has arrays"
            raise UsageError(
                f"{flag_of(flag)}: expected a column of {expected}, got "
                f"{formatting.name(column)!r}, which has texts; {hint}"
            )


# What is printed.


@dataclass(frozen=True, slots=True)
class _GroupValue:
    """One value of one group."""

    group: tuple[object, ...]
    name: str
    value: float
    interval: Interval
    counts: Mapping[str, int]
    threshold: float | None = None  # the score that the rows choose for this view

    @property
    def over(self) -> str:
        """What the value is over: rows, lists or groups."""
        for name in ("lists_kept", "groups_kept", "rows"):
            if name in self.counts:
                n, unit = self.counts[name], name.removesuffix("_kept")
                return f"{formatting.count(n)} {unit.removesuffix('s') if n == 1 else unit}"
        return "0 rows"

    @property
    def lacks(self) -> str:
        """What its reason explains."""
        if math.isnan(self.value):
            return "no value of"
        return "doubts about" if self.interval.defined else "no interval of"

    def as_json(self, key_columns: Sequence[str]) -> dict[str, object]:
        """The line for JSON."""
        return {
            "slice": dict(zip(key_columns, self.group, strict=True)),
            "metric": self.name,
            "value": self.value,
            "lower": self.interval.lower,
            "upper": self.interval.upper,
            "level": self.interval.level,
            "reason": self.interval.reason,
            "counts": dict(self.counts),
            **({} if self.threshold is None else {"threshold": self.threshold}),
        }


def _lines(
    group: tuple[object, ...], state: Accumulator, figures: Sequence[RequestedValue]
) -> Iterator[_GroupValue]:
    """The values of a group of rows."""
    results = cast("Mapping[str, Any]", state.compute())
    for figure in figures:
        result = results[figure.metric]
        interval, counts = result.interval(figure.view), counts_of(result)
        value = _value(result, figure.view, interval)
        threshold = chosen_threshold(result, figure.view)
        yield _GroupValue(group, figure.name, value, interval, counts, threshold)


def _value(result: object, view: str, interval: Interval) -> float:
    """The value of a view; some have only the estimate of their interval."""
    try:
        return float(value_of(result, view))
    except InputError:
        return interval.estimate


def _group_key(line: _GroupValue) -> list[tuple[str, object]]:
    """The order of groups: numbers by size, then texts, and None last."""
    return [
        ("~", 0) if key is None else ("", key) if isinstance(key, int | float) else ("a", str(key))
        for key in line.group
    ]


def _table(
    all_lines: Sequence[_GroupValue], key_columns: Sequence[str], notes: Sequence[str]
) -> str:
    """The lines as a table. notes: about some of them."""
    lines = all_lines[:_MOST]
    chosen = ["threshold"] * any(line.threshold is not None for line in lines)
    rows = [[*map(formatting.name, key_columns), "metric", "value", "95 % CI", *chosen, "over"]]
    for line in lines:
        cells = [*map(formatting.name, line.group), line.name]
        cells.append(formatting.number(line.value, _DECIMALS))
        ends = line.interval.lower, line.interval.upper
        cells.append(formatting.between(*ends, _DECIMALS) if line.interval.defined else "—")
        if chosen:
            threshold = line.threshold  # with all digits: a rounded one may select other rows
            cells.append("—" if threshold is None else repr(threshold))
        rows.append([*cells, line.over])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(key_columns) + 1
    texts = [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    remarks = [] if all_lines else ["no rows"]
    remarks += ["intervals assume that rows and lists are independent", *notes]
    remarks += ["a value whose threshold was chosen on these rows is optimistic"] * bool(chosen)
    reasons = _reasons(lines)
    remarks += reasons[:_MOST_REASONS]
    if len(reasons) > _MOST_REASONS:
        remarks.append(f"{len(reasons) - _MOST_REASONS} more reasons: use --json")
    if len(all_lines) > _MOST:
        remarks.append(f"{formatting.count(len(all_lines) - _MOST)} more lines: use --json")
    return "\n".join([*texts, *remarks]) + "\n"


def _reasons(lines: Sequence[_GroupValue]) -> list[str]:
    """Why values or intervals are missing or doubtful, each reason with its values and groups."""
    lines_by_reason: dict[tuple[str, str], list[_GroupValue]] = {}
    for line in lines:
        if line.interval.reason:
            lines_by_reason.setdefault((line.lacks, line.interval.reason), []).append(line)
    every = len({line.group for line in lines})
    sentences = []
    for (lacks, reason), reason_lines in lines_by_reason.items():
        first, *rest = dict.fromkeys(line.group for line in reason_lines)
        where = ", ".join(map(formatting.name, first)) + (f" and {len(rest)} more" if rest else "")
        names = ", ".join(dict.fromkeys(line.name for line in reason_lines))
        sentences.append(f"{lacks} {names}{f' ({where})' * (len(rest) + 1 < every)}: {reason}")
    return sentences
