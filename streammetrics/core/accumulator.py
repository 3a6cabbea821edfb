"""Accumulator: the base class of metrics, with all that follows from their declarations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from os import PathLike
from typing import Any, ClassVar, Final, Never, Self, TypeVar, cast

import numpy as np

from streammetrics.core.batch import Batch
from streammetrics.core.buffer import Buffer
from streammetrics.core.codec import (
    FILE_MAGIC,
    STATE_MAGIC,
    Encoded,
    Reader,
    Stack,
    Writer,
    bytes_of,
    frame,
    header_bytes,
    named_hash,
    opened,
    unframe,
    write_file,
)
from streammetrics.core.conversion import instance
from streammetrics.core.errors import InputError, SettingsError, StateError
from streammetrics.core.interval import Interval, interval_of
from streammetrics.core.joint_rows import RowsInPairs
from streammetrics.core.layouts import columns, written
from streammetrics.core.parts.part import SLOT_0, Column, Slots
from streammetrics.core.provenance import Provenance
from streammetrics.core.settings import Content, Setting, decode_head, nested_settings
from streammetrics.core.slips import NoItems, explained, operands
from streammetrics.core.tables import Names, Table, TableRequest, arguments_of, table_error
from streammetrics.core.updates import MAX_TOTAL_COUNT, Updates

A = TypeVar("A")
_MOST_RELATED: Final = 256


class Accumulator(Updates, RowsInPairs, NoItems):
    """A metric's state: a commutative monoid with `update`, `merge`, `+` and `compute`.

    A metric declares settings, inputs and parts (see Declared) and adds `_accumulate` and
    `compute`; the rest is here.
    """

    # Set on each instance; `ClassVar` only marks them as not being settings.
    _width: ClassVar[int]
    _provenance: ClassVar[Provenance | None]

    # -- rows: generated from the inputs; `Any`, as each metric has its own arguments -----------
    def update(self, *args: Any, **columns: Any) -> None:
        """Count these rows, or raise InputError and change nothing."""
        raise NotImplementedError

    def check(self, *args: Any, **columns: Any) -> Batch:
        """Return the batch that `update` would count, or raise its InputError; change nothing."""
        raise NotImplementedError

    @explained
    def update_from(
        self,
        table: Table,
        /,
        *,
        columns: Mapping[str, Names] | None = None,
        where: str | None = None,
        **names: Names,
    ) -> None:
        """Count the rows of a table: of pandas, polars, Arrow (anything with its PyCapsule
        interface, such as a relation of DuckDB), or a dict of arrays; all rows or none.

        names: the column of each argument of `update`; several columns are a table [n, columns]
        where the argument takes one, else a tuple in each row. An argument that is not named has
        the column of its own name; other columns are ignored. `key` is short for `keys`, which may
        be a dict, and `time` for `times_ms`. Texts, categories, lists and times with a zone are
        what `update` takes; a `datetime64` without a zone is in UTC. InputError: no such column.

        columns: expressions of the table's columns, by argument or by the name of a new column,
        such as `{"gain": "reward * weight"}`; see `Expression`. A name is also an expression.
        where: a condition such as `"surface == 'search' and dwell_s >= 30"`; only the rows that
        meet it are counted, and nothing is computed in the others. InputError where a row has no
        value because a column that decides it has none.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update_from({"click": [1, 0, 1, 1], "day": [1, 1, 2, 2]}, numerators="click")
        >>> ctr.compute().ratio
        0.75
        >>> long = Ratio()
        >>> rows = {"dwell_s": [12, 45, 31, 8], "surface": ["search", "search", "search", "home"]}
        >>> columns = {"numerators": "dwell_s >= 30"}
        >>> long.update_from(rows, columns=columns, where="surface == 'search'")
        >>> long.compute().numerator, long.compute().denominator
        (2.0, 3.0)
        """
        request = TableRequest(names, f"{type(self).__name__}.update_from", columns, where)
        arguments = arguments_of(self, table, request)
        try:
            self.update(**arguments.values)
        except InputError as error:
            raise table_error(error, arguments.kept) from None

    # -- defined by a metric --------------------------------------------------------------
    def update_checked(self, batch: Batch) -> None:
        """Count a batch from `check` of an equal metric, without checking it again: for callers
        that check the rows of several metrics before any of them counts."""
        self._update(instance(batch, Batch, "update_checked", "a batch of check(...)", "pass one"))

    @abstractmethod
    def compute(self) -> object:
        """The result; pure, nan where undefined. Calls `_flush()` first, as all readers must."""

    def _compute_all(self, slots: Slots) -> Sequence[object]:
        """The result of each of these states; `compute` of a metric that has this is the first."""
        return [self._take(slots[i : i + 1]).compute() for i in range(len(slots))]

    def confidence_interval(
        self,
        *,
        level: float = 0.95,
        method: str = "auto",
        cluster: str = "auto",
        view: object = None,
    ) -> Interval:
        """The confidence interval of a view of the result; None: of the first one.

        It is the `interval` of the result, with the same methods. cluster: "none" takes rows or
        lists as independent; "auto" does so too, and the reason says it; for "groups", by user, use
        `UserGroups`. Too few rows are never an error: the interval is infinite, with a reason.
        """
        return interval_of(self.compute(), self, view, level, method, cluster)

    def _rows_text(self) -> str:
        if not (self._total_count or self._pending) or self._width != 1:
            return ""
        try:
            rows = self._rows_shown(self.compute())
        except Exception:  # a metric's own, in the middle of a message about something else
            return ""
        return f": {rows:,} row{'s' * (rows != 1)}" if isinstance(rows, int) and rows else ""

    def _rows_shown(self, result: object) -> object:
        """The rows that a result is of, if it says so."""
        return getattr(result, "rows", None)

    # -- updating -------------------------------------------------------------------------
    def _begin(self, width: int) -> None:
        self.__dict__.update(_total_count=0, _buffer=Buffer(), _given=None, _provenance=None)
        super()._begin(width)

    def _require_room(self, n_added: int, where: str) -> None:
        self._flush()
        if self._total_count + n_added > MAX_TOTAL_COUNT:
            self.__dict__["_total_count"] = self._exact_total_count()
        if self._total_count + n_added > MAX_TOTAL_COUNT:
            raise StateError(
                expected=f"at most {MAX_TOTAL_COUNT} rows (or weight quanta) in one state",
                got=f"{self._total_count} and {n_added} more",
                where=f"{type(self).__name__}.{where}",
                hint="keep separate states, for example one per day",
            )

    def _exact_total_count(self) -> int:
        self._flush()
        return max([column.total_count for column in self._held()], default=0)

    def _held(self) -> list[Column]:
        """The state of each part."""
        return [self.__dict__[name] for name in self._parts]

    # -- the monoid -----------------------------------------------------------------------
    def empty(self) -> Self:
        """The identity: the same settings and no rows."""
        return self._empty(1)

    def reset(self) -> None:
        """Forget all rows, and their provenance; the settings stay.

        >>> from streammetrics import Ratio
        >>> clicks = Ratio()
        >>> clicks.update([1, 0])
        >>> clicks.reset()
        >>> clicks.compute().rows
        0
        """
        self._begin(1)

    def _empty(self, width: int) -> Self:
        new = self._bare()
        new._begin(width)
        return new

    def _bare(self) -> Self:
        """An instance with these settings; the caller must set its state."""
        new, shared = object.__new__(type(self)), self._fixed
        new.__dict__.update(shared, _fixed=shared)
        return new

    @cached_property
    def _fixed(self) -> dict[str, Any]:
        """What all states made from this one share: the settings, and what follows from them."""
        self._head()
        names = {*self._settings, "_head_bytes", "schema", "_parts"} & self.__dict__.keys()
        return {name: self.__dict__[name] for name in names}

    def _related(self, name: Hashable, metric: Callable[[], A]) -> A:
        """An empty metric whose settings follow from these and the name: its settings are checked
        once for all states made from this one."""
        related = cast("dict[Hashable, A]", self._fixed.setdefault("_related_metrics", {}))
        if name not in related:
            if len(related) >= _MOST_RELATED:
                related.clear()
            related[name] = metric()
        return related[name]

    def _holding(self, columns: Mapping[str, Column], width: int, total: int) -> Self:
        """An instance with these settings and this state."""
        new, fresh = self._bare(), {"_buffer": Buffer(), "_given": None, "_provenance": None}
        new.__dict__.update(columns, _total_count=total, _width=width, **fresh)
        return new

    def merge(self, other: Self | Iterable[Self], *further_states: Never) -> None:
        """Add the rows of another state, or of several; the others do not change.

        SettingsError where settings differ, OverlapError where provenance says that rows would
        count twice, StateError where a count would overflow; each changes nothing.
        """
        if further_states:
            raise SettingsError(
                expected="one state, or a list of states",
                got=f"{1 + len(further_states)} arguments",
                where=f"{type(self).__name__}.merge",
                hint="pass a list: total.merge([a, b])",
            )
        if isinstance(other, Accumulator):
            self._merge(other)
            return
        total = self.empty()
        for state in cast("Iterable[Self]", operands(other)):
            total._merge(state)
        self._merge(total)

    def _merge(self, other: Accumulator) -> None:
        self._require_same_settings(other)
        counted = self.provenance.united(other.provenance) if other._provenance else None
        self._flush()
        other._flush()
        total_count = other._total_count
        if self._total_count + total_count > MAX_TOTAL_COUNT:
            total_count = other._exact_total_count()
            self._require_room(total_count, "merge")
        to = SLOT_0 if other._width == 1 else np.zeros(other._width, np.intp)
        self._merge_slots(other.copy() if other is self else other, to)
        self.__dict__["_total_count"] += total_count
        if counted is not None:
            self.provenance.accept(counted)

    def _merge_slots(self, other: Accumulator, to: Slots) -> None:
        """Add state i of `other` to state `to[i]`."""
        self._flush()
        other._flush()
        state, other_state = self.__dict__, other.__dict__
        for name in self._parts:
            state[name].merge(other_state[name], to)

    def _widen(self, width: int) -> None:
        for column in self._held():
            column.widen(width)
        self.__dict__["_width"] = width

    def _take(self, slots: Slots) -> Self:
        """The states of these slots, in this order, as an accumulator of their own."""
        self._flush()
        columns = {name: self.__dict__[name].take(slots) for name in self._parts}
        return self._holding(columns, len(slots), self._total_count)

    def __add__(self, other: Self) -> Self:
        operand: object = other
        if not isinstance(operand, Accumulator) and hasattr(type(operand), "__radd__"):
            return NotImplemented  # another type may know how to add a state
        self._require_same_settings(other)
        total = self.empty()  # not a copy, which would sort some states
        total._merge(self)
        total._merge(other)
        return total

    def __radd__(self, other: int) -> Self:
        if other == 0:  # the start of sum()
            return self.copy()
        if isinstance(other, (bytes, bytearray, memoryview, str, PathLike)):
            self._require_same_settings(other)
        return NotImplemented

    def copy(self) -> Self:
        """An independent state with the same rows and provenance."""
        new = self._take(SLOT_0 if self._width == 1 else np.arange(self._width))
        if self._provenance:
            new.__dict__["_provenance"] = self._provenance.copy()
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Accumulator) or type(other) is not type(self):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    @property
    def provenance(self) -> Provenance:
        """The source ranges counted here, if recorded; not part of bytes, digest and `==`."""
        provenance = self._provenance
        if provenance is None:
            provenance = self.__dict__["_provenance"] = Provenance()
        return provenance

    @property
    def idempotent(self) -> bool:
        """Whether `a + a == a`, as for sets: then it does not matter how often a row is counted."""
        return all(part.idempotent(self) for part in self._parts.values())

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the state holds."""
        pending = self._buffer.nbytes + (self._given.nbytes if self._given else 0)
        return int(pending + sum([column.nbytes for column in self._held()]))

    # -- bytes ----------------------------------------------------------------------------
    def to_bytes(self) -> bytes:
        """The canonical bytes: equal states have equal bytes, on every machine."""
        return self.encoded().data

    def encoded(self) -> Encoded:
        """`to_bytes()`, and the positions of its arrays of integers, which help to compress it."""
        out = Writer()
        self._encode(out)
        data = frame(STATE_MAGIC, self._head(), *out.chunks)
        return Encoded(data, out.arrays_from(len(header_bytes(data))))

    def _encode(self, out: Writer) -> None:
        self._flush()
        for column in written(self, out):
            column.encode(out)

    def _decode(self, width: int, data: Reader) -> Self:
        """The states of `width` slots, as written by `_encode` under these settings."""
        return self._read(columns(self, data, width, lambda p: p.decode(self, width, data)), width)

    def _decode_stack(self, stack: Stack) -> Self:
        """The states in the rows of a stack, side by side; Unlike if they must be read singly."""
        part_columns = columns(self, stack, stack.n, lambda part: part.decode_stack(self, stack))
        return self._read(part_columns, stack.n)

    def _read(self, columns: Mapping[str, Column], width: int) -> Self:
        """An accumulator of columns that were read; StateError if no rows can have given them."""
        new = self._holding(columns, width, 0)
        bound = max([column.bound for column in columns.values()], default=0)
        if bound > MAX_TOTAL_COUNT:
            bound = new._exact_total_count()
            new._require_room(bound, "from_bytes")
        new.__dict__["_total_count"] = bound
        new._require_possible()
        return new

    def _require_possible(self) -> None:
        """StateError unless rows can have given these states, which were just read."""

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The state that `to_bytes` wrote; StateError for anything else."""
        head, reader = opened(STATE_MAGIC, data)
        specification, reader.lacking = decode_head(head)
        if not isinstance(specification, cls):
            raise StateError(
                expected=f"a state of {cls.__name__}",
                got=f"a state of {type(specification).__name__}",
                where="state bytes",
                hint="read it with streammetrics.load, which reads every metric",
            )
        state = specification._decode(1, reader)
        reader.finish()
        return state

    def digest(self) -> str:
        """`sha256:` and the hash of `to_bytes()`: equal for equal rows, however counted."""
        return named_hash(self.to_bytes())

    def to_file_bytes(self) -> bytes:
        """An envelope that holds the state and, beside it, its provenance."""
        return frame(FILE_MAGIC, self.provenance.to_json(), self.to_bytes())

    @classmethod
    def from_file_bytes(cls, data: bytes) -> Self:
        """The state that `to_file_bytes` wrote, with its provenance; StateError for others."""
        head, body = unframe(FILE_MAGIC, data)
        state = cls.from_bytes(bytes(body))
        state.__dict__["_provenance"] = Provenance.from_json(head)
        return state

    def save(self, path: str | PathLike[str]) -> None:
        """Write a state file; `load` reads it."""
        write_file(path, self.to_file_bytes())

    @classmethod
    def load(cls, source: bytes | str | PathLike[str]) -> Self:
        """The state of this class in a file, or in these bytes (`to_bytes` or `to_file_bytes`).

        `streammetrics.load` reads states of every class. StateError for anything else.

        >>> from streammetrics import Ratio
        >>> Ratio.load(Ratio().to_bytes())
        Ratio()
        """
        data, path = bytes_of(source)
        try:
            in_file = data[: len(FILE_MAGIC)] == FILE_MAGIC
            return cls.from_file_bytes(data) if in_file else cls.from_bytes(data)
        except StateError as error:
            raise error.but(where=path or error.where) from None

    def __reduce__(self) -> tuple[object, ...]:
        # A state file, and the settings if bytes hold only the hash of some, or lack them.
        if self._width != 1:  # of a result: the states side by side, each one a state file
            states = [self._take(np.array([slot], np.intp)) for slot in range(self._width)]
            return (type(self)._side_by_side, (self._empty(1), states))
        settings = nested_settings(self)
        if any(isinstance(v, Content) or getattr(v, "_unwritten", ()) for v in settings):
            return (type(self)._continued, (dict(self.settings()), self.to_file_bytes()))
        return (type(self).from_file_bytes, (self.to_file_bytes(),))

    @classmethod
    def _continued(cls, settings: Mapping[str, Setting], data: bytes) -> Self:
        """The state in a file, under settings that its bytes do not hold."""
        return cls(**settings) + cls.from_file_bytes(data)

    @classmethod
    def _side_by_side(cls, empty: Self, states: Sequence[Self]) -> Self:
        new = empty._empty(len(states))
        for slot, state in enumerate(states):
            new._merge_slots(state, np.array([slot], np.intp))
            new.__dict__["_total_count"] += state._total_count
        return new
