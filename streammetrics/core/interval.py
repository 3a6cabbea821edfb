"""The confidence interval of an estimated quantity: statistical, not certain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast

from streammetrics.core.bounded import ByValue
from streammetrics.core.conversion import among
from streammetrics.core.errors import SettingsError, shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interval(ByValue):
    """In a share `level` of experiments the true value lies in [lower, upper].

    `Bounded` is different: its low and high certainly enclose the value for the given rows.

    se: the standard error. df: degrees of freedom of the variance, inf where it is taken as known.
    method: how the bounds were computed, such as "wilson" or "jackknife". n: rows, lists or users;
    n_eff: the effective number of independent ones; deff: n / n_eff, the design effect, by which
    clustering multiplies the variance. resolution: by how much the buckets may have moved the
    estimate. Unknown values are nan. reason: why there is no interval, or why it is doubtful; else
    empty. formula: False if the view has none, however many rows there are.

    >>> ctr = Interval(0.3, 0.11, 0.6, se=0.145, level=0.95, method="wilson", n=10)
    >>> print(ctr)
    0.3, 95 % CI 0.11 to 0.6 (wilson, n = 10)
    >>> 0.5 in ctr, ctr.defined
    (True, True)
    """

    estimate: float
    lower: float
    upper: float
    se: float = math.nan
    level: float = 0.95
    df: float = math.inf
    method: str = ""
    n: int = 0
    n_eff: float = math.nan
    deff: float = math.nan
    resolution: float = 0.0
    reason: str = ""
    formula: bool = True

    @classmethod
    def undefined(
        cls,
        reason: str,
        *,
        level: float,
        method: str,
        n: int = 0,
        estimate: float = math.nan,
        formula: bool = True,
    ) -> Interval:
        """The infinite interval for too few rows, with the reason.

        >>> print(Interval.undefined("no positives", level=0.95, method="delong"))
        nan, 95 % CI -inf to inf (delong, n = 0): no positives
        """
        bounds = -math.inf, math.inf
        return cls(
            estimate,
            *bounds,
            level=level,
            df=math.nan,
            method=method,
            n=n,
            reason=reason,
            formula=formula,
        )

    @property
    def defined(self) -> bool:
        """Whether a bound is finite."""
        return self.lower > -math.inf or self.upper < math.inf

    @property
    def width(self) -> float:
        """The upper bound less the lower one."""
        return self.upper - self.lower

    def scaled(self, times: float, plus: float = 0.0) -> Interval:
        """The interval of times x + plus, times not 0, as for Gini = 2 area - 1.

        >>> Interval(0.75, 0.5, 1.0, se=0.125).scaled(2, -1).lower
        0.0
        """
        bounds = sorted((times * self.lower + plus, times * self.upper + plus))
        return replace(
            self,
            estimate=times * self.estimate + plus,
            lower=bounds[0],
            upper=bounds[1],
            se=abs(times) * self.se,
            resolution=abs(times) * self.resolution,
        )

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        bounds = f"{100 * self.level:.10g} % CI {self.lower:.6g} to {self.upper:.6g}"
        return f"{self.estimate:.6g}, {bounds} ({self.method}, n = {self.n}){why}"

    def __repr__(self) -> str:
        return f"Interval({self})"


def bounds_within(bounds: tuple[float, float], least: float, most: float) -> tuple[float, float]:
    """The bounds of an interval without the values below `least` and above `most`; if both are
    infinite, the interval is undefined, and stays so."""
    if bounds == (-math.inf, math.inf):
        return bounds
    return min(max(bounds[0], least), most), max(min(bounds[1], most), least)


def interval_within(interval: Interval, least: float, most: float) -> Interval:
    """The interval without the values that the quantity cannot have; an undefined one as it is.

    It contains the same possible values, so its level is the same. The standard error and the
    p-value do not change.

    >>> print(interval_within(Interval(0.75, 0.45, 1.05, method="t", n=4), 0.0, 1.0))
    0.75, 95 % CI 0.45 to 1 (t, n = 4)
    """
    lower, upper = bounds_within((interval.lower, interval.upper), least, most)
    same = (lower, upper) == (interval.lower, interval.upper)
    return interval if same else replace(interval, lower=lower, upper=upper)


class HasInterval(Protocol):
    """A result with intervals. independent: the observations that it takes as independent, "rows"
    or "lists"; "" if there is nothing to report."""

    independent: ClassVar[str]

    def interval(self, view: object = ..., *, level: float = ..., method: str = ...) -> Interval:
        """The interval of one view; None: of the first one."""
        ...


def interval_of(
    result: object,
    metric: object,
    view: object = None,
    level: float = 0.95,
    method: str = "auto",
    cluster: str = "auto",
) -> Interval:
    """The interval that `metric.confidence_interval` returns, from a result of the metric, which is
    thus computed once for many views.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> interval_of(ctr.compute(), ctr, "ratio") == ctr.confidence_interval(view="ratio")
    True
    """
    kind = type(metric).__name__
    if not among(cluster, ("auto", "none")):
        users = among(cluster, ("groups",))
        raise SettingsError(
            expected='"auto" or "none"',
            got=shown(cluster),
            where=f"{kind}.confidence_interval(cluster)",
            hint=f"use UserGroups({kind}(...)), which groups by user" if users else "choose one",
        )
    if not callable(getattr(result, "interval", None)):
        why = f"no formula for {kind}; UserGroups has one, from groups of users"
        if isinstance(result, Mapping):
            why = f"{kind} has several results: ask each for its interval"
        return Interval.undefined(why, level=level, method=method, formula=False)
    typed_result = cast("HasInterval", result)
    interval = typed_result.interval(view, level=level, method=method)
    if cluster == "auto" and typed_result.independent and interval.defined:
        note = taken_as_independent(typed_result.independent)
        return replace(interval, reason="; ".join(filter(None, (note, interval.reason))))
    return interval


def taken_as_independent(units: str) -> str:
    """What an interval over rows, lists or queries assumes."""
    return f"{units} are taken as independent because no users are known"
