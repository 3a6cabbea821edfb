"""What `eval` prints: values with their intervals, as aligned lines, documents or JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from streammetrics import Bounded, Interval
from streammetrics.present import document
from streammetrics_consumers.model import formatting

DECIMALS: Final = 4
MOST: Final = 1000  # lines of a table of texts
_MOST_REASONS: Final = 20
_DOCUMENTS: Final = {"md": "markdown", "latex": "latex", "csv": "csv"}


@dataclass(frozen=True, slots=True)
class GroupValue:
    """One value of one group."""

    group: tuple[object, ...]
    name: str
    value: float
    interval: Interval
    counts: Mapping[str, int]
    threshold: float | None = None  # the score that the rows choose for this view
    bounds: Bounded | None = None  # certain ones, of a value that is not exact

    @property
    def units(self) -> str:
        """What the value is over: samples, lists, groups or rows."""
        for name in ("samples", "lists_kept", "groups_kept", "rows"):
            if name in self.counts:
                n, unit = self.counts[name], name.removesuffix("_kept")
                return f"{formatting.count(n)} {unit.removesuffix('s') if n == 1 else unit}"
        return "0 rows"

    @property
    def lacks(self) -> str:
        """What its reason explains."""
        if math.isnan(self.value):
            return "no value of"
        return "doubts about" if self.interval.defined else "no interval of"

    def as_json(self, key_columns: Sequence[str]) -> dict[str, object]:
        """The line for JSON."""
        ends = self.bounds
        return {
            "slice": dict(zip(key_columns, self.group, strict=True)),
            "metric": self.name,
            "value": self.value,
            "lower": self.interval.lower,
            "upper": self.interval.upper,
            "level": self.interval.level,
            "reason": self.interval.reason,
            "counts": dict(self.counts),
            **({} if self.threshold is None else {"threshold": self.threshold}),
            **({} if ends is None else {"exact_low": ends.low, "exact_high": ends.high}),
        }


def group_key(line: GroupValue) -> list[tuple[str, object]]:
    """The order of groups: numbers by size, then texts, and None last."""
    return [
        ("~", 0) if key is None else ("", key) if isinstance(key, int | float) else ("a", str(key))
        for key in line.group
    ]


def values_table(
    all_lines: Sequence[GroupValue],
    key_columns: Sequence[str],
    notes: Sequence[str],
    independent: str = "intervals assume that rows and lists are independent",
) -> TextTable:
    """The lines as a table. notes: about some of them. independent: about all intervals."""
    chosen = ["threshold"] * any(line.threshold is not None for line in all_lines[:MOST])
    bounded = ["exact within"] * any(line.bounds is not None for line in all_lines[:MOST])
    rows = []
    for line in all_lines:
        cells = [*map(formatting.name, line.group), line.name]
        cells.append(formatting.number(line.value, DECIMALS))
        if bounded:
            cells.append(_certain(line))
        ends = line.interval.lower, line.interval.upper
        cells.append(formatting.between(*ends, DECIMALS) if line.interval.defined else "—")
        if chosen:
            threshold = line.threshold  # with all digits: a rounded one may select other rows
            cells.append("—" if threshold is None else repr(threshold))
        rows.append([*cells, line.units])
    remarks = [] if all_lines else ["no rows"]
    remarks += [independent, *notes]
    remarks += ["a value whose threshold was chosen on these rows is optimistic"] * bool(chosen)
    reasons = _reasons(all_lines[:MOST])
    remarks += reasons[:_MOST_REASONS]
    if len(reasons) > _MOST_REASONS:
        remarks.append(f"{len(reasons) - _MOST_REASONS} more reasons: use --json")
    values = ["metric", "value", *bounded, "95 % CI", *chosen, "over"]
    titles = [*map(formatting.name, key_columns), *values]
    return TextTable(titles, rows, len(key_columns) + 1, remarks)


@dataclass(frozen=True, slots=True)
class TextTable:
    """Lines of texts with their titles, the first `left` of which are names, and sentences."""

    titles: Sequence[str]
    lines: Sequence[Sequence[str]]
    left: int
    remarks: Sequence[str]

    def written(self, form: str) -> str:
        """The table in one of the forms of --format but JSON."""
        if form == "text":
            return self._aligned()
        return document(self.titles, self.lines, _DOCUMENTS[form], self.left).rstrip("\n") + "\n"

    def _aligned(self) -> str:
        """At most MOST lines, in columns, and the sentences."""
        rows = [self.titles, *self.lines[:MOST]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        texts = [
            "  ".join(
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        n_hidden = len(self.lines) - MOST
        cut = [f"{formatting.count(n_hidden)} more lines: use --json"] if n_hidden > 0 else []
        return "\n".join([*texts, *self.remarks, *cut]) + "\n"


def _certain(line: GroupValue) -> str:
    """The certain bounds of a value."""
    if math.isnan(line.value):
        return formatting.DASH
    if line.bounds is None:
        return "exact"
    return formatting.exact_within(line.bounds.low, line.bounds.high, DECIMALS)


def _reasons(lines: Sequence[GroupValue]) -> list[str]:
    """Why values or intervals are missing or doubtful, each reason with its values and groups."""
    lines_by_reason: dict[tuple[str, str], list[GroupValue]] = {}
    for line in lines:
        if line.interval.reason:
            lines_by_reason.setdefault((line.lacks, line.interval.reason), []).append(line)
    every = len({line.group for line in lines})
    sentences = []
    for (lacks, reason), reason_lines in lines_by_reason.items():
        first, *other_groups = dict.fromkeys(line.group for line in reason_lines)
        where = ", ".join(map(formatting.name, first)) + (
            f" and {len(other_groups)} more" if other_groups else ""
        )
        names = ", ".join(dict.fromkeys(line.name for line in reason_lines))
        sentences.append(
            f"{lacks} {names}{f' ({where})' * (len(other_groups) + 1 < every)}: {reason}"
        )
    return sentences
