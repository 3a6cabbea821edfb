"""A bag without the rows of some groups: of users who were seen where they should not be."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bag import BagColumn
from streammetrics.core.bag_keys import Keys
from streammetrics.core.bag_layout import U64
from streammetrics.core.unit_hashes import Words, mixed


def bag_without(bag: BagColumn, hashes: Words, salt: np.uint64) -> BagColumn:
    """The rows of all groups but those with these hashes, in memory of their own.

    hashes: of group ids under the salt, as `unit_hashes` makes them. Rows must have no units of
    weight: those of a key are added up, and how many rows they came from is not known. A slot that
    is past `max_rows` stays so, with its total.
    """
    layout, _ = bag.settled()
    assert bag.ids is not None and not bag.excess.any()
    gone: NDArray[np.bool_] = np.isin(mixed(bag.ids.words(), salt), hashes)

    def kept(lead: U64) -> tuple[U64, NDArray[np.intp]]:
        return lead, np.flatnonzero(~gone[layout.parts(lead)[1].view(np.intp)])

    new = BagColumn(bag.rule, bag.width, bag.ids.twin())
    new.over = bag.over.copy()
    new.keys = Keys(layout)
    new.keys.carry(bag.keys, kept, ascending=True)
    new.totals = np.where(bag.over, bag.totals, 0)
    for number, run in enumerate(new.keys.runs()):
        slots = layout.parts(layout.open(run, number).lead)[0].view(np.intp)
        np.add.at(new.totals, slots, 1 if run.counts is None else run.counts.astype(np.int64))
    return new
