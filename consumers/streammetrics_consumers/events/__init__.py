"""Why an event is refused, and what is kept of it.

A refused event goes to quarantine with its place, its reason and the beginning of its payload;
it never stops the stream, and its neighbours are counted.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final, Literal

from streammetrics_consumers.model.chunk import Chunk, Cut
from streammetrics_consumers.model.commit import Refused

PAYLOAD_BYTES: Final = 4096  # what is kept of a refused event; its size and hash are of all of it

Reason = Literal[
    "empty",  # no bytes, or only spaces
    "too_large",  # over source.max_event_bytes
    "unreadable",  # a batch of Kafka's that --skip left out: one entry for all of it
    "too_deep",  # nested deeper than MAX_DEPTH
    "invalid_utf8",
    "not_json",
    "not_array",  # a message that should be a JSON array of events, and does not divide into them
    "not_arrow",  # a message that is no Arrow IPC stream, or one of a kind that is not read
    "too_many_events",  # in one message
    "bad_key",  # a record's key that is not what a path into it needs
    "bad_header",  # a header that is there twice, or is no text
    "not_csv",  # another number of values than the header has, or broken quotes
    "two_documents",  # more than one JSON value in a record
    "not_a_number",  # NaN or Infinity, which JSON does not have
    "not_an_object",
    "missing_field",  # of the event, the key or the headers
    "wrong_type",
    "out_of_range",  # a number that 64 bits do not hold, a time outside of the calendar
    "bad_time",  # not ISO 8601 with a zone
    "too_long",  # a name longer than MAX_TEXT
    "unknown_variant",
    "unknown_kind",  # neither an impression nor an outcome
    "closed",  # the label windows that it would be joined in are closed
    "late_impression",  # too late by its log to be joined
    "late_outcome",
    "future",  # further ahead of its record's timestamp than windows.max_ahead_s
    "metric",  # a metric refuses the values: a label 2, a probability 1.5
]


LATE: Final = ("late_impression", "late_outcome")


@dataclass(frozen=True, slots=True)
class Unfit:
    """Why a value cannot be used."""

    reason: Reason
    field: str | None
    detail: str


def refused(chunk: Chunk, i: int, why: Unfit) -> Refused:
    """The refusal of event `i` of a chunk."""
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
        record_ms=None if time is None or time < 0 else int(time),
    )


def shown(value: object, limit: int = 80) -> str:
    """A value as a message shows it, cut to `limit` characters, whatever it is."""
    if isinstance(value, int) and value.bit_length() > 300:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return "an array" if isinstance(value, list) else "an object"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
