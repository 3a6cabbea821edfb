"""The figures of any result: its kinds, and each of them for one result or for several."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from streammetrics.core.bounded import Bounded
from streammetrics.core.conversion import refused
from streammetrics.core.errors import InputError, shown
from streammetrics.kernels.curves.steps import Steps
from streammetrics.kernels.curves.uplift import ArmSteps
from streammetrics.kernels.inference.proportions import wilson_bounds
from streammetrics.kernels.inference.t_interval import critical
from streammetrics.present.count_figures import Bin, Scores, confusion, distribution, reliability
from streammetrics.present.curves import (
    PARTS,
    Bounds,
    Curve,
    Effects,
    gain,
    lift,
    pr,
    roc,
    uplift,
    uplift_parts,
)
from streammetrics.present.differences import Differences, differences
from streammetrics.present.named_values import NamedValue, values
from streammetrics.present.spec import head
from streammetrics.present.texts import ci_title, decimals_for, name_text, number
from streammetrics.present.themes import Spec
from streammetrics.present.views import views_of
from streammetrics.present.windows_over_time import WindowValue, over_time

LEVEL: Final = 0.95
CURVES: Final = 8  # classes with a curve each
CLASSES: Final = 50  # classes with a line each
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


class HasUplift(Protocol):
    """A result with the curve of two arms."""

    exact: bool
    reason: str
    _steps: ArmSteps

    def curve(self) -> _Points: ...
    def uplift_by_part(self) -> Sequence[Value]: ...


class _HasDistributions(Protocol):
    reason: str

    def _distributions(self) -> tuple[NDArray[np.floating], NDArray[np.int64]]: ...


class HasDifferences(Protocol):
    """A comparison of runs on the same queries with a baseline."""

    baseline: str
    level: float

    def _query_differences(self) -> Sequence[Differences]: ...


class _HasClasses(Protocol):
    def auc(self, average: None) -> Sequence[Value]: ...
    def f1(self, average: None) -> Sequence[Value]: ...


class _Bins(Protocol):
    units: NDArray[np.int64]
    mean_score: NDArray[np.float64]
    positive_share: NDArray[np.float64]


def curves_in(result: object) -> Mapping[str, HasCurve]:
    """The curve of two classes, or the one-vs-rest curves of the first 8 of many classes."""
    if callable(getattr(result, "roc", None)):
        return {"": cast("HasCurve", result)}
    curves = getattr(result, "curves", ())
    return {f"class {i}": cast("HasCurve", curve) for i, curve in enumerate(curves[:CURVES])}


def curve_of(result: HasCurve) -> Curve:
    """The data of the ROC and precision-recall curves."""
    return Curve(result._steps, result.roc().thresholds, result.exact, result.reason)


def uplift_in(result: object) -> Mapping[str, HasUplift]:
    """The curve of two arms, if the result has one."""
    has = callable(getattr(result, "uplift_by_part", None))
    return {"": cast("HasUplift", result)} if has else {}


def effects_by_score(result: HasUplift) -> Effects:
    """The data of the uplift curve."""
    return Effects(result._steps, result.curve().thresholds, result.exact, result.reason)


def bins_of(result: object) -> Sequence[Bin]:
    """The bins of calibration, by mass if the result knows them; with Wilson's interval if no row
    is weighted."""
    table = cast("_Bins", result._drawn)  # type: ignore[attr-defined]
    weighted = getattr(result, "weight_units", None), getattr(result, "rows_rounded", None)
    q, bins = critical(LEVEL), []
    for i, n in enumerate(table.units.tolist()):
        share = float(table.positive_share[i])
        interval = wilson_bounds(round(share * n), n, q) if n and not any(weighted) else _NONE
        bins.append(Bin(float(table.mean_score[i]), share, n, *map(float, interval)))
    return bins


def sides_of(result: object) -> Scores:
    """The values of a reference and of current rows."""
    compared = cast("_HasDistributions", result)
    return Scores(*compared._distributions(), compared.reason, ("current rows", "reference"))


def table_of(result: object) -> NDArray[np.int64] | None:
    """Counts [truth, prediction] of two classes or of many."""
    method = getattr(result, "table", None)
    if callable(method):
        return np.asarray(method())
    matrix = getattr(result, "matrix", None)
    return matrix if isinstance(matrix, np.ndarray) and matrix.ndim == 2 else None


def classes_title(result: object) -> str:
    """The title of `classes_of`: the AUC of each class, or else its F1; "" if it has neither."""
    if getattr(result, "curves", ()):
        return "AUC of each class"
    has_f1 = callable(getattr(result, "rates", None)) and callable(getattr(result, "f1", None))
    return "F1 of each class" if has_f1 else ""


def classes_of(result: object, series: str) -> list[NamedValue]:
    """The value of each class or label; the first 50."""
    with_classes = cast("_HasClasses", result)
    class_values = (
        with_classes.auc(None) if getattr(result, "curves", ()) else with_classes.f1(None)
    )
    return [
        NamedValue(str(i), series, *_bounded(value))
        for i, value in enumerate(list(class_values)[:CLASSES])
    ]


def values_of(result: object, about: object, series: str) -> list[NamedValue]:
    """The headline views of a result, with bounds and intervals. about: the source of the
    intervals, the result itself or its wrapper."""
    interval = getattr(about, "interval", None)
    named_values = []
    for name, value in views_of(result, headlines=True).items():
        of_view = interval(name, level=LEVEL) if callable(interval) else None
        ends = _NONE if of_view is None else (of_view.lower, of_view.upper)
        named_values.append(NamedValue(name, series, *_bounded(value), *ends))
    return named_values


def effects_of(result: object, series: str) -> list[NamedValue] | None:
    """The effect of a comparison, or of each finding of a report with its always-valid interval;
    None for other results."""
    if hasattr(result, "effect_size_ci_lower"):
        ends = result.effect_size_ci_lower, result.effect_size_ci_upper  # type: ignore[attr-defined]
        effect = float(getattr(result, "effect_size", math.nan))
        return [NamedValue(str(getattr(result, "view", "")), series, effect, *_NONE, *ends)]
    findings = getattr(result, "findings", None)
    if findings is None:
        return None
    return [
        NamedValue(
            finding.contrast.name,
            series,
            finding.contrast.comparison.effect_size,
            lower=finding.anytime_lower,
            upper=finding.anytime_upper,
        )
        for finding in findings
    ]


def parts_of(result: object) -> Mapping[object, object] | None:
    """The results in a mapping of results: by key, by metric or by window; None for others."""
    parts = getattr(result, "results", None)
    return parts if isinstance(parts, Mapping) else None


def bounds(value: Value) -> Bounds:
    """A value with its certain bounds, which equal the value if it is exact."""
    if isinstance(value, Bounded):
        return value.value, value.low, value.high
    return value, value, value


def _bounded(value: Value) -> Bounds:
    """A value with its certain bounds, which are nan if it is exact."""
    return bounds(value) if isinstance(value, Bounded) else (float(value), *_NONE)


KINDS: Final = (
    *("roc", "pr", "scores", "gain", "lift", "uplift", "uplift_parts", "distributions"),
    *("reliability", "confusion", "classes", "windows", "differences", "effects", "values"),
)
MOST: Final = 20  # series of a figure
# By kind, the curves of a result by name, the data of one, and how several are drawn.
_CURVES: Final[
    Mapping[
        str,
        tuple[Callable[[object], Mapping[str, Any]], Callable[..., object], Callable[..., Spec]],
    ]
] = {
    "roc": (curves_in, curve_of, roc),
    "pr": (curves_in, curve_of, pr),
    "scores": (
        curves_in,
        lambda result: Scores(result.scores, result.counts, result.reason),
        distribution,
    ),
    "gain": (curves_in, lambda result: list(map(bounds, result.gain(PARTS))), gain),
    "lift": (curves_in, lambda result: list(map(bounds, result.lift(PARTS))), lift),
    "uplift": (uplift_in, effects_by_score, uplift),
    "uplift_parts": (
        uplift_in,
        lambda result: list(map(bounds, result.uplift_by_part())),
        uplift_parts,
    ),
}


_VIEWS: Final = {
    "roc": "auc",
    "pr": "ap",
    "uplift": "qini",
    "reliability": "ece",
    "distributions": "psi",
}  # the value that a figure shows
_NAME: Final = 24  # characters of a series beside its value
_ACRONYM: Final = 4  # letters of a view that is written in capitals
_NAMES: Final = {"qini": "Qini", "ece_by_mass": "ECE by mass"}  # other texts of views


def kinds_of(result: object) -> tuple[str, ...]:
    """The kinds of figures that a result has, with the default of `plot` first; () if none.

    >>> from streammetrics import HistogramAUC, Ratio
    >>> kinds_of(Ratio().compute())
    ('values',)
    >>> kinds_of(HistogramAUC().compute())
    ('roc', 'pr', 'scores', 'gain', 'lift', 'values')
    """
    parts, inner = parts_of(result), _inner(result)
    if parts is not None:
        if hasattr(result, "total"):
            return ("windows",) if _has_headline(result.total) else ()
        if hasattr(result, "overflow"):
            return _shared(parts.values())
        return ("values",) if any(map(_has_headline, parts.values())) else ()
    if hasattr(result, "_query_differences"):
        return ("differences",)
    if effects_of(result, "") is not None:
        return ("effects",)
    has = {
        **{kind: bool(curves_of(inner)) for kind, (curves_of, _, _) in _CURVES.items()},
        "distributions": hasattr(inner, "_distributions"),
        "reliability": callable(getattr(inner, "reliability", None)),
        "confusion": table_of(inner) is not None,
        "classes": bool(classes_title(inner)),
        "values": _has_headline(inner),
    }
    return tuple(kind for kind, true in has.items() if true)


def figure_of(
    result: object, kind: str | None = None, *, title: str = "", theme: str = "light"
) -> Spec:
    """The figure of a result as a Vega-Lite specification, a plain dict.

    kind: one of `kinds_of(result)`, None for the first. title: "" for that of the kind. theme:
    "light" or "dark". InputError for a kind that the result does not have.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> figure_of(ctr.compute())["data"]["values"][0]["value"]
    0.5
    """
    parts = parts_of(result)
    if parts is not None and hasattr(result, "overflow") and parts:
        by_key = {text_of_key(key): part for key, part in parts.items()}
        return figure_by_series(by_key, kind, title=title, theme=theme)
    return figure_by_series({"": result}, kind, title=title, theme=theme)


def figure_by_series(
    results: Mapping[str, object],
    kind: str | None = None,
    *,
    title: str = "",
    theme: str = "light",
) -> Spec:
    """One figure of several results, such as one for each variant; the first 20.

    >>> from streammetrics import Ratio
    >>> spec = figure_by_series({"random": Ratio().compute(), "bts": Ratio().compute()})
    >>> spec["usermeta"]["reason"]
    'no value is defined'
    """
    _check_title(title)
    if not isinstance(cast("object", results), Mapping):
        raise refused("figure_by_series(results)", "results by name", results, 'pass {"a": result}')
    chosen = dict(list(results.items())[:MOST])
    kinds = _shared(chosen.values())
    kind = kinds[0] if kind is None and kinds else kind
    if not isinstance(kind, str) or kind not in kinds:
        names = sorted({type(result).__name__ for result in chosen.values()})
        raise InputError(
            expected=f"a figure of {' and '.join(names) or 'no result'}: "
            f"{', '.join(kinds) or 'none; choose a part of the result'}",
            got=shown(kind),
            where="kind",
            hint="pass one of these, or None for the first",
        )
    heading = {"title": title} if title else {}
    inner = {series: _inner(result) for series, result in chosen.items()}
    if kind in _CURVES:
        found_in, source, draw = _CURVES[kind]
        curves = {
            ": ".join(filter(None, (series, name))): source(curve)
            for series, result in inner.items()
            for name, curve in found_in(result).items()
        }
        return _with_values(draw(curves, theme=theme, **heading), inner, _VIEWS.get(kind, ""))
    if kind == "distributions":
        sides = {series: sides_of(result) for series, result in inner.items()}
        titled = {"title": "Distributions", **heading}
        drawn = distribution(sides, theme=theme, kind=kind, x="value", **titled)
        return _with_values(drawn, inner, _VIEWS[kind])
    if kind == "reliability":
        bins = {series: bins_of(result) for series, result in inner.items()}
        by_mass = all(getattr(result, "ece_by_mass", None) for result in inner.values())
        view = "ece_by_mass" if by_mass else _VIEWS[kind]
        return _with_values(reliability(bins, theme=theme, **heading), inner, view)
    if kind == "confusion":
        tables = {series: table_of(result) for series, result in inner.items()}
        whole = {series: table for series, table in tables.items() if table is not None}
        return confusion(whole, theme=theme, **heading)
    if kind == "windows":
        return _windows(chosen, title, theme)
    if kind == "classes":
        of_classes = [value for s, result in inner.items() for value in classes_of(result, s)]
        axis_title = classes_title(next(iter(inner.values())))
        return values(of_classes, title=title, x=axis_title, theme=theme, kind=kind)
    if kind == "differences":
        comparisons = cast("Mapping[str, HasDifferences]", chosen)
        first = next(iter(comparisons.values()))
        by_query = [
            replace(difference, run=": ".join(filter(None, (series, difference.run))))
            for series, comparison in comparisons.items()
            for difference in comparison._query_differences()
        ]
        return differences(
            by_query,
            baseline=name_text(first.baseline),
            level_of_intervals=first.level,
            title=title,
            theme=theme,
        )
    if kind == "effects":
        effects = [effect for s, result in chosen.items() for effect in effects_of(result, s) or ()]
        levels = {getattr(result, "level", None) for result in chosen.values()}
        level = levels.pop() if len(levels) == 1 else None
        words = ci_title(level) if level else "CI"
        words = words if hasattr(next(iter(chosen.values())), "level") else "always-valid CI"
        return values(
            effects, title=title, x="effect", zero=True, interval=words, theme=theme, kind=kind
        )
    named_values = [value for s, result in chosen.items() for value in _values(result, s)]
    names = list(dict.fromkeys(value.name for value in named_values))
    x = names[0] if len(names) == 1 else "value"
    return values(named_values, title=title, x=x, interval=ci_title(LEVEL), theme=theme)


def _check_title(title: object) -> None:
    if not isinstance(title, str):
        hint = "pass a text, or leave it out"
        raise InputError(expected="a string", got=shown(title), where="title", hint=hint)


def _with_values(spec: Spec, inner: Mapping[str, object], view: str) -> Spec:
    """The figure with the value of a view of each series in its subtitle; without the view, as it
    is."""
    texts = []
    for series, result in inner.items():
        attribute = getattr(result, view, None) if view else None
        if isinstance(attribute, (float, Bounded)) and math.isfinite(float(attribute)):
            value = float(attribute)
            value_text = number(value, decimals_for([value]))
            # A name and its value stay in one line.
            texts.append(
                f"{_short(series)} {value_text}".replace(" ", "\xa0") if series else value_text
            )
    meta = cast("Mapping[str, str]", spec["usermeta"])
    if not texts or meta["reason"]:
        return spec
    name = view.upper() if len(view) <= _ACRONYM else view.replace("_", " ")
    name = _NAMES.get(view, name)
    subtitle = f"{name}: {', '.join(texts)}" if "" not in inner else f"{name} {texts[0]}"
    title = cast("str | list[str]", cast("Spec", spec["title"])["text"])
    text = title if isinstance(title, str) else " ".join(title)
    return {**spec, "title": head(text, subtitle, spec["width"])}


def _short(name: str) -> str:
    """A name without its middle, so that names with equal beginnings differ."""
    text = name_text(name, 200)
    return text if len(text) <= _NAME else f"{text[: _NAME // 2]}...{text[-_NAME // 3 :]}"


def _values(result: object, series: str) -> list[NamedValue]:
    """The headlines of a result, or of each metric of a panel."""
    parts = parts_of(result)
    if parts is None:
        return values_of(_inner(result), result, series)
    named_values = []
    for name, part in parts.items():
        for value in values_of(_inner(part), part, series):
            text = f"{text_of_key(name)}: {value.name}"
            named_values.append(replace(value, name=text))
    return named_values


def _windows(results: Mapping[str, object], title: str, theme: str) -> Spec:
    window_values, name = [], "value"
    for series, result in results.items():
        for span, part in (parts_of(result) or {}).items():
            start, end = cast("tuple[int, int]", span)
            keyed = parts_of(part) if hasattr(part, "overflow") else None
            inside = {"": part} if keyed is None else keyed
            for key, entry in inside.items():
                text = ": ".join(filter(None, (series, "" if keyed is None else text_of_key(key))))
                for value in values_of(_inner(entry), entry, text)[:1]:
                    name = value.name
                    bounds = value.value, value.low, value.high, value.lower, value.upper
                    window_values.append(WindowValue(start, end, text, *bounds))
    return over_time(window_values, title=title, y=name, theme=theme)


def _shared(results: Iterable[object]) -> tuple[str, ...]:
    """The kinds that all these results have, in the order of the first."""
    kinds = [kinds_of(result) for result in results]
    first = kinds[0] if kinds else ()
    return tuple(kind for kind in first if all(kind in result_kinds for result_kinds in kinds))


def _has_headline(result: object) -> bool:
    parts = parts_of(result)
    if parts is not None:
        return hasattr(result, "overflow") and any(map(_has_headline, parts.values()))
    return bool(views_of(_inner(result), headlines=True))


def _inner(result: object) -> object:
    """The result that figures are drawn from: the value of a UserGroupsResult, else the result."""
    return result.value if hasattr(result, "estimate_of") else result  # type: ignore[attr-defined]


def text_of_key(key: object) -> str:
    """The text of a key of a mapping of results; the values of several columns are joined."""
    if isinstance(key, Mapping):
        return str(dict(key))
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
