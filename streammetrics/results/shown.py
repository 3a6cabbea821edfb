"""What every result can do for a notebook: a table and a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from streammetrics.figures.chart import chart
from streammetrics.results.direction import Directions
from streammetrics.results.drawn import figure_of
from streammetrics.results.html_table import html_table

if TYPE_CHECKING:
    from streammetrics.figures.chart import Chart


class Shown:
    """A result that a notebook shows as a table, and that has plots.

    directions: of its views, see `direction.directed`.
    """

    __slots__ = ()

    directions: ClassVar[Directions] = {}

    def plot(self, kind: str | None = None, *, title: str = "", theme: str = "light") -> Chart:
        """A figure as an Altair chart; needs `pip install 'streammetrics[plot]'`.

        kind: one of `streammetrics.results.kinds_of(result)`, None for the first. theme: "light"
        or "dark". The same figure as the page and the report have, from `figure_of`.
        """
        return chart(figure_of(self, kind, title=title, theme=theme))

    def _repr_html_(self) -> str:
        return html_table(self)
