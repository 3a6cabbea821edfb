"""Where the experiments of a store meet: the units in two of them, and in two of a layer.

What two experiments share is computed again when the units of one of them change, or more units of
all are left out of the sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, NamedTuple

from streammetrics import experiments
from streammetrics_consumers.query.answers import LayerEntry, OverlapEntry
from streammetrics_consumers.query.experiment_plan import DeclaredExperiment
from streammetrics_consumers.query.turns import checkpoint

if TYPE_CHECKING:
    import streammetrics as sm
    from streammetrics.experiments import Overlap, UnitSample

COMPARED: Final = 50  # running experiments whose pairs are compared
UNNAMED: Final = "[experiment]"  # in sentences; no other experiment can have this name
UNREAD: Final = "its states cannot be read"


def label_of(design: DeclaredExperiment) -> str:
    """The name of an experiment in samples and sentences."""
    return design.name or UNNAMED


def declared_names(first: str, second: str) -> tuple[str, str]:
    """The names of two experiments in the config, from those in samples."""
    return "" if first == UNNAMED else first, "" if second == UNNAMED else second


def sample_of(
    design: DeclaredExperiment, units: Mapping[str, Mapping[str, sm.Units]]
) -> UnitSample:
    """The sample of the units of one experiment, by epoch and arm."""
    if design.unit is None:
        return unknown_sample(design, "units are not counted")
    results = {
        epoch: {arm: state.compute() for arm, state in arms.items()}
        for epoch, arms in units.items()
    }
    if not results:
        return unknown_sample(design, "")
    name = label_of(design)
    return experiments.sample_units({name: results}, {name: design.plan})


def unknown_sample(design: DeclaredExperiment, reason: str) -> UnitSample:
    """The sample of an experiment without units; reason: why they are unknown, or ""."""
    return experiments.UnitSample(0, {label_of(design): experiments.SampledUnits(reason=reason)})


@dataclass(frozen=True, slots=True)
class Member:
    """An experiment that may meet others. made_of: what its units follow from. sample: of its units
    alone. period: the times between which it had events. unit_views: see `WindowOutcome`."""

    design: DeclaredExperiment
    made_of: object
    sample: UnitSample
    period: tuple[int | None, int | None]
    is_running: bool
    unit_views: Mapping[str, str] = field(default_factory=dict)


class RunningPair(NamedTuple):
    """Two running experiments. made_of: what their units in the sample follow from."""

    names: tuple[str, str]
    made_of: object
    sample: UnitSample


class Overlaps:
    """What the experiments of a store have in common, kept as long as they do not change."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str], tuple[object, Overlap]] = {}
        self._layers: dict[str, tuple[object, LayerEntry]] = {}

    def pairs(self, compared_pairs: Iterable[RunningPair]) -> tuple[OverlapEntry, ...]:
        """The pairs of running experiments that share units, or of which that is not known.
        P-values are adjusted for all pairs that are compared."""
        former, self._pairs = self._pairs, {}
        for names, made_of, sample in compared_pairs:
            before = former.get(names)
            if before is None or before[0] != made_of:
                checkpoint()
                before = made_of, experiments.overlaps(sample)[0]
            self._pairs[names] = before
        compared = {f"{i}": pair for i, (_, pair) in enumerate(self._pairs.values())}
        adjusted = experiments.adjust_fwer(
            {i: math.nan if pair.reason else pair.anytime_p for i, pair in compared.items()}
        )
        pairs = (replace(pair, adjusted_p=adjusted[i]) for i, pair in compared.items())
        return tuple(_overlap_entry(pair) for pair in pairs if pair.units != 0)

    def layers(self, members: Sequence[Member]) -> tuple[LayerEntry, ...]:
        """The layers of the config, each with its experiments and the units in two of them."""
        names = dict.fromkeys(name for member in members for name in member.design.layers)
        former, self._layers = self._layers, {}
        for name in names:
            group = [member for member in members if name in member.design.layers]
            made_of = tuple((member.design, member.made_of, member.period) for member in group)
            before = former.get(name)
            if before is None or before[0] != made_of:
                checkpoint()
                before = made_of, _layer_entry(name, group)
            self._layers[name] = before
        return tuple(entry for _, entry in self._layers.values())


def pairs_of(members: Sequence[Member]) -> Iterator[RunningPair]:
    """The pairs of running experiments that are compared: only those whose units are read from the
    same field can share any."""
    running = [member for member in members if member.is_running and member.design.unit is not None]
    by_unit: dict[str | None, list[Member]] = {}
    for member in running[:COMPARED]:
        by_unit.setdefault(member.design.unit, []).append(member)
    for group in by_unit.values():
        yield from _pairs_of_group(group)


def _pairs_of_group(group: Sequence[Member]) -> Iterator[RunningPair]:
    """The pairs of a group by name, each with its part of the sample of the whole group."""
    by_name = {label_of(member.design): member for member in group}
    sample = merged([member.sample for member in group])
    for i, second in enumerate(sample.names):
        for first in sample.names[:i]:
            made_of = by_name[first].made_of, by_name[second].made_of, sample.level
            units = {name: sample.experiment(name) for name in (first, second)}
            plans = {name: by_name[name].design.plan for name in units}
            yield RunningPair(
                (first, second), made_of, experiments.UnitSample(sample.level, units, plans)
            )


def merged(samples: Sequence[UnitSample]) -> UnitSample:
    """The sample of the experiments of all."""
    sample = samples[0]
    for other_sample in samples[1:]:
        sample = sample.merged(other_sample)
    return sample


def _layer_entry(name: str, group: Sequence[Member]) -> LayerEntry:
    """One layer. Units that are read from another field than those of the first experiment are not
    comparable with these, so they are unknown."""
    unit = next((member.design.unit for member in group if member.design.unit is not None), None)
    samples = [
        member.sample
        if member.design.unit in (unit, None)
        else unknown_sample(
            member.design, f"they are read from {member.design.unit}, not from {unit}"
        )
        for member in group
    ]
    periods = {label_of(member.design): member.period for member in group}
    [exclusion] = experiments.exclusions({name: [*periods]}, merged(samples), periods)
    names = tuple(member.design.name for member in group)
    return LayerEntry(name, names, exclusion.units, exclusion.alarm, exclusion.sentence)


def _overlap_entry(pair: Overlap) -> OverlapEntry:
    names = declared_names(pair.first, pair.second)
    return OverlapEntry(names, pair.units, pair.adjusted_p, pair.alarm, pair.sentence)
