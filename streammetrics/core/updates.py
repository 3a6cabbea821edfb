"""Updates: how the rows of calls reach the state, directly or after waiting with others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

import numpy as np

from streammetrics.core.batch import QUANTA, ROUNDED, Batch
from streammetrics.core.buffer import Buffer, Placed
from streammetrics.core.declared import Declared
from streammetrics.core.given_rows import GivenRows
from streammetrics.core.inputs import Bound
from streammetrics.core.intakes import Intake, Plans
from streammetrics.core.parts.many_slots import AnySlots, ManySlots
from streammetrics.core.parts.part import Slots
from streammetrics.core.settings_property import settings_property
from streammetrics.core.validators import VALIDATORS, Validator
from streammetrics.core.weights import rounded_rows, weighed_rows

MAX_TOTAL_COUNT: Final = (1 << 63) - 1  # the sum of all counts of a state stays within an int64
_HALF_TOTAL_COUNT: Final = MAX_TOTAL_COUNT // 2


class Updates(Declared, ABC):
    """Batches are counted directly, or wait in the buffer, checked or as they were given, until
    they are many or the state is read. `_total_count` is an upper bound of the sum of all counts.
    """

    # Set on each instance; `ClassVar` only marks them as not being settings.
    _total_count: ClassVar[int]
    _buffer: ClassVar[Buffer]
    _given: ClassVar[GivenRows | None]
    # Its own `_read_rows` refuses no row that passes the intakes of the inputs.
    _reads_each_row: ClassVar[bool] = False
    _many_slots: ClassVar[bool] = False  # `_accumulate` takes ManySlots; else called for each

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        """The arguments as checked columns, or InputError; override to check columns together."""
        return self._bound.read(given)

    @abstractmethod
    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        """Add checked rows to the states of their slots (None: all to slot 0). Never fails.

        Each row has at least one weight quantum; without `batch.quanta` each has one.
        """

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        """Record rows whose weight was rounded, perhaps to zero: their number, in `rounded`."""
        if "rounded" in self._parts:
            self.__dict__["rounded"].add(np.zeros(batch.n, np.intp), slots)

    @settings_property
    def _bound(self) -> Bound:
        """The inputs under these settings."""
        return Bound(self._inputs, self)

    @property
    def _validators(self) -> Mapping[str, Validator]:
        """The validator of each column: `check` accepts columns of one length that pass. Rows with
        an argument that is not here, or of a metric with its own check, always need `check`."""
        has_own_check = self._own_check or type(self)._read_rows is not Updates._read_rows
        return {} if has_own_check else self._bound.validators

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        """The intake of each argument of `update`: rows that pass them wait as they were given. A
        metric with its own check has none, unless it says so."""
        is_declared = type(self)._read_rows is Updates._read_rows or self._reads_each_row
        return self._inputs.intakes(self) if is_declared and not self._own_check else {}

    @settings_property
    def _intake_plans(self) -> Plans:
        """How the intakes read each set of columns."""
        return Plans(self._intakes, self.arguments())

    def _wait(self, columns: Mapping[str, object]) -> bool:
        """Keep these rows, to be checked and counted with others; False if `check` must read them,
        since it might refuse them, or they are many."""
        if self._buffer.closed or self._total_count > _HALF_TOTAL_COUNT:
            return False
        rows = self._given
        if rows is None:
            rows = self.__dict__["_given"] = GivenRows()
        placed = rows.put(columns, self._intake_plans)
        if placed is Placed.FULL:
            self._flush()
            placed = rows.put(columns, self._intake_plans)
        return placed is Placed.PENDING

    def _check(self, arguments: Mapping[str, Any], weights: object = None) -> Batch:
        """The body of the generated `check`."""
        batch, bound = self._read_rows(arguments), self._bound
        if weights is not None or not bound.plain:
            bound.weigh(batch, weights)
        return batch

    def _update(self, batch: Batch) -> None:
        """Count checked rows: directly, or through the buffer if the batch is small."""
        if not batch.n:
            return
        buffer = self._buffer
        total = self._total_count + buffer.total + batch.total
        total += self._given.total if self._given else 0
        if total > MAX_TOTAL_COUNT:
            self._require_room(batch.total, "update")
        placed = buffer.put(batch, self._appendable)
        if placed is Placed.FULL:
            self._flush()
            placed = buffer.put(batch, self._appendable)
        if placed is Placed.TOO_LARGE:
            self._count_rows(batch)
        if total > _HALF_TOTAL_COUNT:  # the fast path does not check the total count
            buffer.close()

    @settings_property
    def _appendable(self) -> Mapping[str, Any]:
        """The validators of the buffer's fast path."""
        return {name: VALIDATORS[validator] for name, validator in self._validators.items()}

    def _feed(self, batch: Batch, slots: AnySlots | None) -> None:
        """Add checked rows to the states of their slots."""
        weighed = QUANTA in batch.columns
        if isinstance(slots, ManySlots) and (weighed or not self._many_slots):
            for rows, row_slots in slots.each():
                self._feed(batch if rows is None else batch.take(rows), row_slots)
            return
        targets = cast("Slots | None", slots)
        if weighed:
            if ROUNDED in batch.columns:
                self._accumulate_rounded(*rounded_rows(batch, targets))
            batch, targets = weighed_rows(batch, targets)
        self._accumulate(batch, targets)

    def _flush(self) -> None:
        buffer, rows = self._buffer, self._given
        if buffer.n:
            self._count_rows(buffer.take_all())
        if rows is not None and rows.n:
            batch = cast("Any", self).check(**rows.columns())  # before they are forgotten
            rows.clear()
            self._count_rows(batch)

    def _count_rows(self, batch: Batch) -> None:
        self.__dict__["_total_count"] += batch.total
        self._feed(batch, None)

    @property
    def _pending(self) -> int:
        """How many rows are not counted yet."""
        return self._buffer.n + (self._given.n if self._given else 0)

    @abstractmethod
    def _require_room(self, n_added: int, where: str) -> None:
        """Flush; StateError if the state has no room for these."""
