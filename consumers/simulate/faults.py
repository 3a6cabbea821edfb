"""Ways in which events of the simulated stream are broken, as real ones are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

FIELDS: Final = (
    "ts", "variant", "user", "item", "position", "score", "label", "segment", "event_id",
)  # fmt: skip


def _changed(**changes: object) -> Callable[[bytes], bytes]:
    """A fault that changes fields of a JSON event; None takes the field away."""

    def change(line: bytes) -> bytes:
        event = {**json.loads(line), **changes}
        kept = {name: value for name, value in event.items() if value is not None}
        return json.dumps(kept, separators=(",", ":")).encode()

    return change


def _csv_changed(field: str, text: str) -> Callable[[bytes], bytes]:
    def change(line: bytes) -> bytes:
        values = line.decode().split(",")
        values[FIELDS.index(field)] = text
        return ",".join(values).encode()

    return change


JSON_FAULTS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda line: line[: len(line) // 2],
    lambda line: line + line,
    lambda line: line.replace(b'"user":"u', b'"user":"\xff'),
    lambda line: b"[" + line + b"]",
    _changed(label=2),
    _changed(score=float("nan")),
    _changed(score="high"),
    _changed(variant=None),
    _changed(variant="treatmnet"),
    _changed(ts="2024-01-01T12:00:00"),
)
JOINED_FAULTS: Final = (  # of impressions, which have no label
    *JSON_FAULTS[:4],
    *JSON_FAULTS[5:],
    _changed(kind="imprssion"),
    _changed(request_id=None),
)
# Half an event would leave its whole array without an end.
ARRAY_FAULTS: Final = JSON_FAULTS[1:]
TABLE_FAULTS: Final = (  # what a row of typed columns can be
    _changed(label=2),
    _changed(score=float("nan")),
    _changed(variant=None),
    _changed(variant="treatmnet"),
    _changed(ts=None),
)
CSV_FAULTS: Final[tuple[Callable[[bytes], bytes], ...]] = (
    lambda line: line[: len(line) // 2],
    lambda line: line.replace(b",u", b",\xff"),
    _csv_changed("label", "2"),
    _csv_changed("score", "nan"),
    _csv_changed("score", "high"),
    _csv_changed("variant", ""),
    _csv_changed("variant", "treatmnet"),
    _csv_changed("ts", "2024-01-01T12:00:00"),
)
