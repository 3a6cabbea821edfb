"""Confidence sequences: intervals, e-values and p-values that hold at all looks together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, Protocol

from streammetrics.core.errors import SettingsError, shown
from streammetrics.kernels.inference import empirical_bernstein
from streammetrics.kernels.inference.dirichlet_multinomial import (
    Successes,
    log_e_of_successes,
    relative_rates,
)
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.normal_mixture import (
    anytime_p,
    as_t,
    gaussianised,
    log_e,
    multiplier,
    one_sided_log_e,
    one_sided_multiplier,
    tuned,
)
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, estimates_of


class Compared(Protocol):
    """The values that a confidence sequence reads from a comparison; a missing one is None.

    effect_size: treatment - control. df: of the standard error, inf if it is not from groups.
    least_count: the smallest burn-in count of either arm: successes and failures of a rate,
    positives and negatives of an area, units of a mean. no_sequence: why there is no always-valid
    interval of an arm, such as an estimate that is too far from normal, or "". successes: by epoch.
    moments: of control and treatment, values in [0, 1].
    """

    @property
    def effect_size(self) -> float: ...
    @property
    def std_error(self) -> float: ...
    @property
    def df(self) -> float: ...
    @property
    def least_count(self) -> int: ...
    @property
    def no_sequence(self) -> str: ...
    @property
    def successes(self) -> tuple[Successes, ...] | None: ...
    @property
    def moments(self) -> tuple[Moments, Moments] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The values of `Compared` as plain fields."""

    effect_size: float = math.nan
    std_error: float = math.nan
    df: float = math.inf
    least_count: int = 0
    no_sequence: str = ""
    successes: tuple[Successes, ...] | None = None
    moments: tuple[Moments, Moments] | None = None


def e_value(log_e: float) -> float:
    """exp(log_e), infinite past the largest float.

    >>> e_value(0.0), e_value(1000.0)
    (1.0, inf)
    """
    try:
        return math.exp(log_e)
    except OverflowError:
        return math.inf


class HasEvidence(Shown):
    """The e-value and the p-value of one look, from its `log_e`."""

    __slots__ = ()
    log_e: float
    reason: str

    @property
    def e_value(self) -> float:
        """The e-value; infinite past the largest float."""
        return e_value(self.log_e)

    @property
    def p_value(self) -> float:
        """min(1, 1 / e_value); over several looks the monitor uses the largest e-value."""
        return anytime_p(self.log_e)

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        """Each value; a bound that is infinite is not known yet."""
        for row in estimates_of(self, level, headlines):
            known = math.isfinite(row.value)
            yield replace(row, reason="" if known else self.reason or "nothing is excluded")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anytime(HasEvidence):
    """One look at a confidence sequence.

    lower, upper: they hold the true effect at all looks together; lower > upper if the interval is
    empty. e_value, p_value: of this look, against no effect (1 if there is none). gated: before
    the burn-in. reason: why there is no interval, or "".
    """

    lower: float = -math.inf
    upper: float = math.inf
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""


Kind = Literal["asymptotic", "empirical_bernstein", "label"]

UNDECLARED = "neither a horizon nor an mde was declared before the data"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfidenceSequence:
    """A sequence of intervals that all hold the true effect, with probability 1 - alpha.

    v_opt is declared before the data and never changed (`plan.Horizon`): without it there is
    no interval, and the reason says so.

    - "asymptotic": any effect with a standard error; the normal mixture on the clock
      v = 1 / std_error², narrowest near v = v_opt. Until every arm has `min_count` successes and
      failures it is gated: p is 1 and the interval infinite.
    - "label": two rates by their successes alone, exact; the interval is of the treatment's rate
      divided by the control's, and `prior` is the weight of its prior in successes. Needs no v_opt.
    - "empirical_bernstein": two means of values in [0, 1], valid at any sample size. v_opt is the
      planned sum of squares of one arm about `reference`, a mean from before the data.

    Raises SettingsError for settings out of range.

    >>> from streammetrics.experiments.confidence_sequence import Evidence
    >>> look = Evidence(effect_size=0.0065, std_error=0.003230854197, least_count=520)
    >>> found = ConfidenceSequence(v_opt=210526.3).at(look)
    >>> f"{found.lower:.4f} {found.upper:.4f} {found.p_value:.3f}"
    '-0.0035 0.0165 0.440'
    """

    alpha: float = 0.05
    v_opt: float | None
    min_count: int = 10
    kind: Kind = "asymptotic"
    reference: float = 0.5
    prior: float = 100.0

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha)
        _positive("v_opt", self.v_opt)
        _positive("prior", self.prior)
        if self.kind not in ("asymptotic", "empirical_bernstein", "label"):
            raise SettingsError(
                expected='"asymptotic", "empirical_bernstein" or "label"',
                got=shown(self.kind),
                where="kind",
                hint="leave it out for the asymptotic sequence",
            )
        if not 0 <= self.reference <= 1:
            raise SettingsError(
                expected="a mean in [0, 1]",
                got=shown(self.reference),
                where="reference",
                hint="pass the mean of an earlier period, or leave it out for 0.5",
            )

    def at(self, comparison: Compared) -> Anytime:
        """The reading at this look; never raises on sparse data."""
        if self.kind == "label":
            return self._label(comparison)
        if self.v_opt is None:
            return Anytime(reason=UNDECLARED)
        if self.kind == "asymptotic":
            return self._asymptotic(comparison, self.v_opt)
        return self._bounded(comparison, self.v_opt)

    def _asymptotic(self, found: Compared, v_opt: float) -> Anytime:
        missing = not_ready(found, self.min_count)
        if missing is not None:
            return missing
        v, rho = information(found), tuned(v_opt, self.alpha)
        z = gaussianised(found.effect_size / found.std_error, found.df)
        reach = as_t(multiplier(v, rho, self.alpha), found.df) * found.std_error
        return Anytime(found.effect_size - reach, found.effect_size + reach, log_e(z, v, rho))

    def _label(self, found: Compared) -> Anytime:
        if found.successes is None:
            hint = "compare rates of independent rows in an Experiment"
            return Anytime(reason=f"no successes with planned shares: {hint}")
        low, high = relative_rates(found.successes, self.alpha, self.prior)
        return Anytime(low, high, log_e_of_successes(found.successes, self.prior))

    def _bounded(self, found: Compared, v_opt: float) -> Anytime:
        if found.moments is None:
            return Anytime(reason="the comparison has no moments of values in [0, 1]")
        control, treatment = found.moments
        settings = (control, treatment, self.reference, v_opt, self.alpha)
        low, high = empirical_bernstein.difference(*settings)
        return Anytime(low, high, empirical_bernstein.log_e(*settings))


