"""What each kind of figure is drawn from, taken from any result that has it.

The rule is one for all results: one that has curves, bins or a table shows them, whatever its
class. What a function finds in a result that has nothing of the kind is empty, or None.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.figures.curves import Curve
from streammetrics.figures.distribution import Scores
from streammetrics.figures.reliability import Bin
from streammetrics.figures.shares import PARTS, Ends
from streammetrics.figures.values import NamedValue
from streammetrics.kernels.proportions import wilson_ends
from streammetrics.kernels.steps import Steps
from streammetrics.kernels.t_interval import critical
from streammetrics.results.bounded import Bounded
from streammetrics.results.figures import headline_of

LEVEL: Final = 0.95
CURVES: Final = 8  # classes of which each has a curve
CLASSES: Final = 50  # classes of which each has a line
_NONE: Final = (math.nan, math.nan)
Value = float | Bounded


class _Points(Protocol):
    thresholds: NDArray[np.floating]


class HasCurve(Protocol):
    """A result with the curves of two classes."""

    scores: NDArray[np.floating]
    counts: NDArray[np.int64]
    exact: bool
    reason: str
    _steps: Steps

    def roc(self) -> _Points: ...
    def gain(self, k: int) -> Sequence[Value]: ...
    def lift(self, k: int) -> Sequence[Value]: ...


class _HasClasses(Protocol):
    def auc(self, average: None) -> Sequence[Value]: ...
    def f1(self, average: None) -> Sequence[Value]: ...


class _Bins(Protocol):
    units: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    positive_share: NDArray[np.float64]


def curves_in(result: object) -> Mapping[str, HasCurve]:
    """The curve of two classes, or that of each of many against the rest; the first 8."""
    if callable(getattr(result, "roc", None)):
        return {"": cast("HasCurve", result)}
    each = getattr(result, "curves", ())
    return {f"class {i}": cast("HasCurve", one) for i, one in enumerate(each[:CURVES])}


def curve_of(found: HasCurve) -> Curve:
    """What ROC and precision-recall curves are drawn from."""
    return Curve(found._steps, found.roc().thresholds, found.exact, found.reason)


def scores_of(found: HasCurve) -> Scores:
    """What the distribution of scores is drawn from."""
    return Scores(found.scores, found.counts, found.reason)


def gain_of(found: HasCurve) -> Sequence[Ends]:
    """The gain in 20 parts."""
    return [ends(one) for one in found.gain(PARTS)]


def lift_of(found: HasCurve) -> Sequence[Ends]:
    """The lift in 20 parts."""
    return [ends(one) for one in found.lift(PARTS)]


def has_bins(result: object) -> bool:
    """Whether it has a reliability diagram."""
    return callable(getattr(result, "reliability", None))


def bins_of(result: object) -> Sequence[Bin]:
    """The bins of calibration; with Wilson's interval where no row is weighted."""
    table = cast("_Bins", result.reliability())  # type: ignore[attr-defined]
    weighted = getattr(result, "weight_units", None), getattr(result, "rows_rounded", None)
    q, found = critical(LEVEL), []
    for i, n in enumerate(table.units.tolist()):
        share = float(table.positive_share[i])
        interval = wilson_ends(round(share * n), n, q) if n and not any(weighted) else _NONE
        found.append(Bin(float(table.mean_score[i]), share, n, *map(float, interval)))
    return found


def table_of(result: object) -> NDArray[np.int64] | None:
    """Counts [truth, prediction] of two classes or of many."""
    method = getattr(result, "table", None)
    if callable(method):
        return np.asarray(method())
    matrix = getattr(result, "matrix", None)
    return matrix if isinstance(matrix, np.ndarray) and matrix.ndim == 2 else None


def classes_title(result: object) -> str:
    """What `classes_of` gives: the AUC of each class, or else its F1; "" where it has neither."""
    if getattr(result, "curves", ()):
        return "AUC of each class"
    both = callable(getattr(result, "rates", None)) and callable(getattr(result, "f1", None))
    return "F1 of each class" if both else ""


def classes_of(result: object, series: str) -> list[NamedValue]:
    """What each class, or label, says by itself; the first 50."""
    known = cast("_HasClasses", result)
    found = known.auc(None) if getattr(result, "curves", ()) else known.f1(None)
    return [
        NamedValue(str(i), series, *_bounded(one)) for i, one in enumerate(list(found)[:CLASSES])
    ]


def headlines(result: object) -> Iterator[tuple[str, Value]]:
    """The views that it is known by, with their values; no other is computed."""
    if isinstance(getattr(result, "means", None), Mapping):
        means = cast("Mapping[str, float]", result)
        yield from ((str(name), means[name]) for name in means)
    elif name := headline_of(result):
        yield name, getattr(result, name)


def values_of(result: object, about: object, series: str) -> list[NamedValue]:
    """The views that a result is known by, with bounds and intervals. about: what knows the
    intervals, the result itself or one that wraps it."""
    interval = getattr(about, "interval", None)
    found = []
    for name, value in headlines(result):
        of_view = interval(name, level=LEVEL) if callable(interval) else None
        both = _NONE if of_view is None else (of_view.lower, of_view.upper)
        found.append(NamedValue(name, series, *_bounded(value), *both))
    return found


def effects_of(result: object, series: str) -> list[NamedValue] | None:
    """The effect of a comparison, or of each finding of a report with its always-valid interval;
    None of what is neither."""
    if hasattr(result, "effect_size_ci_lower"):
        both = result.effect_size_ci_lower, result.effect_size_ci_upper  # type: ignore[attr-defined]
        effect = float(getattr(result, "effect_size", math.nan))
        return [NamedValue(str(getattr(result, "view", "")), series, effect, *_NONE, *both)]
    findings = getattr(result, "findings", None)
    if findings is None:
        return None
    return [
        NamedValue(
            one.contrast.name,
            series,
            one.contrast.comparison.effect_size,
            lower=one.anytime_lower,
            upper=one.anytime_upper,
        )
        for one in findings
    ]


def parts_of(result: object) -> Mapping[object, object] | None:
    """The results of which it is a mapping: by key, by metric or by window; None of others."""
    found = getattr(result, "results", None)
    return found if isinstance(found, Mapping) else None


def ends(value: Value) -> Ends:
    """A value with its certain ends, which are the value where it is exact."""
    if isinstance(value, Bounded):
        return value.value, value.low, value.high
    return value, value, value


def _bounded(value: Value) -> Ends:
    """A value with its certain ends, which are nan where it is exact."""
    return ends(value) if isinstance(value, Bounded) else (float(value), *_NONE)
