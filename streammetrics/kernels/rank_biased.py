"""Rank-biased precision: RBP (Moffat and Zobel 2008, ACM TOIS 27(1), article 2)."""

from __future__ import annotations

import numpy as np

from streammetrics.kernels.double_double import Pair, over, scaled, times, totals
from streammetrics.kernels.lists import Ranked
from streammetrics.kernels.persistence import comes, looks, stops
from streammetrics.kernels.ties import Indices, first_of_run


def rank_biased_precision(lists: Ranked, p: float, rel: int, cut: int | None) -> Pair:
    """(1 - p) Σ p^(rank - 1) over the relevant ranks among the first `cut`; [n].

    Ranks are counted from the first relevant one of a list, and what comes before it is
    multiplied in at the end, so that no digit is lost where that one is far down.
    """
    hits = lists.within(cut, rel)
    owners, starts = hits.lists, hits.ranks[first_of_run(hits.lists)]
    steps = hits.ranks - starts
    terms = comes(p)(int(steps.max(initial=0)) + 1).take(steps)
    first = np.zeros(lists.n, np.intp)
    first[owners] = starts
    if len(lists.ties):
        more, of, starts = _tied_terms(lists, p, rel, cut)
        terms = Pair(*(np.concatenate(both) for both in zip(terms, more, strict=True)))
        first[of] = starts
        owners = np.concatenate([owners, of])
    before = comes(p)(int(first.max(initial=0)) + 1).take(first)
    return times(times(totals(terms, owners, lists.n), stops(p)), before)


def _tied_terms(
    lists: Ranked, p: float, rel: int, cut: int | None
) -> tuple[Pair, Indices, Indices]:
    """What each tie group adds, its list, and where the first such group of the list begins.

    A group of m items with r relevant ones has one at each of its ranks in r/m of all orders.
    """
    ties = lists.ties
    relevant = ties.relevant(rel)
    at = np.flatnonzero(relevant > 0 if cut is None else (relevant > 0) & (ties.begins < cut))
    owners, begins, sizes = ties.lists[at], ties.begins[at], ties.sizes[at]
    room = sizes if cut is None else np.minimum(sizes, cut - begins)
    starts = begins[first_of_run(owners)]
    steps = begins - starts
    found = times(
        comes(p)(int(steps.max(initial=0)) + 1).take(steps),
        looks(p)(int(room.max(initial=0)) + 1).take(room),
    )
    shares = scaled(found, relevant[at].astype(np.float64))
    return over(shares, sizes.astype(np.float64)), owners, starts
