"""Mean: the base class of every metric that averages one value per row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from itertools import repeat
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Batch,
    ExactSum,
    Slots,
    WeightedCounts,
    checks,
    require,
    require_finite,
    require_rounded_moments,
    require_signed_cubes,
    side_by_side,
    weighted_values,
)
from streammetrics.core import add_parts
from streammetrics.results.sums import MeanResult


class Mean(Accumulator):
    """The mean of one value per row: a subclass declares its inputs and computes the value.

    Values are float64. Their sum is exact, and the mean is rounded once. With an input `Weights()`
    the mean is weighted. The stored schema of a subclass is the given one and the layout of this
    base, `my-absolute-error/1+2`; bytes of the former layout, `my-absolute-error/1`, are read.

    >>> import numpy as np
    >>> from streammetrics.classification.mean import Mean
    >>> from streammetrics.core.inputs import Inputs, Real
    >>> class AbsoluteError(Mean, schema="my-absolute-error/1"):
    ...     inputs = Inputs(labels=Real(), scores=Real())
    ...
    ...     def value(self, batch):
    ...         return np.abs(batch.labels - batch.scores)
    >>> metric = AbsoluteError()
    >>> metric.update([3, 0, 2, 7], [2.5, 0, 2, 8])
    >>> metric.compute().mean
    0.375
    """

    rows = WeightedCounts(1)
    total = ExactSum()
    squares = ExactSum()  # of the values, each rounded, without weights
    cubes = ExactSum()  # as the squares

    _lacked: ClassVar[tuple[frozenset[str], ...]] = (frozenset({"cubes"}),)

    @abstractmethod
    def value(self, batch: Batch) -> NDArray[np.generic]:
        """The values [n], each computed from its row alone; InputError unless all are finite."""

    def _read_rows(self, given: Mapping[str, Any]) -> Batch:
        batch = super()._read_rows(given)
        name = f"{type(self).__name__}.value"
        values = checks.finite(self.value(batch), name).astype(np.float64, copy=False)
        checks.same_length(batch.n, values, name, next(iter(given)))
        return Batch(batch.n, {"value": values})

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        self.rows.add_row_count(batch.n, slots, batch.quanta)
        add_parts(self.total, weighted_values(batch.value, batch.quanta), slots)
        with np.errstate(over="ignore"):
            squares = np.square(batch.value)
            self.squares.add(squares, slots)
            self.cubes.add(squares * batch.value, slots)

    def _require_possible(self) -> None:
        fault = "impossible means"
        require_finite(self.total, fault)
        require(not self.squares.infinities[: self._width, 0].any(), fault)
        for slot in range(self._width):
            n, squares = int(self.rows.dense(slot)[0]), self.squares.quanta(slot)
            require(squares >= 0, fault)
            rows = n - int(self.rows.surplus[slot])
            if self.squares.finite(slot):
                require_signed_cubes(rows, squares, self.cubes, slot, fault)
            if self.rows.surplus[slot] == 0 and not self.squares.infinities[slot].any():
                require_rounded_moments(n, self.total.quanta(slot), squares, fault)

    def compute(self) -> MeanResult:
        """The mean and the number of rows."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[MeanResult]:
        unit = self.settings().get("weight_unit", 1)
        return side_by_side(
            MeanResult,
            len(slots),
            _units=self.rows.columns(slots)[0],
            weight_unit=repeat(unit if isinstance(unit, Fraction) else Fraction(1)),
            _surplus=self.rows.surplus[slots].tolist(),
            _sums=zip(
                *(column.pairs(slots) for column in (self.total, self.squares, self.cubes)),
                strict=True,
            ),
        )
