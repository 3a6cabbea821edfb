"""Where two experiments meet: the units in both, by arm x arm, and whether arms are independent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streammetrics.experiments.multiplicity import adjust_fwer
from streammetrics.experiments.one_look import e_value
from streammetrics.experiments.plan import Plan
from streammetrics.experiments.unit_sample import (
    SEVERAL,
    SampledUnits,
    UnitSample,
    log_weight,
    require_sample,
)
from streammetrics.kernels.inference.dirichlet_multinomial import (
    Crossed,
    chi_square_of_independence,
    log_e_of_independence,
)
from streammetrics.kernels.inference.normal_mixture import anytime_p
from streammetrics.present.notebook import Shown
from streammetrics.present.numerals import plain
from streammetrics.present.value_rows import ValueRow, rows_of_views

ALARM: Final = 0.001  # the adjusted p-value of arms that are not independent
NO_UNIT: Final = "no unit is in both and in one arm of each"
ONE_ARM: Final = "in each pair of epochs the units in both are in one arm only of an experiment"
Table: TypeAlias = tuple[tuple[int, ...], ...]
Meeting: TypeAlias = NDArray[np.int64]  # [epochs, arms, epochs, arms]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Overlap(Shown):
    """The units that are in two experiments.

    first, second: the experiments, in the order of their names; first_arms, second_arms: their
    arms, likewise. counts: the sampled units in both, by arm x arm; expected: what independence of
    the arms would give, by the same margins in each pair of epochs. several: sampled units in both
    that were seen in several arms of one of them, which are in no count.

    statistic, df, pvalue: the chi-square test of independence, for one look. log_e, anytime_p:
    valid at all looks together. adjusted_p: anytime_p, adjusted by Holm over the pairs.
    reason: why nothing is known, or why nothing is tested; "" if it is.
    """

    first: str
    second: str
    first_arms: tuple[str, ...]
    second_arms: tuple[str, ...]
    counts: Table
    expected: tuple[tuple[float, ...], ...]
    several: int
    level: int
    statistic: float
    df: int
    pvalue: float
    log_e: float
    adjusted_p: float = math.nan
    reason: str = ""
    estimates: ClassVar[bool] = True

    @property
    def sampled(self) -> int:
        """The sampled units in both, those in several arms included."""
        return sum(map(sum, self.counts)) + self.several

    @property
    def share(self) -> float:
        """The share of all units that are sampled."""
        return 2.0**-self.level

    @property
    def units(self) -> float:
        """The units in both: sampled / share; nan if they are unknown."""
        return self._scaled(self.sampled)

    @property
    def units_by_arm(self) -> tuple[tuple[float, ...], ...]:
        """The units in both, by arm x arm: counts / share; nan if they are unknown."""
        return tuple(tuple(map(self._scaled, row)) for row in self.counts)

    @property
    def e_value(self) -> float:
        """The e-value against arms that are independent; infinite past the largest float."""
        return e_value(self.log_e)

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / e_value)."""
        return anytime_p(self.log_e)

    @property
    def alarm(self) -> bool:
        """Whether the adjusted p-value is at most 0.001: the arms are not independent."""
        return self.adjusted_p <= ALARM

    @property
    def sentence(self) -> str:
        """How many units are in both, and the alarm if there is one."""
        names = f"{self.first} and {self.second}"
        if math.isnan(self.units):
            return f"How many units are in both {names} is not known: {self.reason}."
        if not self.sampled:
            none = f"None of the sampled units (1 in {2**self.level} of all)"
            return f"{none if self.level else 'No unit'} is in both {names}."
        about = "" if self.level == 0 else "about "
        is_one = self.units == 1
        units = f"{about}{plain(self.units, 6)} {'unit is' if is_one else 'units are'}"
        text = f"{units[0].upper()}{units[1:]} in both {names}."
        if self.alarm:
            text += (
                f" Their arms are not independent: which arm of {self.second} a unit has depends"
                f" on its arm of {self.first}. Check that both assign by hashes with salts of"
                " their own, and believe neither effect before."
            )
        return text

    def _scaled(self, count: int) -> float:
        return math.nan if self.statistic != self.statistic else count * 2.0**self.level

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """Each value; the reason is that of those which are not known."""
        for row in rows_of_views(self, level, headlines):
            yield replace(row, reason="") if math.isfinite(row.value) else row

    def _notes(self) -> Iterator[str]:
        yield self.sentence
        for arm, row in zip(self.first_arms, self.counts, strict=True):
            cells = zip(self.second_arms, row, strict=True)
            yield f"{self.first} {arm}: " + ", ".join(f"{name} {n:,}" for name, n in cells)


