"""The planned end of an experiment, from which the tuning of its intervals follows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final, NoReturn, TypeVar, cast

from streammetrics.core.conversion import as_float, numeric, plain, refused
from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.inference.tails import normal_isf


def at_horizon(
    units: float, variance: float, *, treatment_share: float = 0.5, deff: float = 1.0
) -> float:
    """1 / (σ² deff (1/n_A + 1/n_B)) at `units` of both arms together.

    variance: σ² of one unit, p (1 - p) for a rate p; deff: the design effect, from an earlier
    period. nan if units, variance or deff is not positive and finite, or the share not in (0, 1).

    >>> at_horizon(10_000, 0.25)
    10000.0
    """
    good = 0 < units < math.inf and 0 < variance < math.inf and 0 < deff < math.inf
    if not (good and 0 < treatment_share < 1 and variance * deff > 0):  # it may underflow
        return math.nan
    return units * treatment_share * (1.0 - treatment_share) / (variance * deff)


def for_effect(effect: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """The information at which a fixed two-sided test detects this effect with this power.

    ((z_{1-α/2} + z_power) / effect)². (Lachin 1981, Control. Clin. Trials 2, 93-113.) nan if the
    effect is 0 or not finite.

    >>> round(for_effect(0.01), 3)
    78488.797
    """
    if not 0 < abs(effect) < math.inf:
        return math.nan
    root = (normal_isf(alpha / 2) + normal_isf(1 - power)) / effect
    return root * root


_ROWS: Final = 10_000.0
_BELOW_1: Final = math.nextafter(1.0, 0.0), "a number between 0 and 1"
_POSITIVE: Final = {  # the most that it may be, in words, and what to do
    "treatment_share": (*_BELOW_1, "pass that of the units of both arms, such as 0.5"),
    "deff": (
        math.nextafter(math.inf, 0.0),
        "a finite number above 0",
        "pass 1 if rows are independent",
    ),
    "alpha": (*_BELOW_1, "pass the probability of error that you accept, such as 0.05"),
    "power": (*_BELOW_1, "pass the probability to find the effect, such as 0.8"),
    "optimize_at": (1.0, "a number above 0, at most 1", "pass a part of the end, such as 0.5"),
}
_ONE_OF_TWO: Final = (
    "leave out one: either the units with their variance, or the effect to detect, determines the "
    "information at the horizon"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Horizon:
    """The planned end of an experiment: units with the variance of one of them, or an effect.

    units: of both arms together; with baseline, the rate of an earlier period, or variance, that
    of one unit. mde: instead, the least absolute effect that matters, detected with this power by
    a fixed test. treatment_share, deff (the design effect): used with units. `v_opt` is the share
    `optimize_at` of the information at that end. It is frozen: changing it once there are data
    voids the guarantee of the intervals. Of one state (`ConfidenceSequence.of`) units are its own
    rows, and the effect is a distance from a fixed number: `of_one` is its tuning.

    >>> Horizon(units=10_000, baseline=0.5).v_opt  # half of the information of 10,000 units
    5000.0
    >>> round(Horizon(mde=0.01).v_opt)  # half of what one look needs to find a difference of 0.01
    39244
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
        if self.mde is not None and numeric(self.mde) < 0:
            _refuse("mde", "a size of at least 0", self.mde, "pass it without its sign")
        for name in ("units", "variance", "mde"):
            if self._has(name) and not 0 <= numeric(getattr(self, name)) < math.inf:
                hint = "pass what is planned or was measured before"
                _refuse(name, "a finite number, at least 0", shown(getattr(self, name)), hint)
        for name, (most, expected, hint) in _POSITIVE.items():
            if not 0 < numeric(getattr(self, name)) <= most:
                _refuse(name, expected, shown(getattr(self, name)), hint)
        if self.baseline is not None and not 0 <= numeric(self.baseline) <= 1:
            hint = "pass a rate as a share of 1; for a mean, pass variance="
            _refuse("baseline", "a rate from 0 to 1", shown(self.baseline), hint)
        plan = [name for name in ("units", "baseline", "variance") if self._has(name)]
        if self.mde is not None and plan:
            got = ", ".join([*plan, "mde"])
            _refuse("mde", "either mde, or units with baseline or variance", got, _ONE_OF_TWO)
        settle(self, "units", "baseline", "variance", "mde", *_POSITIVE)

    def _has(self, name: str) -> bool:
        return getattr(self, name) is not None

    @property
    def v_opt(self) -> float | None:
        """The `v_opt` of `ConfidenceSequence`, or None."""
        v = self.optimize_at * self._information()
        return v if 0 < v < math.inf else None

    @property
    def planned_rows(self) -> tuple[float, float] | None:
        """The rows of control and treatment at which the interval of a quantile is about the
        narrowest: a share of the units, and 10,000 with an mde, which does not say how many rows
        are planned. None without either."""
        if self.mde is not None:
            return _ROWS, _ROWS
        rows = math.nan if self.units is None else self.optimize_at * self.units
        rows_by_arm = rows * (1.0 - self.treatment_share), rows * self.treatment_share
        good = all(0 < number < math.inf for number in (*rows_by_arm, self.deff))
        return rows_by_arm if good else None

    @property
    def of_one(self) -> tuple[float | None, float | None]:
        """The `v_opt` and the planned rows of one state, each None if it does not follow."""
        share, v, rows = self.treatment_share, self.v_opt, self.planned_rows
        if self.mde is not None:
            return v, _ROWS
        v_of_one = None if v is None else v / (share * (1.0 - share))
        return v_of_one, rows and sum(rows)

    @property
    def reason(self) -> str:
        """Why there is no `v_opt`; "" if there is one."""
        if self.v_opt is not None:
            return ""
        if self.units is None and self.mde is None:
            return "neither a horizon nor an mde was declared before the data"
        if self.mde is None and self._variance() is None:
            return "a horizon was declared without the baseline or the variance that it needs"
        return "the declared horizon gives no positive, finite amount of information"

    def lack(self, kind: str | None) -> str:
        """Why there is no interval of this kind of view, or "": that of a quantile needs rows, any
        other one needs information."""
        has_rows = kind == "quantile" and self.planned_rows is not None
        return "" if has_rows else self.reason

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


