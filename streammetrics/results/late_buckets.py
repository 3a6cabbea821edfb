"""LateBuckets: the scores and counts of a curve, read when more than an area is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.kernels.curves.area import Pairs, pairs
from streammetrics.kernels.curves.many_steps import counts_of_cells, is_small
from streammetrics.kernels.inference.area_interval import Placements

Points: TypeAlias = tuple[NDArray[np.floating], NDArray[np.int64]]
BucketPoints: TypeAlias = tuple[NDArray[np.floating], NDArray[np.int64], NDArray[np.float64]]
Counts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.intp]]

_BUCKETS: Final = 1 << 15  # of a curve that is computed together with others,
_COLUMNS: Final = 1 << 17  # and of all of these


class LateBuckets:
    """Scores and counts that are read when more than an area is asked for.

    _points: makes them, from the _cells of a histogram of `_n_buckets`. _counted: the values of
    `Pairs`.
    """

    _points: Callable[..., Points | BucketPoints]
    _cells: NDArray[np.int64] | None = None
    _n_buckets: int = 0
    _counted: tuple[int, int, int, int] | None = None
    _placed: Callable[[], Placements] | None = None  # the placements, without the points

    @cached_property
    def _held(self) -> Points | BucketPoints:
        return self._points() if self._cells is None else self._points(self._cells)

    @cached_property
    def scores(self) -> NDArray[np.floating]:
        return self._held[0]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        return self._held[1]

    @cached_property
    def _ends(self) -> NDArray[np.float64] | None:
        return self._held[2] if len(self._held) == 3 else None

    @cached_property
    def _pairs(self) -> Pairs:
        pair_counts = self._counted
        return pairs(self.counts[0], self.counts[1]) if pair_counts is None else Pairs(*pair_counts)


Curve = TypeVar("Curve", bound=LateBuckets)


def batches_of_curves(curves: Iterable[Curve]) -> Iterator[tuple[list[Curve], Counts]]:
    """The curves that are small enough to be computed together, some at a time, and their counts,
    as `many_steps` takes them."""
    celled: list[Curve] = []
    counted: list[Curve] = []
    columns = 0
    for curve in curves:
        has_counts = curve._cells is None or "_held" in curve.__dict__
        size = (curve.counts if has_counts else curve._cells).shape[1]  # type: ignore[union-attr]
        if size <= _BUCKETS:
            (counted if has_counts else celled).append(curve)
            columns += size
        if columns > _COLUMNS:
            yield _batch(celled, counted)
            celled, counted, columns = [], [], 0
    yield _batch(celled, counted)


def _batch(celled: list[Curve], counted: list[Curve]) -> tuple[list[Curve], Counts]:
    tables = [curve.counts for curve in counted]
    n, p, edges = counts_of_cells(
        [(c._cells, c._n_buckets) for c in celled if c._cells is not None]
    )
    ends = len(n) + np.cumsum([table.shape[1] for table in tables], dtype=np.intp)
    n, p = np.concatenate([np.array([n, p]), *tables], axis=1)
    edges, is_few = np.concatenate([edges, ends]), is_small(n, p, np.concatenate([edges, ends]))
    if is_few.all():
        return [*celled, *counted], (n, p, edges)
    few = iter(is_few.tolist())
    return _batch(*([curve for curve in side if next(few)] for side in (celled, counted)))
