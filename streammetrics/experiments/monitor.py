"""The monitor: a fold of the looks that were taken at an experiment.

A look is keyed by what it saw: experiment, generation and head vector (how far each source had
been read). The same look taken twice, or kept in two places, is one look. So monitors merge by
union: in any order, any number of times. It stands beside the metrics' state and is no part of
it: looks of disjoint shards are not looks at the experiment, and must not be merged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from streammetrics.core.errors import StateError, shown
from streammetrics.experiments.evidence import Anytime
from streammetrics.kernels.normal_mixture import anytime_p

Heads = tuple[tuple[str, int], ...]
T = TypeVar("T")
Key = tuple[str, int, Heads]


@dataclass(frozen=True, slots=True)
class Look:
    """One row: what was read of each comparison when the sources stood at `heads`.

    heads and readings are sorted by name, as `Look.at` makes them.
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
        """A look, whatever the order of these mappings."""
        return cls(experiment, generation, _sorted(heads), _sorted(readings))

    @property
    def key(self) -> Key:
        """Equal keys are one look."""
        return self.experiment, self.generation, self.heads

    @property
    def place(self) -> tuple[int, Heads]:
        """Where it stands among the looks of its generation: later ones have read more."""
        return sum(offset for _, offset in self.heads), self.heads


@dataclass(frozen=True, slots=True)
class Watched:
    """What all looks at one comparison say together.

    log_e: the largest, at least 0; p_value: 1 over its e-value. lower, upper: the intersection of
    all intervals; consistent: it is not empty, else the effect drifts or an assumption is false.
    nested: each look saw at least what the look before it saw. first_reject: the heads of the
    first look whose e-value reached 1/alpha. latest: the last reading; e-BH takes its e-value.
    """

    looks: int
    log_e: float
    p_value: float
    lower: float
    upper: float
    consistent: bool
    nested: bool
    first_reject: Heads | None
    latest: Anytime | None


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
        """The fold of rows, in any order; StateError where two rows of one key disagree."""
        found: dict[Key, Look] = {}
        for look in looks:
            known = found.get(look.key)
            found[look.key] = look if known is None else _united(known, look)
        return cls(found)

    def __add__(self, other: Monitor) -> Monitor:
        return Monitor.of((*self.looks.values(), *other.looks.values()))

    def watched(
        self, experiment: str, generation: int, comparison: str, alpha: float = 0.05
    ) -> Watched:
        """What the looks at one comparison, of one generation, say together."""
        chosen = [
            (look, reading)
            for look in self.looks.values()
            if (look.experiment, look.generation) == (experiment, generation)
            for name, reading in look.readings
            if name == comparison
        ]
        chosen.sort(key=lambda one: one[0].place)
        readings = [reading for _, reading in chosen]
        most = max((one.log_e for one in readings), default=0.0)
        lower = max((one.lower for one in readings), default=-math.inf)
        upper = min((one.upper for one in readings), default=math.inf)
        goal = -math.log(alpha)
        return Watched(
            looks=len(chosen),
            log_e=max(0.0, most),
            p_value=anytime_p(most),
            lower=lower,
            upper=upper,
            consistent=lower <= upper,
            nested=all(_within(a.heads, b.heads) for (a, _), (b, _) in pairwise(chosen)),
            first_reject=next((look.heads for look, one in chosen if one.log_e >= goal), None),
            latest=readings[-1] if readings else None,
        )


def _sorted(named: Mapping[str, T]) -> tuple[tuple[str, T], ...]:
    return tuple(sorted(named.items(), key=lambda one: one[0]))


def _united(one: Look, other: Look) -> Look:
    readings = dict(one.readings)
    for name, reading in other.readings:
        known = readings.setdefault(name, reading)
        if known != reading:
            raise StateError(
                expected=f"one reading of {name!r} at one head vector",
                came=f"{shown(known)} and {shown(reading)}",
                where=f"looks at {one.experiment!r}, generation {one.generation}",
                todo="give a changed experiment a new generation",
            )
    return Look(one.experiment, one.generation, one.heads, _sorted(readings))


def _within(early: Heads, late: Heads) -> bool:
    """Whether the later look has read all that the earlier one had."""
    offsets = dict(late)
    return all(offsets.get(source, -1) >= offset for source, offset in early)
