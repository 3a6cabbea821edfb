"""Average precision, AP (Buckley and Voorhees 2000, SIGIR, "Evaluating evaluation measure
stability"), and binary preference, bpref.

Under ties, take a group of m items, r of them relevant, with b ranks and h relevant items above
the group. The item at rank i is relevant in r/m of all orders. Then (i-1-b)(r-1)/(m-1) relevant
items of the group are above it on average (McSherry and Najork 2008, ECIR, section 3).
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from streammetrics.kernels.exact.double_double import (
    Floats,
    Pair,
    add,
    divided_by,
    minus,
    parts,
    quotient,
    scaled,
    totals,
    totals_of_parts,
)
from streammetrics.kernels.ranking.graded_lists import Ranked
from streammetrics.kernels.ranking.positions import deduplicate
from streammetrics.kernels.ranking.rank_tables import harmonics
from streammetrics.kernels.ranking.ties import Indices

# Binary preference: bpref (Buckley and Voorhees 2004, SIGIR, "Retrieval evaluation with
# incomplete information"), as in trec_eval.


def bpref(lists: Ranked, rel: int) -> Pair:
    """(1/R) Σ 1 - min(n_r, R) / min(R, N) over the relevant items of the list; [n].

    R, N: the known relevant and the other judged items; n_r: of the latter, those above the item.
    """
    relevant = lists.known(rel)
    irrelevant = lists.judged - relevant
    most = np.maximum(np.minimum(relevant, irrelevant), 1)
    hits = lists.within(None, rel)
    unjudged = 0 if hits.unjudged is None else hits.unjudged
    above = hits.ranks - hits.positions - unjudged
    whole = most[hits.lists]
    shares = whole - np.minimum(above, relevant[hits.lists])
    terms, owners = quotient(shares.astype(np.float64), whole.astype(np.float64)), hits.lists
    ties = lists.ties
    if len(ties):
        r = ties.relevant(rel)
        u = ties.judged() - r
        above = ties.begins - ties.sums_above(r) - ties.unjudged_above
        limit = relevant[ties.lists]
        # Σ min(above + x, limit) for x = 0 ... u
        rising = np.clip(limit - above, 0, u + 1)
        lost = rising * above + rising * (rising - 1) // 2 + (u + 1 - rising) * limit
        whole = most[ties.lists] * (u + 1)
        tied_terms = quotient((whole - lost).astype(np.float64), whole.astype(np.float64))
        tied_terms = scaled(tied_terms, r.astype(np.float64))
        terms = Pair(*(np.concatenate(halves) for halves in zip(terms, tied_terms, strict=True)))
        owners = np.concatenate([owners, ties.lists])
    return divided_by(totals(terms, owners, lists.n), np.maximum(relevant, 1).astype(np.float64))


_SHORT: Final = 64


def average_precision(lists: Ranked, rel: int, cut: int | None, cut_denominator: bool) -> Pair:
    """Σ P@i over the relevant ranks i of the first `cut`, divided by the known relevant items; [n].

    cut_denominator: divide by `cut` if that is less. 0 for a list without a relevant item.
    """
    hits = lists.within(cut, rel)
    if not len(lists.ties) and hits.ranks.max(initial=0) < _SHORT:
        cells = hits.positions * _SHORT
        cells += hits.ranks
        sums = totals_of_parts((part[cells] for part in _short()), hits.lists, lists.n)
    else:
        above, ranks = (column.astype(np.float64) + 1 for column in (hits.positions, hits.ranks))
        terms, owners = quotient(above, ranks), hits.lists
        if len(lists.ties):
            tied_terms, tied_owners = _tied_terms(lists, rel, cut)
            terms = Pair(
                *(np.concatenate(halves) for halves in zip(terms, tied_terms, strict=True))
            )
            owners = np.concatenate([owners, tied_owners])
        sums = totals(terms, owners, lists.n)
    relevant = lists.known(rel)
    if cut_denominator and cut is not None:
        relevant = np.minimum(relevant, cut)
    return divided_by(sums, np.maximum(relevant, 1).astype(np.float64))


@cache
def _short() -> list[Floats]:
    """The parts of (position + 1) / (rank + 1) for ranks below `_SHORT`, [position, rank], flat.
    A lookup takes half the time of a division."""
    hit, rank = np.divmod(np.arange(_SHORT * _SHORT), _SHORT)
    return parts(quotient(hit + 1.0, rank + 1.0))


def _tied_terms(lists: Ranked, rel: int, cut: int | None) -> tuple[Pair, Indices]:
    """The contribution of each tie group, and its list."""
    ties = lists.ties
    relevant = ties.relevant(rel)
    above = ties.sums_above(relevant)
    groups = np.flatnonzero(relevant > 0 if cut is None else (relevant > 0) & (ties.begins < cut))
    owners = ties.lists[groups]
    different = deduplicate(
        ties.begins[groups], ties.sizes[groups], relevant[groups], above[groups]
    )
    groups = groups[different.firsts]
    begins, sizes, r = ties.begins[groups], ties.sizes[groups], relevant[groups]
    last = begins + sizes if cut is None else np.minimum(begins + sizes, cut)
    gaps = np.maximum(sizes - 1, 1)
    # Σ (h + 1 + (i-1-b)(r-1)/(m-1)) / i over the ranks i of a group, times m-1, is an integer plus
    # another integer times Σ 1/i.
    table = harmonics(int(last.max(initial=0)) + 1)
    whole = ((r - 1) * (last - begins)).astype(np.float64)
    factors = ((above[groups] + 1) * gaps - (begins + 1) * (r - 1)).astype(np.float64)
    sums = scaled(minus(table.take(last), table.take(begins)), factors)
    sums = add(sums, Pair(whole, np.zeros(len(groups))))
    sums = scaled(sums, r.astype(np.float64))
    return divided_by(sums, (sizes * gaps).astype(np.float64)).take(different.which), owners
