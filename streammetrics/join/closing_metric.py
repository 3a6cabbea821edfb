"""ClosingMetric: a metric of events that are joined, and counted once their time is closed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.combine.children import Product
from streammetrics.combine.panel import part_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import require
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.id_hashes import HashedIds
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Column, Extreme, Slots
from streammetrics.core.parts.record_table import MAX_TIME, Values
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings import Setting, rename_from_stored, rename_to_stored
from streammetrics.join.event_sets import EventSets
from streammetrics.join.join_events import columns_at

Bound = Mapping[str, "NDArray[np.generic] | DictionaryColumn"]
_CLOSED: Final = np.array([0, 1])  # indices of the counts: those of `_closed`
_LATE: Final = (2, 3)  # events with columns, and others


class ClosingMetric(Accumulator):
    """The sets of a join, and a metric of what it has closed: the base class of metrics of joins.

    A subclass has the settings `metric`, `columns` and `inputs`, and says which states it nests.
    """

    states = Product("_parts_of")
    closed_before = Extreme("max")
    newest = Extreme("max")
    counts = Counts(4)

    def _stored_settings(self) -> Mapping[str, Setting]:
        metric = cast("Accumulator", self.settings()["metric"])
        stored = rename_to_stored(metric.stored_names(), self._bound_inputs)
        return {**super()._stored_settings(), "inputs": dict(sorted(stored.items()))}

    @classmethod
    def _restored_settings(cls, stored: Mapping[str, Setting]) -> dict[str, Setting]:
        settings = super()._restored_settings(stored)
        metric, inputs = settings["metric"], settings["inputs"]
        if isinstance(metric, Accumulator) and isinstance(inputs, Mapping):
            settings["inputs"] = rename_from_stored(metric.stored_names(), inputs)
        return settings

    @property
    @abstractmethod
    def _parts_of(self) -> Mapping[str, Accumulator]:
        """Its nested states: `rows`, the sets of events; `metric`, of closed rows; and others."""

    @abstractmethod
    def _has_columns(self, batch: Batch) -> NDArray[np.bool_]:
        """Which of the checked events have the columns of the setting; bool [n]."""

    @abstractmethod
    def _closed(self, rows: EventSets, before_ms: int) -> tuple[int, int]:
        """Close these sets and count what they return; two numbers to be added to `counts`."""

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        row_slots = np.zeros(batch.n, np.intp) if slots is None else slots
        late = self.closed_before.known[row_slots] & (
            batch.times_ms < self.closed_before.values[row_slots]
        )
        if late.any():
            late_rows = np.flatnonzero(late)
            kinds = np.where(self._has_columns(batch)[late_rows], *_LATE)
            self.counts.add(kinds, row_slots[late_rows])
            rows = np.flatnonzero(~late)
            batch, row_slots = batch.take(rows), row_slots[rows]
        self._event_sets()._accumulate(batch, None if slots is None else row_slots)
        self.newest.add(batch.times_ms, row_slots)

    def _close(self, before_ms: int) -> None:
        self._flush()
        rows = self._event_sets().copy()
        counts = self._closed(rows, before_ms)
        self.states.by_name["rows"] = rows
        self.counts.add(_CLOSED, None, np.array(counts))
        self.closed_before.add(np.array([before_ms], np.int64))

    def _read(self, parts: Mapping[str, Column], width: int) -> Self:
        new = super()._read(parts, width)
        for times in (new.closed_before, new.newest):
            known_times = times.values[times.known]
            require(bool((np.abs(known_times) <= MAX_TIME).all()), "times out of range")
        return new

    def _event_sets(self) -> EventSets:
        return self.states.by_name["rows"]  # type: ignore[return-value]

    def _copy_of(self, name: str) -> Accumulator:
        """A copy of one of the nested states."""
        self._flush()
        return part_of(self, self.states.by_name[name].copy())

    def _keywords(self, bound: Bound) -> dict[str, ArrayLike | DictionaryColumn]:
        """The metric's keywords."""
        return {argument: bound[name] for argument, name in self._bound_inputs.items()}

    @property
    def _bound_inputs(self) -> Mapping[str, str]:
        """The checked setting `inputs`."""
        return cast("Mapping[str, str]", self.settings()["inputs"])


def bound_inputs(
    metric: Accumulator,
    sources: Sequence[str],
    inputs: object,
    default: Callable[[str], str | None],
    refusal: Callable[[str, str], SettingsError],
) -> Mapping[str, str]:
    """Argument of the metric → its source; SettingsError if one has none.

    default: the source of an argument that is none itself. refusal: the error, from what was
    expected and what was given.
    """
    takes = metric.arguments()
    bindings = dict(inputs) if isinstance(inputs, Mapping) else {}
    if not isinstance(inputs, Mapping | None) or not set(bindings) <= set(takes):
        raise refusal(f"arguments of the metric ({', '.join(takes)})", shown(inputs))
    bound: dict[str, str] = {}
    for argument, required in sorted(takes.items()):
        name = bindings.get(argument, argument)
        if argument not in bindings and name not in sources:
            name = default(argument)
        if name is None and not required:
            continue
        if name not in sources:
            got = f"{argument}={name!r}" if argument in bindings else f"none for {argument}"
            raise refusal(f"one of {', '.join(sources)} for each argument of the metric", got)
        bound[argument] = name
    return bound


def events_at(batch: Batch, columns: Mapping[str, str], indices: NDArray[np.intp]) -> Bound:
    """The times and columns of checked events at some indices, as a metric takes them."""
    bound: dict[str, Values] = {"times_ms": batch.times_ms[indices]}
    for name, column in columns_at(batch, columns, indices).items():
        if columns[name] == "hashed" and isinstance(column, np.ndarray):
            column = column.view(HashedIds)
        bound[name] = column
    return bound
