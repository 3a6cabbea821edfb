"""UserGroups: a metric, and how far it may be off where the rows of one user are correlated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, cast

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.group_states import GroupStates, WholeState, coarse_form
from streammetrics.combine.panel import Computes, Panel, R, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.user_groups_result import UserGroupsResult, summed
from streammetrics.combine.windows import Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.errors import SettingsError, shown
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.core.interval import Interval
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.part import Slots
from streammetrics.core.rows import DictionaryColumn


class UserGroups(Accumulator, Generic[R], schema="user-groups/1"):
    """A metric, and its variance over users, who are hashed into buckets by their id.

    The rows of one user are correlated, and an interval that takes them for independent is too
    narrow. Buckets of users are independent whatever users are like.

    Settings
        metric: an empty metric, not a combination of several. buckets: how many, a power of two
        from 2 to 4096. salt: names the hash of users. assignment_salt: the salt that assigns users
        to variants, if there is one: it is refused where it equals `salt`, since a variant would
        fill some of the buckets only, and is not kept.
    Rows
        users: [n] ids, integers or strings (or what `hash_ids` makes of these), of what is assigned
        to variants; then the metric's own columns. The integer 5 and the string "5" are two users.
    State
        For each bucket its rows and a state of the metric. A metric that keeps scores
        (HistogramAUC, ExactAUC, MulticlassAUC) is there once, and in each bucket with a grid of
        about 64 cells, for the variance alone; any other is the sum of its buckets.
    Result
        UserGroupsResult: `value`, the metric's own result; of its headline `estimate`, `variance`,
        `deff`, `n_eff`; `interval(view)` and `replicates(view)` of any view of the metric.
    Undefined
        A variance of fewer than two buckets with rows, or of a view that is undefined without one
        of them, is nan, and its interval infinite.
    Exactness
        The estimate is that of the metric, with its own bounds. The variance is a function of exact
        totals, so that no order shows in any bit.
    Cost
        5 to 15 ns a row above the metric's own, by how many sums it keeps; a state of the metric in
        each bucket, or of its 64 cells. A result reads them once it is asked for a variance.
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

    _formerly: ClassVar[Mapping[str, str]] = {"buckets": "k"}

    metric: Accumulator
    buckets: int = 64
    salt: str = "streammetrics"
    assignment_salt: str | None = None
    whole = WholeState()
    states = GroupStates()
    group_rows = Counts("buckets")  # rows of each bucket

    if TYPE_CHECKING:  # so that its value is known to be that of the metric

        def __init__(
            self,
            metric: Computes[R],
            buckets: int = 64,
            salt: str = "streammetrics",
            assignment_salt: str | None = None,
        ) -> None: ...

    def check_settings(self) -> None:
        metric = require_empty(self.metric, "UserGroups.metric")
        if isinstance(metric, Panel | PerKey | Windows | UserGroups):
            raise SettingsError(
                expected="one metric",
                got=type(metric).__name__,
                where="UserGroups.metric",
                hint=f"put UserGroups into the {type(metric).__name__}, around each metric",
            )
        self._set("metric", metric)
        n = self.buckets
        if type(n) is not int or not 2 <= n <= 4096 or n & (n - 1):
            raise _bad("buckets", "a power of two from 2 to 4096", n, "pass 64, or 256")
        for name in ("salt", "assignment_salt"):
            value = self.settings()[name]
            if not isinstance(value, str) and (name == "salt" or value is not None):
                raise _bad(name, "a string", value, "pass any text")
        if self.assignment_salt == self.salt:
            hint = "choose another: with the same hash a variant has users in some groups only"
            raise _bad("salt", "another salt than that of the assignment", self.salt, hint)
        self._set("assignment_salt", None)

    @property
    def k(self) -> int:
        """The former name of `buckets`."""
        warnings.warn("UserGroups.k is now UserGroups.buckets", DeprecationWarning, stacklevel=2)
        return self.buckets

    @property
    def group_metric(self) -> Accumulator:
        """What each bucket keeps: the metric itself, or its coarse form."""
        return self._group_metric

    @cached_property
    def _group_metric(self) -> Accumulator:
        return coarse_form(self.metric)

    def arguments(self) -> Mapping[str, bool]:
        return {"users": True, **self.metric.arguments()}

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def update(
        self, users: ArrayLike | DictionaryColumn, **columns: ArrayLike | DictionaryColumn | None
    ) -> None:
        """Count rows: users [n], and the metric's own columns; all or none."""
        self._update(self.check(users, **columns))

    def check(
        self, users: ArrayLike | DictionaryColumn, **columns: ArrayLike | DictionaryColumn | None
    ) -> Batch:
        """The buckets of the users and the metric's rows, or InputError; changes nothing."""
        hashes = unit_hashes(users, salt_word(self.salt), "users")
        rows = self.metric.check(**columns)
        require_as_many(len(hashes), rows.n, "users")
        groups = hashes.astype(np.uint16) & np.uint16(self.buckets - 1)
        return Batch(rows.n, {"groups": groups, "rows": rows}, rows.total)

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        at, rows = batch.groups.astype(np.intp), batch.as_batch("rows")
        self.group_rows.add(at, slots)
        for metric in self.whole.by_name.values():
            metric._feed(rows, slots)
        self.states.child._feed(rows, self.states.locate(at, slots))

    def compute(self) -> UserGroupsResult[R]:
        """The metric's result, with its variance over buckets of users."""
        self._flush()
        rows = tuple(self.group_rows.dense().tolist())
        groups = part_of(self, self.states.of_slot(0))
        value = cast("R", self.metric_state().compute())
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


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"UserGroups.{name}", hint=hint)
