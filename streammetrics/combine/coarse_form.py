"""What a group of users keeps of a metric: for a variance alone, scores need not be exact.

Groups of a metric that keeps scores count them by collapsed keys (`core/parts/collapsed_keys.py`),
whatever their scale is. The key of a score is a function of its bits; on a grid of fixed buckets it
is the number of its bucket, so that each cell of a group is a whole number of buckets. Quantiles
have a coarser grid in groups. The groups of all other metrics keep the metric itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.classification.exact_auc import ExactAUC
from streammetrics.classification.histogram_auc import HistogramAUC
from streammetrics.classification.multiclass_auc import MulticlassAUC
from streammetrics.combine.panel import Panel, rows_of
from streammetrics.core.accumulator import Accumulator
from streammetrics.core.batch import Batch
from streammetrics.core.bounded import ByValue
from streammetrics.core.codec import Writer
from streammetrics.core.parts.collapsed_counts import CollapsedColumn
from streammetrics.core.parts.collapsed_keys import MOST, Ints
from streammetrics.core.parts.part import SeveralColumn, Slots
from streammetrics.core.parts.score_bits import Scores, in_type, result_type, score_keys
from streammetrics.core.weights import weighed_rows
from streammetrics.distributions.quantiles import Quantiles
from streammetrics.kernels.tables.class_cells import scored_cells
from streammetrics.kernels.tables.grids import CHUNK, Grid, grid_of
from streammetrics.policies.exact_uplift import ExactUplift
from streammetrics.policies.uplift import Uplift, kinds

Path: TypeAlias = tuple[str, ...]  # the names of a metric in a Panel, in a Panel in it, and so on
Scored: TypeAlias = HistogramAUC | ExactAUC | MulticlassAUC | Uplift | ExactUplift
_OF_QUANTILES: Final = {"relative": 4, "equal": 8}  # the resolution, by the kind of grid


class _Piece(NamedTuple):
    """Some rows, or the cells of some rows of many classes. rows: each one's row [n]; keys: of its
    score; kinds: its label, or arm and label; classes: None where there is one curve."""

    rows: slice | NDArray[np.intp]
    keys: Ints
    kinds: NDArray[np.integer]
    classes: NDArray[np.intp] | None = None


@dataclass(frozen=True)
class GroupScores:
    """How groups count the scores of a metric by collapsed keys. most: different ones, together."""

    metric: Scored
    most: int = MOST

    @property
    def kinds(self) -> int:
        """The kinds of rows that are counted apart."""
        return 4 if isinstance(self.metric, Uplift | ExactUplift) else 2

    @property
    def curves(self) -> int:
        """The number of classes with a curve of their own."""
        return self.metric.n_classes if isinstance(self.metric, MulticlassAUC) else 1

    @cached_property
    def grid(self) -> Grid | None:
        """The metric's own buckets; None if it keeps each score."""
        metric = self.metric
        if isinstance(metric, ExactAUC | ExactUplift):
            return None
        return None if isinstance(metric, MulticlassAUC) and metric.exact else grid_of(metric)

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
        slots: Slots | None,
    ) -> None:
        """Count checked rows of the metric. groups: of their users, [n]; slots: None: all 0."""
        if rows.quanta is not None:
            rows = Batch(rows.n, {**rows.columns, "groups": groups}, rows.total)
            rows, slots = weighed_rows(rows, slots)
            groups = rows.groups
        for piece in self._pieces(rows):
            cells = groups[piece.rows] * self.kinds
            cells += piece.kinds
            targets = None if slots is None else slots[piece.rows]
            if piece.classes is not None:
                targets = (
                    piece.classes if targets is None else targets * self.curves + piece.classes
                )
            weights = None if rows.quanta is None else rows.quanta[piece.rows]
            column.inner.add(piece.keys, cells, targets, weights)

    def keys(self, scores: Scores) -> Ints:
        """The key of each score: int64 [n]."""
        if self.grid is not None:
            return self.grid.buckets(scores).astype(np.int64, copy=False)
        score_type = result_type(str(self.metric.settings()["score_type"]))
        return score_keys(cast("Scores", in_type(scores, score_type)))

    def _pieces(self, rows: Batch) -> Iterator[_Piece]:
        metric = self.metric
        if isinstance(metric, MulticlassAUC):
            n = metric.n_classes
            for piece, classes, labels, values in scored_cells(rows.labels, rows.scores):
                rows_of_cells = np.repeat(np.arange(piece.start, min(piece.stop, rows.n)), n)
                yield _Piece(rows_of_cells, self.keys(values), labels, classes)
            return
        of_rows = kinds(rows) if isinstance(metric, Uplift | ExactUplift) else rows.labels
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
        kind: Callable[..., Accumulator] = HistogramAUC
        if isinstance(metric, MulticlassAUC):
            kind = MulticlassAUC
        elif isinstance(metric, Uplift | ExactUplift):
            kind = Uplift
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
        counts = cast("HistogramAUC", states).counts  # a metric on a grid has this part
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

    def beside(self, other: Self) -> tuple[Accumulator, Accumulator]:
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
    match metric:
        case Panel():
            return {
                (name, *path): form
                for name, child in metric.metrics.items()
                for path, form in group_scores(child, most).items()
            }
        case ExactAUC() | ExactUplift():
            return {(): GroupScores(metric, most)}
        case MulticlassAUC() if metric.exact or metric.buckets > MOST:
            return {(): GroupScores(metric, most)}
        case HistogramAUC() | Uplift() if metric.buckets > MOST:
            return {(): GroupScores(metric, most)}
    return {}


