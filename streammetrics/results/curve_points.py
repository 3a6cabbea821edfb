"""Points of a score curve: the rates at every threshold, and thresholds that were chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import among, refused, share, weight_of_recall
from streammetrics.kernels.curves.operating_points import CRITERIA, Aim
from streammetrics.kernels.curves.steps import Steps
from streammetrics.present.notebook import Shown, ShownColumns
from streammetrics.present.value_rows import ValueRow, rows_of
from streammetrics.present.views import counts_of
from streammetrics.results.rates import Rates

# A figure of a curve: float if the curve is exact, Bounded if it is of a histogram.
if TYPE_CHECKING:  # a type parameter that defaults to either
    import typing_extensions

    V_co = typing_extensions.TypeVar(
        "V_co", bound="float | Bounded", default="float | Bounded", covariant=True
    )
else:
    V_co = TypeVar("V_co", bound="float | Bounded", covariant=True)


@dataclass(frozen=True, eq=False, repr=False)
class RocPoints(ShownColumns):
    """The ROC curve, from (0, 0) to (1, 1); a row is predicted positive iff score >= threshold.

    fpr, tpr, thresholds: float [k + 1], and fp, tp: int64 [k + 1], from the highest threshold down.
    The first threshold is +inf, at which nothing is predicted positive; then every different score
    follows, as in scikit-learn's roc_curve(drop_intermediate=False). For a histogram they are the
    least scores of its occupied buckets: these points lie on the true curve, which stays in the box
    between each and the next. Rates are correctly rounded, nan if their class has no row.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> points = metric.compute().roc()
    >>> points.fpr.tolist(), points.tpr.tolist(), points.thresholds.tolist()
    ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0], [inf, 0.8, 0.4, 0.1])
    """

    fpr: NDArray[np.float64]
    tpr: NDArray[np.float64]
    thresholds: NDArray[np.floating]
    fp: NDArray[np.int64]
    tp: NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecallPoints(ShownColumns):
    """The precision-recall curve; a row is predicted positive iff score >= threshold.

    thresholds: float [k], ascending, every different score; precision, recall: float [k + 1], the
    last of which is the point (1, 0) without a threshold, as in scikit-learn's
    precision_recall_curve. For a histogram the thresholds are the least scores of its occupied
    buckets, and these points lie on the true curve. Correctly rounded; recall is nan without a
    positive.

    >>> from streammetrics import ExactAUC
    >>> metric = ExactAUC()
    >>> metric.update([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    >>> points = metric.compute().pr()
    >>> points.precision.tolist()
    [0.5, 0.6666666666666666, 1.0, 1.0]
    >>> points.recall.tolist(), points.thresholds.tolist()
    ([1.0, 1.0, 0.5, 0.0], [0.1, 0.4, 0.8])
    """

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    thresholds: NDArray[np.floating]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OperatingPoint(Shown):
    """A threshold, positive iff score >= threshold, and the rates at it.

    threshold: +inf where nothing is predicted positive; nan there if a score is +inf itself, or may
    be in the highest bucket of a histogram, so that every threshold predicts a positive.
    """

    threshold: float
    rates: Rates

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        yield _threshold_row(self.threshold, self.rates)
        for row in rows_of(self.rates, level=level, headlines=headlines):
            # Formulas for a threshold that was fixed beforehand do not hold for this one.
            why = row.reason if math.isnan(float(row.value)) else ""
            yield replace(row, name=f"rates.{row.name}", interval=None, reason=why)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BestPoints(Generic[V_co], Shown):
    """The best value that a threshold reaches, and every threshold that reaches it.

    value: nan if undefined. `Bounded` for a histogram: a threshold inside a bucket may be better
    than those at the edges of buckets, which are listed.
    points: from the highest threshold down; () if the value is undefined. reason: why nothing is
    known of the curve, if so.
    """

    value: V_co
    points: tuple[OperatingPoint, ...]
    reason: str = ""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        why = self.reason or "no threshold meets the requirements, or one class has no rows"
        why = why if math.isnan(float(self.value)) else ""
        yield ValueRow("value", self.value, reason=why)
        for i, point in enumerate(self.points):
            for row in rows_of(point, level=level, headlines=headlines):
                yield replace(row, name=f"points[{i}].{row.name}")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BudgetPoint(Generic[V_co], Shown):
    """The least threshold at which at most a given share of the rows is predicted positive.

    threshold: positive iff score >= threshold; +inf if the tied rows with the highest score are
    more than the share, or nan as in `OperatingPoint`. For a histogram it is the least score of a
    bucket. reason: why nothing is known of the curve, if so.
    share, precision, recall: of the rows predicted positive. Precision is nan without such rows,
    recall without positives. For a histogram they are `Bounded`: a threshold within the next bucket
    may predict more of its rows positive. rates: those at `threshold`, which are certain.
    """

    threshold: float
    share: V_co
    precision: V_co
    recall: V_co
    rates: Rates
    reason: str = ""

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        none = "nothing is predicted positive"
        row = _threshold_row(self.threshold, self.rates)
        yield replace(row, reason=self.reason or row.reason)
        for name, why in (("share", "no rows"), ("precision", none), ("recall", "no positives")):
            value = getattr(self, name)
            why = self.reason or why
            yield ValueRow(name, value, reason=why if math.isnan(float(value)) else "")


def _threshold_row(threshold: float, rates: Rates) -> ValueRow:
    why = "" if math.isfinite(threshold) else "nothing is predicted positive"
    why = "a score is infinite itself, or may be" if math.isnan(threshold) else why
    return ValueRow("threshold", threshold, None, counts_of(rates), why)


_EXACT: Final[Mapping[str, Callable[[object, str], Fraction]]] = {
    "positives_share": share,
    "beta": weight_of_recall,
}
_INSTEAD: Final = {
    "f": 'pass by="f_beta", which is F1 by default, and beta=2 for another F',
    "ks": 'pass "youden", which is TPR - FPR',
}


def aim_named(by: object, where: str, **arguments: object) -> Callable[[Steps], Aim | None]:
    """The aim of this name for some steps. arguments: those of `Criterion.argument`, or None.
    InputError for an unknown name, and for an argument of another aim; where: the method."""
    if not among(by, CRITERIA):
        names = [f'"{name}"' for name in CRITERIA]
        text = by.lower() if isinstance(by, str) else ""
        hints = (hint for start, hint in _INSTEAD.items() if text.startswith(start))
        expected = f"{', '.join(names[:-1])} or {names[-1]}"
        raise refused(f"{where}(by)", expected, by, next(hints, "choose one of these"))
    name, number = str(by), None
    for argument, value in arguments.items():
        if value is None:
            continue
        number = _EXACT[argument](value, f"{where}({argument})")
        if argument != CRITERIA[name].argument:
            (aim_name,) = (n for n, criterion in CRITERIA.items() if criterion.argument == argument)
            expected, hint = f'None, since by="{name}"', f'leave it out, or pass by="{aim_name}"'
            raise refused(f"{where}({argument})", expected, value, hint)
    return lambda steps: CRITERIA[name].aim(steps, number)
