"""Arms: two estimates of one view, with what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final, TypeAlias

from streammetrics.core.interval import bounds_within
from streammetrics.estimators.estimator import Kind, Replicates
from streammetrics.estimators.quantile_evidence import QuantileEvidence
from streammetrics.kernels.exact.rounding import ratio
from streammetrics.kernels.inference.dirichlet_multinomial import Successes
from streammetrics.kernels.inference.empirical_bernstein import Moments
from streammetrics.kernels.inference.pooled_variance import ALONE, ALONE_ROWS, RowsAndUsers
from streammetrics.kernels.inference.t_interval import Bounds
from streammetrics.present.numerals import tenths
from streammetrics.present.view import NONE, Direction, Range

Basis: TypeAlias = float | RowsAndUsers[float]  # one of the masses
_TOO_SKEW: Final = "the estimate rests on too few values: skewness number {:g}, needs {:g}"
UNITS: Final = "units"  # what the counted rows of a mean or rate of units are called
NO_VARIANCE: Final = "the variance of an arm is 0, which says nothing about other rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Precision:
    """The error of an estimate of n values, over rows or over users.

    lower, upper: the bounds of a share or a quantile, from which those of the difference follow,
    else infinite. method: of the interval. deff: the design effect. resolution: how far buckets
    may have moved the estimate. reason: why it is undefined, or a doubt about it, or "".
    """

    variance: float
    df: float
    method: str
    n: int
    deff: float
    lower: float = -math.inf
    upper: float = math.inf
    resolution: float = 0.0
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCounts:
    """The counts that show whether there are enough rows.

    kind, counted: successes and failures of a rate; the smallest cell of a view of a confusion
    matrix; positives and negatives of an area, and of any other function of two classes; rows or
    lists of a mean; rows below and above a quantile. counted_of: the rows that they are counted of.
    rows: the counted rows; unit: what they are called. share: successes and n, of independent rows.
    masses: by name, of what the estimate is one, such as its rows and users, for the variance of a
    difference. skewness: the skewness number of the values of a mean, or a bound of it; nan if
    unknown. largest_group: the largest share of the rows in one group of users, 0 if unknown.
    """

    kind: Kind
    counted: tuple[int, ...]
    rows: int
    counted_of: int = 0
    unit: str = "rows"
    share: tuple[int, int] | None = None
    masses: Mapping[str, Basis] = field(default_factory=dict)
    skewness: float = math.inf
    largest_group: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutGroups:
    """An estimate without each group of users.

    replicates: None for a group without rows and nan if undefined; None if rows are independent.
    of_units: the same of a rate of units, which are independent although they have groups.
    together: the estimate of which they are replicates, that of the arm or that of coarser scores.
    no_jackknife: why they do not show the variance, so that they are nan, as those of a quantile;
    "" if they do. salt: by which the units are hashed into groups.
    """

    replicates: Replicates | None = None
    of_units: Replicates | None = None
    together: float = math.nan
    no_jackknife: str = ""
    salt: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What a result says of a view beside its value.

    direction: in which it is better, as declared. limits: its least and greatest value. origin:
    what a lift is relative to. never: why no interval of the view holds at all looks, or "".
    effects: the views of the result that are themselves effects. doubts: reasons to doubt the
    estimate although it is defined, such as weights of a policy that are not 1 on average.
    """

    direction: Direction = NONE
    limits: Range = (-math.inf, math.inf)
    origin: float = 0.0
    never: str = ""
    effects: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """An estimate of a view, its error, and what both rest on.

    value: the estimate, a fraction if it is a share. moments: of independent rows whose values are
    bounded by design, from which follows an interval that is exact at all looks; None for others.
    quantile: the rows, if the view is a quantile. sides: of a view that is itself an effect, the
    rows that each variant won. known: the control of an effect, which is 0 without any rows.
    """

    view: str
    value: float | Fraction
    precision: Precision
    counts: ArmCounts
    without: WithoutGroups = field(default_factory=WithoutGroups)
    traits: Traits = field(default_factory=Traits)
    moments: Moments | None = None
    quantile: QuantileEvidence | None = None
    sides: Successes | None = None
    known: bool = False

    @property
    def grouped_by_units(self) -> Arm:
        """The arm, with the groups of its units if it is a rate of these, so that users may leave
        it."""
        of_units = self.without.of_units
        if of_units is None:
            return self
        return replace(self, without=replace(self.without, replicates=of_units))

    def replace_variance(self, variance: float) -> Arm:
        """The arm with another variance."""
        return replace(self, precision=replace(self.precision, variance=variance))

    def add_basis(self, name: str, basis: Basis) -> Arm:
        """The arm with one more basis of its variance, or another one of that name."""
        masses = {**self.counts.masses, name: basis}
        return replace(self, counts=replace(self.counts, masses=masses))

    @property
    def estimate(self) -> float:
        """The value as a float."""
        return float(self.value)

    @property
    def groups(self) -> int | None:
        """The number of groups that have rows; None if rows are independent."""
        if self.without.replicates is None:
            return None
        return sum(replicate is not None for replicate in self.without.replicates)

    @property
    def least(self) -> int:
        """The smallest of the counts, divided by the design effect if it is known."""
        least = min(self.counts.counted)
        return (
            math.floor(least / self.precision.deff)
            if 1.0 < self.precision.deff < math.inf
            else least
        )

    @property
    def no_sequence(self) -> str:
        """Why there is no always-valid interval of this arm alone although there are enough rows,
        or "": the rows choose the view, or the estimate is too far from normal. Groups of users are
        judged by their skewness number, unless `least` suffices."""
        if self.traits.never or self.known:
            return self.traits.never
        if self.quantile is not None:
            return "" if self.quantile.known else NO_VARIANCE
        if self.precision.variance == 0:
            return NO_VARIANCE
        if math.isnan(self.precision.variance) or not self.is_skew:
            return ""  # without a variance there is no interval at all, and `reason` says why
        need = ALONE_ROWS if self.without.replicates is None else ALONE
        number = 0.0 if math.isnan(self.counts.skewness) else tenths(self.counts.skewness)
        return _TOO_SKEW.format(number, need) if not self.counts.skewness >= need else ""

    @property
    def is_skew(self) -> bool:
        """Whether the skewness number decides whether its rows suffice."""
        clustered = self.without.replicates is not None and math.isnan(self.precision.deff)
        return self.quantile is None and (self.counts.kind == "mean" or clustered)


