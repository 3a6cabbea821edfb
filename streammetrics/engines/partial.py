"""The part common to all engines: rows to partial states, one per group, and their provenance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Final, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine import PerKey
from streammetrics.combine.per_key import require_as_many
from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.checks import check_number
from streammetrics.core.codec import FILE_MAGIC, frame
from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.ids.keys import dictionary_column
from streammetrics.core.provenance import Provenance, encoded_ranges
from streammetrics.core.rows import DictionaryColumn, Scalar
from streammetrics.core.tables import TableRequest, arguments_of, table_error
from streammetrics.core.tables.arrow_values import numbers
from streammetrics.engines.groups import (
    BUCKET,
    STATE,
    Group,
    GroupFields,
    TextGroups,
    columns_of,
    field_of,
    group_names,
    group_types,
    grouped,
    piece_of,
    piece_of_group,
    require_batch,
    typed_groups,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ALL_GROUPS: Final = 1 << 31  # no limit in practice: no group overflows into the others
_MOST_BUCKET: Final = (1 << 31) - 1  # an int32
_MOST_NUMBER: Final = (1 << 63) - 1  # of a task or an offset
_BUCKET_HINT: Final = "pass the number of the task's user bucket, or its column"
_BYTES: Final = 1 << 26  # of states in one emitted batch, unless a single state is larger


@dataclass(frozen=True)
class Task:
    """One task of a job: `job` is chosen once for each job, `number` from 0 identifies the task.

    Each emission notes `job/tasks: [number, number + 1)`, so a retry refuses to merge with the
    first try.
    """

    job: str
    number: int

    def __post_init__(self) -> None:
        hint = "pass another number for each task of the job"
        number = check_number(self.number, 0, _MOST_NUMBER, "Task.number", hint)
        object.__setattr__(self, "number", number)


@dataclass(frozen=True)
class Positions:
    """Columns with the positions of rows: the columns that name a source, and the offset column.

    `Positions(("topic", "partition"), "offset")` notes `clicks/3: [0, 5000)` for a task whose rows
    of that partition have offsets from 0 to 4999. So each task must have its own range, like a task
    that reads a log, or its own group or bucket, like a task after `groupBy`; if rows are sent to
    tasks at random, the ranges overlap and their states refuse to merge.
    """

    source: tuple[str, ...]
    offset: str


def positions_of(provenance: object, where: str) -> Positions | None:
    """The positions to note, if provenance is these and not True or False; SettingsError if it is
    anything else."""
    if isinstance(provenance, bool | Positions):
        return provenance if isinstance(provenance, Positions) else None
    raise SettingsError(
        expected="True, False or Positions",
        got=shown(provenance),
        where=where,
        hint="pass True to note the tasks, or Positions to note the ranges of offsets",
    )


class Counted:
    """The ranges of a task's rows, to be noted for each of its states."""

    def __init__(self, counted: Task | Positions | None) -> None:
        if not isinstance(counted, Task | Positions | None):
            raise SettingsError(
                expected="a Task, Positions or None",
                got=shown(counted),
                where="partial(counted)",
                hint="pass Task(job, number) to note the task, or Positions to note the ranges of "
                "offsets",
            )
        self._positions = counted if isinstance(counted, Positions) else None
        self._ranges: dict[str, tuple[int, int]] = {}
        if isinstance(counted, Task):
            self._ranges[f"{counted.job}/tasks"] = counted.number, counted.number + 1

    def see(self, batch: pa.RecordBatch) -> None:
        """Add the positions of these rows."""
        if self._positions is None or not batch.num_rows:
            return
        for name in (*self._positions.source, self._positions.offset):
            field_of(batch.schema, name, "counted")
        offsets = _offsets(batch.column(self._positions.offset), self._positions.offset)
        sources = grouped(batch, self._positions.source)
        for code, source in enumerate(sources.values):
            source_offsets = offsets[sources.codes == code]
            if not len(source_offsets):
                continue
            name = "/".join(map(str, source if isinstance(source, tuple) else (source,)))
            low, high = self._ranges.get(name, (int(source_offsets[0]), int(source_offsets[0]) + 1))
            self._ranges[name] = (
                min(low, int(source_offsets.min())),
                max(high, int(source_offsets.max()) + 1),
            )

    def note(self, provenance: Provenance, piece: str) -> None:
        """Add the ranges to the provenance, as those of this piece."""
        for source, (start, end) in sorted(self._ranges.items()):
            provenance.add(source, start, end, piece)

    def encoded(self, piece: str) -> bytes:
        """The provenance of a state of this piece, in its bytes."""
        ranges = sorted(self._ranges.items())
        return encoded_ranges([(source, piece, start, end) for source, (start, end) in ranges])


