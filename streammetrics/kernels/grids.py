"""The settings that name a grid of score buckets, for every metric that has them.

They are `grid`, `resolution`, `range`, `floor`, `ceiling` and `edges`, with one meaning and one
check wherever they stand. The grids themselves are in `binning.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import Final, Protocol

from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.binning import EdgeGrid, EqualGrid, Grid, RelativeGrid

_MAX_BUCKETS: Final = 1 << 22  # 64 MB of counts when all are occupied


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
    """Refuse settings that name no grid; those that may be written in several ways, in one."""
    for name, known in (
        ("grid", ("relative", "equal", "edges")),
        ("range", ("probability", "real")),
    ):
        value = getattr(metric, name)
        if value not in known:
            raise refused_setting(metric, name, " or ".join(f'"{k}"' for k in known))
    if type(metric.resolution) is not int or not 0 <= metric.resolution <= 20:
        raise refused_setting(metric, "resolution", "an integer from 0 to 20")
    for name in ("floor", "ceiling"):
        if not _is_power_of_two(getattr(metric, name)):
            raise refused_setting(metric, name, "a power of two from 2**-126 to 2**127")
    real = metric.range == "real"
    highest = metric.ceiling / 2 if real else 0.5
    if metric.floor > highest:
        raise refused_setting(metric, "floor", f"at most {highest}")
    if metric.grid == "equal" and real:
        raise refused_setting(metric, "range", '"probability" where buckets are of equal width')
    edges = _floats(metric.edges)
    if edges is None or bool(edges) != (metric.grid == "edges"):
        wanted = f'none where grid="{metric.grid}"'
        if metric.grid == "edges":
            wanted = "ascending finite numbers"
        raise refused_setting(metric, "edges", wanted)
    # Before any array is made: resolution 20 over all powers of two has 530 million buckets.
    if _grid(*_named(metric)[:-1], edges).n_buckets > _MAX_BUCKETS:
        raise refused_setting(metric, "resolution", f"one of at most {_MAX_BUCKETS} buckets")
    return {"floor": float(metric.floor), "ceiling": float(metric.ceiling), "edges": edges}


def grid_of(metric: Gridded) -> Grid:
    """The grid that checked settings name."""
    return _grid(*_named(metric))


def refused_setting(metric: object, name: str, expected: str) -> SettingsError:
    """The error for one setting of a metric."""
    return SettingsError(
        expected=expected,
        came=shown(getattr(metric, name)),
        where=f"{type(metric).__name__}({name})",
        todo=f"pass another {name}, or leave it out for the default",
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
    if not isinstance(edges, (tuple, list)):
        return None
    if any(isinstance(e, bool) or not isinstance(e, (int, float)) for e in edges):
        return None
    found = tuple(e + 0.0 for e in edges)  # -0.0 is 0.0
    fits = all(map(math.isfinite, found)) and all(a < b for a, b in pairwise(found))
    return found if fits else None
