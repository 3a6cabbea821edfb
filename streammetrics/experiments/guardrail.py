"""Guardrails: metrics that must not get worse than a margin, watched from one side."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streammetrics.core.errors import SettingsError, shown
from streammetrics.experiments.confidence_sequence import (
    UNDECLARED,
    check_share,
    information,
    not_ready,
)
from streammetrics.experiments.evidence import Compared, e_value
from streammetrics.kernels.gaussianised import as_t, gaussianised
from streammetrics.kernels.normal_mixture import (
    anytime_p,
    one_sided_log_e,
    one_sided_multiplier,
    tuned,
)


@dataclass(frozen=True, slots=True)
class Guarded:
    """One look at a guardrail.

    bound: the worst change that is not excluded, in units of the metric, at all looks together.
    passed: it is better than the margin. log_e: against a change by the margin or worse.
    """

    bound: float
    passed: bool = False
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""

    @property
    def e_value(self) -> float:
        """Infinite past the largest float."""
        return e_value(self.log_e)

    @property
    def p_value(self) -> float:
        """min(1, 1 / e_value)."""
        return anytime_p(self.log_e)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guardrail:
    """Non-inferiority by `margin` >= 0: a one-sided confidence sequence at alpha.

    Guardrails that must all pass need no correction among themselves, since one false pass
    already needs its own error. v_opt and min_count are as in `ConfidenceSequence`.

    >>> from streammetrics.experiments.evidence import Evidence
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
                came=shown(self.margin),
                where="margin",
                todo="pass the size of the change for the worse that you can accept",
            )

    def at(self, comparison: Compared) -> Guarded:
        """What this look says; never raises on thin data."""
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
