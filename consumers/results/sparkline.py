"""A row of small bars: how a value went from window to window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

BARS: Final = "▁▂▃▄▅▆▇█"
PLAIN: Final = "_.-=+*#@"  # where a terminal has no such letters
GONE: Final = " "  # nothing was counted, or what was has no value


def scale(values: Sequence[float]) -> tuple[float, float]:
    """The least and the greatest finite value, to draw several rows alike; nan where none is.

    >>> scale([0.25, float("nan"), 0.75])
    (0.25, 0.75)
    """
    known = [value for value in values if math.isfinite(value)]
    return min(known, default=math.nan), max(known, default=math.nan)


def sparkline(
    values: Sequence[float], width: int, *, ends: tuple[float, float], bars: str = BARS
) -> str:
    """The last `width` values as bars, each a letter; in the middle where all are alike.

    >>> sparkline([0.25, float("nan"), 0.5, 0.75], 10, ends=(0.25, 0.75))
    '▁ ▅█'
    """
    low, high = ends
    shown = values[-width:] if width > 0 else ()
    return "".join(_bar(value, low, high, bars) for value in shown)


def _bar(value: float, low: float, high: float, bars: str) -> str:
    if not math.isfinite(value) or not low <= value <= high:
        return GONE
    # Halves first: the distance of two finite values may be infinite.
    size = high / 2 - low / 2
    share = (value / 2 - low / 2) / size if size else 0.5
    return bars[min(int(share * len(bars)), len(bars) - 1)]
