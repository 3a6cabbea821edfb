"""UserGroups: a metric, and its variance where the rows of one user are correlated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Final, Generic, cast

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.children import Product, ProductColumn
from streammetrics.combine.clustered import summed
from streammetrics.combine.coarse_form import (
    CollapsedGroups,
    GroupScores,
    Path,
    group_metric,
    group_scores,
    rows_at,
    whole_metric,
)
from streammetrics.combine.group_parts import (
    GroupStates,
    ScoresColumn,
    ScoresInGroups,
)
from streammetrics.combine.groups_left_out import GroupsLeftOut
from streammetrics.combine.paired import Paired
from streammetrics.combine.panel import Computes, Panel, PanelResult, R, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.combine.windows import Windows
from streammetrics.core import intakes
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.conversion import among
from streammetrics.core.errors import InputError, SettingsError, meant, nearest, shown
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.core.intakes import Intake
from streammetrics.core.interval import Interval
from streammetrics.core.layouts import Schemas
from streammetrics.core.parts.collapsed_keys import IN_PAIRS, MOST
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.many_slots import AnySlots
from streammetrics.core.parts.part import SLOT_0, Column, Slots
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings_property import settings_property

_COLLAPSED: Final = "user-groups/2"  # of a metric whose scores are counted by collapsed keys


class UserGroups(Accumulator, Generic[R], schema="user-groups/1"):
    """A metric and its variance over users, who are hashed into buckets by their id.

    The rows of one user are correlated, so an interval that takes them for independent is too
    narrow. Buckets of users are independent, however correlated the rows of a user are.

    Settings
        metric: an empty metric, or a Panel of several. buckets: their number, a power of two
        from 2 to 4096. salt: selects the hash of users. assignment_salt: the salt that assigns
        users to variants, if any. It is refused if it equals `salt`, since a variant would fill
        only some of the buckets; it is not stored. distinct_scores: how many different scores the
        buckets tell apart together, a power of two from 256 to 4096, if the metric keeps scores;
        None: 256, and 1024 in a Paired, since the difference of two models varies less than either.
    Rows
        groups: [n] ids of users (the units that are assigned to variants), integers, strings or
        their hashes by `hash_ids`; `users=` if the metric has groups of its own. Then the metric's
        own columns. The integer 5 and the string "5" are two users.
    State
        For each bucket its number of rows and a state of the metric. A metric that keeps scores
        (HistogramAUC, ExactAUC, MulticlassAUC; Uplift, ExactUplift) is kept once, and its buckets
        count at most `distinct_scores` of them, for the variance alone: where there are more, those
        that are neighbours share a cell, on any scale of the scores. Quantiles is kept once too,
        and in each bucket with a resolution of 4. Any other is the sum of its buckets.
    Result
        UserGroupsResult: `value`, the metric's own result; of its headline `estimate`, `variance`,
        `deff`, `n_eff`; `interval(view)` and `replicates(view)` of any view of the metric, and the
        attributes of the metric's own result, such as `auc`. Of a Panel, a mapping from name to
        UserGroupsResult; `project(name)` is the state of one metric.
    Undefined
        A variance of fewer than two buckets with rows, or of a view that is undefined without one
        of them, is nan, and its interval infinite.
    Exactness
        The estimate is that of the metric, with its own bounds. The variance is a function of exact
        totals, so that the order of rows changes no bit.
    Cost
        5 to 20 ns a row above the metric's own, by its number of sums; a state of the metric, or of
        its `distinct_scores`, in each bucket. A result reads them when it is asked for a variance.
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

    _stored_as: ClassVar[Mapping[str, str]] = {"buckets": "k"}
    _schemas: ClassVar[Schemas] = {
        _COLLAPSED: "",
        "user-groups/1": "its groups hold scores on a fixed grid, which shows the variance of "
        "probabilities and log odds alone: count the rows again, or read the estimate with the "
        "version that wrote it",
    }

    _later = frozenset({"distinct_scores"})
    _many_slots: ClassVar[bool] = True

    metric: Accumulator
    buckets: int = 64
    salt: str = "streammetrics"
    assignment_salt: str | None = None
    distinct_scores: int | None = None
    whole = Product("_kept_whole")
    states = GroupStates()
    group_rows = Counts("buckets")  # rows of each bucket
    scores = ScoresInGroups()

    if TYPE_CHECKING:  # the type of the value is that of the metric

        def __init__(
            self,
            metric: Computes[R],
            buckets: int = 64,
            salt: str = "streammetrics",
            assignment_salt: str | None = None,
            distinct_scores: int | None = None,
        ) -> None: ...

    def check_settings(self) -> None:
        metric = require_empty(self.metric, "UserGroups.metric")
        if isinstance(metric, PerKey | Windows | UserGroups | Paired):
            name, inside = type(metric).__name__, ", around each metric"
            if isinstance(metric, Paired):
                inside = f": Paired(UserGroups({type(metric.metric).__name__}(...)))"
            raise SettingsError(
                expected="a metric, or a Panel of several",
                got=name,
                where="UserGroups.metric",
                hint=f"put UserGroups into the {name}{inside}",
            )
        if metric._tells_units:
            raise SettingsError(
                expected="a metric of rows",
                got=f"{type(metric).__name__}, which tells users apart by itself",
                where="UserGroups.metric",
                hint="use it as it is: its intervals are those of units",
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
            hint = "choose another: with the same hash, a variant has users in only some buckets"
            raise _bad("salt", "a salt other than that of the assignment", self.salt, hint)
        self._set("assignment_salt", None)
        self._check_distinct_scores()
        if self._forms:
            self._set("schema", _COLLAPSED)

    def _check_distinct_scores(self) -> None:
        most, where = self.distinct_scores, "distinct_scores"
        if most is None:
            return
        if type(most) is not int or not MOST <= most <= 4096 or most & (most - 1):
            hint = "pass 1024, or leave it out"
            raise _bad(where, f"a power of two from {MOST} to 4096", most, hint)
        if not group_scores(self.metric):
            hint = f"leave it out: {type(self.metric).__name__} keeps no scores"
            raise _bad(where, "None", most, hint)

    def _finer(self) -> UserGroups[R]:
        """The groups of one of two models, empty."""
        if not self._forms or self.distinct_scores is not None:
            return self
        finer = {**self.settings(), "distinct_scores": IN_PAIRS}
        return UserGroups(**finer)  # type: ignore[arg-type]

    def _coarser(self, metric: Accumulator) -> Accumulator:
        """The same rows, counted by a metric whose groups tell fewer scores apart."""
        state = metric.empty()
        columns = self.whole, self.states, self.group_rows, self.scores
        for name, column in zip(("whole", "states", "group_rows", "scores"), columns, strict=True):
            state.__dict__[name].merge(column, np.zeros(1, np.intp))
        return state

    @settings_property
    def group_metric(self) -> Accumulator | None:
        """The metric of each bucket; None if its scores are counted instead."""
        return group_metric(self.metric)

    @settings_property
    def _forms(self) -> Mapping[Path, GroupScores]:
        """How scores are counted, of each metric that keeps them."""
        return group_scores(self.metric, self.distinct_scores or MOST)

    @settings_property
    def _kept_whole(self) -> Mapping[str, Accumulator]:
        """The metric itself; nothing if the buckets add up to it."""
        metric = whole_metric(self.metric)
        return {} if metric is None else {"metric": metric}

    def arguments(self) -> Mapping[str, bool]:
        return {self._ids: True, **self.metric.arguments()}

    def stored_names(self) -> Mapping[str, str]:
        return {
            **({} if self._ids == "users" else {"groups": "users"}),
            **self.metric.stored_names(),
        }

    @settings_property
    def _ids(self) -> str:
        """The argument of the users' ids: `groups`, unless the metric has groups of its own."""
        return "users" if "groups" in self.metric.arguments() else "groups"

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def _roles(self) -> Mapping[str, str]:
        return self.metric._roles()

    def update(
        self, *groups: ArrayLike | DictionaryColumn, **columns: ArrayLike | DictionaryColumn | None
    ) -> None:
        """Count rows, all or none.

        groups: [n] ids of users, integers or strings, first or by name. columns: those of the
        metric's own `update`, by name; `arguments()` lists them.
        """
        all_columns = columns
        if len(groups) == 1 and self._ids not in columns:
            all_columns = {self._ids: groups[0], **columns}
        if (groups and all_columns is columns) or not self._wait(all_columns):
            self._update(self._checked(groups, columns))

    @property
    def _intakes(self) -> Mapping[str, Intake | None]:
        return {self._ids: intakes.unit_ids, **self.metric._intakes}

    def check(
        self, *groups: ArrayLike | DictionaryColumn, **columns: ArrayLike | DictionaryColumn | None
    ) -> Batch:
        """The buckets of the users and the metric's rows, or InputError; changes nothing."""
        return self._checked(groups, columns)

    def _checked(
        self,
        first: Sequence[ArrayLike | DictionaryColumn],
        columns: dict[str, ArrayLike | DictionaryColumn | None],
    ) -> Batch:
        user_column = [columns.pop(self._ids)] if self._ids in columns else []
        users, *extra = [*first, *user_column] or [None]
        if users is None or extra:
            other_names = [name for name in columns if meant(name, [self._ids]) and not extra]
            raise InputError(
                expected=f"one column of user ids, first or as {self._ids}=",
                got="several" if extra else f"{other_names[0]}=" if other_names else "none",
                where="UserGroups.update",
                hint=f"pass {self._ids}=, and the metric's own columns by name; for a table, "
                f'update_from(table, {self._ids}="user", ...)',
            )
        hashes = unit_hashes(users, salt_word(self.salt), self._ids)
        rows = self.metric.check(**columns)
        require_as_many(len(hashes), rows.n, self._ids)
        groups = hashes.astype(np.uint16) & np.uint16(self.buckets - 1)
        return Batch(rows.n, {"groups": groups, "rows": rows}, rows.total)

    def _accumulate(self, batch: Batch, slots: AnySlots | None) -> None:
        groups, rows = batch.groups.astype(np.intp), batch.as_batch("rows")
        self.group_rows.add(groups, slots)
        for metric in self.whole.by_name.values():
            metric._feed(rows, slots)
        self.states.feed(rows, groups, slots)
        for path, form in self._forms.items():
            scored, column = rows_at(self.metric, rows, path), self.scores.by_path[path]
            form.add(column, scored, groups, slots)

    def rows_of_groups(self) -> tuple[int, ...]:
        """The rows of each bucket of users, [buckets]."""
        self._flush()
        return tuple(self.group_rows.dense().tolist())

    def compute(self) -> UserGroupsResult[R]:
        """The metric's result, with its variance over buckets of users; of a Panel, each one's."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[UserGroupsResult[R]]:
        if isinstance(self.metric, Panel):
            names, all_ = tuple(self.metric.metrics), np.arange(len(slots))
            columns = [self._projected(name, slots)._compute_all(all_) for name in names]
            results = [
                PanelResult(dict(zip(names, row, strict=True)))
                for row in zip(*columns, strict=True)
            ]
            # An overload for a Panel would hide the type of the result where R is Any.
            return cast("list[UserGroupsResult[R]]", results)
        rows = self.group_rows.tables(slots).tolist()
        values = cast("Sequence[R]", self._values(slots))
        coarse = bool(self.whole.by_name)
        return [
            UserGroupsResult(
                value, tuple(n), GroupsLeftOut(value, tuple(n), self._groups_of(slot)), coarse
            )
            for value, n, slot in zip(values, rows, slots.tolist(), strict=True)
        ]

    def _groups_of(self, slot: int = 0) -> Accumulator | CollapsedGroups:
        """The states of all buckets of one slot, in as many slots, of a metric that is no Panel; or
        the scores in the buckets."""
        for path, form in self._forms.items():
            column = self.scores.by_path[path].take(np.array([slot], np.intp))
            return CollapsedGroups(form, column, self.buckets)
        return part_of(self, self.states.states_of_slot(slot))

    def _values(self, slots: Slots) -> Sequence[object]:
        """The results of the metric itself, over all users."""
        for metric in self.whole.by_name.values():
            return part_of(self, metric)._compute_all(slots)
        groups = self.states.states_of_slots(slots)
        total = groups._empty(len(slots))
        total._merge_slots(groups, np.arange(len(slots)).repeat(self.buckets))
        return part_of(self, total)._compute_all(np.arange(len(slots)))

    def confidence_interval(
        self,
        *,
        level: float = 0.95,
        method: str = "auto",
        cluster: str = "auto",
        view: object = None,
    ) -> Interval:
        """The interval of a view of the metric; None: the headline.

        cluster: "groups", or "auto": over users; "none": the metric's own, for independent rows.
        """
        if among(cluster, ("none",)):
            state = self.metric_state()
            return state.confidence_interval(level=level, method=method, cluster=cluster, view=view)
        cluster = "auto" if among(cluster, ("groups",)) else cluster
        return super().confidence_interval(level=level, method=method, cluster=cluster, view=view)

    def metric_state(self) -> Accumulator:
        """The state of the metric itself, over all users."""
        self._flush()
        if isinstance(self.metric, Panel):
            panel = self.metric.empty()
            names = panel.states.by_name
            names.update({name: self.project(name).metric_state() for name in names})
            return part_of(self, panel)
        for metric in self.whole.by_name.values():
            return part_of(self, metric.copy())
        return part_of(self, summed(self.states.states_of_slot(0)))

    def project(self, name: str) -> UserGroups:
        """The UserGroups of one metric, from a UserGroups of a Panel.

        >>> from streammetrics import Panel, Ratio, UserGroups
        >>> both = UserGroups(Panel({"ctr": Ratio()}))
        >>> both.update(["ann", "bo"], numerators=[1, 0])
        >>> both.project("ctr") == both.project("ctr").copy(), both.compute()["ctr"].ratio
        (True, 0.5)
        """
        if not isinstance(self.metric, Panel):
            raise SettingsError(
                expected="UserGroups of a Panel",
                got=f"UserGroups of {type(self.metric).__name__}",
                where="UserGroups.project",
                hint="use the state as it is",
            )
        if name not in self.metric.metrics:
            raise SettingsError(
                expected=f"the name of a metric ({', '.join(self.metric.metrics)})",
                got=shown(name),
                where="UserGroups.project",
                hint=nearest(name, self.metric.metrics),
            )
        self._flush()
        return self._projected(name, SLOT_0)

    def _projected(self, name: str, slots: Slots) -> UserGroups:
        """The states of one metric of the Panel in these slots."""
        panel = cast("Panel", self.metric)
        metric = panel.metrics[name]
        most = self.distinct_scores if group_scores(metric) else None
        empty = self._related(
            name, lambda: UserGroups(metric, self.buckets, self.salt, distinct_scores=most)
        )
        by_path = self.scores.by_path
        scores = {
            path[1:]: column.take(slots) for path, column in by_path.items() if path[0] == name
        }
        whole = {
            key: cast("Panel", of_all).states.by_name[name]._take(slots)
            for key, of_all in self.whole.by_name.items()
            if empty._kept_whole
        }
        n = len(slots)
        columns: dict[str, Column] = {
            "whole": ProductColumn(whole, n),
            "states": self.states.projected(name, slots),
            "group_rows": self.group_rows.take(slots),
            "scores": ScoresColumn(scores, n),
        }
        return empty._holding(columns, n, self._total_count)


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"UserGroups.{name}", hint=hint)
