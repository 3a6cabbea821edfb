"""GroupedAUC: the area under the ROC curve inside each group, and their weighted mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streammetrics.authoring import (
    AUTO,
    SCORE_TYPES,
    SLOT_0,
    Accumulator,
    Bag,
    BagColumn,
    Bags,
    Batch,
    Binary,
    DictionaryColumn,
    ExactSums,
    Ids,
    Inputs,
    Probability,
    Slots,
    Terms,
    Unit,
    Weights,
    check_choice,
    check_grid,
    check_max_rows,
    grid_of,
    refused_setting,
    require,
)
from streammetrics.core import (
    Groups,
    KeptSums,
    Layout,
    WithoutRows,
    add_whole,
    codes_of,
    plain,
    require_whole,
    result_type,
    units_counted,
    unlimited,
)
from streammetrics.kernels.curves import (
    AreaSoFar,
    AreaSpread,
    AreaSums,
    ExactArea,
    GroupPairs,
    LabelPairs,
    area_spread,
    area_terms,
    group_pairs,
    mean_areas,
    sum_areas,
)
from streammetrics.results.areas import GroupedArea, as_float

_CHOICES = {
    "weight": ("impressions", "positives", "uniform"),
    "score_type": SCORE_TYPES,
    "ids": ("integer", "hashed", "exact"),
}
Ints = NDArray[np.int64]
_OF_A_GRID = ("resolution", "range", "floor", "ceiling", "edges")


class AreaCounts(NamedTuple):
    """Counts: groups, groups with both labels, rows, units of weight, units of the kept groups,
    units of positives, and rows whose weight was rounded."""

    groups: int
    kept: int
    rows: int
    units: int
    units_kept: int
    positives: int
    rounded: int


class GroupedAUC(Accumulator, schema="grouped-auc/5"):
    """GAUC: how well scores rank within each user, averaged over users.

    Settings
        weight: the weight of a group in the mean: "impressions" (its rows), "positives", or
        "uniform". With weighted rows the first two are sums of weights.
        score_type: the precision in which scores are compared, as in ExactAUC: "auto" (default)
        compares them as they are. "float32" halves state and time of scores that come as float64;
        those that are equal as float32 are then ties. None with a grid.
        ids: "integer" (int64), "exact" (strings, kept as they are) or "hashed" (strings, kept as 64
        bits of SipHash under a fixed key: exact unless two ids collide). For string ids an integer
        is the string of its digits.
        max_rows: a state of more rows keeps only their number, and its result is undefined.
        grid: None, or the grid of score buckets, with `resolution`, `range`, `floor`, `ceiling`
        and `edges` as in HistogramAUC: "relative", "equal" or "edges". The state then holds
        buckets instead of scores, and does not grow with rows.
        weight_unit: weights are multiples of it: a Fraction, an integer, or a string such as
        "1/10". Others are refused or, with round_weights=True, rounded and counted in the result.
    Rows
        labels: [n] of 0 and 1. scores: [n], no NaN; on a grid of range="probability", in [0, 1].
        groups: [n] ids, usually of users. weights: [n], at least 0, by default 1; a row of weight 0
        is ignored.
    State
        The multiset of (group, score, label), or on a grid of (group, bucket, label), where equal
        rows are combined early. With weights the units of weight of each, and the number of rows;
        with round_weights=True also the multiset of (group, label) of rounded rows.
    Result
        GroupedArea: `gauc`, `groups`, `groups_kept`, `groups_one_class`, `rows`, `rows_kept`,
        `rows_one_class`, `positives`, `rela_impr(base)`; with weights `weight_units` and
        `weight_units_kept` in place of `rows_kept` and `rows_one_class`, and `rows_rounded`.
        A group of one class is counted, and left out of both sums; one of equal scores has 0.5 and
        is kept; a group whose rows arrive in several batches or shards is one group.
    Undefined
        nan without a group that has both labels, and past `max_rows`.
    Exactness
        Exact: each area is a ratio of integers, and the mean is correctly rounded. On a grid
        low <= exact <= high for every input, rounding included, where exact is the value from the
        scores as given; the bounds are the means of the least and the greatest area of each group.
        With round_weights=True all of this holds for the rounded weights.
    Cost
        State: 8 bytes a row (of float64: 16) and about 30 an id, less where rows repeat; on a grid
        9 bytes for each bucket that a group occupies. An update costs about 4 sorts of its rows as
        float32. With round_weights=True about 50 bytes more for each group with rounded rows.
        If few rows are new since the last read, none has a weight and scores are float32, a read
        costs these; it keeps 40 bytes for each group.
    Source
        Zhou et al. 2018, "Deep Interest Network for Click-Through Rate Prediction", KDD,
        section 6.2, eq. 6 (as a weighted mean of areas; weights by clicks or by impressions).

    >>> from streammetrics import GroupedAUC
    >>> users = GroupedAUC()
    >>> users.update([0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.4, 0.5], groups=[7, 7, 8, 7, 8])
    >>> result = users.compute()
    >>> result.gauc, result.groups_kept
    (1.0, 2)
    >>> without_end = GroupedAUC(grid="equal", resolution=2)
    >>> without_end.update([0, 1, 1], [0.1, 0.2, 0.3], groups=[7, 7, 7])
    >>> without_end.compute().gauc
    Bounded(value=0.75, low=0.5, high=1.0)
    """

    weight: str = "impressions"
    score_type: str = "auto"
    ids: str = "integer"
    max_rows: int | None = None
    grid: str | None = None
    resolution: int = 8
    range: str = "probability"
    floor: float = 2**-24
    ceiling: float = 2.0**24
    edges: tuple[float, ...] = ()
    weight_unit: Unit = 1
    round_weights: bool = False
    inputs = Inputs(
        labels=Binary(), scores=Probability("_in_unit"), groups=Ids(), weights=Weights()
    )
    bag = Bag(ids="ids", repeats="grid", weighted=True)
    rounded = Bags("round_weights", "float32", ids="ids", repeats="round_weights")  # all of score 0

    def check_settings(self) -> None:
        for name, choices in _CHOICES.items():
            check_choice(getattr(self, name), choices, f"GroupedAUC.{name}")
        check_max_rows(self.max_rows, "GroupedAUC.max_rows")
        if self.grid is None:
            for name in _OF_A_GRID:
                default = getattr(type(self), name)
                setting = plain(getattr(self, name))
                if not isinstance(setting, int | float | str | tuple) or setting != default:
                    raise refused_setting(self, name, "none without a grid")
                self._set(name, default)  # 8.0 equals 8
            return
        for name, value in check_grid(self).items():
            self._set(name, value)
        if self.score_type == AUTO:
            self._set("score_type", "float32")  # which holds the numbers of all buckets
        if self.score_type != "float32":
            raise refused_setting(self, "score_type", "none with a grid")

    @property
    def _in_unit(self) -> bool:
        """Whether scores must be in [0, 1]."""
        return self.grid is not None and self.range == "probability"

    if TYPE_CHECKING:

        def update(
            self,
            labels: ArrayLike,
            scores: ArrayLike,
            *,
            groups: ArrayLike | DictionaryColumn,
            weights: ArrayLike | None = None,
        ) -> None: ...

    def _accumulate(self, batch: Batch, slots: Slots | None) -> None:
        scores = batch.scores
        if self.grid is not None:
            # Bucket numbers are compared: float32 holds all of them, below 2**24, while the least
            # score of a bucket near 1 would need a float64.
            scores = grid_of(self).buckets(scores).astype(np.float32)
        self.bag.add(scores, batch.labels, slots, batch.as_ids("groups"), batch.quanta)

    def _accumulate_rounded(self, batch: Batch, slots: Slots | None) -> None:
        zeros, first = np.zeros(batch.n, np.float32), np.zeros(batch.n, np.intp)
        self.rounded.add(zeros, batch.labels, first, slots, groups=batch.as_ids("groups"))

    def _require_possible(self) -> None:
        if self.round_weights:
            codes = self.rounded.inner.table().codes
            zero = codes_of(np.zeros(1, np.float32))[0]
            require(bool((codes == zero).all()), "scores in a state of labels alone")

    def compute(self) -> GroupedArea:
        """GAUC over all groups, and the number of groups of each kind."""
        self._flush()
        return self._compute_all(SLOT_0)[0]

    def _compute_all(self, slots: Slots) -> list[GroupedArea]:
        is_single = self.bag.width == len(slots) == 1  # whose sums are kept for the next read
        if is_single and not self.bag.dropped and (kept_sums := self._kept_sums()):
            so_far = cast("AreaSoFar", kept_sums.totals)
            state_counts = AreaCounts(
                so_far.groups,
                so_far.kept,
                self.bag.total,
                self.bag.units,
                so_far.rows,
                so_far.positives,
                self._rounded(slots)[0],
            )
            return [self._result(state_counts, so_far.mean(), (kept_sums, self.weight))]
        bag = self.bag if is_single else self.bag.take(slots)
        groups, owners = pairs_of_groups(bag)
        bounded, n = self.grid is not None, len(slots)
        group_owners = owners if n > 1 else None
        areas = mean_areas(groups, self.weight, group_owners, n, bounded=bounded)
        counts = self._counts(bag, groups, owners, slots)
        edges = np.searchsorted(owners, np.arange(n + 1)).tolist()
        return [
            self._dropped(bag, i, state_counts.rounded)
            if bag.over[i]
            else self._result(state_counts, area, (groups.groups_between(start, end), self.weight))
            for i, (state_counts, area, start, end) in enumerate(
                zip(counts, areas, edges, edges[1:], strict=False)
            )
        ]

    def _dropped(self, bag: BagColumn, slot: int, rounded: int) -> GroupedArea:
        """The result of a state past `max_rows`."""
        nothing = ExactArea(bounded=self.grid is not None)
        total = int(bag.totals[slot])
        return GroupedArea(
            as_float(nothing),
            *(None, None, None, total, None, None, None),
            compared_as=self._compared_as,
            ids=self.ids,
            reason=bag.reason(slot),
            weight_unit=Fraction(self.weight_unit),
            rows_rounded=rounded if self.round_weights else None,
            _area=nothing,
        )

    def _mean_views(self) -> tuple[str, ...]:
        return ("gauc",)

    def _group_terms(self) -> Sequence[Terms]:
        self._flush()
        layout, (run,) = self.bag.settled()
        order = self.bag.order(self.bag.groups().indices)
        values, weights = area_terms(
            group_pairs(run.low, layout.group_shift, run.high, run.counts), self.weight
        )
        return (Terms(values[order], weights[order]),)

    @property
    def _compared_as(self) -> str:
        return result_type(self.score_type) if self.grid is None else "buckets"

    def _result(
        self,
        counts: AreaCounts,
        area: ExactArea,
        spread: AreaSpread | tuple[GroupPairs | KeptSums, str],
    ) -> GroupedArea:
        """The result of these counts, from the groups or from their totals alone."""
        unit = Fraction(self.weight_unit)
        units = units_counted(counts.units, counts.rows, unit)
        return GroupedArea(
            as_float(area),
            groups=counts.groups,
            groups_kept=counts.kept,
            groups_one_class=counts.groups - counts.kept,
            rows=counts.rows,
            rows_kept=counts.units_kept if units is None else None,
            rows_one_class=counts.rows - counts.units_kept if units is None else None,
            positives=counts.positives,
            compared_as=self._compared_as,
            ids=self.ids,
            weight_unit=unit,
            weight_units=units,
            weight_units_kept=None if units is None else counts.units_kept,
            rows_rounded=counts.rounded if self.round_weights else None,
            _area=area,
            _groups=spread,
        )

    def _counts(
        self, bag: BagColumn, groups: GroupPairs, owners: Ints, slots: Slots
    ) -> list[AreaCounts]:
        """The counts of the states in a bag of these slots. owners: of each group, its state."""
        n, has_pairs = len(slots), (groups.positives > 0) & (groups.negatives > 0)
        edges = np.searchsorted(owners, np.arange(n + 1))

        def sums(values: Ints) -> list[int]:
            # Running sums may wrap around; a difference of two is right if it fits.
            totals: list[int] = np.diff(np.concatenate([[0], np.cumsum(values)])[edges]).tolist()
            return totals

        columns = (
            np.diff(edges).tolist(),
            sums(has_pairs.astype(np.int64)),
            bag.totals.tolist(),
            (bag.totals + bag.surplus).tolist(),
            sums(np.where(has_pairs, groups.positives + groups.negatives, 0)),
            sums(groups.positives),
            self._rounded(slots),
        )
        return [*map(AreaCounts, *columns)]

    def _rounded(self, slots: Slots) -> list[int]:
        """The rows whose weight was rounded, of each of these slots."""
        if not self.round_weights:
            return [0] * len(slots)
        rounded: list[int] = self.rounded.inner.totals[slots].tolist()
        return rounded

    def _kept_sums(self) -> KeptSums | None:
        """The sums of each group and over all, kept for the next read, where that is possible."""
        so_far = AreaSoFar(self.weight, self.grid is not None)
        pairs_for = partial(_pairs_of_groups, so_far)
        store_sums = self.bag.pair_sums(pairs_for)
        return store_sums[0] if store_sums else None

    def _totals(self) -> Accumulator:
        if self.max_rows is not None:
            raise unlimited(self)
        self._flush()
        totals = AreaTotals(self.empty())
        groups, owners = pairs_of_groups(self.bag)
        totals.count(self._counts(self.bag, groups, owners, SLOT_0)[0], groups)
        return totals


def _pairs_of_groups(so_far: AreaSoFar, layout: Layout) -> LabelPairs | None:
    return LabelPairs(layout.group_shift, so_far) if layout.form == "narrow" else None


def pairs_of_groups(bag: BagColumn) -> tuple[GroupPairs, Ints]:
    """The pairs of each group of all slots, and its slot; int64 [g], ascending."""
    layout, (run,) = bag.settled()
    groups = group_pairs(run.low, layout.group_shift, run.high, run.counts)
    if bag.width == 1:
        return groups, np.zeros_like(groups.positives)
    return groups, Groups(layout, run).slots


# The totals of a GroupedAUC whose groups are complete.

_COUNTS = len(AreaCounts._fields)
_AREAS = len(AreaSums._fields)
_UNUSED = (0, 0)  # older states have numbers of rounded weights there
_SPREAD = _COUNTS + _AREAS + len(_UNUSED)
_CELLS = _SPREAD + len(AreaSpread._fields)


class AreaTotals(WithoutRows, schema="grouped-auc-totals/1"):
    """Sums over the groups of a GroupedAUC; only a Sealed holds one.

    Settings
        metric: the GroupedAUC.
    State
        AreaCounts, AreaSums and AreaSpread, as integers.
    Result
        The result of the metric; areas are off by at most 2**-97 before rounding.
    """

    metric: Accumulator
    sums = ExactSums(_CELLS)

    @property
    def _auc(self) -> GroupedAUC:
        return cast("GroupedAUC", self.metric)

    def arguments(self) -> Mapping[str, bool]:
        return self.metric.arguments()

    def count(self, counts: AreaCounts, groups: GroupPairs) -> None:
        """Add the counts of complete groups."""
        weight, bounded = self._auc.weight, self._auc.grid is not None
        areas = sum_areas(groups, weight, bounded=bounded)
        add_whole(self.sums, (*counts, *areas, *_UNUSED, *area_spread(groups, weight)))

    def _require_possible(self) -> None:
        require_whole(self.sums)

    def compute(self) -> GroupedArea:
        """The result of the metric."""
        numbers = [int(value) for value in self.sums.finite_fractions()]
        areas = AreaSums(*numbers[_COUNTS : _COUNTS + _AREAS])
        area = areas.mean(bounded=self._auc.grid is not None)
        counts, spread = AreaCounts(*numbers[:_COUNTS]), AreaSpread(*numbers[_SPREAD:])
        return self._auc._result(counts, area, spread)
