"""Units: the set of users (or others) seen, for sample ratios and users of two variants."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.combine.user_groups import UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.conversion import instance
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.unit_hashes import Words, mixed, salt_word, words_of
from streammetrics.core.inputs import Inputs, UnitIds
from streammetrics.core.interval import Interval
from streammetrics.core.multiset.bag import Bag, BagColumn, Bags, BagsColumn
from streammetrics.core.multiset.bag_keys import Keys
from streammetrics.core.multiset.bag_layout import U64
from streammetrics.core.parts.many_slots import AnySlots
from streammetrics.core.parts.part import Column
from streammetrics.core.parts.unit_set import UnitSet, check_unit_settings
from streammetrics.core.rows import DictionaryColumn
from streammetrics.estimators.estimator import Estimator
from streammetrics.estimators.request import IntervalRequest
from streammetrics.present.view import NONE, View
from streammetrics.results.has_intervals import HasIntervals

SALT: Final = salt_word("streammetrics units")


class _UnitCount(Estimator["UnitsResult"]):
    """A count of units, or of a sample of them."""

    def interval(self, result: UnitsResult, request: IntervalRequest) -> Interval | None:
        """Undefined, and why."""
        why = f"no formula for {request.view}; with share=1 units are counted, not estimated"
        return request.none(why, n=result.sampled or 0, formula=False)


_COUNT: Final = _UnitCount()


@dataclass(frozen=True, eq=False, repr=False)
class UnitsResult(HasIntervals):
    """The number of different units, from a sample: those with a hash in the first `share` of all.

    sampled: the number of units in the sample; None past `max_units`, and `reason` says so. Tests
    of a sample ratio use `sampled`, which is a count, not `units`, which is scaled.
    """

    independent: ClassVar[str] = "units"

    share: float = field(metadata=View(estimator=_COUNT, better=NONE))
    sampled: int | None
    reason: str = ""
    _hashes: Words = field(repr=False, default_factory=lambda: np.empty(0, np.uint64))

    @property
    @View(estimator=_COUNT, better=NONE, undefined="more units than max_units")
    def units(self) -> float:
        """Different units, sampled / share; nan if not known."""
        return math.nan if self.sampled is None else self.sampled / self.share

    def hashes(self) -> Words:
        """The hashes of the sampled units, uint64, ascending; empty if not known."""
        return self._hashes.copy()

    def _sizes_of_groups(self, buckets: int, salt: str) -> tuple[int, ...]:
        """The sampled units in each group of `UserGroups`, [buckets]; kept for the next metric."""
        if (buckets, salt) not in self._sizes:
            hashes = mixed(words_of(self._hashes, SALT), salt_word(salt))
            groups = (hashes & np.uint64(buckets - 1)).astype(np.intp)
            sizes = np.bincount(groups, minlength=buckets)
            self._sizes[buckets, salt] = tuple(sizes.tolist())
        return self._sizes[buckets, salt]

    @cached_property
    def _sizes(self) -> dict[tuple[int, str], tuple[int, ...]]:
        return {}


class Units(Accumulator, schema="units/1"):
    """The set of different users (or other units) of a stream; repeated units count once.

    Settings
        share: the share of all units that is kept, in (0, 1], by a hash of the unit alone: the same
        units everywhere. max_units: a state of more kept units drops them, and its result is
        undefined.
    Rows
        units: [n] ids, integers or strings (or their hashes by `hash_ids`). The integer 5 and the
        string "5" are two units.
    State
        The set of the 64-bit hashes of the kept units: 8 bytes each.
    Result
        UnitsResult: `units`, `sampled`, `hashes()`.
    Undefined
        nan past `max_units`; `reason` says so.
    Exactness
        Exact with share=1, unless two of n units have one hash (n² / 2⁶⁵ expected pairs). A sample
        is of units, so that counts of variants are multinomial, as for all units.
    Cost
        About 10 ns a row; a union sorts.
    Source
        Duffield & Grossglauser 2001, "Trajectory sampling", IEEE/ACM Trans. Netw. 9(3), for samples
        by a hash; a union is a commutative monoid.

    >>> from streammetrics import Units
    >>> monday, tuesday = Units(), Units()
    >>> monday.update(["ann", "bo", "ann"])
    >>> tuesday.update(["bo", "cy"])
    >>> monday.compute().units, (monday + tuesday).compute().units
    (2.0, 3.0)
    """

    _many_slots: ClassVar[bool] = True
    _shows_units: ClassVar[bool] = True

    share: float = 1.0
    max_units: int | None = None
    inputs = Inputs(units=UnitIds())
    units = UnitSet()

    def check_settings(self) -> None:
        check_unit_settings(self)

    if TYPE_CHECKING:

        def update(self, units: ArrayLike | DictionaryColumn) -> None: ...

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        self.units.add(mixed(batch.units.view(np.uint64), SALT), slots)

    def compute(self) -> UnitsResult:
        """The number of units, and their hashes."""
        self._flush()
        hashes = self.units.units_of_slot()
        if hashes is None:
            why = f"more than max_units={self.max_units} units were sampled"
            return UnitsResult(self.share, None, why)
        return UnitsResult(self.share, len(hashes), _hashes=hashes)


def in_several(arms: Iterable[UnitsResult]) -> UnitsResult:
    """The units that were seen in two arms or more; unknown if those of one arm are.

    arms: all with the same share.

    >>> a, b = Units(), Units()
    >>> a.update([1, 2, 3])
    >>> b.update([3, 4])
    >>> in_several([a.compute(), b.compute()]).units
    1.0
    """
    results = list(arms)
    shares = {result.share for result in results}
    if len(shares) > 1:
        hint = "count the units of all arms with one share"
        raise _bad("share", "the same share in all arms", sorted(shares), hint)
    share = shares.pop() if shares else 1.0
    unknown = next((result.reason for result in results if result.sampled is None), "")
    if unknown:
        return UnitsResult(share, None, unknown)
    hashes, times = np.unique(
        np.concatenate([np.empty(0, np.uint64), *(result.hashes() for result in results)]),
        return_counts=True,
    )
    shared = hashes[times > 1]
    return UnitsResult(share, len(shared), _hashes=shared)


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"Units.{name}", hint=hint)


# Removal of some users from a state that keeps the rows of each user separate.


def keeps_units(metric: Accumulator) -> bool:
    """Whether a state of this metric keeps the rows of each group or list separate, so that some of
    them can be left out.

    >>> from streammetrics import GroupedAUC, Ratio, UserGroups
    >>> keeps_units(GroupedAUC()), keeps_units(UserGroups(GroupedAUC())), keeps_units(Ratio())
    (True, True, False)
    """
    hint = "pass an instance, such as Ratio()"
    instance(metric, Accumulator, "keeps_units(metric)", "a metric", hint)  # type: ignore[type-abstract]
    if isinstance(metric, UserGroups):
        return metric.group_metric is not None and keeps_units(metric.group_metric)
    parts = metric._parts.values()
    bags = [part.part if isinstance(part, Bags) else part for part in parts]
    return all(isinstance(bag, Bag) and bag.ids is not None for bag in bags)


def without_units(state: Accumulator, units: UnitsResult) -> Accumulator:
    """The state without the rows of these users; `state` does not change.

    units: of `Units` with share=1. The groups of the state are the users. The integer 5 and the
    string "5" are two units, so both states must get ids of the same kind.

    Raises SettingsError for a metric that does not keep users separate, and for weighted rows.

    >>> from streammetrics import GroupedAUC, Units
    >>> users, both = GroupedAUC(), Units()
    >>> users.update([0, 1, 1, 0], [0.1, 0.2, 0.3, 0.4], groups=[7, 7, 8, 8])
    >>> both.update([8])
    >>> without_units(users, both.compute()).compute().gauc
    1.0
    """
    new = state.copy()
    _leave_out(new, units.hashes())
    return new


def _leave_out(state: Accumulator, hashes: Words) -> None:
    state._flush()
    if isinstance(state, UserGroups) and state.states.child is not None and keeps_units(state):
        child = state.states.whole_child()
        before = _rows(child)
        _leave_out(child, hashes)
        less = before - _rows(child)
        groups = np.flatnonzero(less)
        state.group_rows.add(groups, None, -less[groups])
    elif keeps_units(state):
        for name in state._parts:
            state.__dict__[name] = _without(state, state.__dict__[name], hashes)
    else:
        raise SettingsError(
            expected="a metric that keeps the rows of each user apart, such as GroupedAUC",
            got=type(state).__name__,
            where="without_units",
            hint="leave these users out before counting rows",
        )


def _rows(state: Accumulator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of each slot."""
    return cast("BagColumn", state.__dict__["bag"]).totals.copy()


