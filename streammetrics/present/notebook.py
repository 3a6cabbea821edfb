"""A result as a small HTML table, for notebooks and reports; all text in it is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

from streammetrics.core.bounded import Bounded
from streammetrics.present import figures
from streammetrics.present.figures import figure_of
from streammetrics.present.spec import not_installed
from streammetrics.present.theme import Spec
from streammetrics.present.views import Directions, Ranges, counts_of, texts_of, views_of

if TYPE_CHECKING:
    import altair

    Chart: TypeAlias = altair.LayerChart


def chart(spec: Spec) -> Chart:
    """The figure as an Altair chart; SettingsError if Altair is not installed."""
    try:
        import altair
    except ImportError as error:
        raise not_installed("Altair", "plot", error) from None
    # No validation: our specifications are valid, as the tests show, and charts are made often.
    found: altair.LayerChart = altair.LayerChart.from_dict(spec, validate=False)
    return found


MOST: Final = 100  # lines
SCOPE: Final = ' scope="col"'
_HEAD: Final = ("", "value", "certain bounds", "95 % interval")
_OF_EFFECTS: Final = ("", "effect", "", "always-valid interval")
_Line = tuple[str, str, str, str]


def html_table(result: object) -> str:
    """Each view with its bounds and its interval, then counts and texts.

    A mapping of results has a line for each headline view; the report of an experiment has its
    effects and sentences. The first 100 lines.

    >>> from streammetrics import Ratio
    >>> html_table(Ratio().compute()).startswith("<table><caption>Quotient</caption>")
    True
    """
    findings = getattr(result, "findings", None)
    titles = _HEAD if findings is None else _OF_EFFECTS
    lines = list(islice(_lines(result), MOST + 1))
    more = len(lines) > MOST
    head = f"<tr>{_cells('th', titles, SCOPE)}</tr>"
    body = "".join(_line(one) for one in lines[:MOST])
    about = [*(f"{name} {count:,}" for name, count in counts_of(result).items())]
    about += [f"{name}: {text}" for name, text in texts_of(result).items()]
    if findings is not None:
        advice = getattr(result, "recommendation", None)
        about += [] if advice is None else [str(advice.sentence)]
        about += [str(one.sentence) for one in findings]
        about += map(str, getattr(result, "notes", ()))
    if more:
        about.insert(0, f"only {MOST} lines are shown")
    foot = f'<tfoot><tr><td colspan="4">{escape("; ".join(about))}</td></tr></tfoot>'
    return (
        f"<table><caption>{escape(type(result).__name__)}</caption>"
        f"<thead>{head}</thead><tbody>{body}</tbody>{foot if about else ''}</table>"
    )


def _lines(result: object, before: str = "") -> Iterator[_Line]:
    parts = figures.parts_of(result)
    if parts is not None:
        for key, part in parts.items():
            yield from _lines(part, f"{before}{figures.text_of_key(key)}: ")
        return
    if hasattr(result, "findings"):
        for effect in figures.effects_of(result, "") or ():
            yield effect.name, f"{effect.value:.6g}", "", _bounds(effect.lower, effect.upper)
        return
    interval = getattr(result, "interval", None)
    views: Iterable[tuple[str, float | Bounded]] = (
        figures.headlines(result) if before else views_of(result).items()
    )
    for name, value in views:
        found = interval(name) if callable(interval) else None
        sure = _bounds(value.low, value.high) if isinstance(value, Bounded) else ""
        bounds = "" if found is None else _bounds(found.lower, found.upper)
        yield f"{before}{name}", f"{float(value):.6g}", sure, bounds


def _bounds(low: float, high: float) -> str:
    """Both bounds, or "" if they are nan or both infinite."""
    if math.isnan(low) or (math.isinf(low) and math.isinf(high)):
        return ""
    return f"[{low:.6g}, {high:.6g}]"


def _line(line: _Line) -> str:
    name, *rest = line
    return f'<tr><th scope="row">{escape(name)}</th>{_cells("td", rest)}</tr>'


def _cells(tag: str, cells: Iterable[str], more: str = "") -> str:
    return "".join(f"<{tag}{more}>{escape(cell)}</{tag}>" for cell in cells)


class Shown:
    """A result that notebooks show as a table and that has plots.

    directions, ranges: of its views, see `views.directed` and `views.ranged`.
    """

    __slots__ = ()

    directions: ClassVar[Directions] = {}
    ranges: ClassVar[Ranges] = {}

    def plot(self, kind: str | None = None, *, title: str = "", theme: str = "light") -> Chart:
        """A figure as an Altair chart; needs `pip install 'streammetrics[plot]'`.

        kind: one of `streammetrics.results.kinds_of(result)`, None for the first. theme: "light"
        or "dark". The figure is that of the page and the report, from `figure_of`.
        """
        return chart(figure_of(self, kind, title=title, theme=theme))

    def _repr_html_(self) -> str:
        return html_table(self)
