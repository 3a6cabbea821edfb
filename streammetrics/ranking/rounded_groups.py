"""Which groups the rows are of whose weight was rounded."""

from __future__ import annotations

import numpy as np

from streammetrics.core.bag import BagColumn
from streammetrics.kernels.segments import GroupPairs


def with_rounded(groups: GroupPairs, bag: BagColumn, rounded: BagColumn) -> GroupPairs:
    """The groups of a bag of one state, with how many rows of each label another bag has.

    Groups that only the other bag has come last, without a row of their own.
    """
    table, indices = rounded.table(), bag.groups().indices
    assert bag.ids is not None and rounded.ids is not None and table.groups is not None
    # Each bag numbers its ids as they come; a twin, since what is looked for may be added.
    of_theirs = bag.ids.twin().index_all(rounded.ids)[table.groups]
    places = np.searchsorted(indices, of_theirs)
    strange = np.append(indices, 0)[places] != of_theirs
    strange |= places == len(indices)
    n_strange = int(np.count_nonzero(strange))
    places[strange] = len(indices) + np.arange(n_strange)
    counts = np.zeros((2, len(indices) + n_strange), np.int64)
    counts[:, places] = table.counts
    none = np.zeros(n_strange, np.int64)
    return GroupPairs(
        np.append(groups.not_lost, none),
        np.append(groups.ties, none),
        np.append(groups.positives, none),
        np.append(groups.negatives, none),
        groups.large,
        counts,
    )
