"""JoinedResult: the result of a metric of joined events, and what is not in it yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from streammetrics.results.direction import Directions, directed
from streammetrics.results.label_delays import LabelDelaysResult
from streammetrics.results.shown import Shown


@dataclass(frozen=True, slots=True)
class JoinedResult(Shown):
    """`result` of the metric over impressions whose label window has closed, and the others.

    closed, pending: impressions in it, and those still to come. conflicts: impressions left out,
    as one of their id came before them. late_impressions, late_outcomes: events older than what
    had been closed when they came. delays: of outcomes that left. closed_before_ms: which
    impressions are in it, None where none are.
    """

    directions: ClassVar[Directions] = directed(none="share_pending")
    result: object
    closed: int
    pending: int
    conflicts: int
    late_impressions: int
    late_outcomes: int
    delays: LabelDelaysResult
    closed_before_ms: int | None

    @property
    def share_pending(self) -> float:
        """Pending / (closed + pending); nan where there are none."""
        n = self.closed + self.pending
        return self.pending / n if n else math.nan
