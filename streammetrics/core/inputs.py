"""The declared inputs of a metric: `inputs = Inputs(labels=Binary("positive"), scores=Real())`.

The declaration determines `update`, `check`, `arguments()`, `widths()`, the validators of the
buffer's fast path, and the table of arguments in the documentation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import numpy as np

from streammetrics.core import checks
from streammetrics.core.batch import Batch, Column
from streammetrics.core.buffer import MOST_COLUMNS
from streammetrics.core.class_checks import class_numbers, label_table, score_table
from streammetrics.core.conversion import array_of
from streammetrics.core.errors import bad_rows
from streammetrics.core.ids.keys import group_ids
from streammetrics.core.ids.unit_hashes import unit_words
from streammetrics.core.intakes import (
    NUMBERS,
    Intake,
    class_intake,
    label_intake,
    table_intake,
    texts,
    together,
    unit_ids,
    weight_intake,
)
from streammetrics.core.slips import require_both
from streammetrics.core.validators import Validator, validated
from streammetrics.core.weights import ONE, weigh

if TYPE_CHECKING:
    from streammetrics.core.declared import Declared

Reader: TypeAlias = Callable[[Any], Column]
Widths: TypeAlias = tuple[int | None, ...]
IDS: Final = "ArrayLike | DictionaryColumn"  # the type of a column of ids


# -- kinds of columns ---------------------------------------------------------------------------
class Input(ABC):
    """One argument of `update`: the kind of its values, and their check.

    Settings and properties that a parameter names are those of the metric.
    """

    stored_as: str = ""  # the argument's name in stored settings, if it is another
    beside: str | None = None  # another input; one is not given without the other
    keyword: ClassVar[bool] = False  # given by name only
    type_text: ClassVar[str] = "ArrayLike"  # its type in a signature for editors
    meaning: str = ""  # for the documentation

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    @abstractmethod
    def reader(self, metric: Declared, name: str) -> Reader:
        """The function from given values to a checked column; it raises InputError."""

    def validator(self, metric: Declared) -> Validator | None:
        """The validator of arrays that the check accepts as they are, if there is one."""
        return None

    def intake(self, metric: Declared) -> Intake | None:
        """The intake of a column, if there is one."""
        validator = self.validator(metric)
        return None if validator is None else NUMBERS[validator]

    def width(self, metric: Declared) -> Widths:
        """The widths of rows, if it takes a table; see `Declared.widths`."""
        return ()


class Binary(Input):
    """Labels of two classes, as uint8 of 0 and 1.

    positive: the setting that names the positive class; without one labels are 0/1 or False/True.
    """

    def __init__(self, positive: str | None = None) -> None:
        super().__init__()
        self.positive = positive
        self.meaning = "[n] of 0/1 or False/True" + ", or labels like `positive`" * bool(positive)

    def reader(self, metric: Declared, name: str) -> Reader:
        positive = self._positive(metric)
        return lambda values: checks.binary_labels(values, name, positive)

    def validator(self, metric: Declared) -> Validator | None:
        return Validator.BINARY if self._positive(metric) in (None, 1) else None

    def intake(self, metric: Declared) -> Intake | None:
        positive = self._positive(metric)
        return label_intake(positive) if isinstance(positive, str) else super().intake(metric)

    def _positive(self, metric: Declared) -> int | str | None:
        return getattr(metric, self.positive) if self.positive else None


class Real(Input):
    """Numbers without NaN, as float32 or float64; finite: infinities are refused too; least:
    smaller numbers are refused."""

    def __init__(
        self, *, finite: bool = False, optional: bool = False, least: float | None = None
    ) -> None:
        super().__init__(optional=optional)
        self.finite, self.least = finite, least
        self.meaning = "[n], finite" if finite else "[n], no NaN"
        self.meaning += "" if least is None else f", at least {least:g}"

    def reader(self, metric: Declared, name: str) -> Reader:
        check, least = checks.finite if self.finite else checks.scores, self.least
        if least is None:
            return lambda values: check(values, name)

        amounts = self.validator(metric) is Validator.AMOUNTS

        def read(values: Any) -> Column:
            column = validated(values, Validator.AMOUNTS) if amounts else None
            if column is not None and column.dtype.kind == "f":
                return column
            array = check(values if column is None else column, name)
            if len(array) and array.item(array.argmin()) < least:
                bad = np.flatnonzero(array < least)
                hint = f"drop or fix the {len(bad)} smaller row(s)"
                raise bad_rows(array, bad, name, f"numbers of at least {least:g}", hint)
            return array

        return read

    def validator(self, metric: Declared) -> Validator | None:
        if self.least is not None:
            return Validator.AMOUNTS if self.finite and self.least == 0 else None
        return Validator.FINITE if self.finite else Validator.NUMBERS


class Probability(Input):
    """Scores in [0, 1], as float32 or float64.

    where: a property that says whether they must be in [0, 1]; otherwise they may be any `Real`.
    hint: of the error for other scores.
    """

    def __init__(self, where: str | None = None, hint: str | None = None) -> None:
        super().__init__()
        self.where, self.hint = where, {"hint": hint} if hint else {}
        self.meaning = (
            "[n] in [0, 1]" if where is None else '[n], no NaN; with range="probability" in [0, 1]'
        )

    def reader(self, metric: Declared, name: str) -> Reader:
        if self.where is None or getattr(metric, self.where):
            hint = self.hint
            return lambda values: checks.probabilities(values, name, **hint)
        return lambda values: checks.scores(values, name)

    def validator(self, metric: Declared) -> Validator | None:
        within = self.where is None or getattr(metric, self.where)
        return Validator.UNIT if within else Validator.NUMBERS


class Amount(Input):
    """Numbers without NaN to be summed: as `Real`, but arrays of one-byte numbers unchanged."""

    def __init__(self, *, optional: bool = False) -> None:
        super().__init__(optional=optional)
        self.meaning = "[n], no NaN" + "; 1 each by default" * optional

    def reader(self, metric: Declared, name: str) -> Reader:
        return lambda values: checks.addends(values, name)

    def validator(self, metric: Declared) -> Validator | None:
        return Validator.NUMBERS


class Integers(Input):
    """Integers of 64 bits."""

    meaning = "[n] integers"

    def reader(self, metric: Declared, name: str) -> Reader:
        return lambda values: checks.integers(values, name)

    def validator(self, metric: Declared) -> Validator | None:
        return Validator.INTEGERS


class Classes(Input):
    """Class numbers from 0 to `n` - 1, in the given integer type.

    table: the kind of a table [n, `n`] in their place: "labels" of 0 and 1, or "scores"; None: no
    table is accepted. only_table: a setting that, if it is not empty, requires a table.
    """

    def __init__(self, n: str, table: str | None = None, only_table: str | None = None) -> None:
        super().__init__()
        self.n, self.table, self.only_table = n, table, only_table
        instead = {"labels": "of 0/1 or False/True", "scores": "of scores, no NaN"}
        self.meaning = f"[n] class numbers from 0 to {n} - 1"
        if table:
            self.meaning += f", or [n, {n}] {instead[table]}"

    def reader(self, metric: Declared, name: str) -> Reader:
        n, table = getattr(metric, self.n), self.table
        if table is None:
            return lambda values: class_numbers(values, n, name)
        check = label_table if table == "labels" else score_table

        def read(values: Any) -> Column:
            array = values if type(values) is np.ndarray else array_of(values, name)
            if array.ndim == 2:
                return check(array, n, name)
            whole = type(values) is list and array.dtype.kind == "i"
            return class_numbers(array if whole else values, n, name)

        return read

    def intake(self, metric: Declared) -> Intake:
        table = Validator.BINARY if self.table == "labels" else Validator.NUMBERS
        only_table = self.only_table is not None and bool(getattr(metric, self.only_table))
        n_classes = getattr(metric, self.n)
        return class_intake(n_classes, table if self.table else None, only_table=only_table)

    def width(self, metric: Declared) -> Widths:
        if self.table != "scores":
            return (None, getattr(metric, self.n)) if self.table else ()
        only = self.only_table is not None and getattr(metric, self.only_table)
        return (getattr(metric, self.n),) if only else (None, getattr(metric, self.n))


class Table(Input):
    """A row of values for each class or label: scores without NaN, or labels of 0 and 1.

    n: the number of columns. where: for scores, a property that says whether they must be in
    [0, 1].
    """

    def __init__(self, n: str, *, labels: bool = False, where: str | None = None) -> None:
        super().__init__()
        self.n, self.labels, self.where = n, labels, where
        self.meaning = f"[n, {n}] of 0/1 or False/True" if labels else f"[n, {n}], no NaN"

    def reader(self, metric: Declared, name: str) -> Reader:
        n = getattr(metric, self.n)
        if self.labels:
            return lambda values: label_table(array_of(values, name), n, name)
        within = self._are_unit(metric)
        return lambda values: score_table(array_of(values, name), n, name, in_unit=within)

    def intake(self, metric: Declared) -> Intake:
        scores = Validator.UNIT if self._are_unit(metric) else Validator.NUMBERS
        validator = Validator.BINARY if self.labels else scores
        return table_intake(getattr(metric, self.n), validator)

    def _are_unit(self, metric: Declared) -> bool:
        return self.where is not None and bool(getattr(metric, self.where))

    def width(self, metric: Declared) -> Widths:
        return (getattr(metric, self.n),)


class Ids(Input):
    """Ids of groups, as the setting `ids` says: integers, hashes of strings, or strings."""

    keyword = True
    type_text = IDS
    meaning = "[n] ids, integers or strings, according to `ids`"

    def __init__(self, ids: str = "ids") -> None:
        super().__init__()
        self.ids = ids

    def reader(self, metric: Declared, name: str) -> Reader:
        kind = getattr(metric, self.ids)
        return lambda values: group_ids(values, kind, name, self.ids, decimals=True)

    def validator(self, metric: Declared) -> Validator | None:
        return Validator.INTEGERS if getattr(metric, self.ids) == "integer" else None

    def intake(self, metric: Declared) -> Intake | None:
        return super().intake(metric) or texts


class UnitIds(Input):
    """Ids of units, integers or strings, as the 64 bits of an integer or of a string's hash."""

    type_text = IDS
    meaning = "[n] ids, integers or strings"

    def reader(self, metric: Declared, name: str) -> Reader:
        return lambda values: unit_words(values, name).view(np.int64)  # the type of integers

    def validator(self, metric: Declared) -> Validator | None:
        return Validator.INTEGERS

    def intake(self, metric: Declared) -> Intake:
        return unit_ids


