"""Grids of score buckets, fixed by their settings alone, so that histograms always merge.

A grid maps a score to one of `n_buckets` buckets. Buckets are numbered in the order of the scores,
a higher score is never in a lower bucket, and a float32 is in the bucket of the float64 of the same
value. Only exact operations are used, so every processor gives the same bucket.

The settings of a grid are `grid`, `resolution`, `range`, `floor`, `ceiling` and `edges`, with one
meaning and one check in every metric that has them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.conversion import among, as_float, plain
from streammetrics.core.errors import SettingsError, shown

# Positions among edges are looked up by a score's first bits, and searched if these do not decide.
_LAST: Final = 47  # bits of a float64 after the first ones: ranges are 1/32 wide, or less
_REST: Final = np.uint64((1 << _LAST) - 1)
_SEARCHED: Final = -1

MAX_RESOLUTION: Final = 20
CHUNK: Final = 1 << 15  # rows whose temporaries stay in the L2 cache
_MANY: Final = 1 << 13  # scores that are worth a table of edges
_FEW: Final = 64  # scores that usually show whether there are large ones
_FRACTION_BITS: Final[dict[np.dtype[np.floating], int]] = {
    np.dtype(np.float32): 23,
    np.dtype(np.float64): 52,
}
_INTEGER: Final[dict[np.dtype[np.floating], np.dtype[np.signedinteger]]] = {
    np.dtype(np.float32): np.dtype(np.int32),
    np.dtype(np.float64): np.dtype(np.int64),
}


class _Buffers:
    """Arrays for one chunk of work, used again for each chunk."""

    def __init__(self, real: np.dtype[np.floating]) -> None:
        self.size = np.empty(CHUNK, real)
        self.side = np.empty(CHUNK, real)
        self.cells = np.empty(CHUNK, np.intp)


# Fresh memory would cost batches of 10,000 rows a tenth of their time in page faults. A call takes
# buffers from the deque and puts them back, so that two threads never share any.
_FREE: Final[dict[np.dtype[np.floating], deque[_Buffers]]] = {
    real: deque(maxlen=4) for real in _INTEGER
}


_Labels = NDArray[np.uint8] | None


class Grid(ABC):
    """Buckets of scores in ascending order."""

    n_buckets: int

    def cells(
        self, labels: _Labels, scores: NDArray[np.floating]
    ) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """For each chunk: the slice of its rows, and their cells, `label * n_buckets + bucket`.

        labels, scores: [n]; labels 0 or 1, None if all are 0; scores float32 or float64 in the
        grid's range. The array is overwritten for the next chunk.
        """
        free = _FREE[scores.dtype]
        try:
            room = free.pop()
        except IndexError:
            room = _Buffers(scores.dtype)
        for start in range(0, len(scores), CHUNK):
            piece = slice(start, min(start + CHUNK, len(scores)))
            chunk_labels = None if labels is None else labels[piece]
            yield piece, self._cells(chunk_labels, scores[piece], room)
        free.append(room)

    def buckets(self, scores: NDArray[np.floating]) -> NDArray[np.intp]:
        """The bucket of each score: intp [n]."""
        chunks = [cells.copy() for _, cells in self.cells(None, scores)]
        return np.concatenate(chunks) if chunks else np.empty(0, np.intp)

    @cached_property
    def least(self) -> NDArray[np.float64]:
        """The least float64 of each bucket: float64 [n_buckets], ascending, read-only."""
        least = self._least()
        least.flags.writeable = False
        return least

    @property
    def ends(self) -> NDArray[np.float64]:
        """The least float64 above each bucket: float64 [n_buckets]; nan for the last one, which
        holds the highest possible score."""
        return np.append(self.least[1:], np.nan)

    @property
    def largest(self) -> NDArray[np.float64]:
        """The largest float64 of each bucket of scores in [0, 1]: float64 [n_buckets]."""
        return np.append(np.nextafter(self.least[1:], -np.inf), 1.0)

    @abstractmethod
    def _least(self) -> NDArray[np.float64]: ...

    @abstractmethod
    def _cells(
        self, labels: _Labels, scores: NDArray[np.floating], room: _Buffers
    ) -> NDArray[np.intp]: ...


@dataclass(frozen=True)
class RelativeGrid(Grid):
    """Buckets of equal relative width 2 ** -resolution, by the top bits of the float.

    Unless `mirrored`, the width is relative to the distance from 0, on either side, from `floor`
    to `ceiling`; the middle bucket holds the scores nearer to 0 than `floor`, the two at the ends
    those at or beyond `ceiling`. If `mirrored`, scores are in [0, 1] and the width is relative to
    the distance from the nearer of 0 and 1, with 0.5 in a bucket of its own.

    resolution: bits of the fraction that are kept, 0 to 20. floor, ceiling: powers of two.
    """

    resolution: int
    floor: float
    ceiling: float
    mirrored: bool

    @cached_property
    def n_buckets(self) -> int:  # type: ignore[override]
        return 2 * self._steps + 3

    @cached_property
    def _steps(self) -> int:
        """Buckets from `floor` to the ceiling, or to 0.5."""
        top = 0.5 if self.mirrored else self.ceiling
        return (math.frexp(top)[1] - math.frexp(self.floor)[1]) << self.resolution

    def _least(self) -> NDArray[np.float64]:
        shift = _FRACTION_BITS[np.dtype(np.float64)] - self.resolution
        origin = int(np.float64(self.floor).view(np.int64)) >> shift
        # Distances from 0 (or 1) at which a bucket begins: from floor on.
        edges = ((np.arange(self._steps + 1) + origin) << shift).view(np.float64)
        if not self.mirrored:
            low = np.nextafter(-edges[::-1], np.inf)
            return np.concatenate([[-np.inf], low, edges])
        # A bucket near 1 holds the scores s with 1 - s < edge. 1 - s is exact, but 1 - edge may
        # have been rounded to a score that is still outside.
        guess = 1 - edges[::-1]
        high = np.where(1 - guess < edges[::-1], guess, np.nextafter(guess, 2))
        return np.concatenate([[0.0], edges, np.minimum(high, 1)])

    @cached_property
    def _constants(self) -> dict[np.dtype[np.floating], _Constants]:
        return {kind: _Constants.constants_of(self, kind) for kind in _INTEGER}

    def _cells(
        self, labels: _Labels, scores: NDArray[np.floating], room: _Buffers
    ) -> NDArray[np.intp]:
        # Two distances, s and its mirror image 1 - s or 0 - s, clipped to the range of buckets: one
        # of them is at an end, so the difference of their top bits counts the buckets from there.
        # 1 - s is exact where it is below 1/2, and never rounded to below it. They are clipped as
        # floats, by `clip`: numpy's `maximum` takes three times as long, and on integers longer.
        n, c = len(scores), self._constants[scores.dtype]
        size, side = room.size[:n], room.side[:n]
        scores.clip(c.least, c.most, out=size)
        q, mirror = size.view(c.kind), side.view(c.kind)
        q >>= c.shift
        if self.mirrored and _none_above(scores, c.most):
            q += c.low_start  # no score is above 1/2, as with rare clicks
            return _with_labels(q, labels, c.n_buckets, room)
        np.subtract(c.pole, scores, out=side)
        side.clip(c.least, c.most, out=side)
        mirror >>= c.shift
        q -= mirror
        q += c.start
        return _with_labels(q, labels, c.n_buckets, room)


class _Constants(NamedTuple):
    """The constants of `RelativeGrid._cells`, in the types of its arrays."""

    kind: np.dtype[np.signedinteger]
    pole: np.floating  # the sum of a score and its mirror image
    least: np.floating  # the greatest distance below `floor`, above 0 so that -0.0 is below it
    most: np.floating  # the distance beyond which all scores are in one bucket
    shift: np.signedinteger
    start: np.signedinteger
    low_start: np.signedinteger  # if the mirror image is `most` for all
    n_buckets: np.signedinteger

    @staticmethod
    def constants_of(grid: RelativeGrid, real: np.dtype[np.floating]) -> _Constants:
        """For scores of this precision."""
        kind = _INTEGER[real]
        shift = _FRACTION_BITS[real] - grid.resolution
        origin = (int(real.type(grid.floor).view(kind)) >> shift) - 1
        return _Constants(
            kind=kind,
            pole=real.type(1 if grid.mirrored else 0),
            least=np.nextafter(real.type(grid.floor), real.type(0)),
            most=real.type(0.5 if grid.mirrored else grid.ceiling),
            shift=kind.type(shift),
            start=kind.type(grid._steps + 1),
            low_start=kind.type(-origin),
            n_buckets=kind.type(grid.n_buckets),
        )


@dataclass(frozen=True)
class EqualGrid(Grid):
    """2 ** resolution buckets of equal width over [0, 1]; 1.0 is in the last."""

    resolution: int

    @property
    def n_buckets(self) -> int:  # type: ignore[override]
        return 1 << self.resolution

    def _least(self) -> NDArray[np.float64]:
        return np.arange(self.n_buckets) / self.n_buckets

    def _cells(
        self, labels: _Labels, scores: NDArray[np.floating], room: _Buffers
    ) -> NDArray[np.intp]:
        n, real = len(scores), scores.dtype.type
        kind = _INTEGER[scores.dtype]
        size = room.side[:n]
        np.multiply(scores, real(self.n_buckets), out=size)
        size.clip(real(0), real(self.n_buckets - 0.5), out=size)  # `minimum` is three times slower
        q = room.size[:n].view(kind)
        np.copyto(q, size, casting="unsafe")
        return _with_labels(q, labels, kind.type(self.n_buckets), room)


@dataclass(frozen=True)
class EdgeGrid(Grid):
    """Buckets between given edges, ascending: scores with i edges at or below are in bucket i."""

    edges: tuple[float, ...]

    @property
    def n_buckets(self) -> int:  # type: ignore[override]
        return len(self.edges) + 1

    def _least(self) -> NDArray[np.float64]:
        return np.array([-np.inf, *self.edges])

    def _cells(
        self, labels: _Labels, scores: NDArray[np.floating], room: _Buffers
    ) -> NDArray[np.intp]:
        values = scores.astype(np.float64, copy=False)
        cells = self._search(values) if len(values) < _MANY else self.positions(values)
        if labels is not None:
            cells += labels * np.intp(self.n_buckets)
        return cells

    def positions(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        """The number of edges at or below each of many scores: intp [n]; no NaN. -0.0 is 0.0.

        >>> EdgeGrid((0.1, 0.5)).positions(np.array([0.05, 0.1, 0.45, 0.5, 7.0]))
        array([0, 1, 1, 2, 2])
        """
        first = (np.ascontiguousarray(scores).view(np.uint64) >> np.uint64(_LAST)).view(np.intp)
        positions = self._table.take(first).astype(np.intp)
        searched = np.flatnonzero(positions == _SEARCHED)
        if len(searched):
            positions[searched] = self._search(scores[searched])
        return positions

    @cached_property
    def _table(self) -> NDArray[np.signedinteger]:
        """For each value of the first bits the position of all floats with it, or _SEARCHED."""
        low = np.arange(1 << (64 - _LAST), dtype=np.uint64) << np.uint64(_LAST)
        first, last = (self._search(end.view(np.float64)) for end in (low, low | _REST))
        table = np.where(first == last, first, _SEARCHED)
        return table.astype(np.min_scalar_type(-len(self.edges) - 1))

    def _search(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.searchsorted(self.edges, scores, "right")


def _none_above(scores: NDArray[np.floating], top: np.floating) -> bool:
    """Whether no score is above `top`; the first few usually decide."""
    few = scores[:_FEW]
    return bool(few[few.argmax()] <= top and scores[scores.argmax()] <= top)


def _with_labels(
    q: NDArray[np.signedinteger],
    labels: _Labels,
    n_buckets: np.signedinteger,
    room: _Buffers,
) -> NDArray[np.intp]:
    """The cells q + labels * n_buckets, as intp; q, in `room.size`, and `side` are overwritten."""
    truth, cells = room.side[: len(q)].view(q.dtype), room.cells[: len(q)]
    if labels is not None:
        np.copyto(truth, labels)
        truth *= n_buckets
        q += truth
    np.copyto(cells, q)
    return cells


_MAX_BUCKETS: Final = 1 << 22  # 64 MB of counts when all are occupied
# Settings without effect, by `grid` and `range`: refused, or equal histograms might not merge.
_UNUSED: Final = {
    ("relative", "probability"): ("ceiling",),
    ("relative", "real"): (),
    ("equal", "probability"): ("floor", "ceiling"),
    ("edges", "probability"): ("resolution", "floor", "ceiling"),
    ("edges", "real"): ("resolution", "floor", "ceiling"),
}


_OF_EQUAL: Final = '"probability" for buckets of equal width'


class Gridded(Protocol):
    """A metric with the settings of a grid."""

    @property
    def grid(self) -> str | None: ...
    @property
    def resolution(self) -> int: ...
    @property
    def range(self) -> str: ...
    @property
    def floor(self) -> float: ...
    @property
    def ceiling(self) -> float: ...
    @property
    def edges(self) -> tuple[float, ...]: ...


def check_grid(metric: Gridded) -> dict[str, float | tuple[float, ...]]:
    """Refuse invalid settings; return those that can be written in several ways in one form."""
    for name, choices in (
        ("grid", ("relative", "equal", "edges")),
        ("range", ("probability", "real")),
    ):
        value = getattr(metric, name)
        if not among(value, choices):
            raise refused_setting(metric, name, " or ".join(f'"{k}"' for k in choices))
    if type(metric.resolution) is not int or not 0 <= metric.resolution <= MAX_RESOLUTION:
        raise refused_setting(metric, "resolution", f"an integer from 0 to {MAX_RESOLUTION}")
    for name in ("floor", "ceiling"):
        if not _is_power_of_two(getattr(metric, name)):
            raise refused_setting(metric, name, "a power of two from 2**-126 to 2**127")
    real = metric.range == "real"
    highest = metric.ceiling / 2 if real else 0.5
    if metric.floor > highest:
        raise refused_setting(metric, "floor", f"at most {highest}")
    if metric.grid == "equal" and real:
        raise refused_setting(metric, "range", _OF_EQUAL)
    has_edges = metric.grid == "edges"
    edges = _floats(metric.edges)
    if edges is None or bool(edges) != has_edges:
        expected = "ascending finite numbers" if has_edges else f'none with grid="{metric.grid}"'
        raise refused_setting(metric, "edges", expected)
    for name in _UNUSED[str(metric.grid), metric.range]:
        if getattr(metric, name) != getattr(type(metric), name):
            settings = f'grid="{metric.grid}" and range="{metric.range}"'
            raise refused_setting(metric, name, f"none, because {settings} do not use it")
    # Before any array is made: resolution 20 over all powers of two has 530 million buckets.
    if _grid(*_named(metric)[:-1], edges).n_buckets > _MAX_BUCKETS:
        raise refused_setting(metric, "resolution", f"at most {_MAX_BUCKETS} buckets")
    return {"floor": float(metric.floor), "ceiling": float(metric.ceiling), "edges": edges}


def grid_of(metric: Gridded) -> Grid:
    """The grid of checked settings."""
    return _grid(*_named(metric))


def refused_setting(metric: object, name: str, expected: str) -> SettingsError:
    """The error for one setting of a metric."""
    hint = f"pass another {name}, or leave it out for the default"
    if name == "edges":
        hint = 'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)'
    elif expected == _OF_EQUAL:
        hint = 'pass range="probability" for values in [0, 1], or grid="edges" with edges'
    return SettingsError(
        expected=expected,
        got=shown(getattr(metric, name)),
        where=f"{type(metric).__name__}({name})",
        hint=hint,
    )


def _named(metric: Gridded) -> tuple[str | None, int, str, float, float, tuple[float, ...]]:
    m = metric
    return m.grid, m.resolution, m.range, m.floor, m.ceiling, m.edges


@lru_cache(maxsize=64)
def _grid(
    kind: str | None,
    resolution: int,
    range: str,
    floor: float,
    ceiling: float,
    edges: tuple[float, ...],
) -> Grid:
    if kind == "relative":
        return RelativeGrid(resolution, floor, ceiling, mirrored=range == "probability")
    return EdgeGrid(edges) if kind == "edges" else EqualGrid(resolution)


def _is_power_of_two(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 2**-126 <= value <= 2**127 and math.frexp(value)[0] == 0.5


def _floats(edges: object) -> tuple[float, ...] | None:
    """Edges as floats, or None where they are not ascending finite numbers."""
    if isinstance(edges, np.ndarray) and edges.ndim == 1:
        edges = plain(list(edges))
    if not isinstance(edges, (tuple, list)):
        return None
    floats: list[float] = []
    for edge in edges:
        value = as_float(edge) if isinstance(edge, (int, float)) else None
        if value is None or not math.isfinite(value) or (floats and value <= floats[-1]):
            return None
        floats.append(value)
    return tuple(floats)
