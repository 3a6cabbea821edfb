"""What a group of users keeps of a metric: for a variance alone, scores need not be exact.

Groups of a metric that keeps scores count them by collapsed keys (`core/parts/collapsed_keys.py`),
whatever their scale is. The key of a score is a function of its bits; on a grid of fixed buckets it
is the number of its bucket, so that each cell of a group is a whole number of buckets. A metric
declares whether it is of scores, and whether its groups keep a coarser one, as those of Quantiles
do; the groups of all others keep the metric itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.panel import Panel, rows_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import ByValue
from streammetrics.core.codec import Writer
from streammetrics.core.forms import ScoreForm
from streammetrics.core.parts.collapsed_counts import CollapsedColumn
from streammetrics.core.parts.collapsed_keys import MOST, Ints
from streammetrics.core.parts.many_slots import AnySlots, ManySlots, cell_slots
from streammetrics.core.parts.part import SeveralColumn
from streammetrics.core.parts.score_bits import Scores, result_type, score_keys, typed_values
from streammetrics.core.parts.weighted_counts import WeightedCountsColumn
from streammetrics.kernels.tables.class_cells import scored_cells
from streammetrics.kernels.tables.grids import CHUNK, Grid, Gridded, grid_of

Path: TypeAlias = tuple[str, ...]  # the names of a metric in a Panel, in a Panel in it, and so on


class _Piece(NamedTuple):
    """Some rows, or the cells of some rows of many classes. rows: each one's row [n]; keys: of its
    score; kinds: its label, or arm and label; classes: None where there is one curve."""

    rows: slice | NDArray[np.intp]
    keys: Ints
    kinds: NDArray[np.integer]
    classes: NDArray[np.intp] | None = None


class _OnGrid(Protocol):
    """A metric that counts rows in buckets."""

    counts: WeightedCountsColumn


@dataclass(frozen=True)
class GroupScores:
    """How groups count the scores of a metric by collapsed keys. most: different ones, together."""

    metric: Accumulator
    form: ScoreForm
    most: int = MOST

    @property
    def kinds(self) -> int:
        """The kinds of rows that are counted apart."""
        return self.form.kinds

    @property
    def curves(self) -> int:
        """The number of classes with a curve of their own."""
        return self.form.classes or 1

    @cached_property
    def grid(self) -> Grid | None:
        """The metric's own buckets; None if it keeps each score."""
        return _own_grid(self.metric, self.form)

    def column(self, groups: int, width: int) -> SeveralColumn[CollapsedColumn]:
        """Empty states of `width` slots, each of this number of groups."""
        possible = None if self.grid is None else self.grid.n_buckets
        inner = CollapsedColumn(groups * self.kinds, possible, width * self.curves, self.most)
        return SeveralColumn(inner, self.curves, width)

    def add(
        self,
        column: SeveralColumn[CollapsedColumn],
        rows: Batch,
        groups: NDArray[np.intp],
        slots: AnySlots | None,
    ) -> None:
        """Count checked rows of the metric. groups: of their users, [n]; slots: None: all 0."""
        quanta = rows.quanta
        if quanta is not None and np.count_nonzero(quanta) < rows.n:
            weighing = np.flatnonzero(quanta)
            rows, groups = rows.take(weighing), groups[weighing]
            slots, quanta = None if slots is None else slots[weighing], quanta[weighing]
        for piece in self._pieces(rows):
            cells = groups[piece.rows] * self.kinds
            cells += piece.kinds
            targets = None if slots is None else slots[piece.rows]
            if piece.classes is not None:
                targets = cell_slots(targets, self.curves, piece.classes)
            weights = None if quanta is None else quanta[piece.rows]
            if not isinstance(targets, ManySlots):
                column.inner.add(piece.keys, cells, targets, weights)
                continue
            for positions, to in targets.each():
                if positions is None:
                    column.inner.add(piece.keys, cells, to, weights)
                else:
                    of_some = None if weights is None else weights[positions]
                    column.inner.add(piece.keys[positions], cells[positions], to, of_some)

    def keys(self, scores: Scores) -> Ints:
        """The key of each score: int64 [n]."""
        if self.grid is not None:
            return self.grid.buckets(scores).astype(np.int64, copy=False)
        score_type = result_type(cast("str", self.form.score_type))  # without a grid there is one
        return score_keys(cast("Scores", typed_values(scores, score_type)))

    def _pieces(self, rows: Batch) -> Iterator[_Piece]:
        n = self.form.classes
        if n:
            for piece, classes, labels, values in scored_cells(rows.labels, rows.scores):
                rows_of_cells = np.repeat(np.arange(piece.start, min(piece.stop, rows.n)), n)
                yield _Piece(rows_of_cells, self.keys(values), labels, classes)
            return
        of_rows = self.form.kind_of(rows)
        if self.grid is not None:
            for piece, buckets in self.grid.cells(None, rows.scores):
                yield _Piece(piece, buckets.astype(np.int64, copy=False), of_rows[piece])
            return
        for start in range(0, rows.n, CHUNK):
            piece = slice(start, min(start + CHUNK, rows.n))
            yield _Piece(piece, self.keys(rows.scores[piece]), of_rows[piece])

    @cached_property
    def ranked(self) -> Accumulator:
        """The metric on the ranks of keys, empty: a bucket for each key of a state."""
        metric = self.metric
        names = ("n_classes", "treated_share", "positive", "weight_unit", "round_weights")
        settings = {name: value for name, value in metric.settings().items() if name in names}
        kind = cast("Callable[..., Accumulator]", self.form.on_grid)
        ranks = tuple(float(rank) for rank in range(1, self.most))  # the edges between keys
        return kind(**settings, grid="edges", range="real", edges=ranks)


