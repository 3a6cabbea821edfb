"""Texts of the key and headers of records, as they are and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from streammetrics_consumers.events import Reason, Unfit, shown
from streammetrics_consumers.events.json_events import parsed_slowly, value_at
from streammetrics_consumers.model.chunk import Chunk, Headers
from streammetrics_consumers.model.paths import KEY, names_in

MAX_BYTES: Final = 65_536  # of a key, or of a header value, that is read


def text_beside(path: str, records: Chunk) -> list[object]:
    """The value of each record at a path into its key or headers: a plain value, None if it is
    absent, or the reason why it cannot be read."""
    if not path.startswith("key."):
        return [text_of(value, path) for value in raw_values(path, records)]
    values: list[object] = []
    for value in records.keys or [None] * len(records):
        if value is None or len(value) > MAX_BYTES:
            values.append(None if value is None else too_long(KEY, len(value)))
            continue
        key = parsed_slowly(value)
        if key is None:
            values.append(Unfit("bad_key", KEY, f"expected a JSON object, got {shown(value[:40])}"))
        else:
            values.append(value_at(key, names_in(path)[1:]))
    return values


def raw_values(path: str, records: Chunk) -> Sequence[bytes | Unfit | None]:
    """The bytes of the whole key, or of a header; None if absent."""
    if path == KEY:
        return records.keys or [None] * len(records)
    name = path.removeprefix("header.")
    return [_header(path, name, headers) for headers in records.headers or [()] * len(records)]


def _header(path: str, name: str, headers: Headers) -> bytes | Unfit | None:
    if headers is None:
        return Unfit("bad_header", path, "the name of a header is no UTF-8 text")
    values = [value for key, value in headers if key == name]
    if len(values) > 1:
        return Unfit("bad_header", path, f"the header is there {len(values)} times")
    return values[0] if values else None


def text_of(value: bytes | Unfit | None, path: str) -> str | Unfit | None:
    """The text of raw bytes at a path, or the reason why it cannot be read."""
    if value is None or isinstance(value, Unfit):
        return value
    if len(value) > MAX_BYTES:
        return too_long(path, len(value))
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        reason: Reason = "bad_key" if path == KEY else "bad_header"
        return Unfit(reason, path, f"it is no UTF-8 text: {shown(value[:40])}")


def too_long(path: str, size: int) -> Unfit:
    """The refusal of a key or a header of this many bytes."""
    return Unfit("too_long", path, f"{size} bytes, at most {MAX_BYTES} may be")
