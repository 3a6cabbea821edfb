"""UnitRate: the share of units, such as users, that had an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    AnySlots,
    Batch,
    DictionaryColumn,
    Inputs,
    Real,
    SettingsError,
    Slots,
    UnitIds,
    UnitSet,
    require,
    shown,
)
from streammetrics.core import Words, check_unit_settings, mixed, salt_word
from streammetrics.results.unit_results import UnitRateResult

GROUPS: Final = 64  # of units, by the lowest bits of their hash


def sizes_of_groups(hashes: Words) -> tuple[int, ...]:
    """The units of each group, [64]."""
    groups = (hashes & np.uint64(GROUPS - 1)).astype(np.intp)
    return tuple(np.bincount(groups, minlength=GROUPS).tolist())


def units_unknown(max_units: int | None) -> str:
    """Why a state past `max_units` has no result."""
    return f"more than max_units={max_units} units were counted"


def check_salt(owner: Accumulator, salt: object) -> None:
    """SettingsError unless the salt is a text."""
    if not isinstance(salt, str):
        raise SettingsError(
            expected="a string",
            got=shown(salt),
            where=f"{type(owner).__name__}.salt",
            hint="pass any text",
        )


class UnitRate(Accumulator, schema="unit-rate/1"):
    """The share of units that had an event, such as users who bought, of all that were seen.

    Settings
        share: the share of all units that is kept, in (0, 1], by a hash of the unit alone; rows of
        others are ignored. max_units: a state of more kept units drops them, and its result is
        undefined. salt: selects the hash of units into 64 groups, as that of UserGroups.
    Rows
        units: [n] ids, integers or strings (or their hashes by `hash_ids`). values: [n], no NaN;
        a row with a value above 0 is an event, any other only shows that the unit was there.
    State
        The set of the 64-bit hashes of units, and that of units with an event: 8 bytes each. Both
        are sets, so that a row that is counted twice changes nothing.
    Result
        UnitRateResult: `rate`, `units`, `units_above_0`.
    Undefined
        nan without units, and past `max_units`; `reason` says so.
    Exactness
        Exact, and rounded once, unless two of n units have one hash (n² / 2⁶⁵ expected pairs).
        Units are independent, so intervals are those of a share: Wilson's, and Newcombe's of a
        difference.
    Cost
        About 25 ns a row, and 8 to 16 bytes a unit; a union sorts.
    Source
        Deng, Knoblich and Lu 2018, KDD, arXiv:1803.06336, for units of analysis; Wilson 1927,
        J. Am. Stat. Assoc. 22, 209-212.

    >>> from streammetrics import UnitRate
    >>> buyers = UnitRate()
    >>> buyers.update(["ann", "ann", "bo", "cy"], [0, 1, 0, 1])
    >>> found = buyers.compute()
    >>> found.rate, found.units, found.units_above_0
    (0.6666666666666666, 3, 2)
    """

    _many_slots: ClassVar[bool] = True
    _tells_units: ClassVar[bool] = True
    _shows_units: ClassVar[bool] = True

    share: float = 1.0
    max_units: int | None = None
    salt: str = "streammetrics"
    inputs = Inputs(units=UnitIds(), values=Real())
    units = UnitSet()
    above = UnitSet()  # those with an event

    def check_settings(self) -> None:
        check_unit_settings(self)
        check_salt(self, self.salt)

    if TYPE_CHECKING:

        def update(self, units: ArrayLike | DictionaryColumn, values: ArrayLike) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        hashes = mixed(batch.units.view(np.uint64), salt_word(self.salt))
        self.units.add(hashes, slots)
        above = np.flatnonzero(batch.values > 0)
        self.above.add(hashes[above], None if slots is None else slots[above])

    def _require_possible(self) -> None:
        for slot in range(self._width):
            units, above = self.units.units_of_slot(slot), self.above.units_of_slot(slot)
            if units is not None:
                within = above is not None and bool(np.isin(above, units).all())
                require(within, "an event of a unit that was not seen")

    def without_values(self) -> Self:
        """A state of the same units without an event, as rows of value 0 would give: merged with
        one of the events of some days, its units are the denominator of these days.

        >>> from streammetrics import UnitRate
        >>> exposed, second_day = UnitRate(), UnitRate()
        >>> exposed.update(["ann", "bo", "cy"], [1, 0, 0])
        >>> second_day.update(["bo"], [1])
        >>> (exposed.without_values() + second_day).compute().rate
        0.3333333333333333
        """
        self._flush()
        state = self._empty(self._width)
        state.units.merge(self.units, np.arange(self._width))
        return state

    def compute(self) -> UnitRateResult:
        """The share of units with an event, and their number."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[UnitRateResult]:
        rates = []
        for slot in slots.tolist():
            units, above = self.units.units_of_slot(slot), self.above.units_of_slot(slot)
            if units is None or above is None:
                rates.append(UnitRateResult(reason=units_unknown(self.max_units)))
            else:
                rates.append(UnitRateResult(sizes_of_groups(units), sizes_of_groups(above)))
        return rates
