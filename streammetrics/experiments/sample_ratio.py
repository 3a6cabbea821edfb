"""The sample ratio check of an experiment: did units fall to the arms as declared?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Final, cast

from streammetrics.core.errors import InputError, SettingsError, shown
from streammetrics.core.nearest import nearest
from streammetrics.experiments.evidence import e_value
from streammetrics.kernels.normal_mixture import anytime_p
from streammetrics.kernels.sample_ratio import chi_square, log_e

ALARM: Final = 1000.0


@dataclass(frozen=True, slots=True)
class SampleRatioFound:
    """Units of each arm against the declared shares.

    pvalue, statistic, df: the chi-square test, good for one look. e_value and anytime_p: good for
    all. alarm: the e-value has reached 1000, a chance of one in a thousand at all looks together;
    effects are then not to be believed.
    """

    counts: tuple[tuple[str, int], ...]
    statistic: float
    df: int
    pvalue: float
    log_e: float
    reason: str = ""

    @property
    def e_value(self) -> float:
        """Infinite past the largest float, or where an arm without a share has a unit."""
        return e_value(self.log_e)

    @property
    def anytime_p(self) -> float:
        """min(1, 1 / e_value)."""
        return anytime_p(self.log_e)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has reached 1000."""
        return self.log_e >= math.log(ALARM)


@dataclass(frozen=True, slots=True)
class SampleRatio:
    """The declared weights of the arms, in any unit, and the weight k of the prior in units.

    Weights are not negative and not all 0, else SettingsError. An arm with the weight 0 is declared
    to get no unit.

    >>> found = SampleRatio({"control": 1, "treatment": 1}).at({"control": 5120, "treatment": 4880})
    >>> f"{found.pvalue:.4f} {found.log_e:.4f} {found.alarm}"
    '0.0164 1.0935 False'
    """

    weights: Mapping[str, int | float | Fraction]
    k: float = 10_000.0

    def __post_init__(self) -> None:
        values = self.weights.values()
        if not all(0 <= w < math.inf for w in values) or not any(values):
            raise SettingsError(
                expected="weights that are not negative, one of them positive",
                came=shown(dict(self.weights)),
                where="weights",
                todo="pass the planned share of units of each arm",
            )

    def at(self, units: Mapping[str, int]) -> SampleRatioFound:
        """The check of these units by arm; exact counts, or those of a hash-threshold sample.

        An arm without a count has none. InputError for an arm that the weights do not name (a
        misspelt name is no mismatch), and for a count below 0 or a fraction of a unit. An arm that
        was to get no unit and has one is a mismatch for certain, p = 0: declare it with the
        weight 0.
        """
        unknown = [arm for arm in units if arm not in self.weights]
        if unknown:
            raise _undeclared(unknown[0], self.weights)
        for arm, count in cast("Mapping[str, object]", units).items():
            if not isinstance(count, Integral) or count < 0:
                raise InputError(
                    expected="a whole number of units, from 0",
                    came=shown(count),
                    where=f"units[{arm!r}]",
                    todo="pass how many different units were seen",
                )
        arms = sorted(self.weights)
        weights = [self.weights[arm] for arm in arms]
        counts = [units.get(arm, 0) for arm in arms]
        test = chi_square(counts, weights)
        if not sum(counts):
            reason = "no unit was counted"
        elif test.df == 0 and test.pvalue:
            reason = "only one arm has a share"
        else:
            reason = ""
        return SampleRatioFound(
            tuple(zip(arms, counts, strict=True)),
            test.statistic,
            test.df,
            test.pvalue,
            log_e(counts, weights, self.k),
            reason,
        )


def _undeclared(arm: str, weights: Mapping[str, int | float | Fraction]) -> InputError:
    return InputError(
        expected=f"units of the declared arms: {', '.join(map(str, weights))}",
        came=shown(arm),
        where="units",
        todo=f"{nearest(arm, map(str, weights))}; if the arm exists and was to get no unit, "
        "declare it with the weight 0",
    )
