"""Rows of a result as aligned lines, for a `repr` and for the HTML of a notebook.

Certain bounds and confidence intervals have a column, a heading and a notation each. A result with
parts has a line for each headline view of each part, any other result one for each view. Of many
lines only the first and the last are shown.
"""

from __future__ import annotations

import math
import sys
from collections import deque
from collections.abc import Iterator, Sequence, Sized
from datetime import UTC, datetime
from itertools import islice
from textwrap import wrap
from typing import Final, NamedTuple, Protocol, TypeGuard

from streammetrics.core.bounded import Bounded
from streammetrics.present.texts import (
    EXACT_WITHIN,
    between,
    ci_title,
    decimals_for,
    exact_within,
    name_text,
    number,
)
from streammetrics.present.value_rows import ALWAYS_VALID, LEVEL, Columns, ValueRow, rows_of
from streammetrics.present.views import counts_of, has_parts, texts_of

WIDTH: Final = 80  # of a repr
MOST: Final = 20  # lines of a repr
ALL: Final = sys.maxsize - 1  # lines of a table, or characters of a name, that are not cut
_REASONS: Final = 6  # different reasons that a repr names
_DIGITS: Final = 5
_SCIENTIFIC: Final = 1e9
_TINY: Final = 1e-5  # below it, a row has exponents
_GAP: Final = "  "
_INDENT: Final = "  "
_LEAST: Final = 12  # characters of a column of names, whose lines may then be longer than WIDTH,
_SLACK: Final = 8  # and so much longer if every name then fits
_NAME: Final = 80  # characters of a key, and of a name of a view and its metric
_LEFT_OUT: Final = "..."
Line = tuple[str, ...]  # of name, rows, value, certain bounds, confidence interval


class HasNotes(Protocol):
    """A result with sentences to be read below its values."""

    def _notes(self) -> Iterator[str]: ...


def _has_notes(result: object) -> TypeGuard[HasNotes]:
    return hasattr(type(result), "_notes")


def notes_of(result: object) -> Iterator[str]:
    """The sentences of a result, or of the one that it has as `value`, as that of UserGroups.

    >>> from streammetrics import Ratio
    >>> list(notes_of(Ratio().compute()))
    []
    """
    metric_result = result if _has_notes(result) else getattr(result, "value", None)
    if _has_notes(metric_result):
        yield from metric_result._notes()


class HasTable(Protocol):
    """A result whose lines are not one for each value."""

    def _table(self, most: int) -> RowTable: ...


def _has_table(result: object) -> TypeGuard[HasTable]:
    return hasattr(type(result), "_table")


class RowTable(NamedTuple):
    """The texts of a result. about: its counts and texts. notes: why values or intervals are
    undefined, and sentences. more: whether some lines are left out, between the first and the last;
    a line `...` is there. left: the columns of names, at the left. Empty columns are left out.
    rows: the values that the lines show, one a line if none is left out; () of columns. details:
    the last columns, which documents leave out."""

    title: str
    about: str
    titles: Line
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
    more: bool = False
    left: int = 1
    rows: tuple[ValueRow, ...] = ()
    details: int = 0