def _refuse(name: str, expected: str, got: object, hint: str) -> NoReturn:
    text = got if isinstance(got, str) else shown(got)
    raise SettingsError(expected=expected, got=text, where=f"Horizon({name})", hint=hint)


_SHARES: Final = {
    "alpha": "pass the probability of error that you accept, such as 0.05",
    "level": "pass the confidence level as a share of 1, such as 0.95",
}


def check_share(name: str, value: float, most: float = 1) -> None:
    """Raise SettingsError for a value that is not between 0 and `most`."""
    if not 0 < numeric(value) < most:
        raise SettingsError(
            expected=f"a number between 0 and {most}",
            got=shown(value),
            where=name,
            hint=_SHARES.get(name, "pass a share"),
        )


def check_horizon(horizon: object, where: str = "horizon") -> None:
    """Raise SettingsError for what is neither a horizon nor None."""
    if horizon is not None and not isinstance(horizon, Horizon):
        raise SettingsError(
            expected="a Horizon",
            got=shown(horizon),
            where=where,
            hint="pass Horizon(mde=...), with the least effect that matters",
        )


# Numbers that are declared: Python's own, whatever type they were given in. Numpy's integers
# overflow, its small floats round, and a Fraction made of one computes with them, so each is
# converted once, where it is declared.

N = TypeVar("N", bound=int | float | Fraction)


def exact_number(value: N) -> N:
    """A finite number that was checked, as Python's int, float or Fraction, exactly.

    >>> import numpy as np
    >>> exact_number(np.uint64(3)), exact_number(np.float32(0.5))
    (3, 0.5)
    """
    number: object = plain(value)
    return cast("N", Fraction(number) if isinstance(number, Decimal) else number)


def settle(record: object, *names: str) -> None:
    """Replace these fields of a frozen record, numbers that were checked or None, by Python's int
    or the nearest float."""
    for name in names:
        number = plain(getattr(record, name))
        if number is not None and type(number) is not int:
            number = as_float(number)
        object.__setattr__(record, name, number)


def number_of_days(days: object, where: str) -> float | None:
    """The days that something took, None if unknown, which nan is too; InputError for any other
    value."""
    number, is_nan = as_float(days), isinstance(days, float) and days != days
    if number is None and days is not None and not is_nan:
        raise refused(where, "a number of days", days, "leave it out if it is unknown")
    return number
