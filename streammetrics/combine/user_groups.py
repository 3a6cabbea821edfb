"""UserGroups: a metric, and how far it may be off where the rows of one user hang together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.group_states import GroupStates, WholeState, coarse_form
from streammetrics.combine.panel import Panel, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.user_groups_result import UserGroupsResult, summed
from streammetrics.combine.windows import Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.core.interval import Interval
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import Coded, Rows


class UserGroups(Accumulator, schema="user-groups/1"):
    """A metric, and its variance over users: they are dealt to k groups by a hash of their id.

    The rows of one user hang together, and an interval that takes them for independent is too
    narrow. Groups of users are independent whatever users are like.

    Settings
        metric: an empty metric, not a combination of several. k: how many groups, a power of two
        from 2 to 4096. salt: names the hash that deals users to groups. assignment_salt: the salt
        that assigns users to variants, if there is one: it is refused where it equals `salt`, since
        a variant would fill some of the groups only, and is not kept.
    Rows
        users: [n] ids, integers or strings (or what `hash_ids` makes of these), of what is assigned
        to variants; then the metric's own columns. The integer 5 and the string "5" are two users.
    State
        For each group its rows and a state of the metric. A metric that keeps scores (HistogramAUC,
        ExactAUC, MulticlassAUC) is there once, and in each group in a form of about 64 buckets, for
        the variance alone; any other is the sum of its groups.
    Result
        UserGroupsResult: `value`, the metric's own result; of its headline `estimate`, `variance`,
        `deff`, `n_eff`; `interval(view)` and `replicates(view)` of any view of the metric.
    Undefined
        A variance of fewer than two groups with rows, or of a view that is undefined without one
        of them, is nan, and its interval infinite.
    Exactness
        The estimate is that of the metric, with its own bounds. The variance is a function of exact
        totals, so that no order shows in any bit.
    Cost
        5 to 15 ns a row above the metric's own, by how many sums it keeps; k states of the metric,
        or of its 64 buckets. A result reads k states more, once it is asked for a variance.
    Source
        Wolter 2007, "Introduction to Variance Estimation", chapters 2 and 4 (random groups, and
        the jackknife that leaves out one of them).

    >>> from streammetrics import Ratio, UserGroups
    >>> ctr = UserGroups(Ratio())
    >>> ctr.update(["ann", "ann", "bo", "cy"], numerators=[1, 1, 0, 1])
    >>> found = ctr.compute()
    >>> found.estimate, round(found.variance, 6), found.groups
    (0.75, 0.08642, 3)
    """

    metric: Accumulator
    k: int = 64
    salt: str = "streammetrics"
    assignment_salt: str | None = None
    whole = WholeState()
    states = GroupStates()
    group_rows = Counts("k")  # rows of each group

    def check_settings(self) -> None:
        metric = require_empty(self.metric, "UserGroups.metric")
        if isinstance(metric, Panel | PerKey | Windows | UserGroups):
            raise SettingsError(
                expected="one metric",
                came=type(metric).__name__,
                where="UserGroups.metric",
                todo=f"put UserGroups into the {type(metric).__name__}, around each metric",
            )
        self._set("metric", metric)
        if type(self.k) is not int or not 2 <= self.k <= 4096 or self.k & (self.k - 1):
            raise _bad("k", "a power of two from 2 to 4096", self.k, "pass 64, or 256")
        for name in ("salt", "assignment_salt"):
            value = self.settings()[name]
            if not isinstance(value, str) and (name == "salt" or value is not None):
                raise _bad(name, "a string", value, "pass any text")
        if self.assignment_salt == self.salt:
            todo = "choose another: with the same hash a variant has users in some groups only"
            raise _bad("salt", "another salt than that of the assignment", self.salt, todo)
        self._set("assignment_salt", None)

    @property
    def group_metric(self) -> Accumulator:
        """What each group keeps: the metric itself, or its coarse form."""
        known = self.__dict__.get("_group_metric")
        if known is None:
            known = self.__dict__["_group_metric"] = coarse_form(self.metric)
        assert isinstance(known, Accumulator)
        return known

    def arguments(self) -> Mapping[str, bool]:
        return {"users": True, **self.metric.arguments()}

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def update(self, users: ArrayLike | Coded, **columns: ArrayLike | Coded | None) -> None:
        """Count rows: users [n], and the metric's own columns; all or none."""
        self._update(self.check(users, **columns))

    def check(self, users: ArrayLike | Coded, **columns: ArrayLike | Coded | None) -> Rows:
        """The groups of the users and the metric's rows, or InputError; changes nothing."""
        hashes = unit_hashes(users, salt_word(self.salt), "users")
        rows = self.metric.check(**columns)
        require_as_many(len(hashes), rows.n, "users")
        groups = hashes.astype(np.uint16) & np.uint16(self.k - 1)
        return Rows(rows.n, (groups, rows), rows.mass)

    def _absorb(self, rows: Rows, slots: Slots | None) -> None:
        groups, inner = rows.columns
        assert isinstance(groups, np.ndarray) and isinstance(inner, Rows)
        at = groups.astype(np.intp)
        self.group_rows.add(at, slots)
        for metric in self.whole.by_name.values():
            metric._absorb(inner, slots)
        self.states.child._absorb(inner, self.states.locate(at, slots))

    def compute(self) -> UserGroupsResult:
        """The metric's result, with its variance over groups of users."""
        self._flush()
        rows = tuple(self.group_rows.dense().tolist())
        groups = part_of(self, self.states.of_slot(0))
        value = self.metric_state().compute()
        return UserGroupsResult(value, rows, groups, coarse=bool(self.whole.by_name))

    def confidence_interval(
        self,
        *,
        level: float = 0.95,
        method: str = "auto",
        cluster: str = "auto",
        view: object = None,
    ) -> Interval:
        """The interval of a view of the metric; None: of the first one.

        cluster: "groups", or "auto": over users; "none": the metric's own, of independent rows.
        """
        if cluster == "none":
            of = self.metric_state()
            return of.confidence_interval(level=level, method=method, cluster=cluster, view=view)
        cluster = "auto" if cluster == "groups" else cluster
        return super().confidence_interval(level=level, method=method, cluster=cluster, view=view)

    def metric_state(self) -> Accumulator:
        """The state of the metric itself, of all users."""
        self._flush()
        for metric in self.whole.by_name.values():
            return part_of(self, metric.copy())
        return part_of(self, summed(self.states.of_slot(0)))


def _bad(name: str, expected: str, came: object, todo: str) -> SettingsError:
    return SettingsError(expected=expected, came=shown(came), where=f"UserGroups.{name}", todo=todo)
