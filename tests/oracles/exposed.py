"""Exposures by brute force: every event looks at every exposure of its unit, in plain Python."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, NamedTuple


class Exposure(NamedTuple):
    """A unit that met an arm."""

    unit: Hashable
    time: int
    experiment: str
    arm: str


class Event(NamedTuple):
    """Anything else that a unit did."""

    unit: Hashable
    time: int
    content: tuple[Any, ...] = ()
    event: Hashable = None


class Closed(NamedTuple):
    """Events with (arm, time of exposure) by experiment; exposures that became known with whether
    they are the first, and how many were dropped."""

    rows: list[tuple[Event, dict[str, tuple[str, int] | None]]]
    exposures: list[tuple[Exposure, bool]]
    dropped: int


def least(exposures: Iterable[Exposure]) -> list[Exposure]:
    """Of each (unit, experiment, arm) the exposure with the least time."""
    times: dict[tuple[Hashable, str, str], int] = {}
    for unit, time, experiment, arm in exposures:
        key = (unit, experiment, arm)
        times[key] = min(time, times.get(key, time))
    return [Exposure(unit, time, name, arm) for (unit, name, arm), time in times.items()]


def first(unit: Hashable, experiment: str, exposures: Iterable[Exposure]) -> Exposure | None:
    """The unit's first exposure to an experiment; of equal times, the lesser arm."""
    its = [e for e in exposures if e.unit == unit and e.experiment == experiment]
    return min(its, key=lambda e: (e.time, e.arm), default=None)


def arm_at(
    unit: Hashable, time: int, experiment: str, exposures: Iterable[Exposure], window: int | None
) -> tuple[str, int] | None:
    """The arm that an event belongs to, and since when."""
    exposure = first(unit, experiment, exposures)
    if exposure is None or time < exposure.time:
        return None
    if window is not None and time >= exposure.time + window:
        return None
    return exposure.arm, exposure.time


def enters(
    exposure: Exposure,
    experiments: Collection[str] | Mapping[str, tuple[int | None, int | None]] | None,
) -> bool:
    """Whether an exposure becomes known."""
    if experiments is None or exposure.experiment not in experiments:
        return experiments is None
    first, end = experiments[exposure.experiment] if isinstance(experiments, Mapping) else (0, None)
    is_early = isinstance(experiments, Mapping) and first is not None and exposure.time < first
    return not is_early and (end is None or exposure.time < end)


def closed(
    events: Iterable[Event | Exposure],
    before: int,
    window: int | None = None,
    experiments: Collection[str] | Mapping[str, tuple[int | None, int | None]] | None = None,
) -> Closed:
    """What a closing of all these events gives, if nothing was closed before."""
    every = list(events)
    gone = {e for e in every if isinstance(e, Exposure) and e.time < before}
    entering = [e for e in gone if enters(e, experiments)]
    firsts = least(entering)
    names = {e.experiment for e in firsts}
    rows = [
        (event, {name: arm_at(event.unit, event.time, name, firsts, window) for name in names})
        for event in sorted({e for e in every if isinstance(e, Event)}, key=repr)
        if event.time < before
    ]
    exposures = [(e, first(e.unit, e.experiment, firsts) == e) for e in firsts]
    return Closed(rows, exposures, len(gone) - len(entering))