def without_effect(arm: Arm) -> Arm:
    """The control of an arm whose view is itself an effect: 0, known without any rows."""
    groups = arm.without.replicates
    zeros = groups and tuple(None if replicate is None else 0.0 for replicate in groups)
    method = arm.precision.method
    return Arm(
        view=arm.view,
        value=Fraction(0),
        precision=Precision(variance=0.0, df=math.inf, method=method, n=0, deff=1.0),
        counts=ArmCounts(kind=arm.counts.kind, counted=arm.counts.counted, rows=0),
        without=WithoutGroups(replicates=zeros, together=0.0, salt=arm.without.salt),
        traits=Traits(direction=arm.traits.direction, limits=(0.0, 0.0), origin=arm.traits.origin),
        known=True,
    )


def no_arm(view: str) -> Arm:
    """An arm without a state."""
    nothing = math.nan
    return Arm(
        view=view,
        value=nothing,
        precision=Precision(
            variance=nothing, df=nothing, method="", n=0, deff=nothing, reason="no rows"
        ),
        counts=ArmCounts(kind="mean", counted=(0,), rows=0),
    )


@dataclass(frozen=True, slots=True)
class Stratum:
    """Both arms of one epoch, and its share of the units of all epochs."""

    weight: float
    control: Arm
    treatment: Arm


@dataclass(frozen=True, slots=True)
class Arms:
    """Control and treatment on one view; effect: their exact difference, rounded once.

    strata: both arms of each epoch that is compared. used: their names; left_out: the epochs in
    which an arm has too few rows.
    """

    control: Arm
    treatment: Arm
    effect: float
    strata: tuple[Stratum, ...]
    used: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def weights(self) -> list[float]:
        """The share of each epoch of the units of all."""
        return [stratum.weight for stratum in self.strata]

    def clipped(self, bounds: Bounds) -> Bounds:
        """The interval of the effect without the values that it cannot have."""
        (least, most), (low, high) = self.control.traits.limits, self.treatment.traits.limits
        return bounds_within(bounds, low - most, high - least)


def pair_of(control: Arm, treatment: Arm) -> Arms:
    """The pair of one epoch."""
    effect = _difference(control, treatment)
    return Arms(control, treatment, effect, (Stratum(1.0, control, treatment),))


def _difference(control: Arm, treatment: Arm) -> float:
    if not (math.isfinite(control.value) and math.isfinite(treatment.value)):
        return treatment.estimate - control.estimate
    return ratio(Fraction(treatment.value) - Fraction(control.value), 1)