@dataclass(frozen=True, eq=False)
class CollapsedGroups(ByValue):
    """The groups of one state of a metric that keeps scores, from which its variance is read."""

    form: GroupScores
    column: SeveralColumn[CollapsedColumn]  # of one slot
    groups: int

    @cached_property
    def states(self) -> Accumulator:
        """The states of all groups, in as many slots; the score of a row is the rank of its key."""
        states = self.form.ranked._empty(self.groups)
        counts = cast("_OnGrid", states).counts
        for curve in range(self.form.curves):
            _, keys, (codes, amounts) = self.column.inner.state(curve)
            number, cell = np.divmod(codes, self.column.inner.cells)
            group, kind = np.divmod(cell, self.form.kinds)
            places = (curve * self.form.kinds + kind) * self.form.most + self._ranks(curve, keys)[
                number
            ]
            counts.add(places, group, amounts)
        return states

    def _compared(self) -> tuple[object, ...]:
        self.column.encode(out := Writer())
        return self.form, self.groups, out.bytes_()

    def ranks(self, scores: Scores) -> NDArray[np.float64]:
        """The rank of the key of each score, in the states of a single curve."""
        return self._ranks(0, self.form.keys(scores)).astype(np.float64)

    def _ranks(self, curve: int, keys: Ints) -> NDArray[np.intp]:
        """Where these keys are among those of the state."""
        shift, state_keys, _ = self._known.inner.state(curve)
        ranks: NDArray[np.intp] = np.searchsorted(state_keys, (keys >> shift) << shift, "right") - 1
        return np.maximum(ranks, 0)

    @property
    def _known(self) -> SeveralColumn[CollapsedColumn]:
        return self.column

    def joint_states(self, other: Self) -> tuple[Accumulator, Accumulator]:
        """The states of both, whose ranks are those of all of their keys together."""
        total = self.form.column(self.groups, 1)
        for side in (self, other):
            total.merge(side.column, np.zeros(1, np.intp))
        left, right = (
            _Beside(side.form, side.column, side.groups, total) for side in (self, other)
        )
        return left.states, right.states


@dataclass(frozen=True, eq=False)
class _Beside(CollapsedGroups):
    """The same, with the ranks of another state, which has at least its keys."""

    total: SeveralColumn[CollapsedColumn]

    @property
    def _known(self) -> SeveralColumn[CollapsedColumn]:
        return self.total


def group_scores(metric: Accumulator, most: int = MOST) -> Mapping[Path, GroupScores]:
    """The metrics whose groups count scores by collapsed keys, by their names in the Panel; of a
    metric alone, its path is (). most: different scores of a state.

    >>> from streammetrics import ExactAUC, Panel, Ratio
    >>> list(group_scores(Panel({"auc": ExactAUC(), "ctr": Ratio()})))
    [('auc',)]
    """
    if isinstance(metric, Panel):
        return {
            (name, *path): scores
            for name, child in metric.metrics.items()
            for path, scores in group_scores(child, most).items()
        }
    form = metric._score_form()
    if form is None:
        return {}
    grid = _own_grid(metric, form)
    if grid is not None and grid.n_buckets <= MOST:
        return {}
    return {(): GroupScores(metric, form, most)}


def _own_grid(metric: Accumulator, form: ScoreForm) -> Grid | None:
    """The buckets of the metric; None if it keeps each score."""
    return grid_of(cast("Gridded", metric)) if form.score_type is None else None


def group_metric(metric: Accumulator) -> Accumulator | None:
    """The metric that each group keeps as a state of its own: the metric, or Quantiles on a coarser
    grid; of a Panel those that have one. None if its scores are counted by collapsed keys.

    >>> from streammetrics import Quantiles, Ratio
    >>> group_metric(Ratio()), group_metric(Quantiles()).resolution
    (Ratio(), 4)
    """
    return _replaced(metric, _group_metric)


def whole_metric(metric: Accumulator) -> Accumulator | None:
    """The metric, or those of a Panel, that groups do not add up to; None if there is none."""
    return _replaced(metric, _whole_metric)


def _group_metric(metric: Accumulator) -> Accumulator | None:
    if group_scores(metric):
        return None
    coarser = metric._coarse_in_groups()
    return metric.empty() if coarser is None else coarser


def _whole_metric(metric: Accumulator) -> Accumulator | None:
    in_groups = _group_metric(metric)
    return None if in_groups is not None and metric._head() == in_groups._head() else metric


def _replaced(
    metric: Accumulator, other: Callable[[Accumulator], Accumulator | None]
) -> Accumulator | None:
    """The other metric of a metric; of a Panel one of those that its metrics have, which reads its
    rows. None if there is none."""
    if not isinstance(metric, Panel):
        return other(metric)
    replacements = {name: _replaced(child, other) for name, child in metric.metrics.items()}
    metrics = {name: child for name, child in replacements.items() if child is not None}
    inputs = {name: columns for name, columns in metric._renames.items() if name in metrics}
    return Panel(metrics, inputs) if metrics else None


def rows_at(metric: Accumulator, rows: Batch, path: Path) -> Batch:
    """The rows of a metric in a Panel, from checked rows of the Panel."""
    for name in path:
        panel = cast("Panel", metric)
        rows, metric = rows_of(panel, rows, name), panel.metrics[name]
    return rows


def states_of(groups: Accumulator | CollapsedGroups) -> Accumulator:
    """The states of all groups, in as many slots."""
    return groups.states if isinstance(groups, CollapsedGroups) else groups
