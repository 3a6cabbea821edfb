"""What one look at an experiment knows, and what it may conclude however often one looks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from streammetrics.kernels.empirical_bernstein import Moments
from streammetrics.kernels.normal_mixture import anytime_p
from streammetrics.kernels.success_labels import Successes


class Compared(Protocol):
    """What a confidence sequence reads of a comparison; a part that it has not got is None.

    effect_size: treatment - control. df: of the standard error, inf where it is not from groups.
    least_count: the least of what the burn-in counts in either arm: successes and failures of a
    rate, positives and negatives of an area, units of a mean. too_skew: why an arm is too far from
    normal, or "". successes: by epoch. moments: of control and treatment, values in [0, 1].
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
    def too_skew(self) -> str: ...
    @property
    def successes(self) -> tuple[Successes, ...] | None: ...
    @property
    def moments(self) -> tuple[Moments, Moments] | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The same as plain values."""

    effect_size: float = math.nan
    std_error: float = math.nan
    df: float = math.inf
    least_count: int = 0
    too_skew: str = ""
    successes: tuple[Successes, ...] | None = None
    moments: tuple[Moments, Moments] | None = None


@dataclass(frozen=True, slots=True)
class Anytime:
    """One look at a confidence sequence.

    lower, upper: they hold the true effect at all looks together; lower > upper where nothing is
    left. e_value, p_value: of this look, against no effect (1 where there is none). gated: before
    the burn-in. reason: why there is no interval, or "".
    """

    lower: float = -math.inf
    upper: float = math.inf
    log_e: float = 0.0
    gated: bool = False
    reason: str = ""

    @property
    def e_value(self) -> float:
        """Infinite past the largest float."""
        return e_value(self.log_e)

    @property
    def p_value(self) -> float:
        """min(1, 1 / e_value); over several looks the monitor takes their largest e-value."""
        return anytime_p(self.log_e)


def e_value(log_e: float) -> float:
    """exp(log_e), infinite past the largest float.

    >>> e_value(0.0), e_value(1000.0)
    (1.0, inf)
    """
    try:
        return math.exp(log_e)
    except OverflowError:
        return math.inf
