"""Evidence: what holds at all looks reads from a comparison, and what it lacks."""

from __future__ import annotations

import math
from dataclasses import dataclass

from streammetrics.estimators.estimator import Kind
from streammetrics.estimators.quantile_evidence import QuantileArms
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.present.numerals import least_count, tenths


@dataclass(frozen=True, slots=True)
class Shortage:
    """The count of the arm that has the least of what its view needs.

    count: what is needed, which grows with `rows`, of the `unit`; what: a text with it. quantity:
    what cannot be judged yet.
    """

    arm: str
    count: float
    what: str
    rows: int
    unit: str
    quantity: str

    def reason(self, need: float) -> str:
        """What a person can do about it, if at least `need` are needed.

        >>> Shortage("new", 2.5, "{} events expected", 100, "rows", "rate").reason(10)
        'at least 300 more rows of new before its rate can be judged: 2.5 events expected, needs 10'
        """
        counted = f"{self.what.format(f'{tenths(self.count):g}')}, needs {need:g}"
        amount = (
            f"at least {least_count(self.rows * (need / self.count - 1.0))} " if self.count else ""
        )
        return (
            f"{amount}more {self.unit} of {self.arm} before its {self.quantity} can be judged: "
            f"{counted}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What holds at all looks reads from a comparison; a missing value is None.

    effect_size: treatment - control. std_error, df: of both arms together, inf if it is not from
    groups. least_count: the smallest burn-in count of either arm: expected events, and other rows,
    of a rate, positives and negatives of an area, units of a mean. shortage: of which arm, and what
    would be enough. no_sequence: why there is no always-valid interval of an arm, such as an
    estimate that is too far from normal, or "". groups: of users, None if rows are independent.
    successes: by epoch. moments: of control and treatment, values with bounds known by design.
    kind: the quantity that a burn-in counts. quantiles: both arms of a quantile, which has no
    standard error. resolution: how far buckets may have moved the effect, or 0. center: the mean of
    both arms together, by their rows. reason: why the effect is undefined, or "".
    """

    effect_size: float = math.nan
    std_error: float = math.nan
    df: float = math.inf
    least_count: int = 0
    shortage: Shortage | None = None
    no_sequence: str = ""
    groups: int | None = None
    successes: tuple[Successes, ...] | None = None
    moments: tuple[Moments, Moments] | None = None
    kind: Kind | None = None
    quantiles: QuantileArms | None = None
    resolution: float = 0.0
    center: float = math.nan
    reason: str = ""

    @property
    def information(self) -> float:
        """The clock v = 1 / V."""
        return 1.0 / self.std_error / self.std_error

    @property
    def lift_information(self) -> float:
        """The clock of values that still grow, u = center² / V: the information about the lift."""
        share = self.center / self.std_error
        return share * share
