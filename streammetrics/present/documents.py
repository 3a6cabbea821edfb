"""The table of a result as Markdown, LaTeX and CSV: what `print` shows, with all of its lines.

Names may come from a stream and hold anything: what means something in Markdown or LaTeX is
escaped, and a cell that a spreadsheet would run as a formula is quoted.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from io import StringIO
from typing import Final

from streammetrics.core.conversion import flag
from streammetrics.present.row_table import ALL, Line, RowTable, table_of
from streammetrics.present.texts import UNDEFINED, name_text
from streammetrics.present.value_rows import ValueRow, checked_level, rows_of
from streammetrics.present.view import SHARE
from streammetrics.present.views import has_parts, range_of

STARS: Final = ((0.001, "***"), (0.01, "**"), (0.05, "*"))  # p-values below these
_MARKED: Final = ("difference", "value")  # the columns that stars mark
_NUMBER: Final = r"[-+<]?(?:[0-9][0-9,]*(?:\.[0-9]+)?(?:e[-+][0-9]+)?|inf)"
_NUMBERS: Final = re.compile(
    rf"{_NUMBER}(?: %)?\**|{_NUMBER} to {_NUMBER}(?: %)?(?: \([^()]* %\))?"
    rf"|\[{_NUMBER}, {_NUMBER}\](?: %)?|[0-9]+(?:/[0-9]+)+"
)
_DIGITS: Final = re.compile(r"[0-9][0-9,]*\.[0-9]+(?:e[-+][0-9]+)?")
_GROUPED: Final = re.compile(r"[-+]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?\**")
_FORMULA: Final = tuple("=+-@＝＋－＠")  # also the wide forms, which spreadsheets read alike


def markdown(
    result: object, *, level: float = 0.95, stars: bool = False, units: bool = False
) -> str:
    r"""See `Shown.to_markdown`.

    >>> from streammetrics import PerKey, Ratio
    >>> ctr = PerKey(Ratio())
    >>> ctr.update(["a|b"] * 4, numerators=[1, 0, 0, 1])
    >>> print(markdown(ctr.compute()))
    | name | rows | value | 95 % CI |
    |:---|---:|---:|---:|
    | a\|b: ratio | 4 | 0.50000 | 0.15004 to 0.84996 |
    """
    return _markdown(document_of(result, level, stars, units))


def _markdown(table: RowTable) -> str:
    alignment = [":---" if is_text else "---:" for is_text in _text_columns(table)]
    lines = [table.titles, *table.lines]
    rows = [f"| {' | '.join(map(_markdown_cell, line))} |" for line in lines]
    rows.insert(1, f"|{'|'.join(alignment)}|")
    return "\n".join([*rows, *_legend(table, lambda text: f"\n{_markdown_cell(text)}")])


def latex(result: object, *, level: float = 0.95, stars: bool = False, units: bool = False) -> str:
    r"""See `Shown.to_latex`.

    >>> from streammetrics import Ratio
    >>> print(latex(Ratio().compute()).splitlines()[0])
    \begin{tabular}{lrl}
    """
    return _latex(document_of(result, level, stars, units))


def _latex(table: RowTable) -> str:
    alignment = "".join("l" if is_text else "r" for is_text in _text_columns(table))
    titles, *lines = (
        rf"{' & '.join(map(_latex_cell, line))} \\" for line in (table.titles, *table.lines)
    )
    width = len(table.titles)
    legend = _legend(table, lambda text: rf"\multicolumn{{{width}}}{{l}}{{{_latex_cell(text)}}} \\")
    rows = [rf"\begin{{tabular}}{{{alignment}}}", r"\toprule", titles, r"\midrule", *lines]
    return "\n".join([*rows, r"\bottomrule", *legend, r"\end{tabular}"])


def csv_text(
    result: object, *, level: float = 0.95, stars: bool = False, units: bool = False
) -> str:
    """See `Shown.to_csv`.

    >>> from streammetrics import PerKey, Ratio
    >>> ctr = PerKey(Ratio())
    >>> ctr.update(["=1+1"] * 2000, numerators=[1, 0] * 1000)
    >>> print(csv_text(ctr.compute()))
    name,rows,value,95 % CI
    '=1+1: ratio,2000,0.50000,0.47811 to 0.52189
    <BLANKLINE>
    """
    return _csv(document_of(result, level, stars, units))


def _csv(table: RowTable) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_csv_cell(cell) for cell in line] for line in (table.titles, *table.lines))
    return text.getvalue()


def document(titles: Sequence[str], lines: Sequence[Sequence[str]], form: str, left: int) -> str:
    """Texts as a table of this form: "markdown", "latex" or "csv". left: how many columns of names
    are at the left; the others are of numbers.

    >>> print(document(["name", "value"], [["a|b", "0.5"]], "csv", 1).splitlines())
    ['name,value', 'a|b,0.5']
    """
    write = {"markdown": _markdown, "latex": _latex, "csv": _csv}[form]
    return write(RowTable("", "", tuple(titles), tuple(map(tuple, lines)), left=left))


def document_of(
    result: object, level: float, stars: bool, units: bool, *, has_notes: bool = False
) -> RowTable:
    """The whole table, with the columns that people read; a legend of its stars below. has_notes:
    with the notes of `print` above the legend; else with a column of reasons if there are."""
    is_starred, has_units = flag(stars, "stars"), flag(units, "units")
    table = table_of(result, ALL, checked_level(level))
    n_columns = len(table.titles) - table.details
    titles = tuple(title or "name" for title in table.titles[:n_columns])
    typed: Mapping[str, str] = getattr(result, "_typed", {})
    lines: list[Line] = [
        (_as_typed(line[0], typed), *line[1:n_columns]) if table.left else line[:n_columns]
        for line in table.lines
    ]
    if has_units and table.rows:
        shares = _shares(result, has_parts(result))
        lines = [
            _percent(line, table.left) if is_share else line
            for line, is_share in zip(lines, shares, strict=False)
        ]
    notes = table.notes if has_notes else ()
    if is_starred and any(row.pvalue is not None for row in table.rows):
        marked = next(i for i, title in enumerate(titles) if title in _MARKED)
        lines = [
            (*line[:marked], line[marked] + stars_of(row.pvalue), *line[marked + 1 :])
            for line, row in zip(lines, table.rows, strict=True)
        ]
        notes += (", ".join(f"{mark} p < {limit:g}" for limit, mark in reversed(STARS)),)
    reasons = [] if has_notes else [*map(_reason, table.rows)]
    if any(reasons):
        titles = (*titles, "reason")
        lines = [(*line, reason) for line, reason in zip(lines, reasons, strict=True)]
    return table._replace(titles=titles, lines=tuple(lines), notes=notes)


def _as_typed(cell: str, typed: Mapping[str, str]) -> str:
    """A cell of names, whose last one is as it was typed.

    >>> _as_typed("short: NDCG@10", {"NDCG@10": "ndcg@10"}), _as_typed("a", {})
    ('short: ndcg@10', 'a')
    """
    place, colon, name = cell.rpartition(": ")
    return f"{place}{colon}{name_text(typed[name], ALL)}" if name in typed else cell


def stars_of(pvalue: float | None) -> str:
    """The stars of a p-value: * below 0.05, ** below 0.01, *** below 0.001.

    >>> stars_of(0.03), stars_of(0.0005), stars_of(0.05), stars_of(None)
    ('*', '***', '', '')
    """
    return next((mark for limit, mark in STARS if pvalue is not None and pvalue < limit), "")


def _reason(row: ValueRow) -> str:
    """Why the value, or its interval, is undefined."""
    if not row.reason or (math.isfinite(float(row.value)) and row.ci):
        return ""
    prefix = "no interval: " if math.isfinite(float(row.value)) else ""
    return prefix + name_text(row.reason, ALL)


def _shares(result: object, headlines: bool) -> Iterator[bool]:
    """Whether each row is a share, by the range of its view."""
    if has_parts(result):
        for _, part in result._parts():
            yield from _shares(part, headlines)
        return
    for row in rows_of(result, headlines=headlines):
        yield row.exact and bool(row.name) and range_of(result, row.name) == SHARE


def _percent(line: Line, left: int) -> Line:
    """The line with its value, bounds and interval in percent. The digits stay as they are."""
    return (*line[:left], *map(_cell_in_percent, line[left:]))


def _cell_in_percent(cell: str) -> str:
    shifted = _DIGITS.sub(lambda digits: f"{Decimal(digits[0]).scaleb(2):f}", cell)
    return f"{shifted} %" if shifted != cell else cell


def _text_columns(table: RowTable) -> Iterator[bool]:
    """Whether each column is one of texts, at the left."""
    for i, title in enumerate(table.titles):
        yield i < table.left or title == "reason"


def _legend(table: RowTable, written: Callable[[str], str]) -> Sequence[str]:
    return [written(note) for note in table.notes]


def _markdown_cell(cell: str) -> str:
    r"""A cell as GitHub and CommonMark show it; only stars are escaped in numbers.

    >>> print(_markdown_cell("f_beta(2) of <b>_x_"), _markdown_cell("[0.1, 0.2]"))
    f_beta(2) of \<b\>\_x\_ [0.1, 0.2]
    """
    if _NUMBERS.fullmatch(cell):
        return cell.replace("*", r"\*").replace("<", r"\<")
    # An underscore between letters or digits is no mark-up.
    return re.sub(r"[\\`*\[\]<>|~&$#]|(?<![^\W_])_|_(?![^\W_])", r"\\\g<0>", cell)


_LATEX: Final = {
    **{mark: rf"\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after `\\` it would begin an argument
    "*": "{*}",  # so would this one
}


def _latex_cell(cell: str) -> str:
    r"""A cell as LaTeX sets it; signed numbers are in math mode, which has a minus.

    >>> print(_latex_cell("a_b 5%"), _latex_cell("-0.10 to +0.20"), _latex_cell("[1.5e-12, 2.0]"))
    a\_b 5\% $-0.10$ to $+0.20$ {[}$1.5\times10^{-12}$, 2.0]
    """
    if not _NUMBERS.fullmatch(cell):
        return "".join(_LATEX.get(character, character) for character in cell)
    bare = cell.rstrip("*")
    text = re.sub(_NUMBER, _latex_number, bare).replace("%", r"\%").replace("[", "{[}")
    return f"{text}$^{{{cell[len(bare) :]}}}$".replace("$$", "") if bare != cell else text


def _latex_number(number: re.Match[str]) -> str:
    text = number[0].replace("inf", r"\infty")
    digits, _, exponent = text.replace(",", "{,}").partition("e")
    if exponent:
        return rf"${digits}\times10^{{{int(exponent)}}}$"
    return f"${digits}$" if text[0] in "-+<\\" else text


def _csv_cell(cell: str) -> str:
    """A cell as it is read again: numbers without commas, and nan; never a formula."""
    if _GROUPED.fullmatch(cell):
        return cell.replace(",", "")
    if cell == UNDEFINED:
        return "nan"
    return f"'{cell}" if cell.startswith(_FORMULA) and not _NUMBERS.fullmatch(cell) else cell
