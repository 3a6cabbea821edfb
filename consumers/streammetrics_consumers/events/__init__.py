"""The reasons for refusing an event, and the record of a refused event.

A refused event goes to quarantine with its offset and index, its reason, and the beginning of its
payload. It never stops the stream, and the other events are counted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

from streammetrics_consumers.model.chunk import Chunk, Cut
from streammetrics_consumers.model.commit import Refused

MAX_MS: Final = (1 << 63) - 1  # no time of a record is greater
PAYLOAD_BYTES: Final = 4096  # kept of a refused event; size and hash cover the whole event

Reason = Literal[
    "empty",  # no bytes, or only spaces
    "too_large",  # over source.max_event_bytes
    "unreadable",  # a Kafka batch skipped by --skip: one entry for the whole batch
    "too_deep",  # nested deeper than MAX_DEPTH
    "invalid_utf8",
    "not_json",
    "not_array",  # a message that cannot be split as a JSON array of events
    "not_arrow",  # a message that is not an Arrow IPC stream, or is an unsupported one
    "too_many_events",  # in one message
    "bad_key",  # a record key that is not UTF-8, or not the JSON object that a path needs
    "bad_header",  # a repeated header, one that is not UTF-8, or one whose name is not
    "not_csv",  # the number of values differs from the header, or broken quotes
    "two_documents",  # more than one JSON value in a record
    "not_a_number",  # NaN or Infinity, which JSON does not have
    "not_an_object",
    "missing_field",  # of the event, the key or the headers
    "wrong_type",
    "out_of_range",  # a number that no double holds or 64 bits do not, a time that no calendar has
    "bad_time",  # not ISO 8601 with a zone
    "too_long",  # a name longer than MAX_TEXT
    "unknown_variant",
    "unknown_kind",  # neither an impression nor an outcome
    "closed",  # the label windows for its join are closed
    "late_impression",  # too late in its log to be joined
    "late_outcome",
    "late_exposure",  # too late in its log for the events after it
    "late_event",  # too late in its log to be attributed to an exposure
    "future",  # further ahead of its record's timestamp than windows.max_ahead_s
    "metric",  # a metric refuses the values: a label 2, a probability 1.5
]
# A field that is not there or cannot be read as what it is for. The decoder of JSON then reads no
# further. Columns can be read further, but these reasons come first there too, so that an event is
# refused alike in every format.
UNREAD: Final = frozenset({"missing_field", "wrong_type", "not_a_number", "out_of_range"})


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a value cannot be used."""

    reason: Reason
    field: str | None
    detail: str


def refused(chunk: Chunk, i: int, why: Unfit) -> Refused:
    """Event `i` of a chunk as a refused event."""
    value = chunk.values[i] or b""
    time = None if chunk.timestamps_ms is None else chunk.timestamps_ms[i]
    whole = chunk.cut.get(i) or Cut(len(value), hashlib.sha256(value).hexdigest())
    return Refused(
        offset=int(chunk.offsets[i]),
        index=0 if chunk.indices is None else int(chunk.indices[i]),
        reason=why.reason,
        field=why.field,
        detail=why.detail,
        payload=value[:PAYLOAD_BYTES],
        size=whole.size,
        sha256=whole.sha256,
        record_ms=None if time is None or not 0 <= time <= MAX_MS else int(time),
    )


def shown(value: object, limit: int = 80) -> str:
    """Any value as text for a message, cut to `limit` characters."""
    if isinstance(value, int) and value.bit_length() > 300:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return "an array" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
