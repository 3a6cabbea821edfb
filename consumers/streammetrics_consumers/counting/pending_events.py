"""Additions of one partition to the events that are pending until they are closed. Pure.

An event is pending because other events may change how it counts: an impression waits for its
outcomes, and any event for an earlier exposure of its unit. Pending events are kept as sets, by
panes of event time, until all that they wait for has arrived (see closer.py); no metric counts them
before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streammetrics_consumers.config.closing import Closing
from streammetrics_consumers.config.config import Config
from streammetrics_consumers.counting.exposed_states import ExposedStates
from streammetrics_consumers.counting.join_states import JoinStates
from streammetrics_consumers.events import Reason, Unfit
from streammetrics_consumers.events.decoder import Decoded
from streammetrics_consumers.events.kinds import IMPRESSION
from streammetrics_consumers.model.generation import StateShard


class PendingStates(Protocol):
    """Pending events of some kinds since the last commit."""

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""

    def unfit(self, decoded: Decoded) -> dict[int, Unfit]:
        """The events whose values cannot be kept, by position."""

    def completed(self, decoded: Decoded) -> Decoded:
        """The events with the columns that their closing adds, with values that any event may
        get: a metric that refuses one then always does."""

    def accumulate(self, decoded: Decoded) -> None:
        """Add the events of these kinds, none of which is late."""

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state to store, by pane, of at most `limit` bytes."""


class PendingEvents:
    """The pending events since the last commit, of all kinds.

    closed_ms: the time up to which events are closed; None: none is. behind_ms: older events are
    late by the partition's own events; None before its first. Events are closed only where no
    partition can get another event that they need. A partition that was left out of this, because
    it was idle for too long, may get an older event all the same: it is refused.
    """

    def __init__(
        self, config: Config, closing: Closing, closed_ms: int | None, behind_ms: int | None
    ) -> None:
        self._states = list(_states_of(config, closing))
        self._reasons = late_reasons(config)
        self._time_field = config.event.time
        self._reopened = "exposures.reopen_s" if config.join is None else "join.reopen_s"
        self._label_window_ms = closing.label_window_ms
        least = None if closed_ms is None else closed_ms + closing.label_window_ms
        is_held = behind_ms is not None and least is not None and behind_ms >= least
        self._least_ms = None if is_held else least
        self._oldest_ms: int | None = None
        self._closed_ms, self._has_refused = closed_ms, False

    @property
    def nbytes(self) -> int:
        """Approximate memory in bytes."""
        return sum(states.nbytes for states in self._states)

    @property
    def closed_at_most(self) -> int | None:
        """The time up to which events may be closed if these are to be closed with them; None:
        there are no events."""
        return None if self._oldest_ms is None else self._oldest_ms - self._label_window_ms

    @property
    def closed_at_least(self) -> int | None:
        """The time up to which events are closed, if some were refused because of it."""
        return self._closed_ms if self._has_refused else None

    def unfit(self, decoded: Decoded) -> dict[int, Unfit]:
        """The events that cannot be kept, by position: what they would change is closed, or their
        values are too large."""
        refusals: dict[int, Unfit] = {}
        for states in self._states:
            refusals |= states.unfit(decoded)
        if self._least_ms is not None:
            detail = f"label windows are closed for events before {self._least_ms} ms"
            if not self._label_window_ms:
                detail = f"events before {self._least_ms} ms are closed"
            late = np.flatnonzero(decoded.times_ms < self._least_ms).tolist()
            self._has_refused |= bool(late)
            refusals |= dict.fromkeys(late, Unfit("closed", self._time_field, detail))
        return refusals

    def counted(self, decoded: Decoded) -> NDArray[np.intp]:
        """The positions of the events that metrics count once they are closed."""
        assert decoded.kinds is not None
        return np.flatnonzero(decoded.kinds == IMPRESSION)

    def completed(self, decoded: Decoded) -> Decoded:
        """The events with the columns that their closing adds; see `PendingStates`."""
        for states in self._states:
            decoded = states.completed(decoded)
        return decoded

    def too_late(
        self,
        decoded: Decoded,
        late: NDArray[np.bool_],
        behind_ms: NDArray[np.int64],
        lateness_ms: int,
    ) -> dict[int, Unfit]:
        """The refusals of late events, by position. behind_ms: by how much each event is older
        than the newest one before it in its log; lateness_ms: the allowed lateness."""
        assert decoded.kinds is not None
        refusals: dict[int, Unfit] = {}
        for i in np.flatnonzero(late).tolist():
            detail = (
                f"{int(behind_ms[i])} ms older than the newest event before it in its log, at most "
                f"{lateness_ms} may be, which are windows.lateness_s and {self._reopened}"
            )
            reason = self._reasons[int(decoded.kinds[i])]
            refusals[i] = Unfit(reason, self._time_field, detail)
        return refusals

    def accumulate(self, decoded: Decoded) -> None:
        """Add these events, none of which is late."""
        for states in self._states:
            states.accumulate(decoded)
        if len(decoded):
            oldest = int(decoded.times_ms.min())
            self._oldest_ms = oldest if self._oldest_ms is None else min(self._oldest_ms, oldest)

    def shards(self, limit: int) -> Iterator[StateShard]:
        """Every state to store, by pane."""
        for states in self._states:
            yield from states.shards(limit)


def late_reasons(config: Config) -> tuple[Reason, ...]:
    """The reason for refusing a late event, by its kind."""
    if config.join is None:
        return ("late_event", "late_exposure")
    outcomes: list[Reason] = ["late_outcome"] * len(config.join.outcomes)
    return ("late_impression", *outcomes, "late_exposure")


def _states_of(config: Config, closing: Closing) -> Iterator[PendingStates]:
    if config.join is not None:
        yield JoinStates(config, config.join)
    if config.exposures is not None:
        yield ExposedStates(config, config.exposures, closing)