def _without(owner: Accumulator, column: BagColumn | BagsColumn, hashes: Words) -> Column:
    if isinstance(column, BagsColumn):
        return column.like(_without_in(owner, column.inner, hashes), column.width)
    return _without_in(owner, column, hashes)


def _without_in(owner: Accumulator, bag: BagColumn, hashes: Words) -> BagColumn:
    if bag.surplus.any():
        raise SettingsError(
            expected="rows of weight 1",
            got="weighted rows, whose number per user is not kept",
            where=f"without_units of {type(owner).__name__}",
            hint="leave these users out before counting rows",
        )
    return _bag_without(bag, hashes, SALT)


def _bag_without(bag: BagColumn, hashes: Words, salt: np.uint64) -> BagColumn:
    """The rows of all groups but those with these hashes, in new memory.

    hashes: of group ids under the salt, as `unit_hashes` returns them. Rows must have no units of
    weight: the units of a key are added up, so the number of its rows is unknown. A slot past
    `max_rows` stays so, with its total.
    """
    layout, _ = bag.settled()
    assert bag.ids is not None and not bag.surplus.any()
    removed: NDArray[np.bool_] = np.isin(mixed(bag.ids.words(), salt), hashes)

    def kept(lead: U64) -> tuple[U64, NDArray[np.intp]]:
        return lead, np.flatnonzero(~removed[layout.parts(lead)[1].view(np.intp)])

    new = BagColumn(bag.rule, bag.width, bag.ids.twin(), bag.values)
    new.over = bag.over.copy()
    new.keys = Keys(layout)
    new.keys.carry(bag.keys, kept, ascending=True)
    new.totals = np.where(bag.over, bag.totals, 0)
    for number, run in enumerate(new.keys.runs()):
        slots = layout.parts(layout.open(run, number).lead)[0].view(np.intp)
        np.add.at(new.totals, slots, 1 if run.counts is None else run.counts.astype(np.int64))
    return new