def _offsets(column: pa.Array, name: str) -> NDArray[np.integer]:
    """The offsets of rows; InputError for other values."""
    import pyarrow as pa

    got = ""
    if column.null_count:
        got = f"{column.null_count} nulls"
    elif not pa.types.is_integer(column.type):
        got = str(column.type)
    else:
        offsets = cast("NDArray[np.integer]", numbers(column))
        low, high = int(offsets.min()), int(offsets.max())
        if low >= 0 and high <= _MOST_NUMBER:
            return offsets
        got = shown(low if low < 0 else high)
    raise InputError(
        expected=f"an offset in each row, an integer from 0 to {_MOST_NUMBER}",
        got=got,
        where=f"column {name!r}",
        hint="leave these rows out, or pass a Task instead",
    )


def partial(
    batches: Iterable[pa.RecordBatch],
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
    bucket: int | str = 0,
    counted: Task | Positions | None = None,
    sealing: Sealing | None = None,
) -> Iterator[pa.RecordBatch]:
    """Batches of (by..., bucket int32, state binary): one row per group, after all input batches.

    A state is an envelope, the format of `save`: the state with its provenance.

    spec: an empty accumulator. columns: argument of its `update` -> column of the batches
    (default: the same names) or expression of columns; where: the condition on rows; both as in
    `Accumulator.update_from`. by: group columns, of strings, integers or bools; a null is its own
    group. bucket: the number of the task's user bucket, from 0 to 2³¹ - 1, or its column; the rows
    of each bucket have their own states. counted: the provenance of each state. sealing: seal each
    state; its users must be complete in this task, see `seal`.

    Raises InputError for rows that the metric refuses, for missing columns, and for group columns
    whose type differs between batches; SettingsError for arguments of other types.

    >>> import pyarrow as pa
    >>> from streammetrics import Ratio
    >>> from streammetrics.engines import merged
    >>> rows = pa.record_batch({"variant": ["a", "b", "a"], "clicks": [1, 0, 0]})
    >>> (made,) = partial([rows], Ratio(), ["variant"], columns={"numerators": "clicks"})
    >>> made["variant"].to_pylist(), merged(made["state"].to_pylist()).compute().ratio
    (['a', 'b'], 0.3333333333333333)
    """
    if not isinstance(bucket, str):
        bucket = check_number(bucket, 0, _MOST_BUCKET, "partial(bucket)", _BUCKET_HINT)
    if not isinstance(sealing, Sealing | None):
        raise SettingsError(
            expected="a Sealing or None",
            got=shown(sealing),
            where="partial(sealing)",
            hint="pass Sealing(of, n_buckets, hash, scope), or leave it out for open states",
        )
    ranges, request = Counted(counted), TableRequest({}, "partial", columns, where)
    states = StatesOfGroups(spec, by, request, bucket if isinstance(bucket, str) else None)
    for batch in batches:
        states.update(batch)
        ranges.see(batch)
    if states.fields is not None:
        n_by = len(states.group_fields.by)
        schema = _states_schema(states.fields[:n_by])
        yield from _emitted(_rows_of(states, bucket, ranges, sealing), schema, n_by)


def states_by_group(
    batches: Iterable[pa.RecordBatch],
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
) -> Iterator[tuple[Group, Accumulator]]:
    """(group, state) of each group of the rows of all batches: what `partial` emits as bytes, for a
    program that reads the states itself.

    Without `by`, all rows are one group, `()`; no rows have no group. The groups are in the order
    of their keys. spec, by, columns and where: as in `partial`; a bool stays a bool. The states do
    not depend on how the rows are cut into batches; many rows at once cost less a row.

    Raises InputError for rows that the metric refuses, for missing columns, and for group columns
    whose type differs between batches.

    >>> import pyarrow as pa
    >>> from streammetrics import Ratio
    >>> rows = pa.record_batch({"variant": ["a", "b", "a"], "clicks": [1, 0, 0]})
    >>> states = states_by_group([rows], Ratio(), ["variant"], columns={"numerators": "clicks"})
    >>> {group: state.compute().ratio for group, state in states}
    {('a',): 0.5, ('b',): 0.0}
    """
    states = StatesOfGroups(spec, by, TableRequest({}, "states_by_group", columns, where))
    for batch in batches:
        states.update(batch)
    groups = states.groups()
    yield from zip(
        typed_groups(groups, states.fields or ()), map(states.state, groups), strict=True
    )


