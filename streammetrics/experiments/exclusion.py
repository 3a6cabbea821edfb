"""Layers: experiments that should exclude each other, and the units that are in two of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final, TypeAlias, cast

import numpy as np

from streammetrics.core.conversion import refused
from streammetrics.experiments.unit_sample import UnitSample, require_sample
from streammetrics.present.notebook import Shown
from streammetrics.present.numerals import least, plain

Period: TypeAlias = tuple[float | None, float | None]
_ALWAYS: Final = (None, None)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Exclusion(Shown):
    """The units that are in two experiments or more of a layer, whose experiments exclude each
    other.

    experiments: in the order of their names. pairs: of two experiments that ran at the same time,
    the sampled units in both, where there are some. sampled: those of all pairs, each once;
    sampled_of_layer: all sampled units of the layer. apart: pairs that ran at different times,
    which are not compared. level: the sample is of 2 ** -level of all.
    reason: why they are unknown, or "".

    Units in two arms of one experiment are not meant: see `Contamination`.
    """

    layer: str
    experiments: tuple[str, ...]
    pairs: tuple[tuple[str, str, int], ...]
    sampled: int
    sampled_of_layer: int
    level: int
    apart: int = 0
    reason: str = ""
    estimates: ClassVar[bool] = True

    @property
    def units(self) -> float:
        """Units in two experiments: sampled / the share that is sampled; nan if unknown."""
        return math.nan if self.reason else self.sampled * 2.0**self.level

    @property
    def share(self) -> float:
        """The share of the layer's units that are in two experiments; nan without any."""
        if self.reason or not self.sampled_of_layer:
            return math.nan
        return self.sampled / self.sampled_of_layer

    @property
    def alarm(self) -> bool:
        """Whether a unit is in two experiments, which is certain of the sampled ones. Where a unit
        is known to be, units of which nothing is known change nothing."""
        return self.sampled > 0

    @property
    def sentence(self) -> str:
        """What is wrong; or, without an alarm, how much is known."""
        where = f"of the layer {self.layer}"
        where += " that ran at the same time" if self.apart else ""
        if self.alarm:
            return f"{self._units_in_two} in two experiments {where}, {self._details}"
        if self.reason:
            return f"Whether two experiments {where} share units is not known: {self.reason}."
        if not self.sampled_of_layer:
            return f"The experiments of the layer {self.layer} have no units yet."
        is_all = self.level == 0
        subject = (
            "No unit" if is_all else f"None of the sampled units (1 in {2**self.level} of all)"
        )
        return f"{subject} is in two experiments {where}."

    @property
    def _units_in_two(self) -> str:
        if self.level == 0:
            return f"{self.sampled:,} {'unit is' if self.sampled == 1 else 'units are'}"
        return f"About {plain(self.sampled * 2.0**self.level, 6)} units are"

    @property
    def _details(self) -> str:
        percent = least(100.0 * self.sampled / self.sampled_of_layer)
        of_units = "its units" if not self.reason else "those whose units are known"
        pairs = "; ".join(
            f"{first} and {second}: {plain(n * 2.0**self.level, 6)}"
            for first, second, n in self.pairs
        )
        unknown = f" Of the others nothing is known: {self.reason}." if self.reason else ""
        return (
            f"which exclude each other: {percent} % of {of_units} ({pairs}). Check how units are"
            f" assigned to them.{unknown}"
        )

    def _notes(self) -> Iterator[str]:
        yield self.sentence


def exclusions(
    layers: Mapping[str, Sequence[str]],
    sample: UnitSample,
    periods: Mapping[str, Period] | None = None,
) -> tuple[Exclusion, ...]:
    """Of each layer the units that are in two of its experiments, ordered by the layers' names.

    layers: the experiments of each. periods: the start and the end of an experiment, None where it
    has none; two that did not run at the same time may share units. InputError for an experiment
    that is not in the sample.

    >>> from streammetrics import Units
    >>> from streammetrics.experiments import sample_units
    >>> users = Units()
    >>> users.update(range(1_000))
    >>> units = {name: {"all": users.compute()} for name in ("ranker", "pricing")}
    >>> (found,) = exclusions({"prices": ["ranker", "pricing"]}, sample_units(units))
    >>> found.alarm, found.units, found.share
    (True, 1000.0, 1.0)
    """
    hint = 'pass {"prices": ["ranker", "pricing"]}'
    if not isinstance(cast("object", layers), Mapping):
        raise refused("exclusions(layers)", "the experiments of each layer", layers, hint)
    members: dict[str, list[str]] = {}
    for layer, names in layers.items():
        given_names: object = names
        iterable = isinstance(given_names, Iterable) and not isinstance(given_names, str)
        members[layer] = list(names) if iterable else []  # an iterator is read once
        if not iterable or not all(isinstance(name, str) for name in members[layer]):
            hint = f"write [{names!r}]" if isinstance(names, str) else "pass their names"
            raise refused(f"layers[{layer!r}]", "a list of experiments", names, hint)
    require_sample(sample, "exclusions(sample)")
    return tuple(
        _exclusion(layer, sorted(set(members[layer])), sample, periods or {})
        for layer in sorted(members)
    )


def _exclusion(
    layer: str, names: Sequence[str], sample: UnitSample, periods: Mapping[str, Period]
) -> Exclusion:
    units = {name: sample.experiment(name) for name in names}
    shared, pairs, apart = [np.empty(0, np.uint64)], [], 0
    for first, second in combinations(names, 2):
        if not _meet(periods.get(first, _ALWAYS), periods.get(second, _ALWAYS)):
            apart += 1
            continue
        hashes = np.intersect1d(units[first].hashes, units[second].hashes, assume_unique=True)
        if len(hashes):
            pairs.append((first, second, len(hashes)))
            shared.append(hashes)
    every = [np.empty(0, np.uint64), *(sampled.hashes for sampled in units.values())]
    unknown = next((name for name in names if units[name].reason), None)
    return Exclusion(
        layer,
        tuple(names),
        tuple(pairs),
        len(np.unique(np.concatenate(shared))),
        len(np.unique(np.concatenate(every))),
        sample.level,
        apart,
        "" if unknown is None else f"units of {unknown}: {units[unknown].reason}",
    )


def _meet(first: Period, second: Period) -> bool:
    """Whether two periods, from their starts to before their ends, have a time in common."""
    starts = [start for start, _ in (first, second) if start is not None]
    ends = [end for _, end in (first, second) if end is not None]
    return not starts or not ends or max(starts) < min(ends)
