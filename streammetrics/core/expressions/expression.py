"""An expression over the columns of a table: its canonical text, the fields that it reads, and its
values.

A value is unknown in a row where a field that decides it has none. `a and b` is false where either
is false, whatever the other is; `a or b` is true where either is true.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, reduce
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import instance
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.expressions.canonical import canonical_text
from streammetrics.core.expressions.field_kinds import FieldKind, FieldKinds
from streammetrics.core.expressions.numbers import (
    Numbers,
    absolute,
    combined,
    compared,
    float_numbers,
    greatest,
    least,
    negated,
    whole_numbers,
)
from streammetrics.core.expressions.operands import Operand, TextValues, kind_of, operand_of
from streammetrics.core.expressions.syntax import (
    Arithmetic,
    Call,
    ExpressionText,
    Logic,
    Name,
    Negation,
    Not,
    Number,
    Relation,
    TextLiteral,
    Tree,
    parsed,
    parts_of,
)
from streammetrics.core.rows import DictionaryColumn

Flags: TypeAlias = "NDArray[np.bool_]"
Codes: TypeAlias = "NDArray[np.int32]"  # 0: the value is known; else 1 + the index of its reason
Values: TypeAlias = "NDArray[np.generic] | DictionaryColumn"
_KNOWN: Final = np.zeros(1, np.int32)
_NAMED: Final = 12  # fields that an error names


class Unknown(NamedTuple):
    """Why rows have no value. field: the one that is null, or None if a whole number is beyond
    64 bits, which the part of the text that begins at `start` gives."""

    field: str | None
    start: int


class Evaluated(NamedTuple):
    """The values of an expression [n]: int64, float64, bool, objects of whole numbers and floats,
    or texts; a placeholder where they are unknown. codes: int32 [n], 0 where they are known."""

    values: Values
    codes: Codes
    reasons: tuple[Unknown, ...]

    def reason(self, row: int) -> Unknown | None:
        """Why a row has no value; None if it has."""
        code = int(self.codes[row])
        return self.reasons[code - 1] if code else None


class Expression:
    """An expression such as `reward * weight`, `dwell_s >= 30` or
    `surface == 'search' and not is_bot`, read from its text.

    It has + - * /, comparisons, `and`, `or`, `not`, `min`, `max`, `abs`, and parentheses, over
    fields, numbers, and texts that are compared with fields by == or !=. InputError for any other
    text, with the place.

    where: what it is, for errors. kind: "number", "bool" or "text" if it must be of this kind.

    >>> expression = Expression("abs(reward)*weight")
    >>> expression.text, dict(expression.fields), expression.kind
    ('abs(reward) * weight', {'reward': 'number', 'weight': 'number'}, 'number')
    >>> expression.evaluate({"reward": [1, -2], "weight": [0.5, 0.5]}).values.tolist()
    [0.5, 1.0]
    """

    def __init__(
        self, text: str, *, where: str = "expression", kind: FieldKind | None = None
    ) -> None:
        hint = 'write, for example, "dwell_s >= 30"'
        source = ExpressionText(instance(text, str, where, "an expression as a text", hint), where)
        self._source = source
        self._tree = parsed(source)
        self.text = canonical_text(self._tree)
        kinds = FieldKinds(source, self._tree, kind)
        self.fields: Mapping[str, FieldKind | None] = kinds.fields
        self.kind = kinds.kind

    @property
    def column(self) -> str | None:
        """The field, if the expression is no more than that; else None."""
        return self._tree.name if isinstance(self._tree, Name) else None

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def evaluate(self, columns: Mapping[str, object]) -> Evaluated:
        """Its values in the rows of these columns, by name; others are not read.

        A column is an array, a list, or `DictionaryColumn`; None is a null. InputError where a
        column is of another kind or length than the expression needs.
        """
        return _Evaluation(self._source, self.fields, columns.__getitem__).evaluated(self._tree)

    def refused_field(self, name: str, expected: str, got: str, hint: str) -> InputError:
        """The error about one of the fields, where it is first read."""
        start = next(part.start for part in _names(self._tree) if part.name == name)
        return self._source.refused(start, expected, got, hint)

    def unknown_field(self, name: str, names: Sequence[str]) -> InputError:
        """The error for a field that is not among the known ones."""
        few = ", ".join(names[:_NAMED]) + f" and {len(names) - _NAMED} more" * (len(names) > _NAMED)
        hint = nearest(name, names, "correct the name")
        return self.refused_field(name, f"a column ({few})", shown(name), hint)

    def refused(
        self, evaluated: Evaluated, positions: NDArray[np.intp] | None = None
    ) -> InputError:
        """The error for the rows without a value, about the first of them. positions: those of the
        rows in the table, if they are not all of it."""
        rows = np.flatnonzero(evaluated.codes)
        why = evaluated.reason(int(rows[0]))
        assert why is not None
        code = evaluated.codes[rows[0]]
        rows = rows if positions is None else positions[rows]
        if why.field is not None:
            alike = int((evaluated.codes == code).sum())
            hint = f"drop or fill the {alike} row(s) with a missing value"
            error = self._source.refused(why.start, "a value", "None", hint)
            where = f"{why.field}[{rows[0]}], read by {error.where}"
        else:
            hint = "make a factor a float: a float is rounded, a whole number never"
            error = self._source.refused(
                why.start, "whole numbers of at most 64 bits", "one beyond them", hint
            )
            where = f"{error.where}, row {rows[0]}"
        return error.of_rows(where, rows)


def expression_of(text: str, where: str, kind: FieldKind | None = None) -> Expression:
    """The expression of a text, which batches share."""
    is_text = isinstance(text, str)  # what is none may have no hash
    return _shared(text, where, kind) if is_text else Expression(text, where=where, kind=kind)


@lru_cache(maxsize=1024)
def _shared(text: str, where: str, kind: FieldKind | None) -> Expression:
    return Expression(text, where=where, kind=kind)


class _Evaluation:
    """The evaluation of one expression over one batch."""

    def __init__(
        self,
        source: ExpressionText,
        kinds: Mapping[str, FieldKind | None],
        column: Callable[[str], object],
    ) -> None:
        self.source, self.kinds, self.column = source, kinds, column
        self.operands: dict[str, tuple[Operand, Codes]] = {}
        self.reasons: list[Unknown] = []
        self.n = 1

    def evaluated(self, tree: Tree) -> Evaluated:
        self._read(tree)
        values, codes = self._values(tree)
        n = self.n
        codes = np.broadcast_to(codes, n) if len(codes) != n else codes
        array: Values
        if isinstance(values, TextValues):
            array = DictionaryColumn(values.codes, tuple(values.values))
        else:
            plain = values.array() if isinstance(values, Numbers) else values
            array = plain if len(plain) == n else np.repeat(plain, n)
        return Evaluated(array, codes, tuple(self.reasons))

    def _read(self, tree: Tree) -> None:
        """Read each column once, in the order of the text."""
        starts: dict[str, int] = {}
        for part in _names(tree):
            starts.setdefault(part.name, part.start)
        first = ""
        for name, start in starts.items():
            column = self.column(name)
            try:
                operand = operand_of(column, name, self.kinds[name])
            except InputError as error:
                raise self._placed(start, error) from None
            if not first:
                first, self.n = name, len(operand)
            elif len(operand) != self.n:
                hint = "pass columns of equal length"
                expected = f"{self.n} values, one for each row of {first}"
                raise self.source.refused(start, expected, f"{len(operand)} in {name}", hint)
            codes = _KNOWN
            if operand.null is not None:
                codes = self._unknown(codes, operand.null, Unknown(name, start))
            if operand.beyond is not None:
                codes = self._unknown(codes, operand.beyond, Unknown(None, start))
            self.operands[name] = operand, codes

    def _placed(self, start: int, error: InputError) -> InputError:
        """The error about a column, with the place that reads it."""
        place = self.source.refused(start, error.expected, error.got, error.hint)
        return place.of_rows(f"{error.where}, read by {place.where}", error.rows)

    def _unknown(self, codes: Codes, rows: Flags | None, why: Unknown) -> Codes:
        """The codes with these rows unknown for this reason, where they are not already."""
        if rows is None or not rows.any():
            return codes
        self.reasons.append(why)
        return np.where((codes == 0) & rows, np.int32(len(self.reasons)), codes)

    def _values(self, tree: Tree) -> tuple[Numbers | Flags | TextValues, Codes]:
        match tree:
            case Name():
                operand, codes = self.operands[tree.name]
                return operand.values, codes
            case Number():
                return _constant(tree.value), _KNOWN
            case TextLiteral():
                return TextValues(np.zeros(1, np.intp), (tree.value,)), _KNOWN
            case Negation():
                return self._number(tree.start, negated, tree.operand)
            case Arithmetic():
                a, b, codes = self._both(tree.left, tree.right)
                numbers, beyond = combined(tree.sign, a, b)
                return numbers, self._unknown(codes, beyond, Unknown(None, tree.start))
            case Call():
                if tree.function == "abs":
                    return self._number(tree.start, absolute, tree.arguments[0])
                choose = least if tree.function == "min" else greatest
                pairs = [self._values(argument) for argument in tree.arguments]
                values = [value for value, _ in pairs if isinstance(value, Numbers)]
                return reduce(choose, values), reduce(_either, [codes for _, codes in pairs])
            case Not():
                flags, codes = self._values(tree.operand)
                return ~_flags(flags), codes
            case Logic():
                conditions = [self._values(operand) for operand in tree.operands]
                decisive = tree.word == "or"
                return reduce(
                    lambda a, b: _joined(a, b, decisive=decisive),
                    [(_flags(flags), codes) for flags, codes in conditions],
                )
            case Relation():
                return self._compared(tree)

    def _number(
        self,
        start: int,
        change: Callable[[Numbers], tuple[Numbers, Flags | None]],
        operand: Tree,
    ) -> tuple[Numbers, Codes]:
        values, codes = self._values(operand)
        numbers, beyond = change(cast("Numbers", values))
        return numbers, self._unknown(codes, beyond, Unknown(None, start))

    def _both(self, left: Tree, right: Tree) -> tuple[Numbers, Numbers, Codes]:
        (a, codes), (b, other_codes) = self._values(left), self._values(right)
        return cast("Numbers", a), cast("Numbers", b), _either(codes, other_codes)

    def _compared(self, tree: Relation) -> tuple[Flags, Codes]:
        operands = [self._values(operand) for operand in tree.operands]
        flags = []
        for i, sign in enumerate(tree.signs):
            (a, codes), (b, other_codes) = operands[i], operands[i + 1]
            kind, other_kind = kind_of(Operand(a)), kind_of(Operand(b))
            is_empty = not self.n or (codes != 0).all() or (other_codes != 0).all()
            if kind != other_kind and not is_empty:
                got = f"a {kind} and a {other_kind}"
                hint = "compare columns of one kind"
                start = tree.operands[i].start
                raise self.source.refused(start, "two values of one kind", got, hint)
            if kind == other_kind:
                is_true = _equal_or_ordered(sign, a, b)
            else:  # a column of nulls is of any kind
                is_true = np.zeros(self.n, np.bool_)
            flags.append((is_true, _either(codes, other_codes)))
        return reduce(lambda a, b: _joined(a, b, decisive=False), flags)


def _names(tree: Tree) -> list[Name]:
    return [part for part in parts_of(tree) if isinstance(part, Name)]


def _constant(value: int | float) -> Numbers:
    if isinstance(value, int):
        return whole_numbers(np.array([value], np.int64))
    return float_numbers(np.array([value]))


def _flags(values: Numbers | Flags | TextValues) -> Flags:
    return cast("Flags", values)  # as the kinds of the tree say


def _either(a: Codes, b: Codes) -> Codes:
    """Unknown where either is, for the reason of the first."""
    if a is _KNOWN or b is _KNOWN:
        return b if a is _KNOWN else a
    return np.where(a != 0, a, b)


def _joined(
    left: tuple[Flags, Codes], right: tuple[Flags, Codes], *, decisive: bool
) -> tuple[Flags, Codes]:
    """`and`, decided by a False, or `or`, decided by a True."""
    (a, codes), (b, other_codes) = left, right
    flags = a | b if decisive else a & b
    if codes is _KNOWN and other_codes is _KNOWN:
        return flags, _KNOWN
    decided = ((codes == 0) & (a == decisive)) | ((other_codes == 0) & (b == decisive))
    flags = np.where(decided, decisive, flags)
    return flags, np.where(decided, np.int32(0), _either(codes, other_codes))


def _equal_or_ordered(
    sign: str, a: Numbers | Flags | TextValues, b: Numbers | Flags | TextValues
) -> Flags:
    if isinstance(a, Numbers) and isinstance(b, Numbers):
        return compared(sign, a, b)
    if isinstance(a, TextValues) and isinstance(b, TextValues):
        numbers: dict[str, int] = {}
        equal = np.equal(_numbered(a, numbers), _numbered(b, numbers))
    else:
        equal = np.equal(_flags(a), _flags(b))
    return np.asarray(equal if sign == "==" else ~equal, np.bool_)


def _numbered(texts: TextValues, numbers: dict[str, int]) -> NDArray[np.intp]:
    """The number of each text, a new one for each that has none."""
    of_values = [numbers.setdefault(value, len(numbers)) for value in texts.values]
    return np.array(of_values or [0], np.intp)[texts.codes]
