"""UserGroups: a metric, and its variance where the rows of one user are correlated."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from streammetrics.combine.children import Product, ProductColumn
from streammetrics.combine.clustered import summed
from streammetrics.combine.coarse_form import coarse_form
from streammetrics.combine.paired import Paired
from streammetrics.combine.panel import Computes, Panel, PanelResult, R, part_of, require_empty
from streammetrics.combine.per_key import PerKey, require_as_many
from streammetrics.combine.user_groups_result import UserGroupsResult
from streammetrics.combine.windows import Windows
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.codec import Reader, Writer
from streammetrics.core.conversion import among
from streammetrics.core.declared import Declared
from streammetrics.core.errors import InputError, SettingsError, nearest, shown
from streammetrics.core.ids.unit_hashes import salt_word, unit_hashes
from streammetrics.core.interval import Interval
from streammetrics.core.parts.counts import Counts
from streammetrics.core.parts.many_slots import AnySlots, within
from streammetrics.core.parts.part import SLOT_0, Column, Part, Slots
from streammetrics.core.rows import DictionaryColumn
from streammetrics.core.settings import use_current_names
from streammetrics.distributions.unit_mean import UnitMean
from streammetrics.distributions.unit_rate import UnitRate


class GroupsColumn(Column):
    """`k` states for each slot, in one `child`: group g of slot s is in its slot s k + g."""

    def __init__(self, child: Accumulator, k: int, width: int) -> None:
        self.child, self.k, self.width = child, k, width

    @property
    def total_count(self) -> int:
        return self.child._exact_total_count() * self.k

    @property
    def nbytes(self) -> int:
        return self.child.nbytes

    def locate(self, groups: Slots, slots: AnySlots | None) -> AnySlots:
        """The child's slot of each row. groups: [n]; slots: of each row, or None for slot 0."""
        return within(slots, self.k, groups)

    def of_slot(self, slot: int) -> Accumulator:
        """The k states of one slot, in separate memory."""
        return self.child._take(self._positions(np.array([slot], np.intp)))

    def widen(self, width: int) -> None:
        self.width = width
        self.child._widen(width * self.k)

    def merge(self, other: Self, to: Slots) -> None:
        self.child._merge_slots(other.child, self._positions(to))

    def take(self, slots: Slots) -> Self:
        return type(self)(self.child._take(self._positions(slots)), self.k, len(slots))

    def encode(self, out: Writer) -> None:
        self.child._encode(out)

    def _positions(self, slots: Slots) -> Slots:
        positions: Slots = (slots[:, None] * self.k + np.arange(self.k)).ravel()
        return positions


