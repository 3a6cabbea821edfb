"""The settings that name a grid of score buckets, for every metric that has them.

They are `grid`, `resolution`, `range`, `floor`, `ceiling` and `edges`, with one meaning and one
check wherever they stand. The grids themselves are in `binning.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, Protocol

import numpy as np

from streammetrics.core.conversion import as_float, plain
from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.tables.binning import EdgeGrid, EqualGrid, Grid, RelativeGrid

_MAX_BUCKETS: Final = 1 << 22  # 64 MB of counts when all are occupied
# Settings without an effect, by `grid` and `range`: states that differ in them would not merge.
_UNUSED: Final = {
    ("relative", "probability"): ("ceiling",),
    ("relative", "real"): (),
    ("equal", "probability"): ("floor", "ceiling"),
    ("edges", "probability"): ("resolution", "floor", "ceiling"),
    ("edges", "real"): ("resolution", "floor", "ceiling"),
}


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
    named = metric.grid == "edges"
    edges = _floats(metric.edges)
    if edges is None or bool(edges) != named:
        wanted = "ascending finite numbers" if named else f'none where grid="{metric.grid}"'
        raise refused_setting(metric, "edges", wanted)
    for name in _UNUSED[str(metric.grid), metric.range]:
        if getattr(metric, name) != getattr(type(metric), name):
            where = f'grid="{metric.grid}" and range="{metric.range}"'
            raise refused_setting(metric, name, f"none where {where} do not use it")
    # Before any array is made: resolution 20 over all powers of two has 530 million buckets.
    if _grid(*_named(metric)[:-1], edges).n_buckets > _MAX_BUCKETS:
        raise refused_setting(metric, "resolution", f"one of at most {_MAX_BUCKETS} buckets")
    return {"floor": float(metric.floor), "ceiling": float(metric.ceiling), "edges": edges}


def grid_of(metric: Gridded) -> Grid:
    """The grid that checked settings name."""
    return _grid(*_named(metric))


def refused_setting(metric: object, name: str, expected: str) -> SettingsError:
    """The error for one setting of a metric."""
    hint = f"pass another {name}, or leave it out for the default"
    if name == "edges":
        hint = 'pass them with grid="edges", as in grid="edges", edges=(0.1, 0.5)'
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
    found: list[float] = []
    for edge in edges:
        value = as_float(edge) if isinstance(edge, (int, float)) else None
        if value is None or not math.isfinite(value) or (found and value <= found[-1]):
            return None
        found.append(value)
    return tuple(found)