class Unchecked(Input):
    """An argument that the metric checks itself, together with others, in `_read_rows`."""

    def __init__(
        self,
        meaning: str,
        *,
        optional: bool = False,
        keyword: bool = False,
        type_text: str = "ArrayLike",
        stored_as: str = "",
        intake: Callable[[Any], Intake | None] = lambda metric: None,
    ) -> None:
        super().__init__(optional=optional)
        self.meaning, self.stored_as, self._intake_of = meaning, stored_as, intake
        self.__dict__.update(keyword=keyword, type_text=type_text)

    def intake(self, metric: Declared) -> Intake | None:
        return self._intake_of(metric)

    def reader(self, metric: Declared, name: str) -> Reader:
        raise TypeError(f"{type(metric).__name__}._read_rows must check {name}")


class Weights(Input):
    """Weights of rows: multiples of the setting `weight_unit`, or rounded to multiples if the
    setting `round_weights` is True. A metric without these settings takes whole weights.

    per_row: a property with the number of counts of one part to which a row adds its weight.
    """

    keyword = True
    meaning = "[n], at least 0, 1 each by default; a row of weight 0 is ignored"

    def __init__(self, per_row: str | None = None) -> None:
        super().__init__(optional=True)
        self.per_row = per_row

    def reader(self, metric: Declared, name: str) -> Reader:
        raise TypeError("weights are read by `weigh`")

    def intake(self, metric: Declared) -> Intake:
        settings = metric.settings()
        unit, rounding = settings.get("weight_unit", ONE), settings.get("round_weights", False)
        unit = unit if isinstance(unit, Fraction) else ONE
        return weight_intake(unit, rounding=bool(rounding))


