"""One look at a confidence sequence or a guardrail: its bounds and its evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from streammetrics.kernels.inference.normal_mixture import anytime_p
from streammetrics.present.notebook import Shown
from streammetrics.present.value_rows import ValueRow, rows_of_views
from streammetrics.present.view import View

# The endings of the names under which looks store readings. A variant that ends in one of these
# would have the readings of another one.
AS_GUARDRAIL: Final = " (guardrail)"  # of a contrast whose metric decides as well
DECIDED: Final = " (decided)"  # of the effect at the decision
SINCE: Final = " (since the decision)"  # of the effect since then
ENDINGS: Final = (AS_GUARDRAIL, DECIDED, SINCE)

_BOUND: Final = View(undefined="nothing is excluded")  # an infinite bound is not known yet


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
    estimates: ClassVar[bool] = True
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
        """Each value; only one that is not finite has a reason."""
        for row in rows_of_views(self, level, headlines):
            yield replace(row, reason="") if math.isfinite(row.value) else row


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Anytime(HasEvidence):
    """One look at a confidence sequence.

    lower, upper: they hold the true effect at all looks together; lower > upper if the interval is
    empty. e_value, p_value: of this look, against no effect (1 if there is none). gated: before
    the burn-in. reason: why there is no interval, or "".
    """

    lower: float = field(default=-math.inf, metadata=_BOUND)
    upper: float = field(default=math.inf, metadata=_BOUND)
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Guarded(HasEvidence):
    """One look at a guardrail.

    bound: the worst change that is not excluded, in units of the metric, at all looks together.
    passed: the bound is better than the margin. log_e: against a change by the margin or worse.
    """

    bound: float = field(metadata=_BOUND)
    passed: bool = False
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""
