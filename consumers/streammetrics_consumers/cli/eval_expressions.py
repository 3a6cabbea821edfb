"""`--where` and `--columns` of `eval`: the rows that count, and columns that are computed of those
of a file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from streammetrics import Accumulator, Expression, InputError
from streammetrics_consumers.cli.arguments import UsageError
from streammetrics_consumers.model import formatting

MAX_COLUMNS: Final = 100
_NAME: Final = re.compile(r"[^\W\d]\w{0,63}")
_EXAMPLE: Final = 'write for example --columns "gain=reward * weight"'
# Where a row of a batch lacks what an expression needs, as the library says it.
_PLACE: Final = re.compile(
    r"(?:(?P<column>.*)\[\d+\], read by )?states_by_group, "
    r"(?:columns\['(?P<name>\w+)'\]|where)(?P<place>, column \d+)(?:, row \d+)?"
)


class Reads(NamedTuple):
    """What the metrics read. columns: those of the file. arguments: the column, or expression, of
    each argument of the metrics, and the other columns that expressions read. where: the condition
    on rows, None for all."""

    columns: Sequence[str]
    arguments: Mapping[str, str]
    where: str | None = None


@dataclass(frozen=True, slots=True)
class FileExpressions:
    """The computed columns, by name, and the condition on rows. texts: as they were written."""

    columns: Mapping[str, Expression]
    condition: Expression | None
    texts: Mapping[str, str]
    where: str | None

    def require(self, file_columns: Sequence[str]) -> None:
        """Check the names against the columns of a file."""
        for name in self.columns:
            if name in file_columns:
                raise UsageError(
                    f"--columns {name}: expected the name of a new column, got one of the file; "
                    "choose another name"
                )
        for expression in self._expressions():
            for field in expression.fields:
                if field not in file_columns and field not in self.columns:
                    raise expression.unknown_field(field, [*file_columns, *self.columns])
        for name in self.columns:
            self._operands(name, ())

    def reads(self, arguments: Mapping[str, str], keys: Iterable[str], spec: Accumulator) -> Reads:
        """What a metric reads. arguments: the column of each argument, of the file or computed;
        keys: further columns of the file."""
        takes = spec.arguments()
        for name in self.columns.keys() & takes.keys():
            if arguments.get(name) != name:
                raise UsageError(
                    f"--columns {name}: expected another name, since the metrics read another "
                    f"column as {name}; rename it"
                )
        written = {name: text for name, text in self.texts.items() if name not in takes}
        argument_columns = {
            argument: self.texts[column] if column == argument and column in self.texts else column
            for argument, column in arguments.items()
        }
        needed = [*arguments.values(), *keys]
        if self.condition is not None:
            needed += self.condition.fields
        file_columns = [leaf for name in needed for leaf in self._operands(name, ())]
        # A column that nothing reads is computed of none.
        used = {leaf for name in needed for leaf in self._named(name)}
        written = {name: text for name, text in written.items() if name in used}
        return Reads([*dict.fromkeys(file_columns)], {**argument_columns, **written}, self.where)

    def _expressions(self) -> list[Expression]:
        condition = [] if self.condition is None else [self.condition]
        return [*self.columns.values(), *condition]

    def _operands(self, name: str, path: tuple[str, ...]) -> list[str]:
        """The columns of the file that a column is computed of."""
        if name not in self.columns:
            return [name]
        if name in path:
            got = " of ".join([*path[path.index(name) :], name])
            raise UsageError(
                f"--columns {name}: expected columns that are computed of others, got {got}; "
                "name a column of the file"
            )
        fields = self.columns[name].fields
        return [leaf for field in fields for leaf in self._operands(field, (*path, name))]

    def _named(self, name: str) -> list[str]:
        """The computed columns that a column is computed of, and itself."""
        if name not in self.columns:
            return []
        fields = self.columns[name].fields
        return [name, *(inner for field in fields for inner in self._named(field))]


def expressions_of(columns: Sequence[str], where: str | None) -> FileExpressions:
    """The expressions of the flags; UsageError or InputError, with the place."""
    texts: dict[str, str] = {}
    if len(columns) > MAX_COLUMNS:
        raise UsageError(f"--columns: expected at most {MAX_COLUMNS}, got {len(columns)}")
    for column in columns:
        name, sign, text = column.partition("=")
        name = name.strip()
        if not sign or not _NAME.fullmatch(name) or text.startswith("="):
            got = formatting.name(column)
            raise UsageError(f"--columns: expected NAME=EXPRESSION, got {got!r}; {_EXAMPLE}")
        if name in texts:
            raise UsageError(f"--columns {name}: expected it once, got it twice; leave one out")
        texts[name] = text
    return FileExpressions(
        {name: Expression(text, where=f"--columns {name}") for name, text in texts.items()},
        None if where is None else Expression(where, where="--where", kind="bool"),
        texts,
        where,
    )


def place_in_flags(error: InputError) -> str | None:
    """Where a row lacks what an expression needs: the column, and the place in the flag; None for
    an error of another kind."""
    match = _PLACE.fullmatch(error.where)
    if match is None:
        return None
    flag = f"--columns {match['name']}" if match["name"] else "--where"
    column = "" if match["column"] is None else f"{formatting.name(match['column'])}, read by "
    return f"{column}{flag}{match['place']}"


def refuse_expressions(columns: Collection[str], where: str | None, input_kind: str) -> None:
    """Refuse the flags for what has no columns."""
    for flag, is_given in (("columns", bool(columns)), ("where", where is not None)):
        if is_given:
            raise UsageError(f"--{flag}: expected a table of rows, got {input_kind}; leave it out")
