"""The CombineFn: an accumulator is one already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import apache_beam as beam
from apache_beam.coders import Coder, registry
from apache_beam.coders.coders import NullableCoder

from streammetrics.combine.sealed import Sealed
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import InputError
from streammetrics.engines.merging import merge_once, read_state, require_replay
from streammetrics.engines.partial import update_from
from streammetrics.registry import load, metric_types

if TYPE_CHECKING:
    import pyarrow as pa


_BATCH_ROWS: Final = 1 << 16


def batches_of(rows: pa.Table | pa.RecordBatch) -> list[pa.RecordBatch]:
    """The batches of a table, of at most 65,536 rows; a batch as it is."""
    if hasattr(rows, "to_batches"):
        batches: list[pa.RecordBatch] = rows.to_batches(max_chunksize=_BATCH_ROWS)
        return batches
    return [rows]


# How Beam's workers hand states to each other.


class StateCoder(Coder):  # type: ignore[misc]  # Beam is not there when types are checked
    """A state as its envelope: equal states with equal provenance have equal bytes."""

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
    """States, or rows, to one state: for `CombinePerKey` and `CombineGlobally`.

    Takes states as bytes, and with a `spec` also Arrow tables and batches of rows, which then note
    no provenance. Gives the bytes of the sum. Without a `spec` there must be at least one state:
    `CombineGlobally(StatesFn()).without_defaults()`.

    spec: an empty accumulator. columns: argument of its `update` -> column of the tables.
    replay: "refuse" states that count the same rows, or "skip" those that are wholly counted.

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
        replay: str = "refuse",
    ) -> None:
        super().__init__()
        require_replay(replay)
        self._spec = spec
        self._columns = columns
        self._replay = replay

    def create_accumulator(self) -> Accumulator | None:
        return None if self._spec is None else self._spec.empty()

    def add_input(
        self, mutable_accumulator: Accumulator | None, element: bytes | pa.Table | pa.RecordBatch
    ) -> Accumulator | None:
        if isinstance(element, bytes):
            more = read_state(element)
            return more if mutable_accumulator is None else self._sum(mutable_accumulator, more)
        state = mutable_accumulator
        if state is None or self._spec is None:
            raise InputError(
                expected="states as bytes, where StatesFn has no spec",
                got=type(element).__name__,
                where="StatesFn",
                hint="pass the spec, StatesFn(spec), to count rows",
            )
        for batch in batches_of(element):
            update_from(state, batch, self._columns)
        return state

    def merge_accumulators(self, accumulators: Iterable[Accumulator | None]) -> Accumulator | None:
        # Beam lets the first one be changed; the others may be in use elsewhere.
        total: Accumulator | None = None
        for at, state in enumerate(accumulators):
            if total is not None and state is not None:
                total = self._sum(total, state)
            elif state is not None:
                total = state.copy() if at else state
        return total

    def extract_output(self, accumulator: Accumulator | None) -> bytes:
        if accumulator is None:
            raise InputError(
                expected="at least one state, where StatesFn has no spec",
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
