"""`eval`: metrics of one file of rows, by the values of columns, without a config."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from streammetrics import (
    Accumulator,
    BinaryConfusion,
    Calibration,
    ExactAUC,
    GroupedAUC,
    GroupedScores,
    InputError,
    Interval,
    Panel,
    Ratio,
    SettingsError,
    parse_measure,
)
from streammetrics.engines import partial
from streammetrics.registry import load
from streammetrics.results import counts_of, views_of
from streammetrics_consumers.cli.arguments import DONE, Arguments, UsageError
from streammetrics_consumers.config.section import did_you_mean
from streammetrics_consumers.model import formatting
from streammetrics_consumers.query.answers import Json, dumps

if TYPE_CHECKING:
    import pyarrow as pa

# The views of each metric of rows, by the names that they may be asked for.
_OF_SCORES: Final[Mapping[type[Accumulator], tuple[str, ...]]] = {
    ExactAUC: ("auc", "gini", "ks", "pr_auc_trapezoid"),
    Calibration: ("log_loss", "normalized_entropy", "brier", "copc", "mean_score", "base_rate"),
    BinaryConfusion: (
        *("accuracy", "error_rate", "balanced_accuracy", "precision", "recall", "specificity"),
        *("f1", "mcc", "kappa", "jaccard", "fpr", "fnr", "npv"),
    ),
}
_OTHER_NAMES: Final[Mapping[str, str]] = {
    "rocauc": "auc",
    "logloss": "log_loss",
    "ne": "normalized_entropy",
    "rate": "ctr",
    "mean": "ctr",
}
_FORMATS: Final = (".parquet", ".csv", ".jsonl", ".ndjson")
_ROWS: Final = 1 << 16  # of a batch
_DECIMALS: Final = 4
_MOST: Final = 1000  # lines of a table
THRESHOLD: Final = "a score of {:g} or more is a prediction of 1; another: --threshold"
# The flag whose column an argument reads, if it has another name.
_READS: Final = {"numerators": "labels", "groups": "lists", "predictions": "scores"}
_LISTS: Final = "lists"  # the name in the panel of the metric of all measures of lists


@dataclass(frozen=True, slots=True)
class Asked:
    """One requested value. name: as it is shown; metric: its name in the panel; view: of that."""

    name: str
    metric: str
    view: str


def eval_file(arguments: Arguments) -> int:
    """Compute metrics of a file, and print them."""
    path = Path(arguments.words[0])
    names = [name for name in _words(arguments.text("metrics"), ",") if name]
    if not names:
        raise UsageError("eval: expected --metrics NAMES, got nothing; for example --metrics auc")
    columns = {flag: arguments.text(flag) for flag in ("labels", "scores", "lists")}
    if columns["labels"] is None:
        raise UsageError("eval: expected --labels COLUMN, got nothing; name the column of labels")
    by = _words(arguments.text("by"), ",")
    schema, batches = _opened(path)
    _require_columns(schema, columns, by, path)
    threshold = arguments.real("threshold") or 0.0
    metrics, asked = _metrics(names, columns, schema, threshold)
    spec = Panel(metrics, inputs=_inputs(metrics))
    takes = spec.arguments()
    reads = {flag: column for flag, column in columns.items() if flag in takes and column}
    used = [*dict.fromkeys([*reads.values(), *by])]
    rows = _Rows(batches, used, reads, path)
    states = list(rows.guarded(partial(rows, spec, by, columns=reads)))
    lines = sorted((line for batch in states for line in _lines(batch, by, asked)), key=_group_key)
    if arguments.on("json"):
        sys.stdout.write(dumps(cast("Json", [line.as_json(by) for line in lines])).decode())
    else:
        cut = [name for name in metrics if isinstance(metrics[name], BinaryConfusion)]
        at = next((one.name for one in asked if one.metric in cut), None)
        notes = [] if at is None else [f"{at}: {THRESHOLD.format(threshold)}"]
        sys.stdout.write(_table(lines, by, notes))
    return DONE


def _words(text: str | None, separator: str) -> list[str]:
    """The words of a list; a comma in brackets does not separate."""
    found, depth, word = [], 0, ""
    for character in text or "":
        depth += (character == "(") - (character == ")")
        if character == separator and depth <= 0:
            found.append(word.strip())
            word = ""
        else:
            word += character
    return [*found, word.strip()] if word.strip() else found


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
    said = " ".join(str(error).split())
    return InputError(
        expected=f"a {path.suffix} file",
        got=said if len(said) < 160 else said[:159] + "…",
        where=str(path),
        hint="write the file again, or correct the row",
    )


class _Rows:
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
        column = self.reads.get(_READS.get(argument, argument), error.where)
        row = self.first + int(error.rows[0])
        return f"{self.path}, row {row} (the first is 0), {formatting.name(column)}"


def _hint(error: InputError) -> str:
    """The hint, without a keyword that only programs have."""
    if "positive=" not in error.hint:
        return error.hint
    return "map the labels to 0 and 1, or ask for measures of lists, which take grades"


def _require_columns(
    schema: pa.Schema, columns: Mapping[str, str | None], by: Sequence[str], path: Path
) -> None:
    """Check that each column is there, and that labels and scores are numbers."""
    import pyarrow.types as kinds

    names = schema.names
    wanted = [(flag, column) for flag, column in columns.items() if column is not None]
    for flag, column in [*wanted, *(("by", name) for name in by)]:
        if column not in names:
            raise UsageError(
                f"--{flag}: expected a column of {path.name} "
                f"({', '.join(formatting.name(name) for name in names[:30])}), "
                f"got {formatting.name(column)!r}; "
                + did_you_mean(column, names, "name one of these")
            )
    for flag, column in wanted:
        kind = schema.field(column).type
        if flag != "lists" and (kinds.is_string(kind) or kinds.is_large_string(kind)):
            raise UsageError(
                f"--{flag}: expected a column of numbers, got {formatting.name(column)!r}, which "
                "has texts; name another, or convert it"
            )


# The metrics.


def _metrics(
    names: Sequence[str], columns: Mapping[str, str | None], schema: pa.Schema, threshold: float
) -> tuple[dict[str, Accumulator], list[Asked]]:
    """The metrics of a panel, and what is asked of each."""
    metrics: dict[str, Accumulator] = {}
    asked: list[Asked] = []
    measures: list[str] = []
    kinds = {view: kind for kind, views in _OF_SCORES.items() for view in views}
    for name in names:
        plain = name.lower().replace("-", "_")
        plain = _OTHER_NAMES.get(plain.replace("_", ""), plain)
        if plain in kinds and columns["scores"] is not None:
            kind = kinds[plain]
            made = BinaryConfusion(threshold=threshold) if kind is BinaryConfusion else kind()
            metrics.setdefault(kind.__name__, made)
            asked.append(Asked(plain, kind.__name__, plain))
        elif plain in kinds:
            raise UsageError(f"--metrics {name}: expected --scores COLUMN, got nothing; name it")
        elif plain == "ctr":
            metrics.setdefault("Ratio", Ratio())
            asked.append(Asked("ctr", "Ratio", "ratio"))
        else:
            measure = "gauc" if plain == "gauc" else _measure(name, [*kinds, "ctr", "gauc"])
            for flag in ("scores", "lists"):
                if columns[flag] is None:
                    what = "its lists" if flag == "lists" else "the scores"
                    raise UsageError(
                        f"--metrics {name}: expected --{flag} COLUMN, got nothing; name the column "
                        f"of {what}"
                    )
            if measure == "gauc":
                metrics["gauc"] = GroupedAUC(ids=_ids(schema, columns["lists"]))
                asked.append(Asked("gauc", "gauc", "gauc"))
            else:
                measures.append(measure)
                asked.append(Asked(measure, _LISTS, measure))
    if measures:
        ids = _ids(schema, columns["lists"])
        metrics[_LISTS] = GroupedScores([*dict.fromkeys(measures)], ids=ids)
    return metrics, list(dict.fromkeys(asked))


def _measure(name: str, others: Sequence[str]) -> str:
    try:
        return str(parse_measure(name))
    except SettingsError as error:
        hint = error.hint if error.hint.startswith("did you mean") else did_you_mean(name, others)
        raise UsageError(
            f"--metrics: expected {', '.join(others)} or a measure of lists such as ndcg@10, got "
            f"{formatting.name(name)!r}; {hint}"
        ) from None


def _ids(schema: pa.Schema, column: str | None) -> str:
    import pyarrow.types as kinds

    return "integer" if kinds.is_integer(schema.field(column).type) else "hashed"


def _inputs(metrics: Mapping[str, Accumulator]) -> dict[str, dict[str, str]]:
    """The columns of the panel that arguments of other names read."""
    found = {
        name: {a: _READS[a] for a in metric.arguments() if a in _READS}
        for name, metric in metrics.items()
    }
    return {name: columns for name, columns in found.items() if columns}


# What is printed.


@dataclass(frozen=True, slots=True)
class _Line:
    """One value of one group."""

    group: tuple[object, ...]
    name: str
    value: float
    interval: Interval
    counts: Mapping[str, int]

    @property
    def over(self) -> str:
        """What the value is over: rows, lists or groups."""
        for name, text in (("lists_kept", "lists"), ("groups_kept", "groups")):
            if name in self.counts:
                return f"{formatting.count(self.counts[name])} {text}"
        return f"{formatting.count(self.counts.get('rows', 0))} rows"

    def as_json(self, by: Sequence[str]) -> dict[str, object]:
        """The line for JSON."""
        return {
            "slice": dict(zip(by, self.group, strict=True)),
            "metric": self.name,
            "value": self.value,
            "lower": self.interval.lower,
            "upper": self.interval.upper,
            "level": self.interval.level,
            "reason": self.interval.reason,
            "counts": dict(self.counts),
        }


def _lines(batch: pa.RecordBatch, by: Sequence[str], asked: Sequence[Asked]) -> Iterator[_Line]:
    """The values of each group of these states."""
    for row in range(batch.num_rows):
        group = tuple(batch.column(name)[row].as_py() for name in by)
        state = load(batch.column("state")[row].as_py())
        results = cast("Mapping[str, Any]", state.compute())
        for one in asked:
            result = results[one.metric]
            value, counts = float(views_of(result)[one.view]), counts_of(result)
            yield _Line(group, one.name, value, result.interval(one.view), counts)


def _group_key(line: _Line) -> list[tuple[str, object]]:
    """The order of groups: numbers by size, then texts, and None last."""
    return [
        ("~", 0) if one is None else ("", one) if isinstance(one, int | float) else ("a", str(one))
        for one in line.group
    ]


def _table(found: Sequence[_Line], by: Sequence[str], notes: Sequence[str]) -> str:
    """The lines as a table. notes: about some of them."""
    lines = found[:_MOST]
    rows = [[*map(formatting.name, by), "metric", "value", "95 % CI", "over"]]
    for line in lines:
        cells = [*map(formatting.name, line.group), line.name]
        cells.append(formatting.number(line.value, _DECIMALS))
        ends = line.interval.lower, line.interval.upper
        cells.append(formatting.between(*ends, _DECIMALS) if line.interval.defined else "—")
        rows.append([*cells, line.over])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = len(by) + 1
    texts = [
        "  ".join(
            cell.ljust(width) if at < left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    reasons = dict.fromkeys(line.interval.reason for line in lines if line.interval.reason)
    said = ["intervals assume that rows and lists are independent", *notes]
    said += [f"no interval: {reason}" for reason in reasons]
    if len(found) > _MOST:
        said.append(f"{formatting.count(len(found) - _MOST)} more lines: use --json")
    return "\n".join([*texts, *said]) + "\n"
