"""Binary preference: bpref (Buckley and Voorhees 2004, SIGIR, "Retrieval evaluation with incomplete
information"), as trec_eval has it.

Items that nobody judged are as if they were not there. Under ties, each of r relevant items of a
group has 0 to u of its u judged others above it, each number in 1/(u+1) of all orders.
"""

from __future__ import annotations

import numpy as np

from streammetrics.kernels.double_double import Pair, over, quotient, scaled, totals
from streammetrics.kernels.lists import Ranked


def bpref(lists: Ranked, rel: int) -> Pair:
    """(1/R) Σ 1 - min(n_r, R) / min(R, N) over the relevant items of the list; [n].

    R and N: known relevant and other judged items; n_r: the latter above the relevant one.
    """
    relevant = lists.known(rel)
    others = lists.judged - relevant
    most = np.maximum(np.minimum(relevant, others), 1)
    hits = lists.within(None, rel)
    unjudged = 0 if hits.unjudged is None else hits.unjudged
    above = hits.ranks - hits.places - unjudged
    whole = most[hits.lists]
    kept = whole - np.minimum(above, relevant[hits.lists])
    terms, owners = quotient(kept.astype(np.float64), whole.astype(np.float64)), hits.lists
    ties = lists.ties
    if len(ties):
        r = ties.relevant(rel)
        u = ties.judged() - r
        above = ties.begins - ties.above(r) - ties.unjudged_above
        limit = relevant[ties.lists]
        # Σ min(above + x, limit) for x = 0 ... u
        rising = np.clip(limit - above, 0, u + 1)
        lost = rising * above + rising * (rising - 1) // 2 + (u + 1 - rising) * limit
        whole = most[ties.lists] * (u + 1)
        more = quotient((whole - lost).astype(np.float64), whole.astype(np.float64))
        more = scaled(more, r.astype(np.float64))
        terms = Pair(*(np.concatenate(both) for both in zip(terms, more, strict=True)))
        owners = np.concatenate([owners, ties.lists])
    return over(totals(terms, owners, lists.n), np.maximum(relevant, 1).astype(np.float64))
