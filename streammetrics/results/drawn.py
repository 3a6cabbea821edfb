"""The figures of any result: which kinds it has, and each of them for one result or for several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, cast

from streammetrics.core.errors import InputError, shown
from streammetrics.figures.confusion import confusion
from streammetrics.figures.curves import pr, roc
from streammetrics.figures.distribution import distribution
from streammetrics.figures.over_time import WindowValue, over_time
from streammetrics.figures.reliability import reliability
from streammetrics.figures.shares import gain, lift
from streammetrics.figures.theme import Spec
from streammetrics.figures.values import NamedValue, values
from streammetrics.results import sources

KINDS: Final = (
    *("roc", "pr", "scores", "gain", "lift"),
    *("reliability", "confusion", "classes", "windows", "effects", "values"),
)
MOST: Final = 20  # series of a figure
_CURVES: Final[Mapping[str, tuple[Callable[..., object], Callable[..., Spec]]]] = {
    "roc": (sources.curve_of, roc),
    "pr": (sources.curve_of, pr),
    "scores": (sources.scores_of, distribution),
    "gain": (sources.gain_of, gain),
    "lift": (sources.lift_of, lift),
}


def kinds_of(result: object) -> tuple[str, ...]:
    """The kinds of figures that a result has, the one that `plot` takes first; () for none.

    >>> from streammetrics import HistogramAUC, Ratio
    >>> kinds_of(Ratio().compute())
    ('values',)
    >>> kinds_of(HistogramAUC().compute())
    ('roc', 'pr', 'scores', 'gain', 'lift', 'values')
    """
    parts, inner = sources.parts_of(result), _inner(result)
    if parts is not None:
        if hasattr(result, "total"):
            return ("windows",) if _has_headline(result.total) else ()
        if hasattr(result, "overflow"):
            return _shared(parts.values())
        return ("values",) if any(map(_has_headline, parts.values())) else ()
    if sources.effects_of(result, "") is not None:
        return ("effects",)
    found: list[str] = []
    if sources.curves_in(inner):
        found += _CURVES
    if sources.has_bins(inner):
        found.append("reliability")
    if sources.table_of(inner) is not None:
        found.append("confusion")
    if sources.classes_title(inner):
        found.append("classes")
    if _has_headline(inner):
        found.append("values")
    return tuple(found)


def figure_of(
    result: object, kind: str | None = None, *, title: str = "", theme: str = "light"
) -> Spec:
    """The figure of a result as a Vega-Lite specification, a plain dict.

    kind: one of `kinds_of(result)`, None for the first. title: "" for that of the kind. theme:
    "light" or "dark". InputError for a kind that the result has not got.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1])
    >>> figure_of(ctr.compute())["data"]["values"][0]["value"]
    0.5
    """
    parts = sources.parts_of(result)
    if parts is not None and hasattr(result, "overflow") and parts:
        named = {_text(key): one for key, one in parts.items()}
        return figure_by_series(named, kind, title=title, theme=theme)
    return figure_by_series({"": result}, kind, title=title, theme=theme)


def figure_by_series(
    results: Mapping[str, object],
    kind: str | None = None,
    *,
    title: str = "",
    theme: str = "light",
) -> Spec:
    """The same of several results, such as one for each variant, together; the first 20.

    >>> from streammetrics import Ratio
    >>> spec = figure_by_series({"random": Ratio().compute(), "bts": Ratio().compute()})
    >>> spec["usermeta"]["reason"]
    'no value is defined'
    """
    chosen = dict(list(results.items())[:MOST])
    known = _shared(chosen.values())
    kind = known[0] if kind is None and known else kind
    if kind not in known:
        names = sorted({type(one).__name__ for one in chosen.values()})
        raise InputError(
            expected=f"a figure of {' and '.join(names) or 'no result'}: "
            f"{', '.join(known) or 'there is none; choose a part of it'}",
            came=shown(kind),
            where="kind",
            todo="pass one of these, or None for the first",
        )
    named = {"title": title} if title else {}
    inner = {series: _inner(one) for series, one in chosen.items()}
    if kind in _CURVES:
        source, draw = _CURVES[kind]
        curves = {
            ": ".join(filter(None, (series, name))): source(one)
            for series, of in inner.items()
            for name, one in sources.curves_in(of).items()
        }
        return draw(curves, theme=theme, **named)
    if kind == "reliability":
        bins = {series: sources.bins_of(one) for series, one in inner.items()}
        return reliability(bins, theme=theme, **named)
    if kind == "confusion":
        tables = {series: sources.table_of(one) for series, one in inner.items()}
        whole = {series: table for series, table in tables.items() if table is not None}
        return confusion(whole, theme=theme, **named)
    if kind == "windows":
        return _windows(chosen, title, theme)
    if kind == "classes":
        of_classes = [one for s, of in inner.items() for one in sources.classes_of(of, s)]
        what = sources.classes_title(next(iter(inner.values())))
        return values(of_classes, title=title, x=what, theme=theme, kind=kind)
    if kind == "effects":
        effects = [one for s, of in chosen.items() for one in sources.effects_of(of, s) or ()]
        return values(effects, title=title, x="effect", zero=True, theme=theme, kind=kind)
    found = [one for s, of in chosen.items() for one in _values(of, s)]
    names = list(dict.fromkeys(one.name for one in found))
    x = names[0] if len(names) == 1 else "value"
    return values(found, title=title, x=x, theme=theme)


def _values(result: object, series: str) -> list[NamedValue]:
    """The headlines of a result, or of each metric of a panel."""
    parts = sources.parts_of(result)
    if parts is None:
        return sources.values_of(_inner(result), result, series)
    found = []
    for name, part in parts.items():
        for one in sources.values_of(_inner(part), part, series):
            text = f"{_text(name)}: {one.name}"
            found.append(replace(one, name=text))
    return found


def _windows(results: Mapping[str, object], title: str, theme: str) -> Spec:
    found, name = [], "value"
    for series, result in results.items():
        for span, part in (sources.parts_of(result) or {}).items():
            start, end = cast("tuple[int, int]", span)
            keyed = sources.parts_of(part) if hasattr(part, "overflow") else None
            inside = {"": part} if keyed is None else keyed
            for key, one in inside.items():
                text = ": ".join(filter(None, (series, "" if keyed is None else _text(key))))
                for value in sources.values_of(_inner(one), one, text)[:1]:
                    name = value.name
                    ends = value.value, value.low, value.high, value.lower, value.upper
                    found.append(WindowValue(start, end, text, *ends))
    return over_time(found, title=title, y=name, theme=theme)


def _shared(results: Iterable[object]) -> tuple[str, ...]:
    """The kinds that all of these have, in the order of the first."""
    kinds = [kinds_of(one) for one in results]
    first = kinds[0] if kinds else ()
    return tuple(kind for kind in first if all(kind in other for other in kinds))


def _has_headline(result: object) -> bool:
    parts = sources.parts_of(result)
    if parts is not None:
        return hasattr(result, "overflow") and any(map(_has_headline, parts.values()))
    return next(iter(sources.headlines(_inner(result))), None) is not None


def _inner(result: object) -> object:
    """The result that figures are drawn of: that which a UserGroupsResult is about."""
    return result.value if hasattr(result, "estimate_of") else result  # type: ignore[attr-defined]


def _text(key: object) -> str:
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)
