"""What is declared before the data, so that intervals can be narrow at the right time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NoReturn

from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.planned_information import at_horizon, for_effect

_ONE_OF_TWO: Final = (
    "leave out one of the two: the information at the end follows from the units and what one of "
    "them varies, or from the effect that shall be found"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The planned end of an experiment: units with what one of them varies, or an effect.

    units: of both arms together; with baseline, the rate of an earlier period, or variance, that
    of one unit. mde: instead, the least absolute effect that matters, found with this power by a
    fixed test. treatment_share, deff (the design effect) belong to units. `v_opt` is the share
    `optimize_at` of the information at that end. It is frozen: to declare it again once there are
    data voids what the intervals promise.

    >>> Horizon(units=10_000, baseline=0.5).v_opt
    5000.0
    >>> Horizon().v_opt, Horizon().reason
    (None, 'neither a horizon nor an mde was declared before the data')
    """

    units: float | None = None
    baseline: float | None = None
    variance: float | None = None
    mde: float | None = None
    treatment_share: float = 0.5
    deff: float = 1.0
    alpha: float = 0.05
    power: float = 0.8
    optimize_at: float = 0.5

    def __post_init__(self) -> None:
        if self.mde is not None and self.mde < 0:
            _refuse("mde", "a size, from 0", self.mde, "pass it without its sign")
        for name in ("units", "variance", "mde"):
            if self._has(name) and not 0 <= getattr(self, name) < math.inf:
                todo = "pass what is planned or was measured before"
                _refuse(name, "a finite number from 0", getattr(self, name), todo)
        if self.baseline is not None and not 0 <= self.baseline <= 1:
            todo = "pass a rate as a share of 1; of a mean pass variance="
            _refuse("baseline", "a rate from 0 to 1", self.baseline, todo)
        others = [name for name in ("units", "baseline", "variance") if self._has(name)]
        if self.mde is not None and others:
            came = ", ".join([*others, "mde"])
            _refuse("mde", "either mde, or units with baseline or variance", came, _ONE_OF_TWO)

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    @property
    def v_opt(self) -> float | None:
        """What `ConfidenceSequence` takes, or None."""
        v = self.optimize_at * self._information()
        return v if 0 < v < math.inf else None

    @property
    def reason(self) -> str:
        """Why there is no `v_opt`; "" where there is one."""
        if self.v_opt is not None:
            return ""
        if self.units is None and self.mde is None:
            return "neither a horizon nor an mde was declared before the data"
        if self.mde is None and self._variance() is None:
            return "a horizon was declared without the baseline or the variance that it needs"
        return "the declared horizon gives no positive amount of information"

    def _information(self) -> float:
        if self.mde is not None:
            return for_effect(self.mde, alpha=self.alpha, power=self.power)
        variance = self._variance()
        if self.units is None or variance is None:
            return math.nan
        return at_horizon(
            self.units, variance, treatment_share=self.treatment_share, deff=self.deff
        )

    def _variance(self) -> float | None:
        if self.variance is not None or self.baseline is None:
            return self.variance
        return self.baseline * (1.0 - self.baseline)


def _refuse(name: str, expected: str, came: object, todo: str) -> NoReturn:
    text = came if isinstance(came, str) else shown(came)
    raise SettingsError(expected=expected, came=text, where=f"Horizon({name})", todo=todo)
