"""The ids of events, by which a repeat of an event is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from consumers.events.columns import Column
from consumers.events.refusals import Unfit


@dataclass(frozen=True, slots=True, eq=False)
class EventIds:
    """Of each event of a chunk whose id and time were read, good or refused since, in order.

    places: intp [n], in the chunk; ids: uint64 [n], hashes; times_ms: int64 [n].
    """

    places: NDArray[np.intp]
    ids: NDArray[np.uint64]
    times_ms: NDArray[np.int64]


def event_ids(
    at: NDArray[np.intp],
    ids: Column,
    times_ms: NDArray[np.int64],
    record_times_ms: NDArray[np.int64] | None,
    max_ahead_ms: int,
    lost: Mapping[int, Unfit],
) -> EventIds:
    """The ids of the events at these places of a chunk, without those that are lost (by row).

    A time that is too far ahead of its record is cut there, so that one clock that is wrong does
    not make all ids forgotten.
    """
    assert isinstance(ids, np.ndarray)
    if record_times_ms is not None:
        # Subtracting from the event's side cannot overflow: event times have calendar dates.
        ahead = times_ms - max_ahead_ms > record_times_ms
        times_ms = np.where(ahead, record_times_ms, times_ms)
    keep = np.ones(len(at), np.bool_)
    keep[list(lost)] = False
    hashes = np.asarray(ids).view(np.uint64)
    return EventIds(at[keep], hashes[keep], times_ms[keep])