def overlaps(sample: UnitSample) -> tuple[Overlap, ...]:
    """Of each pair of experiments the units in both, ordered by the names of the experiments.

    The test asks whether the arms of two experiments are independent among the units in both,
    in each pair of epochs by itself: two experiments that ramp up at the same time are not a
    dependence. It does not ask how many units each arm has, as the sample ratio does. The
    e-values of a pair hold at all looks together; Holm's method over the pairs of this look.

    >>> from streammetrics import Units
    >>> from streammetrics.experiments import sample_units
    >>> arms = {"old": Units(), "new": Units()}
    >>> for i, arm in enumerate(arms.values()):
    ...     arm.update(range(i, 1_000, 2))
    >>> units = {name: state.compute() for name, state in arms.items()}
    >>> (found,) = overlaps(sample_units({"ranker": units, "pricing": units}))
    >>> found.counts, found.alarm
    (((500, 0), (0, 500)), True)
    """
    require_sample(sample, "overlaps(sample)")
    pairs = [_overlap(sample, *names) for names in combinations(sample.names, 2)]
    pvalues = {str(i): math.nan if pair.reason else pair.anytime_p for i, pair in enumerate(pairs)}
    adjusted = adjust_fwer(pvalues)
    return tuple(replace(pair, adjusted_p=adjusted[str(i)]) for i, pair in enumerate(pairs))


def _overlap(sample: UnitSample, first: str, second: str) -> Overlap:
    sides = sample.experiment(first), sample.experiment(second)
    why = next(
        (
            f"units of {name}: {sample.experiment(name).reason}"
            for name in (first, second)
            if sample.experiment(name).reason
        ),
        "",
    )
    cells, several = _meeting(*sides)
    counts: Meeting = cells.sum(axis=(0, 2))
    tables = [
        (i, j, cells[i, :, j, :])
        for i in range(cells.shape[0])
        for j in range(cells.shape[2])
        if cells[i, :, j, :].any()
    ]
    expected = np.zeros(counts.shape)
    for _, _, table in tables:
        expected += np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    test = chi_square_of_independence([table.tolist() for _, _, table in tables])
    if not why and not test.df:
        why = ONE_ARM if counts.any() else NO_UNIT
    plans = sample.plans.get(first), sample.plans.get(second)
    crossed = [
        Crossed(
            table.tolist(),
            _weights(plans[0], sides[0], sides[0].epochs[i]),
            _weights(plans[1], sides[1], sides[1].epochs[j]),
        )
        for i, j, table in tables
    ]
    is_unknown = any(side.reason for side in sides)
    return Overlap(
        first,
        second,
        sides[0].arms,
        sides[1].arms,
        tuple(map(tuple, counts.tolist())),
        tuple(tuple(float(cell) for cell in row) for row in expected),
        several,
        sample.level,
        math.nan if is_unknown else test.statistic,
        test.df,
        math.nan if is_unknown else test.pvalue,
        log_e_of_independence(crossed) + log_weight(sample.level) if test.df else 0.0,
        reason=why,
    )


def _weights(plan: Plan | None, units: SampledUnits, epoch: str) -> tuple[int | float, ...]:
    if plan is None:
        return ()
    weights = plan.weights(epoch)
    return tuple(weights[arm] for arm in units.arms)


def _meeting(first: SampledUnits, second: SampledUnits) -> tuple[Meeting, int]:
    """The units in both, by epoch and arm of each; and those that are in several arms of one."""
    few, many = sorted((first, second), key=lambda units: len(units.hashes))
    positions = many.positions(few.hashes)
    few_places, many_places = few.places[positions >= 0], many.places[positions[positions >= 0]]
    a, b = (few_places, many_places) if few is first else (many_places, few_places)
    is_in_one = (a != SEVERAL) & (b != SEVERAL)
    width = len(second.epochs) * len(second.arms)
    cells = a[is_in_one].astype(np.intp) * width + b[is_in_one]
    shape = len(first.epochs), len(first.arms), len(second.epochs), len(second.arms)
    table = np.bincount(cells, minlength=math.prod(shape)).reshape(shape)
    return table, len(a) - int(is_in_one.sum())
