"""The units of several experiments, cut to one sample by their hashes, each with its arm.

A sample is of the units whose hash is among the first 2 ** -level of all: the same units in every
experiment. The level is the least at which all of the sample has at most `SAMPLED` units, so it is
a function of the sets of units alone: shards that are merged have the sample of the whole.

Evidence of a sample that is cut while an experiment runs is not that of one sequence: each cut
shows other units, which is another chance to be wrong. So an e-value of level k counts 1 / ((k + 1)
(k + 2)) times. These weights add up to 1, so that what is reported at any look is at most the
weighted mean over levels of their e-values, which is an e-value at all looks together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.combine.units import UnitsResult
from streammetrics.core.conversion import instance, refused
from streammetrics.core.errors import InputError, nearest, shown
from streammetrics.core.ids.unit_hashes import Words
from streammetrics.core.parts.sampled_sums import last_hash
from streammetrics.experiments.plan import Plan

SAMPLED: Final = 1 << 18  # units of all experiments, a unit once in each
PLACES: Final = 256  # epochs times arms of an experiment
SEVERAL: Final = PLACES  # the place of a unit that was seen in several arms

Arms: TypeAlias = Mapping[str, UnitsResult]
Assigned: TypeAlias = Arms | Mapping[str, Arms]
Places: TypeAlias = NDArray[np.uint16]


def log_weight(level: int) -> float:
    """Ln of 1 / ((level + 1) (level + 2)), the weight of evidence of this level.

    >>> math.exp(log_weight(0)), round(math.exp(-log_weight(4)), 9)
    (0.5, 30.0)
    """
    return -math.log((level + 1) * (level + 2))


@dataclass(frozen=True, slots=True, eq=False)
class SampledUnits:
    """The sampled units of one experiment.

    epochs, arms: in their order. hashes: [n], ascending. places: [n], of each unit the epoch in
    which it was first seen and its arm, as epoch · arms + arm; `SEVERAL` if it was seen in several
    arms. reason: why its units are unknown, or "".
    """

    epochs: tuple[str, ...] = ()
    arms: tuple[str, ...] = ()
    hashes: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    places: Places = field(default_factory=lambda: np.empty(0, np.uint16))
    reason: str = ""

    def cut(self, level: int) -> SampledUnits:
        """The units of a smaller sample, in memory of their own."""
        n = int(np.searchsorted(self.hashes, last_hash(level), side="right"))
        hashes, places = self.hashes[:n].copy(), self.places[:n].copy()
        return SampledUnits(self.epochs, self.arms, hashes, places, self.reason)

    def joined(self, place: int, hashes: Words) -> SampledUnits:
        """The units with these others [m], ascending, of a later place."""
        positions = np.searchsorted(self.hashes, hashes)
        is_seen = np.zeros(len(hashes), np.bool_)
        within = positions < len(self.hashes)
        is_seen[within] = self.hashes[positions[within]] == hashes[within]
        places, seen_positions = self.places.copy(), positions[is_seen]
        other_arm = places[seen_positions] % len(self.arms) != place % len(self.arms)
        places[seen_positions[other_arm | (places[seen_positions] == SEVERAL)]] = SEVERAL
        new = np.flatnonzero(~is_seen)
        merged = np.insert(self.hashes, positions[new], hashes[new])
        all_places = np.insert(places, positions[new], place).astype(np.uint16, copy=False)
        return SampledUnits(self.epochs, self.arms, merged, all_places)

    def positions(self, hashes: Words) -> NDArray[np.intp]:
        """[m]: the position of each of these hashes; -1 where it is none of the units."""
        candidates = np.searchsorted(self.hashes, hashes)
        candidates[candidates == len(self.hashes)] = 0
        unit_positions: NDArray[np.intp] = np.full(len(hashes), -1, np.intp)
        if len(self.hashes):
            unit_positions = np.where(self.hashes[candidates] == hashes, candidates, -1)
        return unit_positions


@dataclass(frozen=True, slots=True, eq=False)
class UnitSample:
    """The sample of the units of several experiments, by name; at most 2¹⁸ units in all, so that
    the pairs of 20 experiments need 3 MB.

    level: the sample is of 2 ** -level of all units. plans: of the experiments that have one.

    >>> from streammetrics import Units
    >>> units = {}
    >>> for name, ids in (("ranker", range(600)), ("pricing", range(400, 1_000))):
    ...     arms = {"old": Units(), "new": Units()}
    ...     for i, arm in enumerate(arms.values()):
    ...         arm.update(ids[i::2])
    ...     units[name] = {arm: state.compute() for arm, state in arms.items()}
    >>> sample = sample_units(units)
    >>> sample.names, sample.share
    (('pricing', 'ranker'), 1.0)
    """

    level: int
    experiments: Mapping[str, SampledUnits]
    plans: Mapping[str, Plan] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The experiments, in the order of their names."""
        return tuple(self.experiments)

    @property
    def share(self) -> float:
        """The share of all units that are sampled."""
        return 2.0**-self.level

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the hashes and the places."""
        arms = self.experiments.values()
        return sum(units.hashes.nbytes + units.places.nbytes for units in arms)

    def experiment(self, name: str) -> SampledUnits:
        """The units of an experiment; InputError if it is not one of the sample."""
        if name not in self.experiments:
            raise InputError(
                expected=f"an experiment of the sample: {', '.join(self.names) or 'there is none'}",
                got=shown(name),
                where="experiment",
                hint=nearest(name, self.names),
            )
        return self.experiments[name]

    def merged(self, other: UnitSample) -> UnitSample:
        """The sample of the experiments of both, as if all had been sampled at once. An experiment
        that both have is that of the other one.

        >>> from streammetrics import Units
        >>> units = Units()
        >>> units.update(range(10))
        >>> ranker, pricing = (
        ...     sample_units({name: {"all": units.compute()}}) for name in ("ranker", "pricing")
        ... )
        >>> ranker.merged(pricing).names
        ('pricing', 'ranker')
        """
        level = max(self.level, other.level)
        experiments = {**self._cut(level).experiments, **other._cut(level).experiments}
        plans = {**self.plans, **other.plans}
        return UnitSample(
            level, {name: experiments[name] for name in sorted(experiments)}, plans
        )._bounded()

    def _bounded(self) -> UnitSample:
        """The sample, cut until it has no more units than a sample may have."""
        sample = self
        while sum(len(units.hashes) for units in sample.experiments.values()) > SAMPLED:
            sample = sample._cut(sample.level + 1)
        return sample

    def _extended(self, name: str, units: SampledUnits) -> UnitSample:
        return UnitSample(self.level, {**self.experiments, name: units}, self.plans)

    def _cut(self, level: int) -> UnitSample:
        if level <= self.level:
            return self
        experiments = {name: units.cut(level) for name, units in self.experiments.items()}
        return UnitSample(level, experiments, self.plans)

    def _extended_by_arm(self, name: str, place: int, result: UnitsResult) -> UnitSample:
        """The sample with the units of one more place of an experiment, at the level that this
        takes. An arm of more units than a sample may have is cut before it is copied."""
        level = max(self.level, _level_of(result.share))
        while len(hashes := _hashes_within(result, level)) > SAMPLED:
            level += 1
        sample = self._cut(level)
        return sample._extended(name, sample.experiments[name].joined(place, hashes))._bounded()


def sample_units(
    units: Mapping[str, Assigned], plans: Mapping[str, Plan] | None = None
) -> UnitSample:
    """The sample of the units of several experiments, which are asked for one after another.

    units: of each experiment those of its arms, or by epoch those of its arms; states of different
    `share` are cut to the least. A unit that was seen in several epochs is of the first. plans: by
    experiment; one says which arms there are, others are left out, and the order of the epochs,
    which else is that of their names. The units of an experiment are unknown if those of an arm
    are.

    A mapping that reads the units of an experiment when it is asked needs memory for one at a time.
    """
    if not isinstance(cast("object", units), Mapping):
        raise refused("units", "units by experiment", units, 'pass {"ranker": {"old": units}}')
    plans = plans or {}
    sample = UnitSample(0, {}, plans)
    for name in sorted(units):
        epochs, arms, results = _places(name, units[name], plans.get(name))
        why = next((result.reason for _, result in results if result.sampled is None), "")
        if len(epochs) * len(arms) > PLACES:
            why = f"more than {PLACES} arms and epochs"
        sample = sample._extended(name, SampledUnits(epochs, arms, reason=why))
        for place, result in [] if why else results:
            sample = sample._extended_by_arm(name, place, result)
    return sample


def require_sample(value: object, where: str) -> None:
    """Refuse what is no sample of units."""
    hint = "pass the result of sample_units"
    instance(value, UnitSample, where, "a sample of the units of experiments", hint)


def _places(
    name: str, assigned: object, plan: Plan | None
) -> tuple[tuple[str, ...], tuple[str, ...], Sequence[tuple[int, UnitsResult]]]:
    """The epochs and the arms in their order, and the units of each place, in theirs."""
    where, hint = f"units[{name!r}]", "pass the results of Units by arm, or by epoch and arm"
    if not isinstance(assigned, Mapping):
        raise refused(where, "units by arm", assigned, hint)
    by_arm = all(isinstance(value, UnitsResult) for value in assigned.values())
    by_epoch: Mapping[str, object] = {"": assigned} if by_arm else assigned
    for arms in by_epoch.values():
        values = [*arms.values()] if isinstance(arms, Mapping) else [arms]
        for value in values:
            if not isinstance(value, UnitsResult):
                raise refused(where, "a UnitsResult of each arm", value, hint)
    checked = cast("Mapping[str, Arms]", by_epoch)
    epochs = sorted(checked) if plan is None else plan.ordered(checked)
    names = sorted({arm for arms in checked.values() for arm in arms})
    if plan is not None:
        names = sorted(plan.variants)
    places = [
        (i * len(names) + j, checked[epoch][arm])
        for i, epoch in enumerate(epochs)
        for j, arm in enumerate(names)
        if arm in checked[epoch]
    ]
    return tuple(epochs), tuple(names), places


def _level_of(share: float) -> int:
    """The least level whose units a sample of this share has."""
    level = 0
    while Fraction(1, 1 << level) > Fraction(share):
        level += 1
    return level


def _hashes_within(result: UnitsResult, level: int) -> Words:
    """The hashes of a sample of this level, ascending; a view, since there may be many."""
    hashes = result._hashes
    return hashes[: np.searchsorted(hashes, last_hash(level), side="right")]
