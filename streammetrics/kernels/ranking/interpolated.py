"""Interpolated precision at a share of recall (Manning, Raghavan and Schuetze 2008, "Introduction
to information retrieval", section 8.4), as in trec_eval.

It is the greatest precision of several ranks, which has no closed form of its mean over the orders
of equal scores: such orders must not matter.
"""

from __future__ import annotations

import numpy as np

from streammetrics.kernels.exact.double_double import Pair, quotient
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.ties import Indices


def open_lists(lists: Ranked, rel: int) -> Indices:
    """The lists in which an item of grade `rel` or more and another one have equal scores."""
    relevant = lists.ties.relevant(rel)
    is_open = (relevant > 0) & (relevant < lists.ties.sizes)
    return np.unique(lists.ties.lists[is_open])


def precision(lists: Ranked, rel: int, recall: float) -> Pair:
    """The greatest precision of a rank with the share `recall` of all known items of grade `rel` or
    more, 0 where no rank has it; [n]. No list may be open."""
    owners, ranks = _settled_ranks(lists, rel)
    needed = np.floor(recall * lists.known(rel) + 0.9)
    firsts = np.searchsorted(owners, owners, side="left")
    above = np.arange(len(owners)) - firsts + 1.0  # items at this rank or above
    counts = above >= needed[owners]
    owners, above, ranks = owners[counts], above[counts], ranks[counts] + 1.0
    shares = above / ranks
    best = np.zeros(lists.n)
    np.maximum.at(best, owners, shares)
    top, below = np.zeros(lists.n), np.ones(lists.n)
    at_best = np.flatnonzero(shares == best[owners])
    top[owners[at_best]], below[owners[at_best]] = above[at_best], ranks[at_best]
    return quotient(top, below)


def _settled_ranks(lists: Ranked, rel: int) -> tuple[Indices, Indices]:
    """The list and the rank from 0 of each item of grade `rel` or more, list by list."""
    hits, ties = lists.within(None, rel), lists.ties
    relevant = ties.relevant(rel)
    groups = np.flatnonzero(relevant)
    sizes = relevant[groups]
    starts = np.cumsum(sizes) - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    owners = np.concatenate([hits.lists, np.repeat(ties.lists[groups], sizes)])
    ranks = np.concatenate([hits.ranks, np.repeat(ties.begins[groups], sizes) + inside])
    order = np.lexsort((ranks, owners))
    return owners[order], ranks[order]
