"""Bags: as many bags in each state as a setting or property says, one for each class."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bag import Bag, BagColumn
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts import Column, Part, Slots
from streammetrics.core.rows import Coded
from streammetrics.core.score_bits import Values
from streammetrics.core.weight_units import Units


class BagsColumn(Column):
    """`width` states of `n` bags each, which are the slots of one column: state · n + bag."""

    def __init__(self, inner: BagColumn, n: int, width: int) -> None:
        self.inner, self.n, self.width = inner, n, width

    @property
    def mass(self) -> int:
        return self.inner.mass

    @property
    def nbytes(self) -> int:
        return self.inner.nbytes

    def add(
        self,
        values: Values,
        labels: NDArray[np.uint8],
        bags: NDArray[np.intp],
        slots: Slots | None = None,
        units: Units | None = None,
        groups: NDArray[np.int64] | Coded | None = None,
    ) -> None:
        """Add rows [m] to these bags of the states at `slots`; None: of state 0."""
        at = bags if slots is None else slots * self.n + bags
        self.inner.add(values, labels, at, groups, units)

    def bag(self, number: int) -> BagColumn:
        """One bag of state 0, as a column of its own."""
        return self.inner.take(np.array([number], np.intp))

    def widen(self, width: int) -> None:
        self.inner.widen(width * self.n)
        self.width = width

    def merge(self, other: Self, to: Slots) -> None:
        self.inner.merge(other.inner, self._slots(to))

    def take(self, slots: Slots) -> Self:
        return type(self)(self.inner.take(self._slots(slots)), self.n, len(slots))

    def encode(self, out: Writer) -> None:
        self.inner.encode(out)

    def _slots(self, states: Slots) -> Slots:
        slots: Slots = (states[:, None] * self.n + np.arange(self.n)).reshape(-1)
        return slots


class Bags(Part[BagsColumn]):
    """So many bags, as one for each class. n: the setting or property that says how many, where
    True is 1 and False is none; the rest as of Bag."""

    def __init__(
        self,
        n: str,
        values: str = "score_type",
        ids: str | None = None,
        repeats: str | None = None,
        weighted: bool = False,
    ) -> None:
        self.n, self.part = n, Bag(values, ids=ids, repeats=repeats, weighted=weighted)

    def empty(self, owner: Declared, width: int) -> BagsColumn:
        n = int(getattr(owner, self.n))
        return BagsColumn(self.part.empty(owner, width * n), n, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> BagsColumn:
        n = int(getattr(owner, self.n))
        return BagsColumn(self.part.decode(owner, width * n, data), n, width)
