"""What every result can do: become a table, be shown as one in a terminal or a notebook, and plot.

All text in HTML is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias, overload

from streammetrics.core.bounded import ByValue
from streammetrics.core.conversion import flag
from streammetrics.core.slips import NoItems
from streammetrics.present.value_rows import (
    LEVEL,
    Columns,
    Library,
    ValueRow,
    checked_level,
    frame_of,
    library_of,
    pandas_of_columns,
    rows_of,
    rows_of_views,
    strict,
    to_columns,
    wide_columns,
)

if TYPE_CHECKING:
    import altair

    from streammetrics.present.row_table import RowTable
    from streammetrics.present.themes import Spec
    from streammetrics.present.value_rows import Frame, PandasFrame, PolarsFrame

    Chart: TypeAlias = altair.LayerChart


def chart(spec: Spec) -> Chart:
    """The figure as an Altair chart; SettingsError if Altair is not installed."""
    try:
        import altair
    except ImportError as error:
        from streammetrics.present.spec import not_installed

        raise not_installed("Altair", "plot", error) from None
    # No validation: our specifications are valid, as the tests show, and charts are made often.
    altair_chart: altair.LayerChart = altair.LayerChart.from_dict(spec, validate=False)
    return altair_chart


class Shown(ByValue, NoItems):
    """A result that is shown as a table, becomes one, and has plots.

    Its floats are its views, and what is known of them is declared with them, as a `View`. A
    dataclass needs `repr=False` for the table, which `print` shows in any case. Results are equal
    where their values are, undefined ones too.
    """

    __slots__ = ("_typed",)  # how views were typed, by their names, where that is known

    estimates: ClassVar[bool] = False  # whether all of its views are measures of error

    def _value_rows(self, level: float, headlines: bool) -> Iterator[ValueRow]:
        return rows_of_views(self, level, headlines)

    def _columns(self, level: float) -> Columns:
        """The columns of `to_frame`, with Python's numbers."""
        from streammetrics.present.value_columns import columns_of_parts

        columns = columns_of_parts(self, checked_level(level))
        if columns is None:
            return to_columns(rows_of(self, level=level))
        return {name: column.cells() for name, column in columns.items()}

    def to_dict(self, *, level: float = LEVEL) -> dict[str, list[object]]:
        """The values as columns of equal length, one row a value; `pandas.DataFrame`,
        `polars.DataFrame` and `pyarrow.table` take them, and JSON holds them.

        Columns: name, key, window_start_ms, window_end_ms, value; exact_low and exact_high, which
        certainly contain the exact value, None for an estimate; ci_lower, ci_upper, ci_level,
        ci_method and ci_n (rows, lists or users), the confidence interval, None if there is none;
        reason, why something is undefined, or doubtful; then each count of the result, such as rows
        and positives. level: of the intervals.

        What is undefined (nan) or infinite is None, so that `json.dumps` writes strict JSON that
        reads as the same columns; `to_frame` has nan and inf. An interval with one end that is None
        has no bound on that side. Keys of several columns are lists.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update([1, 0, 0, 1])
        >>> columns = ctr.compute().to_dict()
        >>> columns["name"], columns["value"], columns["rows"]
        (['ratio', 'numerator', 'denominator'], [0.5, 2.0, 4.0], [4, 4, 4])
        """
        return strict(self._columns(level))

    @overload
    def to_frame(
        self, library: Literal["pandas"], *, level: float = ..., wide: bool = ...
    ) -> PandasFrame: ...
    @overload
    def to_frame(
        self, library: Literal["polars"], *, level: float = ..., wide: bool = ...
    ) -> PolarsFrame: ...
    @overload
    def to_frame(self, library: None = None, *, level: float = ..., wide: bool = ...) -> Frame: ...
    def to_frame(
        self, library: Library | None = None, *, level: float = LEVEL, wide: bool = False
    ) -> Frame:
        """The table of `to_dict` as a frame of pandas or polars; as a list of dicts if neither is
        installed. An undefined value is nan, and keys of several columns are tuples.

        library: "pandas" or "polars"; None: the one that the program has imported, else the one
        that is installed, pandas if both are. A column of keys of several types is text in polars.

        wide: a row for each key, window or run, with a column for the value of each name, nan where
        there is none; `key`, `window_start_ms` and `window_end_ms` are there if there are such.

        >>> from streammetrics import PerKey, Ratio
        >>> Ratio().compute().to_frame("pandas")["name"].tolist()
        ['ratio', 'numerator', 'denominator']
        >>> ctr = PerKey(Ratio())
        >>> ctr.update(["a", "b", "a"], numerators=[1, 0, 0])
        >>> print(ctr.compute().to_frame("pandas", wide=True))
          key  ratio  numerator  denominator
        0   a    0.5        1.0          2.0
        1   b    0.0        0.0          1.0
        """
        if flag(wide, "to_frame(wide)"):
            return frame_of(wide_columns(self._columns(checked_level(level))), library)
        columns = None
        if type(self)._columns is Shown._columns and library_of(library) == "pandas":
            from streammetrics.present.value_columns import columns_of_parts

            columns = columns_of_parts(self, checked_level(level))
        if columns is not None:
            return pandas_of_columns(columns)
        return frame_of(self._columns(level), library)

    def to_markdown(self, *, level: float = LEVEL, stars: bool = False, units: bool = False) -> str:
        """The table that `print` shows, with all of its lines, in Markdown.

        Its columns are the name with its key, the rows, the value, the certain bounds, the
        confidence interval, and the reason why a value or an interval is undefined; those that are
        empty are left out, and numbers have the decimals of `print`. A comparison of runs has
        measure, run, mean, difference, interval and p-value. Names are as they were typed, such as
        ndcg@10, with the characters escaped that mean something in Markdown.

        level: of the intervals; comparisons have their own. stars: mark values with a test against
        0, * p < 0.05, ** p < 0.01, *** p < 0.001, by the p-value that is adjusted for all
        comparisons of the table where it is. units: a value whose range is 0 to 1 is in percent,
        with its bounds and its interval; others have no unit.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update([1, 0, 0, 1] * 100)
        >>> print(ctr.compute().to_markdown(units=True))
        | name | value | 95 % CI |
        |:---|---:|---:|
        | ratio | 50.000 % | 45.123 to 54.877 % |
        | numerator | 200 |  |
        | denominator | 400 |  |
        """
        from streammetrics.present.documents import markdown

        return markdown(self, level=level, stars=stars, units=units)

    def to_latex(self, *, level: float = LEVEL, stars: bool = False, units: bool = False) -> str:
        r"""The table of `to_markdown` as a `tabular` of LaTeX, with the rules of its package
        booktabs; what means something in LaTeX is escaped.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update([1, 0, 0, 1] * 100)
        >>> print(ctr.compute().to_latex().splitlines()[2])
        name & value & 95 \% CI \\
        """
        from streammetrics.present.documents import latex

        return latex(self, level=level, stars=stars, units=units)

    def to_csv(self, *, level: float = LEVEL, stars: bool = False, units: bool = False) -> str:
        """The table of `to_markdown` as the text of a CSV file: numbers have no commas, and an
        undefined one is nan. A name that a spreadsheet would run as a formula, since it begins with
        =, +, - or @, begins with an apostrophe. `to_frame().to_csv(path)` has all columns.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update([1, 0, 0, 1] * 100)
        >>> print(ctr.compute().to_csv().splitlines()[0])
        name,value,95 % CI
        """
        from streammetrics.present.documents import csv_text

        return csv_text(self, level=level, stars=stars, units=units)

    def to_html(self, *, level: float = LEVEL, stars: bool = False, units: bool = False) -> str:
        """The table of `to_markdown` as the text of an HTML file, with all that `print` says around
        it, such as the recommendation of an experiment's report. The file loads nothing, and all
        text in it is escaped. `streammetrics.present.html_page` has several results on one page.

        >>> from streammetrics import Ratio
        >>> ctr = Ratio()
        >>> ctr.update([1, 0, 0, 1] * 100)
        >>> ctr.compute().to_html().splitlines()[0]
        '<!doctype html>'
        """
        from streammetrics.present.html_document import html_page

        name = type(self).__name__
        return html_page({name: self}, title=name, level=level, stars=stars, units=units)

    def __repr__(self) -> str:
        from streammetrics.present.row_table import text_table

        return text_table(self)

    def __str__(self) -> str:
        from streammetrics.present.row_table import text_table

        return text_table(self)

    def plot(self, kind: str | None = None, *, title: str = "", theme: str = "light") -> Chart:
        """A figure as an Altair chart; needs `pip install '.[plot]'` in a clone of streammetrics.

        kind: one of `streammetrics.results.kinds_of(result)`, None for the first. theme: "light"
        or "dark". The figure is that of the page and the report, from `figure_of`.
        """
        from streammetrics.present.figures import figure_of

        return chart(figure_of(self, kind, title=title, theme=theme))

    def _repr_html_(self) -> str:
        from streammetrics.present.html_document import html_table

        return html_table(self)


class ShownColumns(Shown):
    """A result that is a table: each field is a column [n], and its frame has a row for each point.

    A shorter field, such as the thresholds of a precision-recall curve, has none at the last point.
    """

    __slots__ = ()

    def _columns(self, level: float) -> Columns:
        names = [field.name for field in fields(self) if field.compare]  # type: ignore[arg-type]
        columns = {name: getattr(self, name).tolist() for name in names}
        n = max(map(len, columns.values()))
        return {name: column + [None] * (n - len(column)) for name, column in columns.items()}

    def _table(self, most: int) -> RowTable:
        from streammetrics.present.row_table import table_of_columns

        return table_of_columns(type(self).__name__, self._columns(LEVEL), most)

    def __len__(self) -> int:
        return max(map(len, self._compared()))  # type: ignore[arg-type]
