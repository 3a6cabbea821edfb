"""GroupedInterleaving: interleaving whose credit is by list, session or user, from single items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    SLOT_0,
    Accumulator,
    Bag,
    BagColumn,
    Batch,
    Binary,
    DictionaryColumn,
    Ids,
    Inputs,
    Slots,
    check_choice,
    check_max_rows,
    require,
)
from streammetrics.core import Groups, codes_of, scores_of
from streammetrics.policies.interleaving import winners
from streammetrics.results.preference import GroupPreference

_IDS: Final = ("integer", "hashed", "exact")


class GroupedInterleaving(Accumulator, schema="grouped-interleaving/1"):
    """Which of two rankers, A or B, users prefer, from one row for each shown item of team drafts.

    Rows of one group are one unit of credit, however they are spread over batches, shards and
    workers: the group is a list, a session or a user, as its ids say.

    Settings
        ids: "integer" (int64), "exact" (strings, kept as they are) or "hashed" (strings, kept as 64
        bits of SipHash under a fixed key: exact unless two ids collide). For string ids an integer
        is the string of its digits.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
    Rows
        A row is a shown item, or a click on one. labels: [n], 1 if it was clicked, else 0. teams:
        [n], 0 if A drafted it, 1 if B did. groups: [n] ids. The side with more clicked rows wins
        the group. Without rows of items that were not clicked, groups without a click are unknown.
    State
        The number of rows of each group, by team and click.
    Result
        GroupPreference: as Preference of Interleaving, but its counts are of groups. What holds at
        every look does so only if groups are complete when they are counted: a user who comes back
        may change sides.
    Undefined
        nan if no group has a click, and past `max_rows`; the p-value and the e-value are then 1.
    Exactness
        As for Interleaving.
    Cost
        State: at most four entries of 9 bytes for each group, and about 30 bytes for its id. An
        update sorts its rows; a read passes over all groups.
    Source
        As Interleaving; Chapelle et al. 2012, section 3, for other units than lists.

    >>> from streammetrics import GroupedInterleaving
    >>> metric = GroupedInterleaving()
    >>> metric.update(labels=[1, 0, 1], teams=[0, 1, 1], groups=[7, 7, 8])
    >>> metric.update(labels=[1, 1], teams=[1, 1], groups=[7, 8])  # more of both sessions
    >>> result = metric.compute()
    >>> result.preference, result.wins_a, result.wins_b, result.ties
    (0.25, 0, 1, 1)
    """

    ids: str = "integer"
    max_rows: int | None = None
    inputs = Inputs(labels=Binary(), teams=Binary(), groups=Ids())
    bag = Bag("float32", ids="ids", repeats="_repeats")  # of (group, label as value, team)

    def check_settings(self) -> None:
        check_choice(self.ids, _IDS, "GroupedInterleaving.ids")
        check_max_rows(self.max_rows, "GroupedInterleaving.max_rows")

    @property
    def _repeats(self) -> bool:
        """Rows of a group are of four kinds, so equal ones are counted together."""
        return True

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            teams: ArrayLike,
            *,
            groups: ArrayLike | DictionaryColumn,
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        clicked = batch.labels.astype(np.float32)
        self.bag.add(clicked, batch.teams, slots, batch.as_ids("groups"))

    def _require_possible(self) -> None:
        codes = self.bag.table().codes
        is_label = np.isin(codes, codes_of(np.array([0, 1], np.float32)))
        require(bool(is_label.all()), "labels other than 0 and 1")

    def compute(self) -> GroupPreference:
        """The preference, and the groups of each kind."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[GroupPreference]:
        is_single = self.bag.width == len(slots) == 1
        bag = self.bag if is_single else self.bag.take(slots)
        return [
            GroupPreference(None, None, None, None, rows, bag.reason(i))
            if bag.over[i]
            else GroupPreference(a, b, ties, none, rows)
            for i, ((a, b, ties, none), rows) in enumerate(
                zip(_counts(bag).tolist(), bag.totals.tolist(), strict=True)
            )
        ]


def _counts(bag: BagColumn) -> NDArray[np.int64]:
    """The groups of each state that A won, that B won, ties, and those without a click; [n, 4]."""
    layout, (run,) = bag.settled()
    groups = Groups(layout, run)
    codes, teams = groups.rows(np.arange(len(groups)))
    owners = np.repeat(np.arange(len(groups)), groups.sizes)
    clicked = scores_of(codes) > 0
    a, b = (
        np.bincount(owners[clicked & (teams == team)], minlength=len(groups)) for team in (0, 1)
    )
    cells = groups.slots * 4 + winners(a.astype(np.float64), b.astype(np.float64))
    return np.bincount(cells, minlength=4 * bag.width).reshape(bag.width, 4)
