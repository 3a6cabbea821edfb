"""Parts of UserGroups: the states of a metric in k groups of each slot, and that of all rows."""

from __future__ import annotations

from typing import Final, Self, TypedDict, cast

import numpy as np

from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.multiclass_auc import MulticlassAUC
from streammetrics.combine.children import ProductColumn
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.bytes.codec import Reader, Writer
from streammetrics.core.declared import Declared
from streammetrics.core.parts.part import Column, Part, Slots

# The coarse form of a metric: what a group of users keeps of it, for the variance alone.

ENOUGH: Final = 64  # buckets; a metric whose own grid has no more is its own coarse form


class _Grid(TypedDict, total=False):
    grid: str
    resolution: int
    range: str
    floor: float
    edges: tuple[float, ...]


# Steps of a half of a power of two, from 2**-16 to 1/2 and mirrored to 1: 63 buckets.
_PROBABILITIES: Final[_Grid] = {"resolution": 1, "floor": 2.0**-16}


def _edges_of_any_score() -> tuple[float, ...]:
    """Log odds and probabilities, also those near 0 and near 1, are told apart: 61 buckets."""
    near_0 = [m * 2.0**-n for n in range(12, 1, -1) for m in (1.0, 1.5)]
    near_1 = [1 - x for x in near_0]
    above = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0]
    below = [-x for x in (0.5, *above)]
    return tuple(sorted({*below, *near_0, 0.5, *near_1, *above}))


_ANY_SCORE: Final[_Grid] = {"grid": "edges", "range": "real", "edges": _edges_of_any_score()}


def coarse_form(metric: Accumulator) -> Accumulator:
    """An empty metric whose states in groups say how the metric varies between them.

    It takes the rows that the metric's `check` gives. The metric itself, unless it keeps scores.

    >>> from streammetrics import HistogramAUC, Ratio
    >>> coarse_form(HistogramAUC()).buckets, coarse_form(Ratio())
    (63, Ratio())
    """
    match metric:
        case HistogramAUC() if metric.buckets > ENOUGH:
            return _histogram(metric, _grid(metric.range))
        case ExactAUC():
            return _histogram(metric, _ANY_SCORE)
        case MulticlassAUC() if metric.exact or metric.buckets > ENOUGH:
            return MulticlassAUC(
                metric.n_classes,
                weight_unit=metric.weight_unit,
                round_weights=metric.round_weights,
                **(_ANY_SCORE if metric.exact else _grid(metric.range)),
            )
    return metric.empty()


def _histogram(metric: HistogramAUC | ExactAUC, grid: _Grid) -> HistogramAUC:
    """What a row is, is said by the same settings in both forms."""
    return HistogramAUC(
        positive=metric.positive,
        weight_unit=metric.weight_unit,
        round_weights=metric.round_weights,
        **grid,
    )


def _grid(range_: str) -> _Grid:
    return _PROBABILITIES if range_ == "probability" else _ANY_SCORE


class GroupsColumn(Column):
    """`k` states for each slot, in one `child`: group g of slot s lies in its slot s k + g."""

    def __init__(self, child: Accumulator, k: int, width: int) -> None:
        self.child, self.k, self.width = child, k, width

    @property
    def total_count(self) -> int:
        return self.child._exact_total_count() * self.k

    @property
    def nbytes(self) -> int:
        return self.child.nbytes

    def locate(self, groups: Slots, slots: Slots | None) -> Slots:
        """The child's slot of each row. groups: [n]; slots: [n], or None for slot 0."""
        return groups if slots is None else slots * self.k + groups

    def of_slot(self, slot: int) -> Accumulator:
        """The k states of one slot, in memory of their own."""
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
    """States of the owner's `group_metric` in `k` groups."""

    def empty(self, owner: Declared, width: int) -> GroupsColumn:
        k = _groups(owner)
        return GroupsColumn(_metric(owner, "group_metric")._empty(width * k), k, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> GroupsColumn:
        k = _groups(owner)
        return GroupsColumn(_metric(owner, "group_metric")._decode(width * k, data), k, width)


class WholeState(Part[ProductColumn]):
    """The state of the owner's `metric`, unless the groups add up to it: then there is none."""

    def empty(self, owner: Declared, width: int) -> ProductColumn:
        kept = {"metric": _metric(owner, "metric")._empty(width)} if _is_coarse(owner) else {}
        return ProductColumn(kept, width)

    def decode(self, owner: Declared, width: int, data: Reader) -> ProductColumn:
        if not _is_coarse(owner):
            return self.empty(owner, width)
        return ProductColumn({"metric": _metric(owner, "metric")._decode(width, data)}, width)


def _is_coarse(owner: Declared) -> bool:
    return _metric(owner, "group_metric")._head() != _metric(owner, "metric")._head()


def _metric(owner: Declared, name: str) -> Accumulator:
    return cast("Accumulator", getattr(owner, name))


def _groups(owner: Declared) -> int:
    return cast("int", owner.settings()["buckets"])
