"""Interpolated precision at a share of recall (Manning, Raghavan and Schuetze 2008, "Introduction
to information retrieval", section 8.4), and inferred average precision (Yilmaz and Aslam 2006,
"Estimating average precision with incomplete and imperfect judgments", CIKM), as in trec_eval.

Their means over the orders of equal scores have no closed form: such orders must not matter.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streammetrics.kernels.exact.double_double import (
    Pair,
    add,
    divided_by,
    quotient,
    scaled,
    totals,
)
from streammetrics.kernels.ranking.graded_lists import Lists, Ranked
from streammetrics.kernels.ranking.ranked import ranked
from streammetrics.kernels.ranking.ties import Indices

_PER_EPSILON: Final = 1e5  # 1 over the constant that smooths the share of relevant items


def open_lists(lists: Ranked, rel: int) -> Indices:
    """The lists in which an item of grade `rel` or more and another one have equal scores."""
    relevant = lists.ties.relevant(rel)
    is_open = (relevant > 0) & (relevant < lists.ties.sizes)
    return np.unique(lists.ties.lists[is_open])


def precision(lists: Ranked, rel: int, recall: float) -> Pair:
    """The greatest precision of a rank with the share `recall` of all known items of grade `rel` or
    more, 0 where no rank has it; [n]. No list may be open."""
    owners, ranks, _ = _settled(lists, rel)
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


def inferred_precision(lists: Ranked, rel: int) -> Pair:
    """(1/R) Σ (1 + s (a + ε) / (a + b + 2 ε)) / k over the relevant items of the list; [n].

    k: the rank; above it are a relevant and b other judged items, and s of the pool, judged or not.
    ε is 0.00001, as in trec_eval. No list may be open.
    """
    owners, ranks, unjudged = _settled(lists, rel)
    whole = lists.whole
    outside = unjudged
    if whole.pooled is not None and whole.judged is not None:
        as_judged = Lists(
            whole.grades, whole.scores, whole.offsets, None, whole.judged | whole.pooled
        )
        parts = [_settled(part, rel)[2] for _, part in ranked(as_judged, None, lists.order)]
        outside = np.concatenate([np.empty(0, np.intp), *parts])
    relevant = np.arange(len(owners)) - np.searchsorted(owners, owners, side="left")
    judged = (ranks - unjudged).astype(np.float64)
    above = relevant.astype(np.float64)
    shares = quotient(above * _PER_EPSILON + 1.0, judged * _PER_EPSILON + 2.0)
    terms = add(scaled(shares, (ranks - outside).astype(np.float64)), _ones(len(owners)))
    terms = divided_by(terms, (ranks + 1).astype(np.float64))
    return divided_by(
        totals(terms, owners, lists.n), np.maximum(lists.known(rel), 1).astype(np.float64)
    )


def _ones(n: int) -> Pair:
    return Pair(np.ones(n), np.zeros(n))


def _settled(lists: Ranked, rel: int) -> tuple[Indices, Indices, Indices]:
    """The list and the rank from 0 of each item of grade `rel` or more, list by list, and the
    number of unjudged items above it."""
    hits, ties = lists.within(None, rel), lists.ties
    relevant = ties.relevant(rel)
    groups = np.flatnonzero(relevant)
    sizes = relevant[groups]
    starts = np.cumsum(sizes) - sizes
    inside = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
    above = np.zeros_like(hits.ranks) if hits.unjudged is None else hits.unjudged
    owners = np.concatenate([hits.lists, np.repeat(ties.lists[groups], sizes)])
    ranks = np.concatenate([hits.ranks, np.repeat(ties.begins[groups], sizes) + inside])
    unjudged = np.concatenate([above, np.repeat(ties.unjudged_above[groups], sizes)])
    order = np.lexsort((ranks, owners))
    return owners[order], ranks[order], unjudged[order]
