"""[columns]: columns that are computed of the fields of an event, and the `where` of a metric.

    [columns]
    gain = "reward * weight"
    is_long = "dwell_s >= 30"

    [metrics.long_share]
    type = "Ratio"
    inputs = { numerators = "is_long" }
    where = "surface == 'search'"

A name in an expression is another of [columns], a role of [event] that has a path, or a dotted
path. A column may be named wherever a field is: by roles, inputs of metrics and slices. One that is
no more than a name is another name of that field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from keyword import iskeyword
from typing import Final

from streammetrics import Expression, InputError
from streammetrics_consumers.config.event import ROLES, EventConfig, Field, FieldExpression, Kind
from streammetrics_consumers.config.section import Problem, Section

MAX_COLUMNS: Final = 100
_OPERANDS: Final[Mapping[str | None, Kind]] = {
    "number": "number",
    "bool": "truth",
    "text": "plain_text",
    None: "plain",
}
_COMPUTED_AS: Final[Mapping[Kind, Kind]] = {
    **{kind: kind for kind in ("real", "label", "count", "flag", "slice")},
    "label_or_row": "label",
    "real_or_row": "real",
}
_PLAIN_ROLES: Final = ("time", "variant", "epoch", "user")  # which are never computed
_HINT: Final = 'write for example gain = "reward * weight"'


@dataclass(frozen=True, slots=True)
class ColumnsConfig:
    """[columns]: the expression of each name, and the fields that the others are names of."""

    computed: Mapping[str, FieldExpression]
    kinds: Mapping[str, str | None]
    renamed: Mapping[str, str]

    def path(self, name: str) -> str:
        """The path that a name stands for, or the name of a computed column."""
        return self.renamed.get(name, name)

    def field(self, field: Field) -> Field | None:
        """The same, computed if its path is the name of a computed column; None if no column of
        its kind can be computed."""
        computed = self.computed.get(field.path)
        if computed is None:
            return field
        kind = _COMPUTED_AS.get(field.kind)
        is_number = self.kinds[field.path] == "number"
        if kind is None or (kind == "flag" and is_number) or (kind == "count" and not is_number):
            return None
        return Field(field.path, kind, name=field.name, computed=computed)


NO_COLUMNS: Final = ColumnsConfig({}, {}, {})


def read_columns(section: Section, event: EventConfig) -> ColumnsConfig:
    """Read [columns]."""
    if len(section.table) > MAX_COLUMNS:
        section.problem(
            section.title, f"at most {MAX_COLUMNS} columns", len(section.table), "leave some out"
        )
    texts = dict(list(section.table.items())[:MAX_COLUMNS])
    expressions: dict[str, Expression] = {}
    for name in texts:
        expression = _expression(section, name)
        if not _is_name(name):
            expected = "a name of letters, digits and _ that is no role of [event]"
            section.problem(section.where(name), expected, name, "rename it")
        elif expression is not None:
            expressions[name] = expression
    section.done()
    for role in _PLAIN_ROLES:
        name = getattr(event, role)
        if name in texts:
            hint = "name the field itself"
            section.problem(f"[event] {role}", "a field of the event", name, hint)
    reading = _NameResolver(section, event, expressions)
    for name in expressions:
        reading.column(name, ())
    return ColumnsConfig(reading.computed, reading.kinds, reading.renamed)


def read_condition(
    section: Section, event: EventConfig, columns: ColumnsConfig, key: str = "where"
) -> Field | None:
    """The column of flags of an expression under `where`; None if there is none, or a bad one."""
    if section.raw(key) is None:
        return None
    expression = _expression(section, key, is_condition=True)
    if expression is None:
        return None
    reading = _NameResolver(section, event, {}, columns)
    computed = reading.resolved(expression, section.where(key))
    if computed is None:
        return None
    return Field(computed.text, "flag", name=f"where {computed.digest}", computed=computed)


def fields_read(fields: Iterable[Field]) -> list[Field]:
    """These fields, and all that they are computed of, each once."""
    fields_and_operands: dict[Field, None] = {}
    pending = list(fields)
    while pending:
        field = pending.pop(0)
        if field not in fields_and_operands:
            fields_and_operands[field] = None
            pending += operands_of(field)
    return list(fields_and_operands)


def operands_of(field: Field) -> Iterable[Field]:
    """The fields of the names in the expression of a field; none if it is not computed."""
    return () if field.computed is None else field.computed.fields.values()


def computed_columns(fields: Iterable[Field]) -> dict[str, object]:
    """The columns of [columns] that these fields are computed of, by name, in plain values."""
    columns = {field.path: field.computed for field in fields_read(fields)}
    return {
        name: computed.plain for name, computed in sorted(columns.items()) if computed is not None
    }


def _is_name(name: str) -> bool:
    return name.isidentifier() and name.isascii() and not iskeyword(name) and name not in ROLES


def _expression(section: Section, key: str, *, is_condition: bool = False) -> Expression | None:
    """The expression that is the value of a key; None for a bad one, which becomes a problem."""
    text = section.raw(key)
    if not isinstance(text, str):
        hint = '''write for example where = "surface == 'search'"''' if is_condition else _HINT
        section.bad(key, "an expression as a text", hint)
        return None
    try:
        kind = "bool" if is_condition else None
        return Expression(text, where=section.where(key), kind=kind)  # type: ignore[arg-type]
    except InputError as error:
        _add_problem(section, error)
        return None


def _add_problem(section: Section, error: InputError) -> None:
    section.problems.append(Problem(error.where, error.expected, error.got, error.hint))


class _NameResolver:
    """Finds the field of each name in expressions. columns: those that are read already."""

    def __init__(
        self,
        section: Section,
        event: EventConfig,
        expressions: Mapping[str, Expression],
        columns: ColumnsConfig = NO_COLUMNS,
    ) -> None:
        self.section, self.event, self.expressions = section, event, expressions
        self.computed, self.renamed = dict(columns.computed), dict(columns.renamed)
        self.kinds = dict(columns.kinds)
        self.read, self.bad = set[str](), set[str]()

    def column(self, name: str, path: tuple[str, ...]) -> None:
        """Read one of [columns], after those that it is computed of. path: those that are being
        read."""
        if name in path:
            got = " of ".join([*path[path.index(name) :], name])
            hint = "name a field of the event"
            where = self.section.where(name)
            self.section.problem(where, "columns that are computed of others", got, hint)
            self.bad.add(name)
        if name in self.read or name in self.bad:
            return
        expression, where = self.expressions[name], self.section.where(name)
        computed = self.resolved(expression, where, (*path, name))
        self.read.add(name)
        if computed is None:
            self.bad.add(name)
        elif expression.column is not None:
            self.renamed[name] = computed.fields[expression.column].path
        else:
            self.computed[name], self.kinds[name] = computed, expression.kind

    def resolved(
        self, expression: Expression, where: str, path: tuple[str, ...] = ()
    ) -> FieldExpression | None:
        """An expression with the field of each name; None if one of them is bad."""
        fields: dict[str, Field] = {}
        for name, kind in expression.fields.items():
            if name in self.expressions:
                self.column(name, path)
            operand = None if name in self.bad else self._operand(expression, name, kind, where)
            if operand is None:
                return None
            fields[name] = operand
        computed = FieldExpression("", expression.text, fields, where)
        text = json.dumps(computed.plain, sort_keys=True)
        return replace(computed, digest=hashlib.sha256(text.encode()).hexdigest()[:16])

    def _operand(
        self, expression: Expression, name: str, kind: str | None, where: str
    ) -> Field | None:
        path = self.renamed.get(name, name if name in self.computed else self.event.path(name))
        computed = self.computed.get(path)
        if computed is None:
            is_good = self.section.takes_path(where, path)
            return Field(path, _OPERANDS[kind], optional=True) if is_good else None
        column_kind = self.kinds[path]
        if kind is not None and column_kind != kind:
            words = {"number": "a number", "bool": "true or false", "text": "a text"}
            got = f"the column {path}, which is {words[str(column_kind)]}"
            hint = "compare it with a number" if kind == "bool" else "use a column of that kind"
            error = expression.refused_field(name, words[kind], got, hint)
            _add_problem(self.section, error)
            return None
        return Field(path, _OPERANDS[column_kind], computed=computed)
