"""Events that are rows of a CSV file: the header names the fields.

Comma-separated, quoted with `"` (doubled inside), UTF-8, RFC 4180. A header's name is a path as
it stands, dots included. An empty value is a field that is missing.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence

from consumers.events.json_objects import INVALID_UTF8, Fields
from consumers.events.messages import EMPTY
from consumers.events.refusals import Unfit
from consumers.sources.source import SourceError


def require_columns(paths: Sequence[str], names: Sequence[str], where: str) -> None:
    """Refuse a source that lacks a field altogether, before every event of it is refused."""
    lacking = [path for path in paths if path not in names]
    if lacking:
        raise SourceError(
            f"{where} has no column {', '.join(map(repr, lacking))}; it has "
            f"{', '.join(map(repr, list(names)[:50]))}; correct the paths in [event]"
        )


def read_csv(
    values: Sequence[bytes], header: Sequence[str], paths: Sequence[str]
) -> tuple[Fields, dict[int, Unfit]]:
    """The texts of each path over the good records, in order, and why each other is bad."""
    bad: dict[int, Unfit] = {}
    rows: list[list[str]] = []
    for i, value in enumerate(values):
        row = _split(value, len(header))
        if isinstance(row, Unfit):
            bad[i] = row
        else:
            rows.append(row)
    places = {name: at for at, name in enumerate(header)}
    return {path: [row[places[path]] for row in rows] for path in paths}, bad


def split_header(value: bytes, where: str) -> tuple[str, ...]:
    """The names in the first record of a file."""
    row = _split(value.removeprefix(b"\xef\xbb\xbf"), None)
    if isinstance(row, Unfit) or len(set(row)) < len(row):
        raise SourceError(f"{where} does not begin with a CSV header of different names")
    return tuple(row)


def _split(value: bytes, wanted: int | None) -> list[str] | Unfit:
    if not value.strip():
        return EMPTY
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return INVALID_UTF8
    if '"' in text:
        try:
            row = next(csv.reader([text], strict=True))
        except (csv.Error, StopIteration) as error:
            return Unfit("not_csv", None, f"broken quotes: {error}"[:200])
    else:
        row = text.split(",")
    if wanted is not None and len(row) != wanted:
        return Unfit(
            "not_csv", None, f"expected {wanted} values, as in the header, came {len(row)}"
        )
    return row
