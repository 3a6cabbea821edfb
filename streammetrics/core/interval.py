"""An interval for what an estimate is an estimate of: statistical, not certain."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol, cast

from streammetrics.core.errors import SettingsError, shown


@dataclass(frozen=True, slots=True)
class Interval:
    """At `level`, the true value lies in [lower, upper] in that share of experiments.

    `Bounded` is another thing: its low and high hold the value of these very rows, for certain.

    se: the standard error. df: degrees of freedom of the variance, inf where it is taken as known.
    method: how the ends were found, "wilson" or "jackknife". n: rows, lists or users; n_eff: how
    many independent ones they are worth; deff: n / n_eff, the design effect, by which clustering
    multiplies the variance. resolution: how far the buckets may have moved the estimate. What is
    not known is nan. reason: why there is no interval, or what makes it doubtful; empty if nothing.
    formula: False where the view has none, however many rows there are.

    >>> ctr = Interval(0.3, 0.11, 0.6, se=0.145, level=0.95, method="wilson", n=10)
    >>> print(ctr)
    0.3 [0.11, 0.6] at 95 % (wilson, n = 10)
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
        """Everything: what is said of rows that are too few, with the reason.

        >>> print(Interval.undefined("no positives", level=0.95, method="delong"))
        nan [-inf, inf] at 95 % (delong, n = 0): no positives
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
        """Whether it says anything."""
        return self.lower > -math.inf or self.upper < math.inf

    @property
    def width(self) -> float:
        """The upper end less the lower one."""
        return self.upper - self.lower

    def scaled(self, times: float, plus: float = 0.0) -> Interval:
        """The interval of times x + plus, times not 0: of Gini = 2 area - 1.

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
        bounds = f"{self.estimate:.6g} [{self.lower:.6g}, {self.upper:.6g}]"
        return f"{bounds} at {100 * self.level:g} % ({self.method}, n = {self.n}){why}"


class HasInterval(Protocol):
    """A result that knows intervals. independent: what it takes as independent, "rows", "lists";
    "" where nothing is to be said of it."""

    independent: ClassVar[str]

    def interval(self, view: object = ..., *, level: float = ..., method: str = ...) -> Interval:
        """That of one view; None: of the first one."""
        ...


def interval_of(
    result: object,
    metric: object,
    view: object = None,
    level: float = 0.95,
    method: str = "auto",
    cluster: str = "auto",
) -> Interval:
    """What `metric.confidence_interval` answers, from the result that the metric has computed: of
    many views it is computed once.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> interval_of(ctr.compute(), ctr, "ratio") == ctr.confidence_interval(view="ratio")
    True
    """
    kind = type(metric).__name__
    if cluster not in ("auto", "none"):
        users = cluster == "groups"
        raise SettingsError(
            expected='"auto" or "none"',
            got=shown(cluster),
            where=f"{kind}.confidence_interval(cluster)",
            hint=f"count with UserGroups({kind}(...)), which knows users" if users else "pass one",
        )
    if not callable(getattr(result, "interval", None)):
        why = f"no formula for {kind}; UserGroups has one, from groups of users"
        if isinstance(result, Mapping):
            why = f"{kind} is of several results: ask each of them for its interval"
        return Interval.undefined(why, level=level, method=method, formula=False)
    known = cast("HasInterval", result)
    found = known.interval(view, level=level, method=method)
    if cluster == "auto" and known.independent and found.defined:
        said = f"{known.independent} are taken as independent, as no users are known"
        return replace(found, reason="; ".join(filter(None, (said, found.reason))))
    return found
