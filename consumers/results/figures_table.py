"""One table of figures: a column for each variant or slice, a line for each value and count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from consumers.results import printed
from consumers.results.results import ResultRow
from consumers.results.terminal import Style

GAP: Final = 2  # spaces between columns
Column = tuple[str, Mapping[tuple[str, str], ResultRow]]


@dataclass(frozen=True, slots=True)
class Truth:
    """For a simulated stream: the true differences, treatment less control, by (metric, view)."""

    control: str
    treatment: str
    by_figure: Mapping[tuple[str, str], float]


@dataclass(frozen=True, slots=True)
class Line:
    """A label and a text for each column; missing ones at the end are empty."""

    label: str = ""
    cells: tuple[str, ...] = ()
    look: str = ""

    def cell(self, i: int) -> str:
        """The text in column `i`."""
        return self.cells[i] if i < len(self.cells) else ""


def figures(
    columns: Sequence[tuple[str, Sequence[ResultRow]]],
    all_views: bool,
    truth: Truth | None,
    style: Style,
) -> Iterator[Table]:
    """The columns, in as many tables below each other as the width asks for."""
    named: list[Column] = [
        (name, {(row.metric, row.view): row for row in rows}) for name, rows in columns
    ]
    headers = [name for name, _ in named]
    if truth and {truth.control, truth.treatment} <= set(headers):
        headers += ["difference", "true"]
    else:
        truth = None
    lines = list(_lines(named, all_views, truth))
    label_width = max(cell_len(line.label) for line in lines)
    widths = [
        max(cell_len(header), *(cell_len(line.cell(i)) for line in lines))
        for i, header in enumerate(headers)
    ]
    at = 0
    while at < len(headers):
        end, used = at + 1, label_width + GAP + widths[at]
        while end < len(headers) and used + GAP + widths[end] <= style.width:
            used += GAP + widths[end]
            end += 1
        table = Table(box=None, padding=(0, GAP, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("", no_wrap=True, min_width=label_width)
        for header in headers[at:end]:
            table.add_column(Text(header), justify="right", no_wrap=True)
        for line in lines:
            cells = [line.cell(i) for i in range(at, end)]
            if any(cells) or not line.cells:
                table.add_row(Text(line.label), *map(Text, cells), style=line.look)
        if at:
            yield Table.grid()
        yield table
        at = end


def _lines(columns: Sequence[Column], all_views: bool, truth: Truth | None) -> Iterator[Line]:
    rows = [row for _, cells in columns for row in cells.values()]
    metrics = {metric: _counts(columns, metric) for metric in sorted({row.metric for row in rows})}
    shared = _shared(list(metrics.values()))
    for name, counts in shared.items():
        yield Line(_label(name), counts)
    for metric, counted in metrics.items():
        yield Line()
        mine = [row for row in rows if row.metric == metric]
        views = list(dict.fromkeys(row.view for row in mine if row.headline or all_views))
        if len(views) != 1:
            yield Line(printed.name(metric, 30), look="bold")
        for view in views:
            label = printed.name(view, 30)
            if len(views) == 1:
                label = printed.name(metric, 30)
                label += "" if view in metric else f" ({printed.name(view, 30)})"
            else:
                label = f"  {label}"
            found = [cells.get((metric, view)) for _, cells in columns]
            yield from _value_lines(label, found, _difference(columns, metric, view, truth))
        for name, counts in counted.items():
            if shared.get(name) != counts:
                yield Line(f"  {_label(name)}", counts, "dim")


def _value_lines(
    label: str, rows: Sequence[ResultRow | None], compared: tuple[float, float] | None
) -> Iterator[Line]:
    """The values, and below them the bounds of those that are not exact."""
    figures = [f for row in rows if row for f in (row.value, row.low, row.high)]
    decimals = printed.decimals_for(figures)
    values = [printed.number(row.value, decimals) if row else "" for row in rows]
    if compared:
        values += [printed.number(figure, decimals, signed=True) for figure in compared]
    yield Line(label, tuple(values))
    bounds = [
        printed.interval(row.low, row.high, decimals) if row and row.low < row.high else ""
        for row in rows
    ]
    if any(bounds):
        yield Line("", tuple(bounds), "dim")


def _difference(
    columns: Sequence[Column], metric: str, view: str, truth: Truth | None
) -> tuple[float, float] | None:
    """(estimated, true) difference of the two variants, where the truth is known."""
    if truth is None or (true := truth.by_figure.get((metric, view))) is None:
        return None
    by_name = dict(columns)
    control = by_name[truth.control].get((metric, view))
    treatment = by_name[truth.treatment].get((metric, view))
    if control is None or treatment is None:
        return None
    return treatment.value - control.value, true


def _counts(columns: Sequence[Column], metric: str) -> dict[str, tuple[str, ...]]:
    """What a metric counted, by name: a text for each column."""
    rows = [next((r for r in cells.values() if r.metric == metric), None) for _, cells in columns]
    names = dict.fromkeys(name for row in rows if row for name in row.counts)
    return {
        name: tuple(
            printed.count(row.counts[name]) if row and name in row.counts else "" for row in rows
        )
        for name in names
    }


def _shared(counted: Sequence[Mapping[str, tuple[str, ...]]]) -> dict[str, tuple[str, ...]]:
    """The counts that two metrics or more have alike, or that the only metric has; rows first."""
    found: dict[str, tuple[str, ...]] = {}
    for name in sorted({name for counts in counted for name in counts}, key=_rows_first):
        values = Counter(counts[name] for counts in counted if name in counts)
        value, times = values.most_common(1)[0]
        if times > 1 or len(counted) == 1:
            found[name] = value
    return found


def _rows_first(name: str) -> tuple[bool, str]:
    return name != "rows", name


def _label(name: str) -> str:
    return printed.name(name, 30).replace("_", " ")