def information(found: Compared) -> float:
    """The clock v = 1 / std_error²."""
    return 1.0 / found.std_error / found.std_error


def not_ready(found: Compared, min_count: int) -> Anytime | None:
    """Why there is no asymptotic interval yet: undefined, or before the burn-in; None if ready."""
    if not (math.isfinite(found.effect_size) and 0 < found.std_error < math.inf and found.df > 0):
        return Anytime(gated=True, reason="the effect or its standard error is undefined")
    if found.least_count < min_count:
        why = f"an arm has too low a burn-in count: {found.least_count}, needs {min_count}"
        return Anytime(gated=True, reason=why)
    return Anytime(gated=True, reason=found.no_sequence) if found.no_sequence else None


_SHARES: Final = {
    "alpha": "pass the probability of error that you accept, such as 0.05",
    "level": "pass the confidence level as a share of 1, such as 0.95",
}


def check_share(name: str, value: float, most: float = 1) -> None:
    """Raise SettingsError for a value that is not between 0 and `most`."""
    if not 0 < value < most:
        raise SettingsError(
            expected=f"a number between 0 and {most}",
            got=shown(value),
            where=name,
            hint=_SHARES.get(name, "pass a share"),
        )


def _positive(name: str, value: float | None) -> None:
    if value is not None and not 0 < value < math.inf:
        raise SettingsError(
            expected="a positive number",
            got=shown(value),
            where=name,
            hint="derive it from a horizon, or pass None" if name == "v_opt" else "pass one",
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarded(HasEvidence):
    """One look at a guardrail.

    bound: the worst change that is not excluded, in units of the metric, at all looks together.
    passed: the bound is better than the margin. log_e: against a change by the margin or worse.
    """

    bound: float
    passed: bool = False
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """Non-inferiority by `margin` >= 0: a one-sided confidence sequence at alpha.

    Guardrails that must all pass need no correction among themselves, because a false overall pass
    needs a false pass of one of them. v_opt, min_count: as in `ConfidenceSequence`.

    >>> from streammetrics.experiments.confidence_sequence import Evidence
    >>> look = Evidence(effect_size=0.0065, std_error=0.00323, least_count=520)
    >>> Guardrail(margin=0.004, v_opt=210526.3).at(look).passed
    True
    """

    margin: float
    v_opt: float | None
    higher_is_better: bool = True
    alpha: float = 0.05
    min_count: int = 10

    def __post_init__(self) -> None:
        check_share("alpha", self.alpha, most=0.5)
        if not 0 <= self.margin < math.inf:
            raise SettingsError(
                expected="a margin of 0 or more",
                got=shown(self.margin),
                where="margin",
                hint="pass the greatest harm that you can accept, without a sign",
            )

    def at(self, comparison: Compared) -> Guarded:
        """The verdict at this look; never raises on sparse data."""
        worst = -math.inf if self.higher_is_better else math.inf
        if self.v_opt is None:
            return Guarded(worst, reason=UNDECLARED)
        missing = not_ready(comparison, self.min_count)
        if missing is not None:
            return Guarded(worst, gated=True, reason=missing.reason)
        sign = 1.0 if self.higher_is_better else -1.0
        effect, error, df = comparison.effect_size, comparison.std_error, comparison.df
        v, rho = information(comparison), tuned(self.v_opt, 2.0 * self.alpha)
        z = gaussianised((sign * effect + self.margin) / error, df)
        reach = as_t(one_sided_multiplier(v, rho, self.alpha), df) * error
        bound = effect - sign * reach
        return Guarded(bound, sign * bound > -self.margin, one_sided_log_e(z, v, rho))
