"""A stream of an exposed experiment in memory: units with their exposures and what they did after
these, the states that a store has of it, and what it shows, in plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from streammetrics_consumers.model.generation import Metric

from streammetrics import PerKey, UnitMean, UnitRate, Units

DAY_MS = 86_400_000
ARMS = ("control", "new")
PREFIX = "experiment/checkout/"
EXPERIMENT_PLAN: Mapping[str, object] = {
    "control": "control",
    "decision": ["revenue", "buyers"],
    "guardrails": [["revenue.rate", 0.0, True, False], ["errors", 0.1, False]],
    "on_several_variants": "keep",
    "cluster": "groups",
    "horizon": None,
    "baseline": None,
    "mde": 0.5,
    "level": 0.95,
    "epochs": [],
    "shares": [],
    "variants": ["control", "new"],
}
BUCKETS = {"0": (0, 1), "1": (1, 2), "2-3": (2, 4), "4-7": (4, 8), "8-15": (8, 16), "16+": (16, 99)}


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit, its first exposure, and the times and values of its events after it."""

    name: str
    exposed_ms: int
    arm: str
    events: tuple[tuple[int, float], ...]


def units(seed: int, n: int, days: int, window_ms: int | None, lift: float = 0.3) -> list[Unit]:
    """Units that are exposed over some days and act for twenty days after it, within the window."""
    chance = random.Random(seed)
    cohort = []
    for i in range(n):
        exposed_ms, arm = chance.randrange(days * DAY_MS), ARMS[i % 2]
        times = (exposed_ms + chance.randrange(20 * DAY_MS) for _ in range(chance.randrange(5)))
        rise = lift if arm == "new" else 0.0
        events = tuple(
            (ms, round(chance.choice([0, chance.random() + rise]), 2))
            for ms in times
            if window_ms is None or ms < exposed_ms + window_ms
        )
        cohort.append(Unit(f"u{i}", exposed_ms, arm, events))
    return cohort


def bucket_of(since_ms: int) -> str:
    day = since_ms // DAY_MS
    return next(name for name, (first, end) in BUCKETS.items() if first <= day < end)


def rows(cohort: Sequence[Unit], closed_ms: int) -> Iterator[tuple[Unit, int, float, bool]]:
    """The closed rows: unit, time, value, and whether it is the exposure."""
    for unit in cohort:
        if unit.exposed_ms < closed_ms:
            yield unit, unit.exposed_ms, 0.0, True
        yield from ((unit, ms, value, False) for ms, value in unit.events if ms < closed_ms)


def states(cohort: Sequence[Unit], closed_ms: int) -> dict[tuple[str, int], PerKey]:
    """The states since the start, by metric and grouping."""
    empty = {"revenue": UnitMean(), "buyers": UnitRate()}
    sums = {(PREFIX + name, i): PerKey(metric) for name, metric in empty.items() for i in (0, 1)}
    sums |= {(PREFIX + name, 0): PerKey(Units()) for name in ("units", "active")}
    for unit, ms, value, is_exposure in rows(cohort, closed_ms):
        day = datetime.fromtimestamp(unit.exposed_ms / 1000, UTC).date().isoformat()
        keys = (0, "", unit.arm), (1, "", unit.arm, day, bucket_of(ms - unit.exposed_ms))
        for name in empty:
            for i, key in enumerate(keys):
                sums[PREFIX + name, i].update([key], units=[unit.name], values=[value])
        sums[PREFIX + ("units" if is_exposure else "active"), 0].update(
            [keys[0]], units=[unit.name]
        )
    return sums


def mean_by_arm(
    cohort: Sequence[Unit], counts: Callable[[Unit, int], bool]
) -> dict[str, tuple[int, float]]:
    """Of each arm the units, and the mean of the values at the times since the exposure that
    count."""
    means = {}
    for arm in ARMS:
        arm_units = [unit for unit in cohort if unit.arm == arm]
        total = sum(v for u in arm_units for ms, v in u.events if counts(u, ms - u.exposed_ms))
        means[arm] = len(arm_units), total / len(arm_units)
    return means


def metrics(window_s: int | None, **plan: object) -> list[Metric]:
    """The metrics of the experiment, as a generation has them."""
    description = {
        "experiment": {**EXPERIMENT_PLAN, **plan},
        "variant": ["", ["control", "new"]],
        "exposures": {"window_s": window_s},
        "windows": {"size_s": 86_400, "slide_s": 86_400},
        "inputs": {"units": "user:hashed_id"},
    }
    grouping = [["epoch", "ts"], ["variant", "arm"]]
    cohorts = [*grouping, ["exposed_on", "(exposed_on)"], ["since", "(since)"]]
    slices = {name: [grouping, cohorts] for name in ("revenue", "buyers")}
    slices |= {name: [grouping] for name in ("units", "active", "errors")}
    return [
        Metric(
            PREFIX + name, "", {**description, "slices": groupings}, ended=False, start_offsets={}
        )
        for name, groupings in slices.items()
    ]
