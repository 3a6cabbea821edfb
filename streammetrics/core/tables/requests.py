"""What is asked of tables for `update`: the column of each argument, written columns, and a
condition on rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias, TypeVar

from streammetrics.core.errors import InputError, argument_hint, meant, shown
from streammetrics.core.tables.derived import Written

if TYPE_CHECKING:
    from streammetrics.core.expressions import Expression

Names: TypeAlias = "str | Sequence[str] | Mapping[str, str | Sequence[str]]"
N = TypeVar("N", bound=Names)

KEYS: Final = "keys"  # the argument that takes several columns by name
_SHORT: Final = {"key": ("keys",), "time": ("times_ms", "times_s")}  # in the words of a table


class TakesColumns(Protocol):
    """A metric, as `Declared` describes the arguments of its `update`."""

    def arguments(self) -> Mapping[str, bool]: ...
    def widths(self) -> Mapping[str, tuple[int | None, ...]]: ...
    def _roles(self) -> Mapping[str, str]: ...


class TableRequest(NamedTuple):
    """What is asked of tables for `update`.

    names: argument -> column, or several columns: a table where the argument takes one, else
    tuples; for keys also a dict of these by name. An argument that is not named has the column of
    its own name, which may be missing if the argument is optional. columns: more of these, or the
    expression of an argument, or of a new column. condition: an expression of which rows count.
    where: for errors.
    """

    names: Mapping[str, Names]
    where: str
    columns: Mapping[str, Names] | None = None
    condition: str | None = None


def named_columns(
    spec: TakesColumns,
    takes: Mapping[str, bool],
    own_names: Collection[object],
    request: TableRequest,
) -> dict[str, Names]:
    """The column of each argument that the names of a request name. takes: the arguments."""
    names = {_long(name, takes): column for name, column in request.names.items()}
    _require_arguments(spec, takes, own_names, names, request.where)
    return names


def _require_arguments(
    spec: TakesColumns,
    takes: Mapping[str, bool],
    own_names: Collection[object],
    names: Mapping[str, Names],
    where: str,
) -> None:
    """Refuse names that are no arguments, and what is no name of a column."""
    for argument, column in names.items():
        if argument not in takes:
            raise _unknown_argument(spec, own_names, names, argument, column, where)
        _require_names(argument, column, where, spec._roles())


def written_columns(
    spec: TakesColumns, own_names: Collection[object], request: TableRequest
) -> tuple[Written, dict[str, Names]]:
    """The written columns and the condition of a request, and the column of each argument that it
    names. own_names: those of the table. InputError as `arguments_of`, before any row is read."""
    takes, where = spec.arguments(), request.where
    names = {_long(name, takes): column for name, column in request.names.items()}
    columns: dict[str, Expression | str] = {}
    given_columns = _given_columns(request)
    if given_columns or request.condition is not None:  # most tables need no parser
        from streammetrics.core.expressions import expression_of
    for name, value in given_columns.items():
        argument = _long(name, takes)
        if argument in takes and argument in names:
            raise InputError(
                expected=f"one column of {argument}",
                got="two, one of them in columns",
                where=where,
                hint="name it once",
            )
        is_argument = argument in takes
        if (
            not isinstance(value, str)
            or value in own_names
            or (value in given_columns and value != name)
        ):
            if is_argument or not isinstance(value, str):
                names[argument] = value
            if isinstance(value, str) and name not in own_names:
                columns[name] = value
            continue
        expression = expression_of(value, f"{where}, columns[{shown(name)}]")
        if expression.column is not None and is_argument:
            names[argument] = value  # no column of the table, as the error will say
            continue
        if is_argument:
            names[argument], columns[value] = value, expression
            if name not in own_names:
                columns[name] = value
        else:
            _require_new(name, own_names, where)
            columns[name] = expression
    condition = None
    if request.condition is not None:
        condition = expression_of(request.condition, f"{where}, where", "bool")
    if columns:
        _refuse_unread(spec, own_names, names, columns, condition, where)
    _require_arguments(spec, takes, own_names, names, where)
    return Written(columns, condition, where), names


def _given_columns(request: TableRequest) -> Mapping[str, Names]:
    columns: object = request.columns
    if columns is None:
        return {}
    if isinstance(columns, Mapping) and all(isinstance(name, str) for name in columns):
        return columns
    raise InputError(
        expected="a dict of columns by name",
        got=shown(columns),
        where=f"{request.where}, columns",
        hint='write columns={"gain": "reward * weight"}',
    )


def _require_new(name: str, own_names: Collection[object], where: str) -> None:
    """Refuse the name of a new column that the table has, or that no expression can read."""
    place = f"{where}, columns"
    if name in own_names:
        hint = "choose another name"
        raise InputError(
            expected="the name of a new column", got=shown(name), where=place, hint=hint
        )
    if not all(part.isidentifier() and not iskeyword(part) for part in name.split(".")):
        raise InputError(
            expected="a name that expressions can read, of letters, digits and _",
            got=shown(name),
            where=place,
            hint="choose another name",
        )


def _refuse_unread(
    spec: TakesColumns,
    own_names: Collection[object],
    names: Mapping[str, Names],
    columns: Mapping[str, Expression | str],
    condition: Expression | None,
    where: str,
) -> None:
    """Refuse a new column that nothing reads, if it is another name of a column or if its name
    means an argument without a column: that would be left out in silence."""
    takes = spec.arguments()
    read: set[object] = set() if condition is None else set(condition.fields)
    for column in columns.values():
        read.update((column,) if isinstance(column, str) else column.fields)
    for several in names.values():
        read.update(_each_name(several))
    for name, column in columns.items():
        if name in read or _long(name, takes) in names:
            continue
        argument = meant(name, takes)
        is_meant = argument is not None and argument not in names and argument not in own_names
        if is_meant or isinstance(column, str) or column.column is not None:
            text = column if isinstance(column, str) else column.text
            raise _unknown_argument(spec, own_names, names, name, text, where)


def _each_name(names: object) -> Iterable[object]:
    if isinstance(names, str):
        return (names,)
    if isinstance(names, Mapping):
        return [name for several in names.values() for name in _each_name(several)]
    return names if isinstance(names, Sequence) else ()


def _unknown_argument(
    spec: TakesColumns,
    own_names: Collection[object],
    names: Mapping[str, Names],
    argument: str,
    column: Names,
    where: str,
) -> InputError:
    takes = spec.arguments()
    return InputError(
        expected=f"arguments of update ({', '.join(takes)})" if takes else "no argument",
        got=shown(argument),
        where=where,
        hint=argument_hint([argument], takes, _instead(spec, names, own_names, column)),
    )


def needed_columns(
    spec: TakesColumns, own_names: Sequence[str], request: TableRequest
) -> tuple[dict[str, Names], list[str]]:
    """The column of each argument, and the columns of a table that are needed for them and for the
    condition. own_names: all columns of the table. InputError as `arguments_of`."""
    written, names = written_columns(spec, own_names, request)
    read = columns_read(spec, [*own_names, *written.columns], names)
    column_names = [name for several in read.values() for name in _each_name(several)]
    return read, written.reads([str(name) for name in column_names], own_names)


def columns_read(
    spec: TakesColumns, names: Collection[object], columns: Mapping[str, N]
) -> dict[str, N | str]:
    """Argument of `spec.update` -> column: the one in `columns`, or that of its own name. Optional
    arguments without a column are left out."""
    return {
        argument: columns.get(argument, argument)
        for argument, required in spec.arguments().items()
        if required or argument in columns or argument in names
    }


def _long(name: str, takes: Collection[str]) -> str:
    """The argument that a short name stands for."""
    longer = [long for long in _SHORT.get(name, ()) if long in takes]
    return longer[0] if longer and name not in takes else name


def _require_names(argument: str, column: object, where: str, roles: Mapping[str, str]) -> None:
    if isinstance(column, str):
        return
    if roles.get(argument, argument) == KEYS and isinstance(column, Mapping):
        for name, key_column in column.items():
            _require_names(f"{argument}[{shown(name)}]", key_column, where, roles)
        return
    is_list = isinstance(column, Sequence) and len(column) > 0
    spelled = f'{argument}="name"' if argument.isidentifier() else 'keys={"variant": "name"}'
    if not is_list or not all(isinstance(name, str) for name in column):  # type: ignore[attr-defined]
        raise InputError(
            expected="the name of a column, or a list of names",
            got=f"{type(column).__name__} {shown(column)}",
            where=f"{where}, {argument}",
            hint=f"pass {spelled}; columns themselves go to update",
        )


def _instead(
    spec: TakesColumns, column_names: Mapping[str, Names], names: Collection[object], column: Names
) -> str:
    """The hint for an unknown argument: the argument that its column may be meant for."""
    for argument, required in spec.arguments().items():
        if required and argument not in column_names and argument not in names:
            return f"name the column of {argument}, as in {argument}={column!r}"
    return "correct the name"