_OF_CALLS: Final = ("self", "columns", "where")  # `update`, and `update_from`


# -- all of a metric's inputs -------------------------------------------------------------------
class Inputs:
    """The inputs of a metric by name, in the order of the arguments of `update`.

    All columns have one length. Inputs of ids and weights are given by name only.
    """

    def __init__(self, /, **columns: Input) -> None:
        weights = columns.get("weights")
        self.weights = weights if isinstance(weights, Weights) else None
        self.columns = {k: c for k, c in columns.items() if not isinstance(c, Weights)}
        self.stored_as = {name: c.stored_as for name, c in self.columns.items() if c.stored_as}
        for name, column in columns.items():
            is_taken = hasattr(Batch, name) or name in _OF_CALLS or iskeyword(name)
            if is_taken or not name.isidentifier():
                raise TypeError(f"no input can be called {name!r}: the name is reserved")
            if isinstance(column, Weights) and name != "weights":
                raise TypeError(f"the input of weights must be called weights, not {name!r}")

    def __iter__(self) -> Iterator[tuple[str, Input]]:
        yield from self.columns.items()
        if self.weights:
            yield "weights", self.weights

    def documented(self, sentence: str) -> str:
        """The docstring of `update`: a sentence, and a line for each argument: its shape, what it
        holds, and how it is given."""
        lines = [sentence, ""]
        for name, column in self:
            notes = ["by name only"] * column.keyword + ["may be left out"] * column.optional
            how = f" ({', '.join(notes)})" if notes else ""
            lines.append(f"{name}: {column.meaning}{how}.")
        return "\n".join(lines)

    def intakes(self, metric: Declared) -> dict[str, Intake | None]:
        """The intake of each column; none if rows may need weights."""
        unit = metric.settings().get("weight_unit", ONE) if self.weights else ONE
        if isinstance(unit, Fraction) and unit.numerator != 1:
            return {}
        intakes = {n: c.intake(metric) if _decides(type(c)) else None for n, c in self}
        for name, column in self:
            first, second = intakes.get(column.beside or ""), intakes[name]
            if column.beside and first and second:
                intakes[column.beside], intakes[name] = together(first, second)
        return intakes

    @property
    def waiting(self) -> str:
        """Source: whether the rows of a call wait as they were given."""
        items = [
            f"**({{}} if {n} is None else {{{n!r}: {n}}})" if c.optional else f"{n!r}: {n}"
            for n, c in self
        ]
        wait = f"self._wait({{{', '.join(items)}}})"
        # The fast path begins after a batch that `check` read; others would keep it from that.
        condition = "not self._appendable" + " or weights is not None" * bool(self.weights)
        return f"({condition}) and {wait}" if self.fast else wait

    @property
    def fast(self) -> bool:
        """Whether the buffer's fast path may take these columns."""
        all_fast = all(type(c).validator is not Input.validator for c in self.columns.values())
        return all_fast and len(self.columns) <= MOST_COLUMNS

    def widths(self, metric: Declared) -> dict[str, Widths]:
        """The inputs that are tables, with their widths."""
        widths = {name: column.width(metric) for name, column in self.columns.items()}
        return {name: width for name, width in widths.items() if width}


