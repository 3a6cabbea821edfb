"""PendingRows: what waits in a join."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streammetrics.results.shown import Shown


@dataclass(frozen=True, slots=True)
class PendingRows(Shown):
    """How many impressions wait for the end of their label window, and outcomes by kind.

    remembered: closed impressions whose time is still known. first_ms, last_ms: the least and the
    greatest time of what waits, None where nothing does.
    """

    impressions: int
    outcomes: Mapping[str, int]
    remembered: int
    first_ms: int | None
    last_ms: int | None
