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
from typing import ClassVar, Final, TypeVar

from streammetrics.core.errors import StateError
from streammetrics.experiments.arm import Arm
from streammetrics.experiments.contrast import Contrast
from streammetrics.experiments.evidence import not_surer, spread_of
from streammetrics.experiments.one_look import Anytime
from streammetrics.experiments.since_decision import SinceDecision, midpoint
from streammetrics.experiments.strata import Pair
from streammetrics.kernels.inference.normal_mixture import anytime_p, as_t, multiplier, tuned
from streammetrics.kernels.inference.t_interval import EVERYTHING, fieller_bounds
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of_views

_STEPS: Final = 60  # three are usual
_EXACT: Final = 1e-6


def anytime_lift(contrast: Contrast, side: int) -> float:
    """The lower (side 0) or upper (side 1) end of the always-valid interval of treatment / control
    - 1; infinite if there is none."""
    pair, v_opt = contrast.pair, contrast.horizon.v_opt
    if pair is None or v_opt is None or contrast.anytime.gated or contrast.safeguard is not None:
        return EVERYTHING[side]
    if contrast.comparison.resolution:
        return EVERYTHING[side]
    return _end(pair, tuned(v_opt, contrast.alpha), contrast.alpha, side)


def _end(pair: Pair, rho: float, alpha: float, side: int) -> float:
    a, b = pair.control.estimate, pair.treatment.estimate
    spread, farther = spread_of(pair), (min, max)[side]
    ratio, end = 1.0, EVERYTHING[side]
    for _ in range(_STEPS):
        variance = spread.variance(ratio)
        if not variance > 0:
            return EVERYTHING[side]
        q = as_t(multiplier(1.0 / variance, rho, alpha), spread.df(ratio))
        # Excluded is what each form of the variance excludes.
        following = farther(fieller_bounds(a, c, b, t, q)[side] for c, t in spread.parts)
        if not math.isfinite(following):
            return EVERYTHING[side]
        near = abs(following - end) <= _EXACT * (1.0 + abs(following))
        end, ratio = following, 1.0 + following
        if near:
            break
    return end


def treatment_is_nearer(contrast: Contrast) -> bool | None:
    """Whether the treatment is nearer to the target than the control; None if uncertain."""
    pair, target, v_opt = contrast.pair, contrast.direction.target, contrast.horizon.v_opt
    if pair is None or target is None or v_opt is None:
        return None
    # Each of two equally precise arms has twice the information of their difference.
    control, treatment = (
        distances(arm, target, 2.0 * v_opt, contrast.alpha / 2.0) for arm in not_surer(pair)
    )
    if treatment[1] < control[0]:
        return True
    return False if control[1] < treatment[0] else None


def distances(arm: Arm, target: float, v_opt: float, alpha: float) -> tuple[float, float]:
    """The least and the greatest distance of an arm from its target that are not excluded."""
    value, error = arm.estimate, math.sqrt(arm.variance) if arm.variance > 0 else math.nan
    value, resolution = value - (0.0 if target else target), arm.resolution
    if not (math.isfinite(value) and error > 0):
        return 0.0, math.inf
    if target:
        if not value / target > 0:
            return 0.0, math.inf
        value, error, resolution = (
            math.log(value / target),
            error / abs(value),
            resolution / abs(value),
        )
        v_opt *= target * target
    information = 1.0 / error / error
    reach = as_t(multiplier(information, tuned(v_opt, alpha), alpha), arm.df) * error + resolution
    if not reach < math.inf:
        return 0.0, math.inf
    return max(0.0, abs(value) - reach), abs(value) + reach


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
            nested=all(_within(a.heads, b.heads) for (a, _), (b, _) in pairwise(chosen)),
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


def _within(early: Heads, late: Heads) -> bool:
    """Whether the later look has read everything that the earlier one had read."""
    offsets = dict(late)
    return all(offsets.get(source, -1) >= offset for source, offset in early)


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


def reading_of(contrast: Contrast, seen: Watched | None, since: Watched | None = None) -> Reading:
    """The reading of a contrast; seen: the looks at it, combined, None if there are none; since:
    those at its increments since the decision."""
    now = contrast.anytime
    if seen is None or seen.latest is None:
        return Reading(now.lower, now.upper, now.p_value, now, now.lower <= now.upper)
    after = None
    if since is not None and since.latest is not None:
        effect = midpoint(since.latest.lower, since.latest.upper)
        after = SinceDecision(effect, since.lower, since.upper)
    return Reading(
        seen.lower, seen.upper, seen.p_value, seen.latest, seen.consistent, seen.looks, after
    )