def _decides(kind: type[Input]) -> bool:
    """Whether the intakes of this kind fit its own `reader`, not one that it replaces."""
    owners = [
        next(owner for owner in kind.__mro__ if name in vars(owner))
        for name in ("reader", "intake", "validator")
    ]
    return issubclass(owners[2] if owners[1] is Input else owners[1], owners[0])


class Bound:
    """The inputs of a metric under its settings; states of equal settings share them."""

    __slots__ = (
        *("_pairs", "_per_row", "_readers", "_rounding", "_unit", "_weighs", "_where"),
        *("plain", "validators"),
    )

    def __init__(self, inputs: Inputs, metric: Declared) -> None:
        columns, weights = inputs.columns, inputs.weights
        self._readers = [
            (name, column.reader(metric, name), column.optional)
            for name, column in columns.items()
            if not isinstance(column, Unchecked)
        ]
        self._where = f"{type(metric).__name__}.update"
        self._pairs = [(column.beside, name) for name, column in columns.items() if column.beside]
        settings = metric.settings() if weights else {}
        unit = settings.get("weight_unit", ONE)
        self._unit = unit if isinstance(unit, Fraction) else ONE
        self._rounding = bool(settings.get("round_weights", False))
        self._weighs = self._unit is not ONE  # rows without weights do not have one quantum
        per_row = weights.per_row if weights else None
        self._per_row: int = getattr(metric, per_row) if per_row else 1
        self.plain = not self._weighs and self._per_row == 1  # if no weights are given
        validators = {name: column.validator(metric) for name, column in columns.items()}
        # The validators of columns that `check` accepts as they are; empty if some has none.
        self.validators: dict[str, Validator] = {}
        if self.plain and None not in validators.values():
            self.validators = {name: v for name, v in validators.items() if v is not None}

    def read(self, arguments: Mapping[str, Any]) -> Batch:
        """Checked columns of one length, or InputError."""
        for pair in self._pairs:
            require_both(arguments, pair, self._where)
        columns: dict[str, Column] = {}
        n = -1
        for name, reader, optional in self._readers:
            values = arguments[name]
            if values is None and optional:
                continue
            column: Any = reader(values)
            if len(column) != n:
                if n >= 0:
                    checks.same_length(n, column, name, next(iter(columns)))
                n = len(column)
            columns[name] = column
        return Batch(n, columns)

    def weigh(self, batch: Batch, weights: Any) -> None:
        """Add the weights to checked rows, or InputError."""
        if weights is not None or self._weighs:
            weigh(batch, weights, self._unit, rounding=self._rounding)
        if self._per_row != 1:
            batch.total *= self._per_row
