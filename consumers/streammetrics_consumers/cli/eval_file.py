"""`eval`: metrics of one file of rows, or of a run against judgments, without a config."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from streammetrics import (
    InputError,
    Interval,
    Panel,
    evaluate,
)
from streammetrics.engines import partial
from streammetrics.registry import load
from streammetrics.results import counts_of, views_of
from streammetrics_consumers.cli.arguments import (
    COLUMNS,
    EVAL_SETTINGS,
    Arguments,
    UsageError,
)
from streammetrics_consumers.cli.eval_metrics import (
    RequestedValue,
    chosen_threshold,
    column_of,
    flag_of,
    inputs_of,
    measure_of,
    request_of,
)
from streammetrics_consumers.cli.exit_codes import DONE
from streammetrics_consumers.config.section import did_you_mean
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Json

if TYPE_CHECKING:
    import pyarrow as pa

_FORMATS: Final = (".parquet", ".csv", ".jsonl", ".ndjson")
_ROWS: Final = 1 << 16  # of a batch
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
    schema, batches = _opened(path)
    _require_columns(schema, columns, key_columns, path)
    threshold = arguments.real("threshold") or 0.0
    settings = {name: arguments.number(name.replace("_", "-")) for name in EVAL_SETTINGS}
    request = request_of(names, columns, settings, schema, threshold)
    spec, reads = Panel(request.metrics, inputs=inputs_of(request.metrics)), request.reads
    used = [*dict.fromkeys([*reads.values(), *key_columns])]
    rows = _FileBatches(batches, used, reads, path)
    states = list(rows.guarded(partial(rows, spec, key_columns, columns=reads)))
    lines = sorted(
        (line for batch in states for line in _lines(batch, key_columns, request.asked)),
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


def _opened(path: Path) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns of a file, and its rows in batches."""
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
            return file.schema_arrow, file.iter_batches(_ROWS)
        if path.suffix.lower() == ".csv":
            import pyarrow.csv

            reader = pyarrow.csv.open_csv(path)
            return reader.schema, iter(reader)
        import pyarrow.json

        table = pyarrow.json.read_json(path)
        return table.schema, iter(table.to_batches(_ROWS))
    except pa.ArrowException as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> InputError:
    error_text = " ".join(str(error).split())
    return InputError(
        expected=f"a {path.suffix} file",
        got=error_text if len(error_text) < 160 else error_text[:159] + "…",
        where=str(path),
        hint="write the file again, or correct the row",
    )


class _FileBatches:
    """The batches of a file, of some columns, which know where they are for messages."""

    def __init__(
        self,
        batches: Iterator[pa.RecordBatch],
        columns: Sequence[str],
        reads: Mapping[str, str],
        path: Path,
    ) -> None:
        self.batches, self.columns, self.reads, self.path = batches, columns, reads, path
        self.first = self.n = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.batches:
            self.first, self.n = self.first + self.n, batch.num_rows
            yield batch.select(self.columns)

    def guarded(self, states: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, with the file and the row in errors."""
        import pyarrow as pa

        try:
            yield from states
        except InputError as error:
            raise error.but(where=self._place(error), hint=_hint(error)) from None
        except pa.ArrowException as error:
            raise _unreadable(self.path, error) from None

    def _place(self, error: InputError) -> str:
        """The row and the column in the file, where the library names those of a batch."""
        if not len(error.rows):
            return f"{self.path}: {error.where}"
        argument = re.sub(r"^metric '[^']*', |\[.*", "", error.where)
        column = column_of(argument, self.reads) or error.where
        row = self.first + int(error.rows[0])
        return f"{self.path}, row {row} (the first is 0), {formatting.name(column)}"


def _hint(error: InputError) -> str:
    """The hint, without a keyword that only programs have."""
    if "positive=" not in error.hint:
        return error.hint
    return "map the labels to 0 and 1, or ask for measures of lists, which take grades"


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


def _lines(
    batch: pa.RecordBatch, key_columns: Sequence[str], figures: Sequence[RequestedValue]
) -> Iterator[_GroupValue]:
    """The values of each group of these states."""
    for row in range(batch.num_rows):
        group = tuple(batch.column(name)[row].as_py() for name in key_columns)
        state = load(batch.column("state")[row].as_py())
        results = cast("Mapping[str, Any]", state.compute())
        for figure in figures:
            result = results[figure.metric]
            interval, counts = result.interval(figure.view), counts_of(result)
            value = float(views_of(result).get(figure.view, interval.estimate))
            yield _GroupValue(
                group, figure.name, value, interval, counts, chosen_threshold(result, figure.view)
            )
