"""A state without the rows of some users, where it has the rows of each user apart."""

from __future__ import annotations

import numpy as np

from streammetrics.combine.units import SALT, UnitsResult
from streammetrics.combine.user_groups import UserGroups
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bag import Bag, BagColumn
from streammetrics.core.bag_without import bag_without
from streammetrics.core.bags import Bags, BagsColumn
from streammetrics.core.errors import SettingsError
from streammetrics.core.unit_hashes import Words


def keeps_units(metric: Accumulator) -> bool:
    """Whether a state of this metric has the rows of each group or list of rows apart, so that it
    can be had without some of them.

    >>> from streammetrics import GroupedAUC, Ratio, UserGroups
    >>> keeps_units(GroupedAUC()), keeps_units(UserGroups(GroupedAUC())), keeps_units(Ratio())
    (True, True, False)
    """
    if isinstance(metric, UserGroups):
        return keeps_units(metric.group_metric)
    parts = metric._parts.values()
    bags = [part.part if isinstance(part, Bags) else part for part in parts]
    return all(isinstance(one, Bag) and one.ids is not None for one in bags)


def without_units(state: Accumulator, units: UnitsResult) -> Accumulator:
    """The state as it would be if the rows of these users had not come; `state` does not change.

    units: of `Units` of share 1. The groups of the state are the users. An integer is one unit,
    and its text another, so both must have been fed with one kind.

    Raises SettingsError for a metric that does not keep users apart, and for rows with weights.

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
    if isinstance(state, UserGroups) and keeps_units(state):
        child = state.states.child
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
            came=type(state).__name__,
            where="without_units",
            todo="leave such users out before their rows are counted",
        )


def _rows(state: Accumulator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Rows of each slot."""
    bag = state.__dict__["bag"]
    assert isinstance(bag, BagColumn)
    return bag.totals.copy()


def _without(owner: Accumulator, column: object, hashes: Words) -> object:
    if isinstance(column, BagsColumn):
        return BagsColumn(_without_in(owner, column.inner, hashes), column.n, column.width)
    assert isinstance(column, BagColumn)
    return _without_in(owner, column, hashes)


def _without_in(owner: Accumulator, bag: BagColumn, hashes: Words) -> BagColumn:
    if bag.excess.any():
        raise SettingsError(
            expected="rows of weight 1",
            came="rows with weights, of which the number is not kept by user",
            where=f"without_units of {type(owner).__name__}",
            todo="leave such users out before their rows are counted",
        )
    return bag_without(bag, hashes, SALT)
