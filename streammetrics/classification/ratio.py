"""Ratio: clicks per impression, revenue per user, and any other ratio of sums."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from operator import add, not_
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    CHUNK,
    QUANTA,
    SLOT_0,
    Accumulator,
    Amount,
    AnySlots,
    Batch,
    Counts,
    ExactSum,
    Inputs,
    ManySlots,
    Quotient,
    Slots,
    Terms,
    require,
    side_by_side,
    small_integers,
)


class Ratio(Accumulator, schema="ratio/2"):
    """The sum of the numerators over the sum of the denominators.

    Settings
        None.
    State
        Two exact sums, and the numbers of rows that are 0 or 1 over 1 and of others.
    Result
        Quotient.
    Undefined
        nan where the denominators sum to 0. Infinities count as in IEEE arithmetic.
    Exactness
        The sums are exact, so order and sharding do not matter; the ratio is rounded once.
    Cost
        2 ns a row in large batches, 5 with denominators; about 100 bytes.
    Source
        Neal 2015, arXiv:1505.05571, for the sums.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 0])
    >>> ctr.compute().ratio
    0.25
    >>> revenue = Ratio()
    >>> revenue.update([12.5, 0.1], denominators=[2, 1])
    >>> revenue.compute().ratio
    4.2
    """

    _many_slots: ClassVar[bool] = True

    inputs = Inputs(numerators=Amount(), denominators=Amount(optional=True))
    numerator = ExactSum()
    denominator = ExactSum()
    rows = Counts(2)  # those that are 0 or 1 over 1, whose ratio is a share; others

    if TYPE_CHECKING:

        def update(self, numerators: ArrayLike, denominators: ArrayLike | None = None) -> None: ...

    def _mean_views(self) -> tuple[str, ...]:
        return ("ratio",)

    def _row_terms(self, batch: Batch) -> Sequence[Terms]:
        below = batch.optional("denominators")
        weights = None if below is None else below.astype(np.float64, copy=False)
        return (Terms(batch.numerators.astype(np.float64, copy=False), weights),)

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        numerators, denominators = batch.numerators, batch.optional("denominators")
        n = batch.n  # of rows that may not be 0 or 1 over 1
        if slots is None:
            used_slots, counts = np.zeros(1, np.intp), np.array([batch.n], np.int64)
            n = sum(int(np.count_nonzero(chunk)) for chunk in _others(numerators, denominators))
            kinds = np.array([batch.n - n, n], np.int64)
            self.rows.add(np.arange(2, dtype=np.intp), np.zeros(2, np.intp), kinds)
        else:
            used_slots, counts = _rows_by_slot(slots)
            flags = np.concatenate([*_others(numerators, denominators)])
            if flags.any():
                self.rows.add(flags.astype(np.intp), slots)
            else:
                self.rows.add(np.zeros(len(used_slots), np.intp), used_slots, counts)
        if n:
            self.numerator.add(numerators.astype(np.float64, copy=False), slots)
        else:
            self.numerator.add_units(int(np.count_nonzero(numerators)) * QUANTA)
        if denominators is None:
            self.denominator.add(counts.astype(np.float64), used_slots)
        else:
            self.denominator.add(denominators.astype(np.float64, copy=False), slots)

    def _require_possible(self) -> None:
        sums = self.numerator, self.denominator
        numerators, denominators = (small_integers(column) for column in sums)
        rows = self.rows.tables(np.arange(self._width))
        infinite_sums = (
            self.numerator.infinities[: self._width] | self.denominator.infinities[: self._width]
        )
        sure = rows[:, 1] > 0  # of rows that are no shares any sums are possible
        if numerators is not None and denominators is not None:  # most are shares
            share = (denominators == rows[:, 0]) & (numerators >= 0) & (numerators <= denominators)
            sure |= share
        doubtful = np.flatnonzero(~sure | infinite_sums.any(axis=1))
        for slot in doubtful.tolist():
            shares, non_shares = rows[slot].tolist()
            infinite = sum(int(column.infinities[slot].max()) for column in sums)
            numerator, denominator = (column.quanta(slot) for column in sums)
            fault = "impossible sums"
            if non_shares:
                require(infinite <= 2 * non_shares, fault)
            else:
                in_share = numerator % QUANTA == 0 and 0 <= numerator <= shares * QUANTA
                require(not infinite and denominator == shares * QUANTA and in_share, fault)

    def compute(self) -> Quotient:
        """The ratio, the sums and the number of rows."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[Quotient]:
        above, below = self.numerator.units(slots), self.denominator.units(slots)
        (numerators, up), (denominators, down) = above, below
        shift = max(up, down)
        if up != down:
            numerators = [units << shift - up for units in numerators]
            denominators = [units << shift - down for units in denominators]
        shares, non_shares = self.rows.columns(slots)
        quotients = side_by_side(
            Quotient,
            len(slots),
            rows=map(add, shares, non_shares),
            is_share=map(not_, non_shares),
            _sums=zip(numerators, denominators, repeat(shift)),
        )
        infinite = {*self.numerator.infinite(slots), *self.denominator.infinite(slots)}
        for i in infinite:
            sums = self.numerator.value(slots[i]), self.denominator.value(slots[i])
            quotients[i] = Quotient(*sums, None, quotients[i].rows, quotients[i].is_share)
        return quotients


def _rows_by_slot(slots: AnySlots) -> tuple[Slots, NDArray[np.intp]]:
    """The slots that have rows, and how many each has."""
    if isinstance(slots, ManySlots) and slots.pays:
        all_slots, counts = slots.present, slots.counts()
    else:
        counts = np.bincount(slots.every() if isinstance(slots, ManySlots) else slots)
        all_slots = np.arange(len(counts))
    occupied = np.flatnonzero(counts != 0)
    return all_slots[occupied], counts[occupied]


def _others(
    numerators: NDArray[np.generic], denominators: NDArray[np.generic] | None
) -> Iterator[NDArray[np.bool_]]:
    """Whether each row is not 0 or 1 over 1, in chunks whose temporaries stay in the cache."""
    for start in range(0, len(numerators) or 1, CHUNK):
        chunk = numerators[start : start + CHUNK]
        flags = (chunk != 0) & (chunk != 1)
        if denominators is not None:
            flags |= denominators[start : start + CHUNK] != 1
        yield flags
