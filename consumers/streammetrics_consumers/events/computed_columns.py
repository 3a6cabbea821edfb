"""Columns that are computed of the fields of events, and the operands of their expressions.

A value is computed of its own event alone. An event without a value that it needs is refused for
the field that lacks, with the place in the expression that reads it. What an event does not need,
since no metric that reads it counts the event, refuses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics import DictionaryColumn, Expression
from streammetrics_consumers.config.column_expressions import fields_read
from streammetrics_consumers.config.event import Field, FieldExpression
from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.columns import Bad, Column, Converted, wrong

OPERANDS: Final = ("number", "truth", "plain_text", "plain")
_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "number": ((int, float), "a number"),
    "truth": ((bool,), "true or false"),
    "plain_text": ((str,), "a text"),
    "plain": ((str, int, float, bool), "a text, a number, true or false"),
}
_INT64: Final = 1 << 63


def operands(kind: str) -> Callable[[list[object], str], Converted]:
    """A converter of values to an operand of this kind: objects [n], None for a bad one."""
    types, expected = _TYPES[kind]

    def convert(values: list[object], path: str) -> Converted:
        bad: Bad = {}
        if not set(map(type, values)) <= set(types):
            bad = {
                i: wrong(path, expected, v) for i, v in enumerate(values) if type(v) not in types
            }
            values = [None if i in bad else value for i, value in enumerate(values)]
        return np.fromiter(values, object, len(values)), bad

    return convert


def operand_array(kind: str, values: NDArray[np.generic]) -> Column | None:
    """Values of a column store as an operand without a loop over them; None if they are of
    another kind."""
    numeric = values.dtype.kind in "iuf"
    if (kind == "number" and numeric) or (kind == "truth" and values.dtype.kind == "b"):
        return values  # type: ignore[return-value]
    return values if kind == "plain" and (numeric or values.dtype.kind == "b") else None  # type: ignore[return-value]


class ComputedColumns:
    """The computed columns of some fields. operands: the fields of events that these read.

    convert: the column of a field of one kind from values that were computed.
    """

    def __init__(
        self,
        fields: Sequence[Field],
        convert: Callable[[Field, NDArray[np.generic] | DictionaryColumn], Converted],
    ) -> None:
        self.fields = [field for field in fields if field.computed is not None]
        self.operands = [field for field in fields_read(self.fields) if field.computed is None]
        self._conditional = [field for field in fields if field.needed_where]
        self._convert = convert
        self._expressions = {
            field.computed.digest: Expression(field.computed.text, where=field.computed.where)
            for field in fields_read(self.fields)
            if field.computed is not None
        }

    def apply(self, columns: dict[str, Column], faults: Mapping[str, Bad]) -> Bad:
        """Replace the operands among the columns by the computed ones. Returns the first reason of
        each event that lacks what it needs. faults: the reasons of bad values by column, of the
        operands and of fields that some events need."""
        batch = _Batch(self._expressions, columns, faults)
        bad = {name: dict(wrong) for name, wrong in faults.items()}
        for field in self.fields:
            columns[field.column], bad[field.column] = self._column(batch, field)
        unfit: Bad = {}
        for field in self.fields:
            if not field.needed_where:
                unfit = {**bad[field.column], **unfit}
        for field in self._conditional:
            flags = [np.asarray(columns[name], np.bool_) for name in field.needed_where]
            needed = np.logical_or.reduce(flags)
            for i, why in bad.get(field.column, {}).items():
                if needed[i]:
                    unfit.setdefault(i, why)
        for operand in self.operands:
            columns.pop(operand.column, None)
        return unfit

    def _column(self, batch: _Batch, field: Field) -> Converted:
        assert field.computed is not None
        values, bad = batch.values(field.computed)
        if isinstance(values, np.ndarray) and values.dtype.kind == "b" and field.kind == "real":
            values = values.astype(np.float64)
        if bad and isinstance(values, np.ndarray):  # not by what null operands stand for
            values = values.copy()
            values[list(bad)] = 0
        column, unfit = self._convert(replace(field, computed=None), values)
        return column, {**unfit, **bad}


class _Batch:
    """The values of expressions over one chunk of events, each computed once."""

    def __init__(
        self,
        expressions: Mapping[str, Expression],
        columns: Mapping[str, Column],
        faults: Mapping[str, Bad],
    ) -> None:
        self._expressions, self._columns, self._faults = expressions, columns, faults
        self._values: dict[str, tuple[NDArray[np.generic] | DictionaryColumn, Bad]] = {}

    def values(
        self, computed: FieldExpression
    ) -> tuple[NDArray[np.generic] | DictionaryColumn, Bad]:
        """The values of an expression, and the reason of each event that has none."""
        cached_result = self._values.get(computed.digest)
        if cached_result is not None:
            return cached_result
        expression = self._expressions[computed.digest]
        operand_columns: dict[str, object] = {}
        operand_bad: dict[str, Bad] = {}
        for name, operand in computed.fields.items():
            if operand.computed is None:
                operand_columns[name] = self._columns[operand.column]
                operand_bad[name] = dict(self._faults.get(operand.column, {}))
            else:
                values, operand_bad[name] = self.values(operand.computed)
                operand_columns[name] = _with_nulls(values, operand_bad[name])
        evaluated = expression.evaluate(operand_columns)
        bad: Bad = {}
        for i in np.flatnonzero(evaluated.codes).tolist():
            why = evaluated.reason(i)
            assert why is not None
            place = f"{computed.where}, column {why.start + 1}"
            if why.field is None:
                detail = f"a whole number does not fit 64 bits; see {place}"
                bad[i] = Unfit("out_of_range", None, detail)
                continue
            operand = computed.fields[why.field]
            cause = operand_bad[why.field].get(i) or _no_value(operand.path)
            bad[i] = replace(cause, detail=f"{cause.detail}; read by {place}")
        self._values[computed.digest] = evaluated.values, bad
        return evaluated.values, bad


def _no_value(path: str) -> Unfit:
    """The refusal of an event whose value is one that expressions do not take, such as an unsigned
    number beyond 64 bits."""
    return Unfit("missing_field", path, "there is no value of the kind that is needed")


def _with_nulls(values: NDArray[np.generic] | DictionaryColumn, bad: Bad) -> object:
    """A computed column as an operand: null where it has no value."""
    if not bad or isinstance(values, DictionaryColumn):
        return values
    objects = values.astype(object)
    objects[list(bad)] = None
    return objects
