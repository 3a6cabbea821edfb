"""Many groups at once: one keyed state of all groups, shipped in shards, and their results as rows.

Where nobody keeps the states, a state of each group costs far more than its rows: this is how
groups are counted and read in passes over all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast

from streammetrics.combine import PerKey
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.tables import TableRequest
from streammetrics.engines.groups import Group, columns_of
from streammetrics.engines.merging import (
    RESULT_NUMBERS,
    RESULT_TEXTS,
    Figures,
    figures_of_results,
    figures_of_states,
    merge_all,
    merged,
    name_of_metric,
    require_no_result_names,
    results_schema,
)
from streammetrics.engines.partial import StatesOfGroups

if TYPE_CHECKING:
    import pyarrow as pa

SHARDS: Final = 32  # of the groups of a job, each of which one task merges
_BYTES: Final = 1 << 26  # of a state that is shipped, about
_READ: Final = 1 << 12  # groups whose results are held at once


def aggregate(
    batches: Iterable[pa.RecordBatch],
    spec: Accumulator,
    by: Sequence[str] = (),
    *,
    columns: Mapping[str, str] | None = None,
    where: str | None = None,
) -> pa.Table:
    """A table (by..., metric, view, value, low, high): the results of each group of these rows.

    The groups are in the order of their keys, and the rows of a group are `results_rows` of its
    state. spec, by, columns and where: as in `partial`. No batches have an empty table without
    `by`.

    Raises InputError for rows that the metric refuses, for missing columns, and for group columns
    whose type differs between batches, or that are named as a column of results.

    >>> import pyarrow as pa
    >>> from streammetrics import Ratio
    >>> rows = pa.record_batch({"variant": ["a", "b", "a"], "clicks": [1, 0, 0]})
    >>> table = aggregate([rows], Ratio(), ["variant"], columns={"numerators": "clicks"})
    >>> [row["value"] for row in table.to_pylist() if row["view"] == "ratio"]
    [0.5, 0.0]
    """
    import pyarrow as pa

    states = StatesOfGroups(spec, by, TableRequest({}, "aggregate", columns, where))
    require_no_result_names(states.by)
    for batch in batches:
        states.update(batch)
    fields = states.fields
    schema = results_schema(pa.schema(fields or ()), [field.name for field in fields or ()])
    if states.by and fields is None:
        return schema.empty_table()
    if states.whole is None:
        return pa.Table.from_batches(results_of_groups(states.per_key, fields or ()), schema)
    figures = figures_of_states([states.whole])
    return pa.Table.from_batches([batch_of_figures([], figures, [])], schema)


def shards(
    batches: Iterable[pa.RecordBatch],
    spec: Accumulator,
    by: Sequence[str],
    columns: Mapping[str, str] | None,
    where: str | None = None,
) -> Iterator[tuple[int, bytes]]:
    """The states of all groups of these rows as pairs (shard, bytes of a PerKey), after all rows.

    The shard of a group depends on its key alone, so each may be merged by itself.
    """
    states = StatesOfGroups(spec, by, TableRequest({}, "aggregate", columns, where))
    for batch in batches:
        states.update(batch)
    n = 1 + states.per_key.nbytes // (SHARDS * _BYTES)  # pieces of a shard
    for number, piece in enumerate(states.per_key.split(SHARDS * n)):
        if piece.keys():
            yield number // n, piece.to_bytes()


def results_of_shard(
    states: Iterable[bytes], fields: Sequence[pa.Field]
) -> Iterator[pa.RecordBatch]:
    """The results of the groups of a shard, of the states of all tasks. fields: of the groups."""
    yield from results_of_groups(cast("PerKey", merged(states)), fields)


class StatesByGroup:
    """The states of many groups, in their bytes, to be merged group by group.

    Whenever the bytes have doubled, those of each group are merged, so that they take little more
    memory than the sums. replay: as in `merged`.
    """

    def __init__(self, replay: str = "refuse") -> None:
        self._replay, self._states = replay, defaultdict[Group, list[bytes]](list)
        self._size, self._limit = 0, _BYTES

    def add(self, states: Iterable[tuple[Group, bytes]]) -> None:
        """Add pairs (group, state); the errors of `merged` come here or later."""
        for group, state in states:
            self._states[group].append(state)
            self._size += len(state or b"")
            if self._size > self._limit:
                for merged_group, merged_state in self.merged():
                    self._states[merged_group] = [merged_state]
                self._size = sum(len(stored_state) for (stored_state,) in self._states.values())
                self._limit = max(_BYTES, 2 * self._size)

    def merged(self) -> Iterator[tuple[Group, bytes]]:
        """(group, envelope of the sum) of each group."""
        for group, states in [*self._states.items()]:
            yield group, merge_all(states, replay=self._replay)


def results_of_groups(states: PerKey, fields: Sequence[pa.Field]) -> Iterator[pa.RecordBatch]:
    """(by..., metric, view, value, low, high) of each group, in the order of their keys. fields:
    of the groups, whose values are the keys."""
    keys, metric = states.keys(), name_of_metric(states.metric)
    names = [field.name for field in fields]
    for start in range(0, len(keys), _READ):
        batch_keys = keys[start : start + _READ]
        figures = figures_of_results((result, metric) for result in states._results_of(batch_keys))
        groups = columns_of(cast("Sequence[Group]", batch_keys), fields)
        yield batch_of_figures(groups, figures, names)


def batch_of_figures(
    groups: Sequence[pa.Array], figures: Figures, by: Sequence[str]
) -> pa.RecordBatch:
    """(by..., metric, view, value, low, high). groups: the column of each of `by`, which has the
    values of each owner."""
    import pyarrow as pa

    owners = pa.array(figures.owners)
    columns = [column.take(owners) for column in groups]
    columns += [pa.array(texts, pa.string()) for texts in (figures.metrics, figures.views)]
    columns += [pa.array(values) for values in figures.values]
    return pa.RecordBatch.from_arrays(columns, [*by, *RESULT_TEXTS, *RESULT_NUMBERS])
