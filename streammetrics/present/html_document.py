"""Tables as HTML: one for a notebook, and a page of several that needs nothing else.

All text is escaped: names may come from a stream. A page loads nothing and runs no script.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

from streammetrics.core.conversion import refused
from streammetrics.present.documents import document_of
from streammetrics.present.row_table import ALL, Line, RowTable, table_of
from streammetrics.present.texts import name_text

MOST: Final = 100  # lines of a table in a notebook
SCOPE: Final = ' scope="col"'
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
th { font-weight: 600; }
th[scope=row], th.name { text-align: left; }
th[scope=row] { font-weight: 400; }
.about { opacity: .75; }
""".strip()


def html_table(result: object) -> str:
    """The lines of `repr`, with their bounds and intervals, and all that is said around them; the
    first 50 and the last 50 lines.

    >>> from streammetrics import Ratio
    >>> html_table(Ratio().compute()).startswith("<table><caption>Quotient</caption>")
    True
    """
    table = table_of(result, MOST)
    head = f"<tr>{_cells('th', table.titles, SCOPE)}</tr>"
    body = "".join(_line(line, 1) for line in table.lines)
    about = [f"only the first {MOST // 2} and the last {MOST // 2} lines are shown"] * table.more
    about += filter(None, (table.about, *table.notes))
    below = escape("; ".join(about))
    foot = f'<tfoot><tr><td colspan="{len(table.titles)}">{below}</td></tr></tfoot>'
    return (
        f"<table><caption>{escape(table.title)}</caption>"
        f"<thead>{head}</thead><tbody>{body}</tbody>{foot if about else ''}</table>"
    )


def html_page(
    results: Mapping[str, object],
    *,
    title: str = "Results",
    level: float = 0.95,
    stars: bool = False,
    units: bool = False,
) -> str:
    """The text of an HTML file with a table for each result, under its heading, and all that is
    said of it, such as the recommendation of an experiment's report. The file loads nothing, runs
    no script, and all text in it is escaped.

    results: results by heading. title: of the page. level, stars, units: as in `to_markdown`.
    InputError for what is no mapping of results.

    >>> from streammetrics import Ratio
    >>> ctr = Ratio()
    >>> ctr.update([1, 0, 0, 1] * 100)
    >>> page = html_page({"Click rate": ctr.compute()}, title="A & B", units=True)
    >>> "<title>A &amp; B</title>" in page, "<td>45.123 to 54.877 %</td>" in page
    (True, True)
    """
    given_results: object = results
    if not isinstance(given_results, Mapping) or not all(map(_is_shown, given_results.values())):
        hint = 'pass {"Effects": report}, results by their headings'
        raise refused("html_page(results)", "results by heading", given_results, hint)
    name = name_text(title, ALL)
    sections = []
    for heading, result in results.items():
        table = document_of(result, level, stars, units, has_notes=True)
        sections.append(_section(name_text(heading, ALL), table, name))
    return "\n".join([_head(name), *sections, "</body>", "</html>", ""])


def _is_shown(result: object) -> bool:
    return not isinstance(result, type) and hasattr(result, "to_markdown")


def _head(title: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{_STYLE}
</style>
</head>
<body>
<h1>{escape(title)}</h1>"""


def _section(heading: str, table: RowTable, title: str) -> str:
    left = table.left
    titles = _cells("th", table.titles[:left], ' class="name"') + _cells("th", table.titles[left:])
    about = [f'<p class="about">{escape(table.about)}</p>'] if table.about else []
    head = [f"<h2>{escape(heading)}</h2>"] if heading != title else []
    grid = ['<div class="table"><table>', f"<thead><tr>{titles}</tr></thead>", "<tbody>"]
    grid += [*(_line(line, left) for line in table.lines), "</tbody></table></div>"]
    notes = [f"<p>{escape(note)}</p>" for note in table.notes]
    return "\n".join(["<section>", *head, *about, *grid, *notes, "</section>"])


def _line(line: Line, left: int) -> str:
    """A line, of whose cells the first `left` are names."""
    names = _cells("th", line[:left], ' scope="row"')
    return f"<tr>{names}{_cells('td', line[left:])}</tr>"


def _cells(tag: str, cells: Iterable[str], attributes: str = "") -> str:
    return "".join(f"<{tag}{attributes}>{escape(cell)}</{tag}>" for cell in cells)