class GroupStates(Part[GroupsColumn]):
    """States of the owner's `group_metric` in each of its buckets."""

    def empty(self, owner: Declared, width: int) -> GroupsColumn:
        metric, k = _of(owner)
        return GroupsColumn(metric._empty(width * k), k, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> GroupsColumn:
        metric, k = _of(owner)
        return GroupsColumn(metric._decode(width * k, data), k, width)


def _of(owner: Declared) -> tuple[Accumulator, int]:
    of = cast("UserGroups", owner)
    return of.group_metric, of.buckets


class UserGroups(Accumulator, Generic[R], schema="user-groups/1"):
    """A metric and its variance over users, who are hashed into buckets by their id.

    The rows of one user are correlated, so an interval that takes them for independent is too
    narrow. Buckets of users are independent, however correlated the rows of a user are.

    Settings
        metric: an empty metric, or a Panel of several. buckets: their number, a power of two
        from 2 to 4096. salt: selects the hash of users. assignment_salt: the salt that assigns
        users to variants, if any. It is refused if it equals `salt`, since a variant would fill
        only some of the buckets; it is not stored.
    Rows
        groups: [n] ids of users (the units that are assigned to variants), integers, strings or
        their hashes by `hash_ids`; `users=` if the metric has groups of its own. Then the metric's
        own columns. The integer 5 and the string "5" are two users.
    State
        For each bucket its number of rows and a state of the metric. A metric that keeps scores
        (HistogramAUC, ExactAUC, MulticlassAUC; Uplift, ExactUplift) is kept once, and in each
        bucket on a grid of about 64 cells (771 of scores for uplift), for the variance alone; so is
        Quantiles, with a resolution of 4. Any other is the sum of its buckets.
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
        5 to 15 ns a row above the metric's own, by its number of sums; a state of the metric, or of
        its 64 cells, in each bucket. A result reads them when it is asked for a variance.
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

    _many_slots: ClassVar[bool] = True

    metric: Accumulator
    buckets: int = 64
    salt: str = "streammetrics"
    assignment_salt: str | None = None
    whole = Product("_kept_whole")
    states = GroupStates()
    group_rows = Counts("buckets")  # rows of each bucket

    if TYPE_CHECKING:  # the type of the value is that of the metric

        def __init__(
            self,
            metric: Computes[R],
            buckets: int = 64,
            salt: str = "streammetrics",
            assignment_salt: str | None = None,
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
        if isinstance(metric, UnitMean | UnitRate):
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

    @property
    def k(self) -> int:
        """The former name of `buckets`."""
        warnings.warn("UserGroups.k is now UserGroups.buckets", DeprecationWarning, stacklevel=2)
        return self.buckets

    @cached_property
    def group_metric(self) -> Accumulator:
        """The metric of each bucket: the metric itself, or its coarse form."""
        return coarse_form(self.metric)

    @cached_property
    def _kept_whole(self) -> Mapping[str, Accumulator]:
        """The metric itself; nothing if the buckets add up to it."""
        kept = _not_coarse(self.metric, self.group_metric)
        return {} if kept is None else {"metric": kept}

    def arguments(self) -> Mapping[str, bool]:
        return {self._ids: True, **self.metric.arguments()}

    def former_arguments(self) -> Mapping[str, str]:
        return {
            **({} if self._ids == "users" else {"groups": "users"}),
            **self.metric.former_arguments(),
        }

    @cached_property
    def _ids(self) -> str:
        """The argument of the users' ids: `groups`, unless the metric has groups of its own."""
        return "users" if "groups" in self.metric.arguments() else "groups"

    def widths(self) -> Mapping[str, tuple[int | None, ...]]:
        return self.metric.widths()

    def update(
        self, *groups: ArrayLike | DictionaryColumn, **columns: ArrayLike | DictionaryColumn | None
    ) -> None:
        """Count rows: ids of users [n], first or by name, and the metric's own columns; all or
        none."""
        self._update(self._checked(groups, columns))

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
        use_current_names("UserGroups", self.former_arguments(), columns, stacklevel=4)
        named = [columns.pop(self._ids)] if self._ids in columns else []
        users, *more = [*first, *named] or [None]
        if users is None or more:
            raise InputError(
                expected=f"one column of user ids, first or as {self._ids}=",
                got="several" if more else "none",
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
        at, rows = batch.groups.astype(np.intp), batch.as_batch("rows")
        self.group_rows.add(at, slots)
        for metric in self.whole.by_name.values():
            metric._feed(rows, slots)
        self.states.child._feed(rows, self.states.locate(at, slots))

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
            each = [self._projected(name, slots)._compute_all(all_) for name in names]
            results = [
                PanelResult(dict(zip(names, row, strict=True))) for row in zip(*each, strict=True)
            ]
            # An overload for a Panel would hide the type of the result where R is Any.
            return cast("list[UserGroupsResult[R]]", results)
        rows = self.group_rows.tables(slots).tolist()
        values = cast("Sequence[R]", self._values(slots))
        coarse = bool(self.whole.by_name)
        return [
            UserGroupsResult(value, tuple(n), part_of(self, self.states.of_slot(slot)), coarse)
            for value, n, slot in zip(values, rows, slots.tolist(), strict=True)
        ]

    def _values(self, slots: Slots) -> Sequence[object]:
        """The results of the metric itself, over all users."""
        for metric in self.whole.by_name.values():
            return part_of(self, metric)._compute_all(slots)
        groups = self.states.take(slots).child
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
            of = self.metric_state()
            return of.confidence_interval(level=level, method=method, cluster=cluster, view=view)
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
        return part_of(self, summed(self.states.of_slot(0)))

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
        made: UserGroups = UserGroups(panel.metrics[name], self.buckets, self.salt)
        child = cast("Panel", self.states.child).states.by_name[name]
        positions = self.states._positions(slots)
        whole = {
            key: cast("Panel", of_all).states.by_name[name]._take(slots)
            for key, of_all in self.whole.by_name.items()
            if made._kept_whole
        }
        n = len(slots)
        made.__dict__.update(
            _width=n,
            whole=ProductColumn(whole, n),
            states=GroupsColumn(child._take(positions), self.buckets, n),
            group_rows=self.group_rows.take(slots),
        )
        return part_of(self, made)


def _not_coarse(metric: Accumulator, coarse: Accumulator) -> Accumulator | None:
    """The metric, or those of a Panel, whose buckets do not add up to it."""
    if isinstance(metric, Panel) and isinstance(coarse, Panel):
        found = {name: _not_coarse(m, coarse.metrics[name]) for name, m in metric.metrics.items()}
        kept = {name: m for name, m in found.items() if m is not None}
        inputs = {name: columns for name, columns in metric._renames.items() if name in kept}
        return Panel(kept, inputs) if kept else None
    return None if metric._head() == coarse._head() else metric


def _bad(name: str, expected: str, got: object, hint: str) -> SettingsError:
    return SettingsError(expected=expected, got=shown(got), where=f"UserGroups.{name}", hint=hint)