def group_metric(metric: Accumulator) -> Accumulator | None:
    """The metric that each group keeps as a state of its own: the metric, or Quantiles on a coarser
    grid; of a Panel those that have one. None if its scores are counted by collapsed keys.

    >>> from streammetrics import Quantiles, Ratio
    >>> group_metric(Ratio()), group_metric(Quantiles()).resolution
    (Ratio(), 4)
    """
    match metric:
        case Quantiles() if metric.resolution > _OF_QUANTILES.get(metric.grid, metric.resolution):
            settings = {**metric.settings(), "resolution": _OF_QUANTILES[metric.grid]}
            return Quantiles(**settings)  # type: ignore[arg-type]
        case Panel():
            parts = {name: group_metric(part) for name, part in metric.metrics.items()}
            return part_of_panel(metric, {n: part for n, part in parts.items() if part is not None})
    return None if group_scores(metric) else metric.empty()


def whole_metric(metric: Accumulator) -> Accumulator | None:
    """The metric, or those of a Panel, that groups do not add up to; None if there is none."""
    if isinstance(metric, Panel):
        parts = {name: whole_metric(part) for name, part in metric.metrics.items()}
        return part_of_panel(metric, {n: part for n, part in parts.items() if part is not None})
    in_groups = group_metric(metric)
    return None if in_groups is not None and metric._head() == in_groups._head() else metric


def part_of_panel(panel: Panel, metrics: Mapping[str, Accumulator]) -> Panel | None:
    """A Panel of these metrics, which reads the rows of the given one; None if there are none."""
    inputs = {name: columns for name, columns in panel._renames.items() if name in metrics}
    return Panel(metrics, inputs) if metrics else None


def rows_at(metric: Accumulator, rows: Batch, path: Path) -> Batch:
    """The rows of a metric in a Panel, from checked rows of the Panel."""
    if not path or not isinstance(metric, Panel):
        return rows
    name, *inner = path
    return rows_at(metric.metrics[name], rows_of(metric, rows, name), tuple(inner))


def states_of(groups: Accumulator | CollapsedGroups) -> Accumulator:
    """The states of all groups, in as many slots."""
    return groups.states if isinstance(groups, CollapsedGroups) else groups
