"""Reading fields of the rows of a CSV file.

Comma-separated, quoted with `"` (doubled inside), UTF-8, RFC 4180. The header names the
fields; a name is used as a path unchanged, dots included. An empty value is a missing field.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import Final

from streammetrics_consumers.events import Unfit
from streammetrics_consumers.events.json_events import INVALID_UTF8, Fields
from streammetrics_consumers.events.messages import EMPTY
from streammetrics_consumers.model.chunk import SourceError

MARK: Final = b"\xef\xbb\xbf"  # that a file in UTF-8 may begin with
_MAX_CELL: Final = 16 << 20  # characters; no `max_event_bytes` is larger


def require_columns(paths: Sequence[str], names: Sequence[str], where: str) -> None:
    """Raise SourceError for a source without a required column, rather than refuse every event."""
    lacking = [path for path in paths if path not in names]
    if lacking:
        raise SourceError(
            f"{where} has no column {', '.join(map(repr, lacking))}; it has "
            f"{', '.join(map(repr, list(names)[:50]))}; correct the paths in [event]"
        )


def read_csv(
    values: Sequence[bytes], header: Sequence[str], paths: Sequence[str]
) -> tuple[Fields, dict[int, Unfit]]:
    """The good records' texts by path, in order, and the reason for each bad record."""
    bad: dict[int, Unfit] = {}
    rows: list[list[str]] = []
    for i, value in enumerate(values):
        row = _split(value, len(header))
        if isinstance(row, Unfit):
            bad[i] = row
        else:
            rows.append(row)
    positions = {name: position for position, name in enumerate(header)}
    return {path: [row[positions[path]] for row in rows] for path in paths}, bad


def split_header(value: bytes, where: str) -> tuple[str, ...]:
    """The column names in the first record of a file."""
    row = _split(value.removeprefix(MARK), None)
    if isinstance(row, Unfit) or len(set(row)) < len(row):
        raise SourceError(f"{where} does not begin with a CSV header of distinct names")
    return tuple(row)


def cells(text: str) -> list[str]:
    """The cells of a row in which some may be quoted. Raises csv.Error if it is no row."""
    # The limit is one of the process, and its default is below that of an event. It only grows, to
    # one value, so that no thread lowers it while another reads.
    if csv.field_size_limit() < _MAX_CELL:
        csv.field_size_limit(_MAX_CELL)
    return next(csv.reader([text], strict=True), [])


def _split(value: bytes, count: int | None) -> list[str] | Unfit:
    if not value.strip():
        return EMPTY
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return INVALID_UTF8
    if '"' in text:
        try:
            row = cells(text)
        except csv.Error as error:
            return Unfit("not_csv", None, f"broken quotes: {error}"[:200])
    else:
        row = text.split(",")
    if count is not None and len(row) != count:
        return Unfit("not_csv", None, f"expected {count} values, as in the header, got {len(row)}")
    return row
