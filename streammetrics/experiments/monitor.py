"""The monitor: a fold of the looks at an experiment.

A look is keyed by the data it saw: experiment, generation and head vector (how far each source
was read). The same look taken twice, or stored twice, is one look. So monitors merge by union: in
any order, any number of times. A monitor is separate from the metrics' state: looks at disjoint
shards are not looks at the experiment, and must not be merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import ClassVar, TypeVar

from streammetrics.core.errors import StateError
from streammetrics.experiments.one_look import Anytime
from streammetrics.kernels.inference.normal_mixture import anytime_p
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of_views

Heads = tuple[tuple[str, int], ...]
T = TypeVar("T")
Key = tuple[str, int, Heads]


@dataclass(frozen=True, slots=True)
class Look:
    """One row: the reading of each comparison with the sources read up to `heads`.

    heads and readings are sorted by name, as `Look.at` does.
    """

    experiment: str
    generation: int
    heads: Heads
    readings: tuple[tuple[str, Anytime], ...]

    @classmethod
    def at(
        cls,
        experiment: str,
        generation: int,
        heads: Mapping[str, int],
        readings: Mapping[str, Anytime],
    ) -> Look:
        """A look, independent of the order of these mappings."""
        return cls(experiment, generation, _sorted(heads), _sorted(readings))

    @property
    def key(self) -> Key:
        """The identity of the look: looks with equal keys are one."""
        return self.experiment, self.generation, self.heads

    @property
    def place(self) -> tuple[int, Heads]:
        """Sort key among the looks of a generation: later looks have read more."""
        return sum(offset for _, offset in self.heads), self.heads


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Watched(Shown):
    """All looks at one comparison, combined.

    log_e: the largest, at least 0; p_value: 1 over its e-value. lower, upper: the intersection of
    all intervals; consistent: it is not empty, else the effect drifts or an assumption is false.
    nested: each look saw at least the data of the look before it. first_reject: the heads of the
    first look whose e-value reached 1/alpha. latest: the last reading; e-BH takes its e-value.
    """

    looks: int
    log_e: float
    p_value: float
    lower: float
    upper: float
    consistent: bool
    nested: bool
    estimates: ClassVar[bool] = True
    first_reject: Heads | None
    latest: Anytime | None

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        for row in rows_of_views(self, level, headlines):
            yield replace(row, reason="" if math.isfinite(row.value) else "nothing is excluded")


@dataclass(frozen=True, slots=True)
class Monitor:
    """Looks by key. `a + b` is their union: commutative, associative, and `a + a == a`.

    >>> first = Look.at("ranker", 1, {"clicks/0": 100}, {"ctr": Anytime(-0.1, 0.3, 0.5)})
    >>> second = Look.at("ranker", 1, {"clicks/0": 200}, {"ctr": Anytime(0.0, 0.4, 0.2)})
    >>> seen = Monitor.of([second, first]).watched("ranker", 1, "ctr")
    >>> seen.looks, seen.lower, seen.upper, seen.log_e
    (2, 0.0, 0.3, 0.5)
    """

    looks: Mapping[Key, Look] = field(default_factory=dict)

    @classmethod
    def of(cls, looks: Iterable[Look]) -> Monitor:
        """The fold of looks, in any order; StateError if two looks with one key disagree."""
        by_key: dict[Key, Look] = {}
        for look in looks:
            previous = by_key.get(look.key)
            by_key[look.key] = look if previous is None else _united(previous, look)
        return cls(by_key)

    def __add__(self, other: Monitor) -> Monitor:
        return Monitor.of((*self.looks.values(), *other.looks.values()))

    def watched(
        self, experiment: str, generation: int, comparison: str, alpha: float = 0.05
    ) -> Watched:
        """The looks at one comparison, of one generation, combined."""
        chosen = [
            (look, reading)
            for look in self.looks.values()
            if (look.experiment, look.generation) == (experiment, generation)
            for name, reading in look.readings
            if name == comparison
        ]
        chosen.sort(key=lambda entry: entry[0].place)
        readings = [reading for _, reading in chosen]
        most = max((reading.log_e for reading in readings), default=0.0)
        lower = max((reading.lower for reading in readings), default=-math.inf)
        upper = min((reading.upper for reading in readings), default=math.inf)
        goal = -math.log(alpha)
        return Watched(
            looks=len(chosen),
            log_e=max(0.0, most),
            p_value=anytime_p(most),
            lower=lower,
            upper=upper,
            consistent=lower <= upper,
            nested=all(_has_read_all(a.heads, b.heads) for (a, _), (b, _) in pairwise(chosen)),
            first_reject=next(
                (look.heads for look, reading in chosen if reading.log_e >= goal), None
            ),
            latest=readings[-1] if readings else None,
        )

    def last(self, experiment: str, generation: int) -> dict[str, Anytime]:
        """The readings of the last look of a generation, for `Experiment.readings`."""
        looks = [
            look
            for look in self.looks.values()
            if (look.experiment, look.generation) == (experiment, generation)
        ]
        return dict(max(looks, key=lambda look: look.place).readings) if looks else {}


def _sorted(entries: Mapping[str, T]) -> tuple[tuple[str, T], ...]:
    return tuple(sorted(entries.items(), key=lambda entry: entry[0]))


def _united(first: Look, second: Look) -> Look:
    readings = dict(first.readings)
    for name, reading in second.readings:
        stored = readings.setdefault(name, reading)
        if stored != reading:
            raise StateError(
                expected=f"one reading of {name!r} at one head vector",
                got=" and ".join(
                    f"{x.lower:.6g} to {x.upper:.6g} with ln e = {x.log_e:.6g}"
                    for x in (stored, reading)
                ),
                where=f"looks at {first.experiment!r}, generation {first.generation}",
                hint="give a changed experiment a new generation",
            )
    return Look(first.experiment, first.generation, first.heads, _sorted(readings))


def _has_read_all(early: Heads, late: Heads) -> bool:
    """Whether the later look has read everything that the earlier one had read."""
    offsets = dict(late)
    return all(offsets.get(source, -1) >= offset for source, offset in early)


@dataclass(frozen=True, slots=True)
class SinceDecision:
    """The effect since the decision. lower, upper: the intersection of the intervals of all looks
    since then; effect: the estimate at the last one, nan if it has no interval yet."""

    effect: float
    lower: float
    upper: float

    @property
    def known(self) -> bool:
        """Whether there is an interval that is not empty."""
        return math.isfinite(self.effect) and self.lower <= self.upper

    @property
    def is_inside(self) -> bool:
        """Whether the effect is in the interval, from which earlier looks may exclude it."""
        return self.lower <= self.effect <= self.upper


@dataclass(frozen=True, slots=True)
class Reading:
    """The reading over all looks together. consistent: the looks do not exclude one another.

    looks: the number of looks; last: the last look alone, or the current reading if there are no
    looks; since: the effect since the decision, None before there is one.
    """

    lower: float
    upper: float
    pvalue: float
    last: Anytime
    consistent: bool = True
    looks: int = 0
    since: SinceDecision | None = None

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return self.lower > -math.inf or self.upper < math.inf


def reading_of(now: Anytime, all_looks: Watched | None, since: Watched | None = None) -> Reading:
    """The reading of a contrast. now: at this look; all_looks: those at it, combined, None if
    there are none; since: those at its increments since the decision."""
    if all_looks is None or all_looks.latest is None:
        return Reading(now.lower, now.upper, now.p_value, now, now.lower <= now.upper)
    after = None
    if since is not None and since.latest is not None:
        effect = midpoint(since.latest.lower, since.latest.upper)
        after = SinceDecision(effect, since.lower, since.upper)
    return Reading(
        all_looks.lower,
        all_looks.upper,
        all_looks.p_value,
        all_looks.latest,
        all_looks.consistent,
        all_looks.looks,
        after,
    )


def reading_of_changing_effect(now: Anytime, all_looks: Watched | None) -> Reading:
    """The reading of an effect that changes while it is watched, such as one on units that have
    done a part of what they will do: the interval is that of the last look alone, and only the
    evidence against no effect is that of all looks. now, all_looks: as in `reading_of`."""
    if all_looks is None or all_looks.latest is None:
        return reading_of(now, None)
    last = all_looks.latest
    return Reading(
        last.lower, last.upper, all_looks.p_value, last, last.lower <= last.upper, all_looks.looks
    )


def midpoint(lower: float, upper: float) -> float:
    """The middle of an interval; nan if an end is infinite."""
    return (
        lower + (upper - lower) / 2 if math.isfinite(lower) and math.isfinite(upper) else math.nan
    )