class StatesOfGroups:
    """The states of the groups of rows: one state if there are no columns of groups.

    bucket: a column whose values are the last of a group.
    """

    def __init__(
        self,
        spec: Accumulator,
        by: Sequence[str],
        request: TableRequest,
        bucket: str | None = None,
    ) -> None:
        self.spec, self.request = spec, request
        names = group_names(by)
        self.by = names if bucket is None else (*names, bucket)
        self.group_fields = GroupFields(names, bucket)
        self.per_key = PerKey(spec, max_keys=_ALL_GROUPS)
        self.whole: Accumulator | None = None  # of all rows, where no column tells groups apart
        self.texts = TextGroups()  # of the only column

    @property
    def fields(self) -> list[pa.Field] | None:
        """The output fields of the columns of groups; None before the first batch."""
        return self.group_fields.fields

    def update(self, batch: pa.RecordBatch) -> None:
        """Count the rows of a batch, all or none."""
        require_batch(batch, self.request.where)
        self.group_fields.see(batch.schema)
        if not batch.num_rows:
            return
        # Not `update`: its argument `keys` may also be a column of the metric.
        arguments, kept_rows = arguments_of(self.spec, batch, self.request)
        n = batch.num_rows if kept_rows is None else len(kept_rows)
        if not n:
            return
        try:
            rows = self.spec.check(**arguments)
        except InputError as error:
            raise table_error(error, kept_rows) from None
        require_as_many(n, rows.n, "by")
        if not self.by:
            self.whole = self.per_key.metric.empty() if self.whole is None else self.whole
            self.whole.update_checked(rows)
            return
        groups = self._groups_of(batch, kept_rows)
        self.per_key._update(Batch(rows.n, {"keys": groups, "rows": rows}, rows.total))

    def _groups_of(
        self, batch: pa.RecordBatch, kept_rows: NDArray[np.intp] | None
    ) -> DictionaryColumn:
        """The group of each of these rows."""
        if len(self.by) == 1:
            index = self.per_key.states.index[0]
            column = self.texts.column(batch.column(self.by[0]), kept_rows, index)
            if column is not None:
                return column
        groups = dictionary_column(grouped(batch, self.by), "by")
        return (
            groups
            if kept_rows is None
            else DictionaryColumn(groups.codes[kept_rows], groups.values)
        )

    def groups(self) -> list[Group]:
        """The groups, in the order of their keys."""
        if not self.by:
            return [()] if self.whole is not None else []
        return cast("list[Group]", [*self.per_key.keys()])  # a key of columns is a tuple

    def state(self, group: Group) -> Accumulator:
        """The state of one of them."""
        return self.per_key.state(group) if self.whole is None else self.whole

    def encoded(self) -> Iterator[bytes]:
        """The bytes of the state of each."""
        return self.per_key._bytes_by_key() if self.whole is None else iter([self.whole.to_bytes()])


def _rows_of(
    states: StatesOfGroups, bucket: int | str, ranges: Counted, sealing: Sealing | None
) -> Iterator[tuple[Group, int, bytes]]:
    keys = states.groups()
    if isinstance(bucket, str):  # all are checked before the first row
        places = [(key[:-1], _bucket(key[-1], bucket)) for key in keys]
    else:
        places = [(key, bucket) for key in keys]
    encoded = states.encoded() if sealing is None else repeat(b"")
    for key, (group, number), data in zip(keys, places, encoded, strict=sealing is None):
        piece = piece_of(group, number)
        if sealing is not None:
            state = states.state(key)
            ranges.note(state.provenance, piece)
            sealed = seal(state, sealing, number, piece_of_group(group))
            yield group, number, sealed.to_file_bytes()
        else:
            yield group, number, frame(FILE_MAGIC, ranges.encoded(piece), data)


def _bucket(number: Scalar, column: str) -> int:
    """The number of a bucket in this column; InputError for any other value."""
    if isinstance(number, int) and 0 <= number <= _MOST_BUCKET:
        return number
    raise InputError(
        expected=f"the number of the user bucket, from 0 to {_MOST_BUCKET}, in each row",
        got=shown(number),
        where=f"column {column!r}",
        hint="compute the bucket from the hash of a user that is never null",
    )


def _emitted(
    states: Iterable[tuple[Group, int, bytes]], schema: pa.Schema, n_by: int
) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa

    waiting: list[tuple[Group, int, bytes]] = []
    size = 0

    def batch() -> pa.RecordBatch:
        groups, buckets, data = zip(*waiting, strict=True)
        arrays = columns_of(groups, list(schema)[:n_by])
        arrays += [pa.array(buckets, pa.int32()), pa.array(data, pa.binary())]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    for row in states:
        if waiting and size + len(row[2]) > _BYTES:
            yield batch()
            waiting, size = [], 0
        waiting.append(row)
        size += len(row[2])
    if waiting:
        yield batch()


def states_schema(schema: pa.Schema, by: Sequence[str]) -> pa.Schema:
    """(by..., bucket int32, state binary) for rows of this schema.

    >>> import pyarrow as pa
    >>> states_schema(pa.schema({"variant": pa.string(), "score": pa.float32()}), ["variant"]).names
    ['variant', 'bucket', 'state']
    """
    return _states_schema(group_types(schema, group_names(by)))


def _states_schema(fields: Sequence[pa.Field]) -> pa.Schema:
    import pyarrow as pa

    return pa.schema([*fields, pa.field(BUCKET, pa.int32()), pa.field(STATE, pa.binary())])


def update_from(
    state: Accumulator,
    batch: pa.RecordBatch,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
) -> None:
    """`state.update_from(batch, columns=columns, where=where)`, and nothing for a batch without
    rows.

    columns and where: as in `partial`. If it raises InputError, the state is unchanged.
    """
    if batch.num_rows:
        state.update_from(batch, columns=columns, where=where)
