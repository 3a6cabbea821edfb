"""UnitMean: revenue per user, and any other sum of values per unit that was seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    DictionaryColumn,
    ExactSums,
    Inputs,
    Real,
    Slots,
    UnitIds,
    UnitSet,
    require,
    require_finite,
)
from streammetrics.core import check_unit_settings, mixed, salt_word
from streammetrics.distributions.unit_rate import GROUPS, check_salt, sizes_of_groups, units_unknown
from streammetrics.results.unit_results import UnitMeanResult


class UnitMean(Accumulator, schema="unit-mean/1"):
    """The sum of all values over the number of different units, such as revenue per user.

    People decide about users, but rows are counted: where a treatment changes the number of rows of
    a user, a mean per row may move against the mean per user. A unit counts from its first row on,
    also if all of its values are 0.

    Settings
        share: the share of all units that is kept, in (0, 1], by a hash of the unit alone; rows of
        others are ignored. max_units: a state of more kept units drops them, and its result is
        undefined. salt: selects the hash of units into 64 groups, as that of UserGroups.
    Rows
        units: [n] ids, integers or strings (or their hashes by `hash_ids`). values: [n], finite; 0
        for a row that only shows that the unit was there.
    State
        For each of 64 groups of units the exact sum of its values; the set of the 64-bit hashes of
        units, and that of units with a value above 0: 8 bytes each.
    Result
        UnitMeanResult: `mean`, `rate` (units with a value above 0 / units), `total`, `units`,
        `units_above_0`.
    Undefined
        nan without units, and past `max_units`; `reason` says so.
    Exactness
        Exact, and rounded once, unless two of n units have one hash (n² / 2⁶⁵ expected pairs).
        Intervals of the mean are by the jackknife over the groups, those of the rate Wilson's.
    Cost
        About 40 ns a row, and 8 to 16 bytes a unit; a union sorts.
    Source
        Deng, Knoblich and Lu 2018, KDD, arXiv:1803.06336, for units of analysis; Wolter 2007,
        "Introduction to Variance Estimation", chapter 4, for the jackknife over groups.

    >>> from streammetrics import UnitMean
    >>> revenue = UnitMean()
    >>> revenue.update(["ann", "ann", "bo", "cy"], [20, 5, 0, 35])
    >>> found = revenue.compute()
    >>> found.mean, found.units, found.rate
    (20.0, 3, 0.6666666666666666)
    """

    _many_slots: ClassVar[bool] = True
    _tells_units: ClassVar[bool] = True
    _shows_units: ClassVar[bool] = True

    share: float = 1.0
    max_units: int | None = None
    salt: str = "streammetrics"
    inputs = Inputs(units=UnitIds(), values=Real(finite=True))
    sums = ExactSums(GROUPS)
    units = UnitSet()
    above = UnitSet()  # those with a value above 0

    def check_settings(self) -> None:
        check_unit_settings(self)
        check_salt(self, self.salt)

    if TYPE_CHECKING:

        def update(self, units: ArrayLike | DictionaryColumn, values: ArrayLike) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        hashes = mixed(batch.units.view(np.uint64), salt_word(self.salt))
        values = batch.values.astype(np.float64, copy=False)
        if self.share < 1:
            sampled = np.flatnonzero(hashes <= self.units.last)
            hashes, values = hashes[sampled], values[sampled]
            slots = None if slots is None else slots[sampled]
        self.sums.add(values, (hashes & np.uint64(GROUPS - 1)).astype(np.intp), slots)
        self.units.add(hashes, slots)
        above = np.flatnonzero(values > 0)
        self.above.add(hashes[above], None if slots is None else slots[above])

    def _require_possible(self) -> None:
        fault = "impossible sums of units"
        require_finite(self.sums.inner, fault)
        for slot in range(self._width):
            units, above = self.units.units_of_slot(slot), self.above.units_of_slot(slot)
            if units is None:
                continue
            require(above is not None and bool(np.isin(above, units).all()), fault)
            sizes = sizes_of_groups(units)
            cells = np.arange(slot * GROUPS, (slot + 1) * GROUPS)
            sums, _ = self.sums.inner.units(cells)
            require(all(n or not x for n, x in zip(sizes, sums, strict=True)), fault)

    def without_values(self) -> Self:
        """A state of the same units, each with the value 0: merged with one of the rows of some
        days, it gives the mean of these days over all of them.

        >>> from streammetrics import UnitMean
        >>> exposed, second_day = UnitMean(), UnitMean()
        >>> exposed.update(["ann", "bo", "cy"], [9, 0, 0])
        >>> second_day.update(["bo"], [6])
        >>> (exposed.without_values() + second_day).compute().mean
        2.0
        """
        self._flush()
        zero_state = self._empty(self._width)
        zero_state.units.merge(self.units, np.arange(self._width))
        return zero_state

    def compute(self) -> UnitMeanResult:
        """The mean and the rate over units, and their number."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[UnitMeanResult]:
        sums, shift = self.sums.units(slots)
        means = []
        for i, slot in enumerate(slots.tolist()):
            units, above = self.units.units_of_slot(slot), self.above.units_of_slot(slot)
            if units is None or above is None:
                means.append(UnitMeanResult(reason=units_unknown(self.max_units)))
                continue
            slot_sums = sums[i * GROUPS : (i + 1) * GROUPS]
            counted = sizes_of_groups(units), sizes_of_groups(above)
            means.append(UnitMeanResult(*counted, _sums=(slot_sums, shift)))
        return means
