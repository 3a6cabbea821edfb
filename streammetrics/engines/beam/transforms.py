"""The PTransforms, after the surface that all engines share: states, merge, results, aggregate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from secrets import randbits, token_hex
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import apache_beam as beam
from apache_beam.transforms.window import BoundedWindow
from apache_beam.utils.windowed_value import WindowedValue

from streammetrics.combine.sealed import Sealing, seal
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.engines.beam.states_fn import StatesFn, batches_of
from streammetrics.engines.groups import HASH, Group, piece_of_group, require_buckets, user_buckets
from streammetrics.engines.merging import merged, require_replay, results_rows
from streammetrics.engines.partial import Positions, Task, partial

if TYPE_CHECKING:
    import pyarrow as pa

# A Group here has the values of `by`, and where states are not merged yet the bucket last.
Rows: TypeAlias = "pa.Table | pa.RecordBatch | tuple[int, pa.Table]"

TASK_ROWS: Final = 1 << 20  # rows of a bundle that are counted together
_BUCKET: Final = "streammetrics_bucket"
_NUMBER_BITS: Final = 62


class Counting(beam.DoFn):  # type: ignore[misc]
    """Tables of a bundle to states: those of a window wait for each other up to TASK_ROWS rows."""

    def __init__(
        self,
        spec: Accumulator,
        by: tuple[str, ...],
        columns: Mapping[str, str] | None,
        sealing: Sealing | None,
        counted: str | Positions | None,
    ) -> None:
        super().__init__()
        self._spec = spec
        self._by = by
        self._columns = columns
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
        for made in partial(
            batches,
            self._spec,
            self._by,
            columns=self._columns,
            bucket=0 if self._sealing is None else _BUCKET,
            counted=counted,
        ):
            *group, states = (column.to_pylist() for column in made.columns)
            yield from zip(zip(*group, strict=True), states, strict=True)


def _with_bucket(batch: pa.RecordBatch, sealing: Sealing) -> pa.RecordBatch:
    buckets = user_buckets(batch.column(sealing.of), sealing.n_buckets)
    return batch.append_column(_BUCKET, buckets)


class States(beam.PTransform):  # type: ignore[misc]
    """Tables of rows to pairs ((values of `by`..., bucket), bytes of a state).

    Takes Arrow tables and batches, or pairs (number, table) with a number from 0 for each table.

    spec: an empty accumulator. by: group columns, of strings, integers or bools; a null is a group
    of its own. columns: argument of the spec's `update` -> column of the tables (default: the same
    names).

    provenance: True notes each task as one of this job: the numbers of numbered tables, so that a
    table that comes twice refuses to merge, else a number of its own for each emission, so that a
    state that is merged twice refuses. `Positions` notes the rows' own positions, of which each
    table has a range of its own; False notes nothing. job: the name of the job (default: a random
    one). With one of your own and numbered tables, a second run of the job refuses to merge with
    the first.

    user, n_buckets, scope: with these, rows of one user meet in one task and states are sealed:
    each of `n_buckets` buckets of each group is one small state. Without them states are open,
    one or more of each group, with bucket 0.

    Memory of a task: `TASK_ROWS` rows and their states; with buckets also the open state of one
    bucket of one group.
    """

    def __init__(
        self,
        spec: Accumulator,
        by: Sequence[str] = (),
        *,
        columns: Mapping[str, str] | None = None,
        user: str | None = None,
        n_buckets: int | None = None,
        scope: str = "",
        provenance: Positions | bool = True,
        job: str | None = None,
    ) -> None:
        super().__init__()
        if (user is None) is not (n_buckets is None):
            raise SettingsError(
                expected="a column of users and a number of buckets, or neither",
                got=f"user={shown(user)}, n_buckets={shown(n_buckets)}",
                where="States",
                hint="pass both, or none for open states",
            )
        if not isinstance(provenance, bool | Positions):
            raise SettingsError(
                expected="True, False or Positions",
                got=shown(provenance),
                where="States.provenance",
                hint="see the docstring of States",
            )
        self._sealing: Sealing | None = None
        if user is not None and n_buckets is not None:
            require_buckets(n_buckets)
            self._sealing = Sealing(user, n_buckets, HASH, scope)
        counted: str | Positions | None = f"beam-{token_hex(8)}" if job is None else job
        if not provenance or isinstance(provenance, Positions):
            counted = provenance or None
        self._counting = Counting(spec, tuple(by), columns, self._sealing, counted)

    def expand(self, pcoll: beam.PCollection) -> beam.PCollection:
        states = pcoll | "count" >> beam.ParDo(self._counting)
        if self._sealing is None:
            return states
        # Not by a CombineFn: its first half would keep each open state of a bundle.
        return (
            states
            | "meet" >> beam.GroupByKey()
            | "seal" >> beam.Map(_sealed, sealing=self._sealing)
        )


class Merge(beam.PTransform):  # type: ignore[misc]
    """Pairs ((values of `by`..., bucket), state) to one pair (values of `by`, state) a group.

    replay: as in StatesFn. fanout: how many workers share the first merge of a group, for groups
    of very many states.
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
    """Pairs (values of `by`, state) to a dict (by..., metric, view, value, low, high) a view."""

    def __init__(self, by: Sequence[str] = ()) -> None:
        super().__init__()
        self._by = tuple(by)

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
    *of, bucket = group
    sealed = seal(merged(states), sealing, cast("int", bucket), piece_of_group(of))
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
