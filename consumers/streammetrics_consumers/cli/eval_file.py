"""`eval`: metrics of the rows of files, of runs against judgments, or of logs of scored samples,
without a config."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import streammetrics as sm
from streammetrics import Accumulator, Bounded, InputError, Interval
from streammetrics.results import counts_of, value_of
from streammetrics_consumers.cli.arguments import (
    COLUMNS,
    EVAL_SETTINGS,
    Arguments,
    UsageError,
)
from streammetrics_consumers.cli.eval_expressions import (
    FileExpressions,
    expressions_of,
    refuse_expressions,
)
from streammetrics_consumers.cli.eval_inputs import InputFile, input_files
from streammetrics_consumers.cli.eval_lines import GroupValue, group_key, values_table
from streammetrics_consumers.cli.eval_metrics import (
    RequestedValue,
    chosen_threshold,
    flag_of,
    inputs_of,
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

_KEYS: Final = ("lists", "users")  # whose column is one of the file
_FORMATS: Final = (".parquet", ".csv", ".jsonl", ".ndjson")


def eval_file(arguments: Arguments) -> int:
    """Compute metrics of files, and print them."""
    form = "json" if arguments.is_on("json") else arguments.text("format") or "text"
    if arguments.is_on("json") and arguments.text("format") not in ("text", "json"):
        raise UsageError("--json: expected none with --format, got both; leave one out")
    names = [name for name in _words(arguments.text("metrics"), ",") if name]
    columns = {name: arguments.text(flag_of(name).removeprefix("--")) for name in COLUMNS}
    flags = [flag_of(name) for name, column in columns.items() if column is not None]
    qrels = arguments.text("qrels")
    with input_files(arguments.words, qrels) as (files, judgments):
        is_log = judgments is None and not flags and _are_sample_logs(files)
        if not names and not is_log:
            raise UsageError(
                "eval: expected --metrics NAMES, got nothing; for example --metrics auc"
            )
        if judgments is not None and flags:
            raise UsageError(f"{flags[0]}: expected none with --qrels, got a column; leave it out")
        written = arguments.several("columns"), arguments.text("where")
        if judgments is not None or is_log:
            refuse_expressions(*written, "runs" if judgments is not None else "logs")
        if judgments is None and not is_log:
            text = _eval_rows(files, names, columns, expressions_of(*written), arguments, form)
        else:
            # Imported here, as in `_are_sample_logs`: metrics of rows need none of it.
            from streammetrics_consumers.cli.eval_runs import eval_logs, eval_runs

            if judgments is not None:
                text = eval_runs(files, judgments.path, names, arguments, form)
            else:
                text = eval_logs(files, names, arguments, form)
    sys.stdout.write(text)
    return DONE


def _are_sample_logs(files: Sequence[InputFile]) -> bool:
    """Whether all of them are logs of scored samples."""
    from streammetrics.evaluation import is_sample_log

    return all(is_sample_log(file.path) for file in files)


def _eval_rows(
    files: Sequence[InputFile],
    names: Sequence[str],
    columns: Mapping[str, str | None],
    expressions: FileExpressions,
    arguments: Arguments,
    form: str,
) -> str:
    """The metrics of the rows of all files, as text."""
    for flag, flag_value in (
        ("per-query", arguments.is_on("per-query")),
        ("like", arguments.text("like")),
    ):
        if flag_value:
            raise UsageError(f"--{flag}: expected runs with --qrels, got a table; leave it out")
    key_columns, users = _words(arguments.text("by"), ","), arguments.text("users")
    schema, read = _opened(files[0])
    expressions.require(schema.names)
    computed = expressions.columns
    flag_columns = {
        flag: column
        for flag, column in {**columns, "users": users}.items()
        if flag in _KEYS or column not in computed
    }
    _require_columns(schema, flag_columns, key_columns, files[0])
    threshold = arguments.real("threshold") or 0.0
    settings = {name: arguments.number(name.replace("_", "-")) for name in EVAL_SETTINGS}
    request = request_of(names, columns, settings, schema, threshold)
    spec: Accumulator = sm.Panel(request.metrics, inputs=inputs_of(request.metrics))
    reads = dict(request.reads)
    if users is not None:
        spec, reads = sm.UserGroups(spec), {**reads, "groups": users}
    rows_read = expressions.reads(reads, key_columns, spec)
    totals: dict[tuple[object, ...], Accumulator] = {}
    for file in files:
        if file is not files[0]:
            other_schema, read = _opened(file)
            keys = (*key_columns, columns["lists"], users)
            _require_same(other_schema, schema, [key for key in keys if key], file, files[0])
        batches = read([*rows_read.columns])
        for group, state in FileRows(batches, rows_read, file).states(spec, key_columns):
            if group in totals:
                totals[group].merge(state)
            else:
                totals[group] = state
    lines = sorted(
        (
            line
            for group, state in totals.items()
            for line in _lines(group, state, request.asked, clustered=users is not None)
        ),
        key=group_key,
    )
    if form == "json":
        return dumps(cast("Json", [line.as_json(key_columns) for line in lines])).decode()
    independent = [] if users is None else ["intervals assume that users are independent"]
    return values_table(lines, key_columns, request.notes, *independent).written(form)


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


def _opened(file: InputFile) -> tuple[pa.Schema, ReadsBatches]:
    """The columns of a file, and what reads its rows."""
    import pyarrow as pa

    path = file.path
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

            parquet = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
            return parquet.schema_arrow, lambda columns: parquet_batches(parquet, columns)
        if path.suffix.lower() == ".csv":
            import pyarrow.csv

            reader = pyarrow.csv.open_csv(path)
            return reader.schema, lambda _: iter(reader)
        import pyarrow.json

        table = pyarrow.json.read_json(path)
        return table.schema, lambda _: iter(table.to_batches(ROWS))
    except pa.ArrowException as error:
        raise unreadable(file, error) from None


def _require_same(
    schema: pa.Schema, first: pa.Schema, keys: Sequence[str], file: InputFile, first_file: InputFile
) -> None:
    """Check that another file has the columns of the first one, and keys of the same kinds."""
    names = ", ".join(map(formatting.name, sorted({*schema.names} ^ {*first.names})))
    if names:
        raise UsageError(
            f"{file.name}: expected the columns of {first_file.name}, got others or fewer "
            f"({names}); evaluate it by itself"
        )
    for name in keys:
        kinds = _kind(schema.field(name).type), _kind(first.field(name).type)
        if kinds[0] != kinds[1]:
            raise UsageError(
                f"{file.name}: expected {kinds[1]} as {formatting.name(name)}, as in "
                f"{first_file.name}, got {kinds[0]}; convert them"
            )


def _kind(column_type: pa.DataType) -> str:
    """What a column holds, in words."""
    import pyarrow.types as kinds

    if kinds.is_dictionary(column_type):
        return _kind(column_type.value_type)
    texts = kinds.is_string(column_type) or kinds.is_large_string(column_type)
    return "texts" if texts else "integers" if kinds.is_integer(column_type) else str(column_type)


def _require_columns(
    schema: pa.Schema,
    columns: Mapping[str, str | None],
    key_columns: Sequence[str],
    file: InputFile,
) -> None:
    """Check that each column is there, and that labels and scores are numbers."""
    import pyarrow.types as kinds

    names = schema.names
    flag_columns = [(flag, column) for flag, column in columns.items() if column is not None]
    for flag, column in [*flag_columns, *(("by", name) for name in key_columns)]:
        if column not in names:
            raise UsageError(
                f"{flag_of(flag)}: expected a column of {Path(file.name).name} "
                f"({', '.join(formatting.name(name) for name in names[:30])}), "
                f"got {formatting.name(column)!r}; "
                + did_you_mean(column, names, "name one of these")
            )
    for flag, column in flag_columns:
        kind = schema.field(column).type
        if flag not in ("lists", "users") and (
            kinds.is_string(kind) or kinds.is_large_string(kind)
        ):
            expected, hint = "numbers", "name another, or convert it"
            if flag in ("subtopics", "shown"):
                expected = "arrays"
                hint = "name another, or write a .jsonl or .parquet file, which has arrays"
            raise UsageError(
                f"{flag_of(flag)}: expected a column of {expected}, got "
                f"{formatting.name(column)!r}, which has texts; {hint}"
            )


def _lines(
    group: tuple[object, ...],
    state: Accumulator,
    figures: Sequence[RequestedValue],
    *,
    clustered: bool,
) -> Iterator[GroupValue]:
    """The values of a group of rows. clustered: whether the results are over users."""
    results = cast("Mapping[str, Any]", state.compute())
    for figure in figures:
        interval = results[figure.metric].interval(figure.view)
        result = results[figure.metric].value if clustered else results[figure.metric]
        value = _value(result, figure.view, interval)
        threshold = chosen_threshold(result, figure.view)
        bounds = value if isinstance(value, Bounded) else None
        counts = counts_of(result)
        yield GroupValue(group, figure.name, float(value), interval, counts, threshold, bounds)


def _value(result: object, view: str, interval: Interval) -> float | Bounded:
    """The value of a view; some have only the estimate of their interval."""
    try:
        return value_of(result, view)
    except InputError:
        return interval.estimate
