"""Windows as a reader sees them: which there are, which may be asked for, and how far each is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd
from typing import Literal

from consumers.results.query import QueryError, Span, iso_utc

WindowState = Literal["open", "closing", "closed", "total"]


@dataclass(frozen=True, slots=True)
class Spans:
    """The windows of a config: `size_ms` long, one every `slide_ms`, aligned to the Unix epoch."""

    size_ms: int
    slide_ms: int

    @property
    def pane_ms(self) -> int:
        """Windows are sums of panes of this length."""
        return gcd(self.size_ms, self.slide_ms)

    def over(self, panes: Iterable[int], floor_ms: int | None) -> tuple[Span, ...]:
        """The windows that hold one of these panes (start_ms) and do not start below the
        retention floor, in order of time.

        >>> Spans(20, 10).over([30], None)
        (Span(start_ms=20, end_ms=40), Span(start_ms=30, end_ms=50))
        """
        starts: set[int] = set()
        for pane in panes:
            last = pane // self.slide_ms * self.slide_ms
            starts.update(range(last, pane + self.pane_ms - self.size_ms - 1, -self.slide_ms))
        return tuple(
            Span(start, start + self.size_ms)
            for start in sorted(starts)
            if floor_ms is None or start >= floor_ms
        )

    def require(self, span: Span, floor_ms: int | None) -> None:
        """Refuse a span that cuts a window in two, or reaches below the retention floor."""
        starts = span.start_ms // self.slide_ms * self.slide_ms
        ends = max(span.end_ms - self.size_ms, starts) // self.slide_ms * self.slide_ms
        nearest = Span(starts, ends + self.size_ms)
        if span != nearest:
            raise QueryError(
                expected=f"whole windows ({self.size_ms / 1000:g} s long, one every "
                f"{self.slide_ms / 1000:g} s)",
                came=str(span),
                where="--window",
                todo=f"ask for {nearest}, for example",
            )
        if floor_ms is not None and span.start_ms < floor_ms:
            raise QueryError(
                expected=f"a START from {iso_utc(floor_ms)} on, where the kept windows begin",
                came=str(span),
                where="--window",
                todo="ask for later windows; totals are not touched by retention",
            )


def state_of(end_ms: int, least_ms: int | None, lateness_ms: int) -> WindowState:
    """How far a window is that ends at `end_ms`, where every partition has read an event of
    `least_ms` or later.

    >>> [state_of(100, least, 10) for least in (None, 99, 100, 110)]
    ['open', 'open', 'closing', 'closed']
    """
    if least_ms is None or least_ms < end_ms:
        return "open"
    return "closing" if least_ms < end_ms + lateness_ms else "closed"
