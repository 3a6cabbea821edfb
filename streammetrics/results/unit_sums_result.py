"""The result of UnitSums: what each of a sample of units did."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.parts.float_bits import nearest
from streammetrics.estimators.estimator import NoInterval
from streammetrics.estimators.units import MeanOfUnits, ShareOfUnits, UnitGroups
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.present.view import NONE, SHARE, View
from streammetrics.results.has_intervals import HasIntervals

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
Exact = tuple[Sequence[int], int]  # sums as units of 2 ** -n, and n

GROUPS: Final = 64
_NO_UNITS: Final = "no units"
_MEAN: Final[MeanOfUnits[UnitSumsResult]] = MeanOfUnits(lambda result: result._values)
_RATE: Final[ShareOfUnits[UnitSumsResult]] = ShareOfUnits(lambda result: result._events)


@dataclass(frozen=True, eq=False, repr=False)
class UnitSumsResult(HasIntervals):
    """The means of a sample of units, and the sums of each of them.

    level: the sample has the units whose hash is among the first 2 ** -level of all; sampled: their
    number. _hashes: of the sampled units, ascending; _above: whether a value of it was above 0;
    _sums, _weights: its exact sums.

    >>> from streammetrics import UnitSums
    >>> clicks = UnitSums()
    >>> clicks.update(["ann", "ann", "bo", "cy"], [1, 1, 0, 1])
    >>> found = clicks.compute()
    >>> found.ratio, found.mean, found.rate, found.units
    (0.75, 1.0, 0.6666666666666666, 3.0)
    """

    independent: ClassVar[str] = ""

    level: int = 0
    sampled: int = 0
    _hashes: Words = field(default_factory=lambda: np.empty(0, np.uint64))
    _above: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    _sums: Exact = ((), 0)
    _weights: Exact = ((), 0)

    @property
    @View(
        better=NONE,
        undefined="the denominators sum to 0",
        headline=1,
        estimator=NoInterval(
            "its rows are correlated within units; an experiment has the interval of UserGroups"
        ),
    )
    def ratio(self) -> float:
        """Σ values / Σ denominators of the sampled units, rounded once."""
        (sums, shift), (weights, weight_shift) = self._sums, self._weights
        if not sum(weights):
            return math.nan
        return ratio(sum(sums) << weight_shift, sum(weights) << shift)

    @property
    @View(estimator=_MEAN, better=NONE, undefined=_NO_UNITS, headline=2)
    def mean(self) -> float:
        """Σ values / sampled units, rounded once."""
        sums, shift = self._sums
        return ratio(sum(sums), self.sampled << shift)

    @property
    @View(estimator=_RATE, better=NONE, range=SHARE, undefined=_NO_UNITS, headline=3)
    def rate(self) -> float:
        """Units with a value above 0 / sampled units."""
        return _RATE.estimate(self)

    @property
    @View(better=NONE, estimator=NoInterval("a sum of units grows with the rows"))
    def units(self) -> float:
        """Different units: sampled / the share that is sampled."""
        return self.sampled * 2.0**self.level

    def _parts_of_units(self, view: str) -> tuple[Floats, Floats]:
        """What a view is the ratio of sums of: a number of each sampled unit, and its weight, both
        [sampled] and rounded once. view: one of `UNIT_VIEWS`."""
        return UNIT_VIEWS[view](self)

    @cached_property
    def _rounded_sums(self) -> Floats:
        return _rounded(self._sums)

    @cached_property
    def _rounded_weights(self) -> Floats:
        return _rounded(self._weights)

    @cached_property
    def _group(self) -> NDArray[np.intp]:
        return (self._hashes & np.uint64(GROUPS - 1)).astype(np.intp)

    @cached_property
    def _group_units(self) -> tuple[int, ...]:
        return tuple(np.bincount(self._group, minlength=GROUPS).tolist())

    @cached_property
    def _values(self) -> UnitGroups:
        sums, shift = self._sums
        by_group = [0] * GROUPS
        for group, value in zip(self._group.tolist(), sums, strict=True):
            by_group[group] += value
        return UnitGroups(self._group_units, by_group, shift)

    @cached_property
    def _events(self) -> UnitGroups:
        counts = np.bincount(self._group[self._above], minlength=GROUPS)
        return UnitGroups(self._group_units, tuple(counts.tolist()))


def _rounded(sums: Exact) -> Floats:
    units, shift = sums
    return np.array([nearest(unit, shift) for unit in units], np.float64)


# By the name of a view, what it is the ratio of sums of.
UNIT_VIEWS: Final[Mapping[str, Callable[[UnitSumsResult], tuple[Floats, Floats]]]] = {
    "ratio": lambda result: (result._rounded_sums, result._rounded_weights),
    "mean": lambda result: (result._rounded_sums, np.ones(result.sampled)),
    "rate": lambda result: (result._above.astype(np.float64), np.ones(result.sampled)),
}
