"""Columns and a condition that are written as expressions over the columns of a table.

A name in an expression is a column of the table, else another written column. A written column is
computed where it is read, and only in the rows that meet the condition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.checks import same_length
from streammetrics.core.conversion import array_of, vector
from streammetrics.core.errors import InputError, shown
from streammetrics.core.rows import DictionaryColumn, offsets_of, ranges
from streammetrics.core.tables.arrow_values import Lists

if TYPE_CHECKING:
    from streammetrics.core.expressions import Expression

Positions: TypeAlias = "NDArray[np.intp]"


class Written(NamedTuple):
    """The columns that are written for a table, and the condition on its rows.

    columns: the expression of each name, or the column of the table that it is another name of.
    condition: None for all rows. where: for errors.
    """

    columns: Mapping[str, Expression | str]
    condition: Expression | None
    where: str

    def reads(self, names: Collection[str], own_names: Collection[object]) -> list[str]:
        """The columns of the table that these names and the condition are computed of.
        own_names: all columns of the table. InputError for a field that is neither, or computed
        of itself."""
        needed: dict[str, None] = {}
        for name in names:
            self._add(name, own_names, needed, ())
        if self.condition is not None:
            self._add_fields(self.condition, own_names, needed, ())
        return list(needed)

    def _add(
        self,
        name: str,
        own_names: Collection[object],
        needed: dict[str, None],
        path: tuple[str, ...],
    ) -> None:
        column = None if name in own_names else self.columns.get(name)
        if name in path:
            raise self.cycle(path, name)
        if column is None:
            needed[name] = None
        elif isinstance(column, str):
            self._add(column, own_names, needed, (*path, name))
        else:
            self._add_fields(column, own_names, needed, (*path, name))

    def _add_fields(
        self,
        expression: Expression,
        own_names: Collection[object],
        needed: dict[str, None],
        path: tuple[str, ...],
    ) -> None:
        for field in expression.fields:
            if field not in own_names and field not in self.columns:
                raise expression.unknown_field(field, self.known(own_names))
            self._add(field, own_names, needed, path)

    def known(self, own_names: Collection[object]) -> list[str]:
        """The names that an expression may have, those of the table first."""
        return [*map(str, own_names), *(name for name in self.columns if " " not in name)]

    def cycle(self, path: Sequence[str], name: str) -> InputError:
        """The error for a column that is computed of itself."""
        return InputError(
            expected="columns that are computed of others",
            got=" of ".join(map(shown, [*path[path.index(name) :], name])),
            where=f"{self.where}, columns",
            hint="name a column of the table",
        )


class RowsOfTable:
    """The columns of a table and the written ones, in the rows that meet the condition.

    column: the values of a column of the table. kept: the positions of the rows, None if all are.
    """

    def __init__(
        self, written: Written, own_names: Collection[object], column: Callable[[str], object]
    ) -> None:
        self.written, self.own, self._own_column = written, own_names, column
        self.kept: Positions | None = None
        self._n = 0
        self._computed: dict[str, object] = {}
        self._path: tuple[str, ...] = ()
        if written.condition is not None:
            flags = np.asarray(self._evaluated(written.condition), np.bool_)
            self._computed.clear()  # which are of all rows
            self.kept, self._n = np.flatnonzero(flags), len(flags)

    def values(self, name: str) -> object:
        """The values of a column of the table, or of a written one."""
        if name in self.own:
            values = self._own_column(name)
            return values if self.kept is None else taken(values, self.kept, self._n, name)
        if name not in self._computed:
            if name in self._path:
                raise self.written.cycle(self._path, name)
            column, path = self.written.columns[name], self._path
            self._path = (*path, name)
            if isinstance(column, str):
                self._computed[name] = self.values(column)
            else:
                self._computed[name] = self._evaluated(column)
            self._path = path
        return self._computed[name]

    def _evaluated(self, expression: Expression) -> object:
        """The values of an expression; InputError for rows without one."""
        evaluated = expression.evaluate(_Fields(self, expression))
        if evaluated.codes.any():
            raise expression.refused(evaluated, self.kept)
        return evaluated.values


class _Fields(Mapping[str, object]):
    """The columns that an expression reads."""

    def __init__(self, rows: RowsOfTable, expression: Expression) -> None:
        self.rows, self.expression = rows, expression

    def __getitem__(self, name: str) -> object:
        rows = self.rows
        if name not in rows.own and name not in rows.written.columns:
            raise self.expression.unknown_field(name, rows.written.known(rows.own))
        values = rows.values(name)
        if isinstance(values, Lists):
            hint = "name another column"
            raise self.expression.refused_field(name, "one value in each row", "lists", hint)
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self.expression.fields)

    def __len__(self) -> int:
        return len(self.expression.fields)


def taken(values: object, positions: Positions, n: int, name: str) -> object:
    """The rows of a column [n] at these positions."""
    if isinstance(values, Lists):
        same_length(n, values.offsets[1:], name, "where")
        starts, ends = values.offsets[:-1][positions], values.offsets[1:][positions]
        inside, sizes = ranges(starts.astype(np.intp), ends.astype(np.intp))
        inner = taken(values.values, inside, int(values.offsets[-1]), name)
        return Lists(inner, offsets_of(sizes.astype(np.int64)))  # type: ignore[arg-type]
    if isinstance(values, DictionaryColumn):
        same_length(n, values, name, "where")
        return DictionaryColumn(values.codes[positions], values.values)
    if isinstance(values, list | tuple):
        same_length(n, values, name, "where")
        return [values[position] for position in positions.tolist()]
    array = array_of(values, name)
    if not array.ndim:
        array = vector(values, name)
    same_length(n, array, name, "where")
    return array[positions]


def table_error(error: InputError, kept_rows: Positions | None) -> InputError:
    """An error about the rows that meet a condition, with the numbers that they have in the
    table."""
    if kept_rows is None or not len(error.rows) or int(error.rows.max()) >= len(kept_rows):
        return error
    rows = kept_rows[error.rows]
    end = f"[{error.rows[0]}]"
    where = error.where.removesuffix(end) + f"[{rows[0]}]" * error.where.endswith(end)
    return error.of_rows(where, rows)
