"""Results as a person reads them: variants side by side, each value with its certain bounds.

    Wait: no difference of ctr is shown yet.

    since the start, by variant

                              random              bts
    rows                      10,000           10,000
    positives                     46               69

    auc                       0.5432           0.7011
                    [0.5401, 0.5462] [0.7007, 0.7016]

Unless one metric was asked for, only the views that a result is known by are shown. What all
metrics counted alike stands above them, once; what a metric counted besides stands below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from consumers.results import printed
from consumers.results.answers import Window
from consumers.results.experiment_table import advice, experiment, has_experiment
from consumers.results.figures_table import Truth, figures
from consumers.results.join_table import join_table
from consumers.results.query import OTHER, Slice, SliceValue, iso_utc
from consumers.results.results import ResultRow, Results, slice_key
from consumers.results.terminal import Style, rendered

VARIANT: Final = "variant"  # the role whose values stand side by side
MAX_BLOCKS: Final = 60  # a person reads no more, and JSON has them all


@dataclass(frozen=True, slots=True)
class Block:
    """One table: the rows of one window whose slices differ in one name alone."""

    window: Window
    across: str | None
    names: frozenset[str]
    fixed: Slice
    rows: Sequence[ResultRow] = field(repr=False)

    def columns(self, variants: Sequence[str]) -> list[tuple[str, list[ResultRow]]]:
        """The rows of each value that stands side by side, under its printed name: variants as
        they are declared, control first, and other values in order."""
        rows = self.rows
        if self.across == VARIANT:
            places: dict[SliceValue, int] = {name: i for i, name in enumerate(variants)}
            rows = sorted(rows, key=lambda row: places.get(row.slice.get(VARIANT), len(places)))
        found: dict[str, list[ResultRow]] = {}
        for row in rows:
            label = "all rows" if self.across is None else row.slice.get(self.across)
            shown = OTHER if OTHER in row.slice else printed.name(label, 24)
            found.setdefault(shown, []).append(row)
        return list(found.items())


def table(
    results: Results,
    style: Style,
    *,
    title: str,
    all_views: bool = False,
    truth: Truth | None = None,
) -> str:
    """The text of `results` and of `/results.txt`.

    Of several groupings the smallest that has variants is shown, and a line names the others.
    all_views: every view of each metric, not those alone that it is known by. truth: what a
    simulated stream was made with, to stand beside the estimates.
    """
    groupings = sorted({names_of(row) for row in results.rows}, key=lambda n: (len(n), sorted(n)))
    chosen = shown_grouping(groupings)
    blocks = [block for block in blocks_of(results.rows) if block.names == chosen]
    parts: list[RenderableType] = [Text(printed.name(title, 70), "bold")]
    if results.recommendation is not None:
        parts += [Text(""), advice(results.recommendation, results.contamination)]
    for block in blocks[:MAX_BLOCKS]:
        parts.append(Text("\n" + heading(block) + "\n", "bold cyan"))
        parts.extend(figures(block.columns(results.variants), all_views, truth, style))
    if not blocks:
        parts.append(Text("\nno rows are counted here yet"))
    parts.extend(experiment(results))
    parts.extend(join_table(results.join))
    notes = [] if has_experiment(results) else list(results.notes)  # else they stand there
    if len(blocks) > MAX_BLOCKS:
        notes.append(f"{len(blocks) - MAX_BLOCKS} more tables: narrow with --where, or take --json")
    others = [",".join(sorted(names)) or "''" for names in groupings if names != chosen]
    if others:
        notes.append("more: " + ", ".join(f"--by {names}" for names in others))
    if any(row.low < row.high for block in blocks[:MAX_BLOCKS] for row in block.rows):
        notes.append("[low, high] holds the exact value for certain; other values are exact")
    if truth is not None:
        notes.append("true: the difference that the stream was simulated with")
    parts.append(Text(""))
    parts.extend(Text(printed.name(note, 400), "dim") for note in notes)
    parts.extend(health(results))
    return rendered(parts, style)


def names_of(row: ResultRow) -> frozenset[str]:
    """The grouping of a row, also where it is the sum of the keys past `max_keys`."""
    other = row.slice.get(OTHER)
    return frozenset(other) if isinstance(other, tuple) else frozenset(row.slice)


def blocks_of(rows: Sequence[ResultRow]) -> Iterator[Block]:
    """The tables of rows that are in order: for each window, grouping, and value of the names
    that do not stand side by side."""
    for window, in_window in groupby(rows, key=lambda row: row.window):
        tables: dict[tuple[object, ...], list[ResultRow]] = {}
        for row in in_window:
            names = names_of(row)
            across = _across(names)
            fixed = {k: v for k, v in row.slice.items() if k not in (across, OTHER)}
            tables.setdefault((len(names), tuple(sorted(names)), slice_key(fixed)), []).append(row)
        for key in sorted(tables):
            mine = tables[key]
            names = names_of(mine[0])
            across = _across(names)
            fixed = {k: v for k, v in mine[0].slice.items() if k not in (across, OTHER)}
            yield Block(window, across, names, fixed, mine)


def health(results: Results) -> list[Text]:
    """How far and how well the stream was read; what asks for attention is marked."""
    newest = "none yet" if results.watermark_ms is None else iso_utc(results.watermark_ms)
    line = Text(f"{printed.count(results.rows_read)} read")
    for name in ("quarantined", "late", "future", "expired"):
        n: int = getattr(results, name)
        line.append(f", {printed.count(n)} {name}", "yellow" if n else "")
    for name in ("repeated", "skipped"):  # which ask for no attention
        if n := getattr(results, name):
            line.append(f", {printed.count(n)} {name}")
    lost = results.incomplete_text
    first = [] if lost is None else [Text(printed.name(lost, 1000), "bold yellow")]
    found = [*first, line, Text(f"newest event {newest}")]
    if 0 < results.rows_read == results.skipped:
        found.append(Text("no event meets [event] where: all are skipped", "yellow"))
    return found


def heading(block: Block) -> str:
    """What stands above a table: its window, and what its slices have alike."""
    window = block.window
    parts = ["since the start"]
    if window.start_ms is not None and window.end_ms is not None:
        parts = [f"{iso_utc(window.start_ms)} to {iso_utc(window.end_ms)}, {window.state}"]
    parts += [f"{printed.name(k)} = {printed.name(v)}" for k, v in sorted(block.fixed.items())]
    if block.across:
        parts.append(f"by {printed.name(block.across)}")
    return ", ".join(parts)


def shown_grouping(groupings: Sequence[frozenset[str]]) -> frozenset[str] | None:
    """Of several the one that a person sees unasked: the smallest that has variants."""
    with_variants = [names for names in groupings if VARIANT in names]
    return next(iter(with_variants or groupings), None)


def _across(names: frozenset[str]) -> str | None:
    return VARIANT if VARIANT in names else max(names, default=None)
