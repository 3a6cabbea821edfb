"""A set of records of which each (id, fields) has one: that with the least time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.record_set import RecordSet
from streammetrics.core.parts.record_table import Table
from streammetrics.core.rows import V, first_at_least, spans

Positions = NDArray[np.intp]
Codes = NDArray[np.unsignedinteger]
_MANY: Final = 1 << 14  # records in order that are merged by themselves, and not sorted with others


class LeastTimes(RecordSet):
    """A map from (id, fields) to the least time. All fields are keys.

    Records are in the order of their ids and then of their fields. A merge keeps the least time of
    each, so that it is a union, as that of a set: in any order, and as often as it likes.
    """

    __slots__ = ()

    def codes(self, table: Table) -> Codes:
        """One number for the fields of each record, in their order; [n].

        table: of records whose keys are numbered by this set.
        """
        sizes = [max(len(keys.values), 1) if keys else 1 for keys in self.keys]
        codes = np.zeros(len(table), np.min_scalar_type(int(np.prod(sizes, dtype=object)) - 1))
        for field, size in zip(table.fields, sizes, strict=True):
            codes *= codes.dtype.type(min(size, np.iinfo(codes.dtype).max))
            codes += field.astype(codes.dtype, copy=False)
        return codes

    def lacks(self, other: LeastTimes) -> NDArray[np.bool_]:
        """Which of the records of another set have an (id, fields) that is not here; bool [n]."""
        own_table, other_table = self.settled(), other.settled()
        renamed, unnamed = other_table, np.zeros(len(other_table), np.bool_)
        for i, (keys, other_keys) in enumerate(zip(self.keys, other.keys, strict=True)):
            assert keys is not None and other_keys is not None
            places = [keys.positions.get(key, -1) for key in other_keys.values] or [-1]
            numbers = np.array(places, np.int64)[other_table.fields[i]]
            unnamed |= numbers < 0
            renamed = renamed.with_field(i, keys.narrowed(np.maximum(numbers, 0)))
        _, is_there = _places(own_table, self.codes(own_table), renamed.ids, self.codes(renamed))
        lacking: NDArray[np.bool_] = unnamed | ~is_there
        return lacking

    def numbered(self, other: LeastTimes) -> Table:
        """The settled records of another set, all of whose keys are here, with their numbers
        here."""
        table = other.settled()
        for i, (keys, other_keys) in enumerate(zip(self.keys, other.keys, strict=True)):
            assert keys is not None and other_keys is not None
            table = table.with_field(i, keys.numbers(other_keys.values)[table.fields[i]])
        return table

    def _united(self, tables: Sequence[Table]) -> Table:
        run, *other_tables = tables
        small: list[Table] = []
        in_order: list[Table] = []
        for table in other_tables:
            is_large = len(table) >= _MANY and _is_ascending(table.ids, self.codes(table))
            (in_order if is_large else small).append(table)
        if small:
            in_order.append(self._sorted(small))
        while len(in_order) > 1:  # in pairs, so that each record is moved log n times
            pairs = zip_longest(
                in_order[::2], in_order[1::2], fillvalue=Table.empty(len(self.kinds))
            )
            in_order = [self._merged(*pair) for pair in pairs]
        return self._merged(run, in_order[0]) if in_order else run

    def _sorted(self, tables: Sequence[Table]) -> Table:
        """Records in any order as a table in order, the least time of each."""
        fields = [np.concatenate([t.fields[i] for t in tables]) for i in range(len(self.kinds))]
        ids = np.concatenate([table.ids for table in tables])
        times = np.concatenate([table.times for table in tables])
        codes = self.codes(Table(ids, times, tuple(fields)))
        if not len(ids):
            return Table(ids, times, tuple(fields))
        order = np.lexsort((codes, ids))
        ids, codes = ids[order], codes[order]
        new = np.ones(len(ids), np.bool_)
        new[1:] = (ids[1:] != ids[:-1]) | (codes[1:] != codes[:-1])
        starts = np.flatnonzero(new)
        first = order[starts]
        least = np.minimum.reduceat(times[order], starts)
        return Table(ids[starts], least, tuple(field[first] for field in fields))

    def _merged(self, table: Table, other: Table) -> Table:
        """The records of two tables in order."""
        if not len(table) or not len(other):
            return table if len(table) else other
        places, is_there = _places(table, self.codes(table), other.ids, self.codes(other))
        times = table.times
        if is_there.any():
            times = times.copy()
            # Each place has one record of `other`.
            times[places[is_there]] = np.minimum(times[places[is_there]], other.times[is_there])
        added = np.flatnonzero(~is_there)
        if not len(added):
            return Table(table.ids, times, table.fields)
        is_old = np.ones(len(table) + len(added), np.bool_)
        new = places[added] + np.arange(len(added))
        is_old[new] = False
        return Table(
            _spread(table.ids, other.ids[added], is_old, new),
            _spread(times, other.times[added], is_old, new),
            tuple(
                _spread(field, other_field[added], is_old, new)
                for field, other_field in zip(table.fields, other.fields, strict=True)
            ),
        )

    def _is_in_order(self) -> bool:
        return _is_ascending(self.run.ids, self.codes(self.run))


def _spread(
    old: NDArray[V], added: NDArray[V], is_old: NDArray[np.bool_], new: Positions
) -> NDArray[V]:
    """The values of two tables at their places in one."""
    out = np.empty(len(is_old), old.dtype)
    out[is_old] = old
    out[new] = added
    return out


def _is_ascending(ids: Words, codes: Codes) -> bool:
    """Whether records are in the order of (id, code), each pair once."""
    above = ids[1:] > ids[:-1]
    equal = np.flatnonzero(~above)
    return not len(equal) or bool(
        ((ids[equal + 1] == ids[equal]) & (codes[equal + 1] > codes[equal])).all()
    )


def _places(
    table: Table,
    codes: Codes,
    ids: Words,
    wanted_codes: Codes,
) -> tuple[Positions, NDArray[np.bool_]]:
    """Of each wanted (id, code) the index of the first record that is not less, and whether it is
    this one; [n] each."""
    low, high = spans(table.ids, ids)
    places = first_at_least(codes, low, high, wanted_codes)
    inside = np.flatnonzero(places < high)
    is_there = np.zeros(len(ids), np.bool_)
    is_there[inside] = codes[places[inside]] == wanted_codes[inside]
    return places, is_there