def table_of(result: object, most: int, level: float = LEVEL) -> RowTable:
    """The table of a result, with its first and its last rows, `most` of them; names are cut unless
    `most` is ALL. level: of the intervals."""
    if _has_table(result):
        return result._table(most)
    whole = has_parts(result)
    shown = list(islice(rows_of(result, level=level, headlines=whole), most + 1))
    if is_cut := len(shown) > most:
        shown = [*shown[: most - most // 2], *_last_rows(result, most // 2, whole)]
    labels = [label(row) for row in shown]
    heads = dict.fromkeys(_ci_title(row) for row in shown if row.ci)
    one_head = next(iter(heads)) if len(heads) == 1 else ""
    several = "always-valid CI" if all(ALWAYS_VALID in head for head in heads) else "CI"
    head = one_head or several
    has_bounds = any(isinstance(row.value, Bounded) for row in shown)
    has_keys = whole or bool(shown and shown[-1].keys)  # parts come last: each has rows of its own
    titles = ("", "rows", "value", EXACT_WITHIN, head)
    names = [label(row, ALL) for row in shown] if most == ALL else labels
    numbers = [_numbers(row, has_keys, has_bounds, not one_head) for row in shown]
    lines = [(name, *texts) for name, texts in zip(names, numbers, strict=True)]
    used = [i for i in range(len(titles)) if i in (0, 2) or any(line[i] for line in lines)]
    texts, about = texts_of(result), []
    if whole and isinstance(result, Sized):
        about.append(f"{len(result):,} result{'s' * (len(result) != 1)}")
    counts = sorted(counts_of(result).items(), key=lambda count: count[0] != "rows")
    about += [_count(name, n) for name, n in counts]
    about += [
        f"{'' if name == 'name' else _words(name) + ' '}{name_text(text, 200)}"
        for name, text in texts.items()
        if name not in ("reason", "alarm", "exactness", "sentence", "note")
    ]
    notes = list(_reasons(shown, labels))
    notes += [texts["reason"]] if "reason" in texts and not shown else []
    notes += notes_of(result)
    notes += [f"alarm: {texts['alarm']}"] if "alarm" in texts else []
    cells = [tuple(line[i] for i in used) for line in lines]
    return RowTable(
        type(result).__name__,
        ", ".join(about),
        tuple(titles[i] for i in used),
        tuple(_with_gap(cells, most) if is_cut else cells),
        tuple(notes),
        is_cut,
        rows=tuple(shown),
    )


def first_and_last(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    """The lines, or the first and the last of them with `...` between, if there are too many."""
    if len(lines) <= most:
        return tuple(lines)
    half = most // 2
    return tuple(_with_gap([*lines[: most - half], *lines[len(lines) - half :]], most))


def _with_gap(lines: Sequence[Line], most: int) -> Iterator[Line]:
    """The lines with `...` between the first and the last of them."""
    first = most - most // 2
    yield from lines[:first]
    yield (_LEFT_OUT, *("" for _ in lines[0][1:]))
    yield from lines[first:]


def _last_rows(result: object, n: int, headlines: bool) -> list[ValueRow]:
    """The last rows; nothing is computed of parts before them."""
    if not has_parts(result):
        return list(rows_of(result, headlines=headlines))[-n:]
    rows: list[ValueRow] = []
    for part, part_result in reversed(deque(result._parts(), maxlen=n)):
        rows = [
            row.placed_in(part) for row in _last_rows(part_result, n - len(rows), headlines)
        ] + rows
        if len(rows) >= n:
            break
    return rows


def table_of_columns(title: str, columns: Columns, most: int) -> RowTable:
    """A line for each row of columns of equal length; None is an empty cell, and a column of floats
    has as many decimals in each cell."""
    n = len(next(iter(columns.values()), ()))
    half = most // 2
    indices = range(n) if n <= most else [*range(most - half), *range(n - half, n)]
    cells = [_cells([values[i] for i in indices]) for values in columns.values()]
    lines = list(zip(*cells, strict=True))
    shown = tuple(lines if n <= most else _with_gap(lines, most))
    return RowTable(title, f"{n:,} row{'s' * (n != 1)}", tuple(columns), shown, (), n > most, 0)


def _cells(values: Sequence[object]) -> list[str]:
    floats = [x for x in values if isinstance(x, float)]
    decimals = decimals_for(floats, digits=_DIGITS)
    cells = []
    for value in values:
        if isinstance(value, float):
            cells.append(number(value, decimals))
        elif isinstance(value, int):
            cells.append(f"{value:,}")
        else:
            cells.append("" if value is None else name_text(value, _NAME))
    return cells


def text_table(result: object) -> str:
    """The table as text of about 80 columns, as long as its numbers are not huge.

    A name that has no room is on a line of its own, above its numbers.

    >>> from streammetrics import HistogramAUC, Panel, Ratio
    >>> panel = Panel({"auc": HistogramAUC(resolution=1), "ctr": Ratio()},
    ...               inputs={"ctr": {"numerators": "labels"}})
    >>> panel.update(labels=[0, 1, 1, 0] * 50, scores=[0.3, 0.35, 0.8, 0.9] * 50)
    >>> print(text_table(panel.compute()))
    PanelResult: 2 results
               rows    value        exact within             95 % CI
    auc.auc     200  0.37500  [0.25000, 0.50000]  0.17519 to 0.58130
    ctr.ratio   200  0.50000               exact  0.43136 to 0.56864
    rows are taken as independent because no users are known
    auc.auc: widened by the uncertainty within buckets
    """
    table = table_of(result, MOST)
    head = f"{table.title}: {table.about}" if table.about else table.title
    out = wrap(head, WIDTH, subsequent_indent=_INDENT)
    cells = [table.titles, *table.lines] if table.lines else []
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left = table.left
    room = WIDTH - sum(widths[left:]) - len(_GAP) * (len(widths) - 1)
    name_width = max(room // left, _LEAST) if left else 0
    widths[:left] = [
        _names_width(column, name_width) for column in list(zip(*cells, strict=True))[:left]
    ]
    for line in cells:
        names, numbers = line[:left], line[left:]
        if any(len(name) > n for name, n in zip(names, widths, strict=False)):
            # Names are never cut: these have a line of their own.
            out += wrap(_GAP.join(names), WIDTH, subsequent_indent=_INDENT)
            names = ("",) * left
        texts = [text.ljust(n) for text, n in zip(names, widths, strict=False)]
        texts += [text.rjust(n) for text, n in zip(numbers, widths[left:], strict=True)]
        out.append(_GAP.join(texts).rstrip())
    if table.more:
        half = MOST // 2
        out.append(f"... the first {MOST - half} and the last {half}; to_frame() has all")
    for note in table.notes:
        out += wrap(note, WIDTH, subsequent_indent=_INDENT)
    return "\n".join(out)


def _numbers(row: ValueRow, of_part: bool, has_bounds: bool, own_head: bool) -> Line:
    value, within, ci = float(row.value), row.exact_within, row.ci
    numbers = [value, *(within or ()), *(ci or ())]
    decimals = decimals_for(numbers, digits=_DIGITS) if any(map(math.isfinite, numbers)) else 0
    size = max((abs(x) for x in numbers if math.isfinite(x)), default=0.0)
    limit = _SCIENTIFIC if size >= _SCIENTIFIC else math.inf
    limit = 0.0 if 0 < size < _TINY else limit
    bounds = ""
    if isinstance(row.value, Bounded):
        low, high = row.value.low, row.value.high
        bounds = (
            "" if math.isnan(value + low) else exact_within(low, high, decimals, scientific=limit)
        )
        bounds = "exact" if low == high else bounds
    elif has_bounds and row.exact and not math.isnan(value):
        bounds = "exact"
    interval = between(*ci, decimals, scientific=limit) if ci else ""
    interval += f" ({_ci_title(row).removesuffix(' CI')})" if own_head and ci else ""
    n = row.counts.get("rows")
    rows = f"{n:,}" if of_part and isinstance(n, int) else ""
    return rows, number(value, decimals, scientific=limit), bounds, interval


def label(row: ValueRow, limit: int = _NAME) -> str:
    """The window, the key and the name of a row, each cut to `limit`; texts from a stream are
    escaped.

    >>> label(ValueRow("ctr", 0.5, keys=(("bts", 2),), window=(0, 3_600_000)))
    '1970-01-01T00:00:00Z: bts, 2: ctr'
    """
    parts = [] if row.window is None else [_start(row.window[0])]
    parts += [_key_text(key, limit) for key in row.keys]
    name = name_text(row.name or "value", limit) if row.name or not parts else ""
    return ": ".join(filter(None, (*parts, name)))


def _start(start_ms: int) -> str:
    try:
        time = datetime.fromtimestamp(start_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{start_ms} ms"
    return time.isoformat(timespec="milliseconds" if start_ms % 1000 else "seconds")[:-6] + "Z"


def _key_text(key: object, limit: int) -> str:
    parts = key if isinstance(key, tuple) else (key,)
    return ", ".join(name_text(part, limit) for part in parts)


def _ci_title(row: ValueRow) -> str:
    interval = row.interval
    if interval is None:
        return ci_title(LEVEL)
    title = ci_title(interval.level)
    return f"{ALWAYS_VALID} {title}" if interval.method == ALWAYS_VALID else title


def _reasons(rows: Sequence[ValueRow], labels: Sequence[str]) -> Iterator[str]:
    """Each reason with the labels of its rows; without them if it is that of all, or of all that
    have an interval."""
    by_reason: dict[str, list[str]] = {}
    with_interval = []
    for row, name in zip(rows, labels, strict=True):
        if row.ci:  # what the interval assumes, and why it is doubtful
            with_interval.append(name)
            for reason in filter(None, row.reason.split("; ")):
                by_reason.setdefault(reason, []).append(name)
        elif row.reason:
            without = "no interval: " if not math.isnan(float(row.value)) else ""
            by_reason.setdefault(without + row.reason, []).append(name)
    for reason, names in islice(by_reason.items(), _REASONS):
        first_names = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        yield reason if names in (labels, with_interval) else f"{first_names}: {reason}"
    if len(by_reason) > _REASONS:
        yield f"and {len(by_reason) - _REASONS} more, in the column `reason` of to_frame()"


def _count(name: str, n: int) -> str:
    """A count with its name; a time since the epoch as a date."""
    if name.endswith("_ms"):
        return f"{_words(name.removesuffix('_ms'))} {_start(n)}"
    return f"{_words(name.removeprefix('n_'))} {n:,}"


def _words(name: str) -> str:
    return name_text(name).replace("_", " ")


def _names_width(names: Sequence[str], room: int) -> int:
    """The width of a column of names: of the longest of them, or of those that have room."""
    longest = max(map(len, names))
    if longest <= room + _SLACK:
        return longest
    return max((len(name) for name in names if len(name) <= room), default=0) or len(_INDENT)
