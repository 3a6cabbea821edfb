"""Refused events as text and as JSON: partition and offset, reason, and payload.

A payload may contain anything, so the text shows only its beginning, with control characters
escaped; size and hash are those of the whole payload.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterator
from typing import Final

from streammetrics_consumers.ledger.ledger import Ledger
from streammetrics_consumers.ledger.quarantine import open_by_reason
from streammetrics_consumers.model import formatting
from streammetrics_consumers.model.commit import QuarantineRow
from streammetrics_consumers.query.encoding import dumps
from streammetrics_consumers.query.json_kinds import Answer, Count, Counts, Json
from streammetrics_consumers.query.status import snapshot_of

NEWEST: Final = 50  # entries of the answer of the interface
PAGE: Final = 1000  # entries read in one transaction
SHOWN_BYTES: Final = 240  # of a payload in the text


class RefusedEvent(Answer, frozen=True):
    """The position of a refused event, and the reason. Its contents are not in answers: the command
    `quarantine` shows them to those who can read the store."""

    partition: str
    offset: Count
    index: Count
    reason: str
    field: str


class RefusedEvents(Answer, frozen=True, tag_field="format", tag="streammetrics-refused/1"):
    """The open refused events: their number, that of each reason, and the newest of them."""

    generation: Count
    open: Count
    reasons: Counts
    newest: tuple[RefusedEvent, ...]


def refused_json(ledger: Ledger, generation_number: int | None = None) -> bytes:
    """The bytes of `GET /api/quarantine`, of one generation or the newest."""
    generation = snapshot_of(ledger, generation_number).generation.id
    reasons, newest = open_by_reason(ledger.store, generation, NEWEST)
    events = (
        RefusedEvent(
            str(entry.partition), entry.offset, entry.index, entry.reason, entry.field or ""
        )
        for entry in newest
    )
    return dumps(RefusedEvents(generation, sum(reasons.values()), reasons, tuple(events)))


def entries(ledger: Ledger) -> Iterator[QuarantineRow]:
    """Every refused event of the current generation, open or retried, in order of arrival."""
    after = 0
    while page := ledger.quarantine(is_done=None, after=after, limit=PAGE):
        yield from page
        after = page[-1].id


def listing(ledger: Ledger) -> Iterator[str]:
    """The lines of `quarantine list`: the entries, then the count for each reason."""
    reasons: Counter[str] = Counter()
    for entry in entries(ledger):
        reasons[entry.reason] += 1
        yield from _lines(entry)
    if not reasons:
        yield "nothing is in quarantine"
        return
    parts = ", ".join(f"{formatting.count(n)} {reason}" for reason, n in reasons.most_common())
    yield f"{formatting.count(reasons.total())} in quarantine: {parts}"


def as_json(ledger: Ledger) -> bytes:
    """All entries as one JSON document."""
    documents: list[Json] = [entry_json(entry) for entry in entries(ledger)]
    return dumps({"format": "streammetrics-quarantine/1", "entries": documents})


def exported(ledger: Ledger) -> Iterator[bytes]:
    """All entries as JSON Lines, one event each."""
    for entry in entries(ledger):
        yield dumps(entry_json(entry))


def entry_json(entry: QuarantineRow) -> dict[str, Json]:
    """One entry. `payload` is text if it is UTF-8; otherwise it is in `payload_base64`."""
    text: str | None
    try:
        text, encoded = entry.payload.decode("utf-8"), None
    except UnicodeDecodeError:
        text, encoded = None, base64.b64encode(entry.payload).decode("ascii")
    return {
        "partition": str(entry.partition),
        "offset": entry.offset,
        "index": entry.index,
        "reason": entry.reason,
        "field": entry.field,
        "detail": entry.detail,
        "payload": text,
        "payload_base64": encoded,
        "cut": len(entry.payload) < entry.size,
        "size": entry.size,
        "sha256": entry.sha256,
        "done": entry.done,
    }


def _lines(entry: QuarantineRow) -> Iterator[str]:
    place = f"{formatting.name(entry.partition, 80)} offset {entry.offset}"
    if entry.index:
        place += f" event {entry.index}"
    field = f" in {formatting.name(entry.field)}" if entry.field else ""
    note = " (retried)" if entry.done else ""
    yield f"{place}: {entry.reason}{field}{note}"
    if entry.detail:
        yield f"  {formatting.name(entry.detail, 300)}"
    yield f"  {_payload(entry)}"
    yield f"  {formatting.count(entry.size)} bytes, sha256 {entry.sha256}"
    yield ""


def _payload(entry: QuarantineRow) -> str:
    """The beginning of a payload; invalid bytes and unprintable characters are escaped."""
    if not entry.size:
        return "(empty)"
    # Three bytes more than are shown, so that the cut splits no shown character.
    text = entry.payload[: SHOWN_BYTES + 3].decode("utf-8", "backslashreplace")
    return formatting.name(text, SHOWN_BYTES)
