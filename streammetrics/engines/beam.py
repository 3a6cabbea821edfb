"""Apache Beam: states of Arrow tables, their merge and their results, as PTransforms.

Rows are Arrow tables or batches, such as those of `ReadFromParquetBatched`, never single rows.
A state is bytes (an envelope: the state with its provenance), so that states can be written, read
again, and merged by any other engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import randbits, token_hex
from typing import TYPE_CHECKING, Final, TypeAlias, cast

try:
    import apache_beam as beam
except ImportError as error:
    raise ImportError(
        "streammetrics.engines.beam needs apache_beam: "
        "pip install '.[beam]' in a clone of streammetrics"
    ) from error

from apache_beam.coders import Coder, registry
from apache_beam.coders.coders import NullableCoder
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.windowed_value import WindowedValue

from streammetrics.combine.sealed import Sealed, Sealing, seal
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError
from streammetrics.engines.groups import (
    HASH,
    Group,
    field_of,
    group_names,
    piece_of_group,
    require_users,
    user_buckets,
)
from streammetrics.engines.merging import (
    merge_once,
    merged,
    read_state,
    require_no_result_names,
    require_replay,
    results_rows,
)
from streammetrics.engines.partial import Positions, Task, partial, positions_of, update_from
from streammetrics.registry import load, metric_types

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Aggregate", "Merge", "Results", "StateCoder", "States", "StatesFn"]

# A Group here has the values of `by`, and the bucket last until states are merged.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | tuple[int, pa.Table]"

TASK_ROWS: Final = 1 << 20  # rows of a bundle that are counted as one task
_BATCH_ROWS: Final = 1 << 16
_BUCKET: Final = "streammetrics_bucket"
_NUMBER_BITS: Final = 62


def batches_of(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The batches of a table, of at most 65,536 rows each; a batch is returned unchanged."""
    if hasattr(rows, "to_batches"):
        batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=_BATCH_ROWS)
        return batches
    return [rows]


class StateCoder(Coder):  # type: ignore[misc]  # Beam is not there when types are checked
    """A state as its envelope, for exchange between workers: equal states with equal provenance
    have equal bytes."""

    def encode(self, value: Accumulator) -> bytes:
        return value.to_file_bytes()

    def decode(self, encoded: bytes) -> Accumulator:
        return load(encoded)

    def is_deterministic(self) -> bool:
        return True

    def to_type_hint(self) -> type[Accumulator]:
        return Accumulator

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


for _kind in (Accumulator, Sealed, *metric_types().values()):
    registry.register_coder(_kind, StateCoder)


class StatesFn(beam.CombineFn):  # type: ignore[misc]
    """Combines states, or rows, into one state: for `CombinePerKey` and `CombineGlobally`.

    Takes states as bytes, and with a `spec` also Arrow tables and batches of rows, for which no
    provenance is noted. Gives the bytes of the sum. Without a `spec` there must be at least one
    state: `CombineGlobally(StatesFn()).without_defaults()`.

    spec: an empty accumulator. columns: argument of its `update` -> column of the tables, or
    expression of columns; where: the condition on rows; as in `Accumulator.update_from`.
    replay: "refuse" states that count the same rows, or "skip" states already fully counted.

    >>> from streammetrics import Ratio, load
    >>> fn = StatesFn(Ratio())
    >>> clicks = Ratio()
    >>> clicks.update([1, 0])
    >>> sum_of_two = fn.add_input(fn.add_input(None, clicks.to_bytes()), clicks.to_bytes())
    >>> load(fn.extract_output(sum_of_two)).compute().denominator
    4.0
    """

    def __init__(
        self,
        spec: Accumulator | None = None,
        *,
        columns: Mapping[str, str] | None = None,
        where: str | None = None,
        replay: str = "refuse",
    ) -> None:
        super().__init__()
        require_replay(replay)
        self._spec = spec
        self._columns, self._where = columns, where
        self._replay = replay

    def create_accumulator(self) -> Accumulator | None:
        return None if self._spec is None else self._spec.empty()

    def add_input(
        self, mutable_accumulator: Accumulator | None, element: bytes | pa.Table | pa.RecordBatch
    ) -> Accumulator | None:
        if isinstance(element, bytes):
            added = read_state(element)
            return added if mutable_accumulator is None else self._sum(mutable_accumulator, added)
        state = mutable_accumulator
        if state is None or self._spec is None:
            raise InputError(
                expected="states as bytes, because StatesFn has no spec",
                got=type(element).__name__,
                where="StatesFn",
                hint="pass the spec, StatesFn(spec), to count rows",
            )
        for batch in batches_of(element):
            update_from(state, batch, self._columns, self._where)
        return state

    def merge_accumulators(self, accumulators: Iterable[Accumulator | None]) -> Accumulator | None:
        # Beam allows changes to the first accumulator only; the others may be in use elsewhere.
        total: Accumulator | None = None
        for number, state in enumerate(accumulators):
            if total is not None and state is not None:
                total = self._sum(total, state)
            elif state is not None:
                total = state.copy() if number else state
        return total

    def extract_output(self, accumulator: Accumulator | None) -> bytes:
        if accumulator is None:
            raise InputError(
                expected="at least one state, because StatesFn has no spec",
                got="none",
                where="StatesFn",
                hint="pass the spec, or use CombineGlobally(StatesFn()).without_defaults()",
            )
        return accumulator.to_file_bytes()

    def get_accumulator_coder(self) -> Coder:
        return NullableCoder(StateCoder())

    def _sum(self, total: Accumulator, state: Accumulator) -> Accumulator:
        merge_once(total, state, self._replay)
        return total


