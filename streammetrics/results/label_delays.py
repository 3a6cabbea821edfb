"""Label delays: how long after their impressions outcomes come, and how many have none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from streammetrics.kernels.delay_bins import ends_s
from streammetrics.results.direction import Directions, directed
from streammetrics.results.shown import Shown

Histogram = Mapping[tuple[int, int], int]  # [start, end) in seconds -> outcomes; no empty ones


@dataclass(frozen=True, slots=True)
class OutcomeDelays(Shown):
    """The delays of one outcome.

    attributed: came within the label window of an impression of its id; cut: of these, in the
    last tenth of it. unattributed: all others; unknown: of these, those of which no impression is
    known. delays, unattributed_delays: how many came so many seconds after their impression.
    """

    directions: ClassVar[Directions] = directed(none="share_unattributed share_cut")
    attributed: int
    unattributed: int
    unknown: int
    cut: int
    delays: Histogram
    unattributed_delays: Histogram

    @property
    def outcomes(self) -> int:
        """All outcomes."""
        return self.attributed + self.unattributed

    @property
    def share_unattributed(self) -> float:
        """Unattributed / outcomes; nan where there are none."""
        return self.unattributed / self.outcomes if self.outcomes else math.nan

    @property
    def share_cut(self) -> float:
        """Cut / attributed: where it is not small, the label window ends too early for some."""
        return self.cut / self.attributed if self.attributed else math.nan


@dataclass(frozen=True, slots=True)
class LabelDelaysResult(Mapping[str, OutcomeDelays], Shown):
    """The delays of each outcome by its name."""

    results: Mapping[str, OutcomeDelays]

    def __getitem__(self, name: str) -> OutcomeDelays:
        return self.results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)


def histogram(counts: list[int]) -> Histogram:
    """The bins that are not empty."""
    return {ends_s(i): count for i, count in enumerate(counts) if count}
