"""GroupedAUC: the area under the ROC curve inside each group, and their weighted mean."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bag import Bag
from streammetrics.core.bag_checks import check_choice, check_max_rows, group_ids
from streammetrics.core.checks import binary_labels, same_length
from streammetrics.core.checks import scores as checked_scores
from streammetrics.core.parts import Slots
from streammetrics.core.rows import Coded, Rows
from streammetrics.kernels.exact_mean import mean_area
from streammetrics.kernels.segments import group_areas
from streammetrics.results.grouped import GroupedArea

_CHOICES = {
    "weight": ("impressions", "positives", "uniform"),
    "score_type": ("float32", "float64"),
    "ids": ("integer", "hashed", "exact"),
}


class GroupedAUC(Accumulator, schema="grouped-auc/1"):
    """GAUC: how well scores rank within each user, averaged over users.

    Settings
        weight: of a group in the mean: "impressions" (its rows), "positives", or "uniform".
        score_type: the precision in which scores are compared. "float32" halves state and time;
        scores that differ beyond it are ties then.
        ids: "integer" (int64), "exact" (strings, kept as they are) or "hashed" (strings, of which
        64 bits of BLAKE2b under a fixed key are kept: exact unless two ids collide).
        max_rows: past so many rows a state keeps their number, drops the rows, and is undefined.
    Rows
        labels: [n] of 0 and 1. scores: [n], no NaN. groups: [n] ids, of users as a rule.
    State
        The multiset of (group, score, label).
    Result
        GroupedArea: `gauc`, `groups`, `groups_kept`, `groups_one_class`, `rows`, `positives`.
        A group of one class leaves both sums and is counted; one of equal scores has 0.5 and
        stays; a group whose rows came in several batches or shards is one group.
    Undefined
        nan without a group that has both labels, and past `max_rows`.
    Exactness
        Exact: each area is a ratio of integers, and the mean is correctly rounded.
    Cost
        State: 8 bytes a row and about 30 an id, less where rows repeat. An update costs its rows:
        about 4 sorts of as many float32.
    Source
        Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", KDD,
        section 6.2, eq. 6 (as a weighted mean of areas; weights by clicks or by impressions).

    >>> from streammetrics import GroupedAUC
    >>> users = GroupedAUC()
    >>> users.update([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5], groups=[7, 7, 8, 7, 8])
    >>> result = users.compute()
    >>> result.gauc, result.groups_kept
    (1.0, 2)
    """

    weight: str = "impressions"
    score_type: str = "float32"
    ids: str = "integer"
    max_rows: int | None = None
    bag = Bag(ids="ids")

    def check_settings(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(getattr(self, name), choices, f"GroupedAUC.{name}")
        check_max_rows(self.max_rows, "GroupedAUC.max_rows")

    def update(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        groups: ArrayLike | Coded,
    ) -> None:
        """Count rows [n]: labels 0 or 1, scores, and the group id of each; all or none."""
        self._update(self.check(labels, scores, groups=groups))

    def check(
        self,
        labels: ArrayLike,
        scores: ArrayLike,
        *,
        groups: ArrayLike | Coded,
    ) -> Rows:
        y, s = binary_labels(labels), checked_scores(scores)
        same_length(len(y), s, "scores", of="labels")
        ids = group_ids(groups, self.ids)
        same_length(len(y), ids.codes if isinstance(ids, Coded) else ids, "groups", of="labels")
        return Rows(len(y), (y, s, ids))

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        labels, scores, groups = rows.columns
        assert isinstance(labels, np.ndarray) and isinstance(scores, np.ndarray)
        assert isinstance(groups, (np.ndarray, Coded))
        self.bag.add(scores, labels, slots, groups)

    def compute(self) -> GroupedArea:
        """GAUC of all groups, and how many there are of which kind."""
        self._flush()
        bag = self.bag
        if bag.dropped:
            return GroupedArea(
                math.nan,
                *(None, None, None, bag.total, None),
                compared_as=self.score_type,
                ids=self.ids,
                reason=bag.why_dropped,
            )
        layout, (run,) = bag.settled()
        areas = group_areas(run.low, layout.group_shift, run.high, run.counts)
        p, n = areas.positives, areas.negatives
        kept = int(np.count_nonzero((p > 0) & (n > 0)))
        return GroupedArea(
            mean_area(areas.twice_u, p, n, areas.large, self.weight),
            groups=len(p),
            groups_kept=kept,
            groups_one_class=len(p) - kept,
            rows=bag.total,
            positives=int(p.sum()),
            compared_as=self.score_type,
            ids=self.ids,
        )