class Counting(beam.DoFn):  # type: ignore[misc]
    """Tables of a bundle to states: tables of a window are buffered up to TASK_ROWS rows."""

    def __init__(
        self,
        spec: Accumulator,
        by: tuple[str, ...],
        columns: Mapping[str, str] | None,
        where: str | None,
        sealing: Sealing | None,
        counted: str | Positions | None,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._by = by
        self._columns, self._where = columns, where
        self._sealing = sealing
        self._counted = counted
        self._waiting: dict[BoundedWindow, list[pa.RecordBatch]] = {}

    def start_bundle(self) -> None:
        self._waiting = {}

    def process(
        self, element: Rows, window: BoundedWindow = beam.DoFn.WindowParam
    ) -> Iterator[tuple[Group, bytes]]:
        if isinstance(element, tuple):
            number, table = element
            yield from self._states(batches_of(table), number)
            return
        if isinstance(self._counted, Positions):
            yield from self._states(batches_of(element))
            return
        waiting = self._waiting.setdefault(window, [])
        waiting.extend(batches_of(element))
        if sum(batch.num_rows for batch in waiting) >= TASK_ROWS:
            yield from self._states(self._waiting.pop(window))

    def finish_bundle(self) -> Iterator[WindowedValue]:
        for window, batches in self._waiting.items():
            for pair in self._states(batches):
                yield WindowedValue(pair, window.max_timestamp(), [window])
        self._waiting = {}

    def _states(
        self, batches: Iterable[pa.RecordBatch], number: int | None = None
    ) -> Iterator[tuple[Group, bytes]]:
        counted: Task | Positions | None
        if isinstance(self._counted, str):
            counted = Task(self._counted, randbits(_NUMBER_BITS) if number is None else number)
        else:
            counted = self._counted
        if self._sealing is not None:
            batches = (_with_bucket(batch, self._sealing) for batch in batches)
        for state_batch in partial(
            batches,
            self._spec,
            self._by,
            columns=self._columns,
            where=self._where,
            bucket=0 if self._sealing is None else _BUCKET,
            counted=counted,
        ):
            *group, states = (column.to_pylist() for column in state_batch.columns)
            yield from zip(zip(*group, strict=True), states, strict=True)


def _with_bucket(batch: pa.RecordBatch, sealing: Sealing) -> pa.RecordBatch:
    field_of(batch.schema, sealing.of, "user")
    buckets = user_buckets(batch.column(sealing.of), sealing.n_buckets)
    return batch.append_column(_BUCKET, buckets)


class States(beam.PTransform):  # type: ignore[misc]
    """Tables of rows to pairs ((values of `by`..., bucket), bytes of a state).

    Takes Arrow tables and batches, or pairs (number, table) with a number from 0 for each table.

    spec: an empty accumulator. by: group columns, of strings, integers or bools; a null is its own
    group. columns: argument of the spec's `update` -> column of the tables (default: the same
    names), or expression of columns; where: the condition on rows; as in
    `Accumulator.update_from`.

    provenance: True notes each task of this job: by the number of a numbered table, so that a
    table counted twice refuses to merge, else by a random number for each emission, so that a
    state merged twice refuses. `Positions` notes the positions of the rows; each table must have
    its own range of them. False notes nothing. job: the name of the job (default: a random one).
    With a name of your own and numbered tables, a second run of the job refuses to merge with the
    first.

    user, n_buckets, scope: with these, the rows of one user are in one task and states are sealed:
    each of `n_buckets` buckets of each group is one small state. Without them states are open,
    one or more for each group, with bucket 0.

    Memory of a task: `TASK_ROWS` rows and their states; with buckets also the open state of one
    bucket of one group.
    """

    def __init__(
        self,
        spec: Accumulator,
        by: Sequence[str] = (),
        *,
        columns: Mapping[str, str] | None = None,
        where: str | None = None,
        user: str | None = None,
        n_buckets: int | None = None,
        scope: str = "",
        provenance: Positions | bool = True,
        job: str | None = None,
    ) -> None:
        super().__init__()
        require_users(user, n_buckets)
        positions = positions_of(provenance, "States.provenance")
        self._sealing: Sealing | None = None
        if user is not None and n_buckets is not None:
            self._sealing = Sealing(user, n_buckets, HASH, scope)
        counted: str | Positions | None = positions
        if provenance is True:
            counted = f"beam-{token_hex(8)}" if job is None else job
        self._counting = Counting(spec, group_names(by), columns, where, self._sealing, counted)

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        states = pcoll | "count" >> beam.ParDo(self._counting)
        if self._sealing is None:
            return states
        # No CombineFn, because its local half would keep every open state of a bundle.
        return (
            states
            | "meet" >> beam.GroupByKey()
            | "seal" >> beam.Map(_sealed, sealing=self._sealing)
        )


class Merge(beam.PTransform):  # type: ignore[misc]
    """Pairs ((values of `by`..., bucket), state) to one pair (values of `by`, state) per group.

    replay: as in StatesFn. fanout: the number of workers that share the first merge of a group,
    for groups with very many states.
    """

    def __init__(self, *, replay: str = "refuse", fanout: int | None = None) -> None:
        super().__init__()
        require_replay(replay)
        self._replay = replay
        self._fanout = fanout

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        combine = beam.CombinePerKey(StatesFn(replay=self._replay))
        if self._fanout is not None:
            combine = combine.with_hot_key_fanout(self._fanout)
        return pcoll | "drop the bucket" >> beam.Map(_without_bucket) | "merge" >> combine


class Results(beam.PTransform):  # type: ignore[misc]
    """Pairs (values of `by`, state) to a dict (by..., metric, view, value, low, high) per view."""

    def __init__(self, by: Sequence[str] = ()) -> None:
        super().__init__()
        self._by = group_names(by)
        require_no_result_names(self._by)

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        return pcoll | "compute" >> beam.FlatMap(_results, by=self._by)


class Aggregate(beam.PTransform):  # type: ignore[misc]
    """Tables of rows to results: `States`, `Merge` and `Results`, with their arguments."""

    def __init__(
        self,
        spec: Accumulator,
        by: Sequence[str] = (),
        *,
        columns: Mapping[str, str] | None = None,
        where: str | None = None,
        user: str | None = None,
        n_buckets: int | None = None,
        scope: str = "",
        provenance: Positions | bool = True,
        job: str | None = None,
        fanout: int | None = None,
    ) -> None:
        super().__init__()
        self._states = States(
            spec,
            by,
            columns=columns,
            where=where,
            user=user,
            n_buckets=n_buckets,
            scope=scope,
            provenance=provenance,
            job=job,
        )
        self._merge = Merge(fanout=fanout)
        self._results = Results(by)

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        states = pcoll | "states" >> self._states
        return states | "merge" >> self._merge | "results" >> self._results


def _sealed(pair: tuple[Group, Iterable[bytes]], sealing: Sealing) -> tuple[Group, bytes]:
    group, states = pair
    *group_values, bucket = group
    sealed = seal(merged(states), sealing, cast("int", bucket), piece_of_group(group_values))
    return group, sealed.to_file_bytes()


def _without_bucket(pair: tuple[Group, bytes]) -> tuple[Group, bytes]:
    group, state = pair
    return group[:-1], state


def _results(pair: tuple[Group, bytes], by: tuple[str, ...]) -> Iterator[dict[str, object]]:
    group, state = pair
    for metric, view, value, low, high in results_rows(state):
        yield {
            **dict(zip(by, group, strict=True)),
            "metric": metric,
            "view": view,
            "value": value,
            "low": low,
            "high": high,
        }
